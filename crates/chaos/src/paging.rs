//! The pages of a tool list, and the ways in which a list goes wrong. The cursor of the second page
//! is the empty string, which is a valid cursor.

use serde_json::{Value, json};

use crate::reply::Outcome;
use crate::script::{RpcError, Script};

/// The page at a cursor; `lists` counts how often a list was begun.
pub(crate) fn page(script: &Script, cursor: &Value, lists: u64) -> Outcome {
    if let Some(error) = &script.list_error {
        return Outcome::Error(error.clone());
    }
    let Some(at) = page_number(script, cursor) else {
        return Outcome::Error(RpcError::new(-32602, "the cursor is not known"));
    };
    let size = script.page_size.unwrap_or(usize::MAX);
    let start = at.saturating_mul(size).min(script.tools.len());
    let end = start.saturating_add(size).min(script.tools.len());
    let mut tools = script.tools[start..end].to_vec();
    if script.list_unstable && at == 0 {
        let tool = json!({
            "name": "unstable",
            "description": format!("list {lists}"),
            "inputSchema": {"type": "object"},
        });
        tools.push(tool.to_string());
    }
    let next = if script.list_loop {
        Some("again".to_owned())
    } else if script.list_endless || end < script.tools.len() {
        Some(cursor_of(at + 1))
    } else {
        None
    };
    let next = next.map_or(String::new(), |next| {
        format!(r#","nextCursor":{}"#, json!(next))
    });
    Outcome::Result(format!(r#"{{"tools":[{}]{next}}}"#, tools.join(",")))
}

fn cursor_of(page: usize) -> String {
    match page {
        1 => String::new(),
        page => format!("page-{page}"),
    }
}

fn page_number(script: &Script, cursor: &Value) -> Option<usize> {
    let page: usize = match cursor {
        Value::Null => 0,
        Value::String(_) if script.list_loop => 0,
        Value::String(cursor) if cursor.is_empty() => 1,
        Value::String(cursor) => cursor.strip_prefix("page-")?.parse().ok()?,
        _ => return None,
    };
    let size = script.page_size.unwrap_or(usize::MAX);
    let exists = page == 0 || page.saturating_mul(size) < script.tools.len();
    (exists || script.list_endless).then_some(page)
}
