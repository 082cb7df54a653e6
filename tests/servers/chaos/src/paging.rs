//! The pages of a tool list, and the faults of a list. The cursor of the second page is the empty string, which
//! is a valid cursor.

use serde_json::{Value, json};

use crate::reply::Outcome;
use crate::script::{RpcError, Script};

/// The page at a cursor.
pub(crate) fn page(script: &Script, cursor: &Value) -> Outcome {
    if let Some(error) = &script.list_error {
        return Outcome::Error(error.clone());
    }
    let Some(at) = page_number(script, cursor) else {
        return Outcome::Error(RpcError::new(-32602, "the cursor is not known"));
    };
    let size = script.page_size.unwrap_or(usize::MAX);
    let all = count(script);
    let start = at.saturating_mul(size).min(all);
    let end = start.saturating_add(size).min(all);
    let tools: Vec<String> = (start..end).map(|at| tool(script, at)).collect();
    let next = if script.list_loop {
        Some("again".to_owned())
    } else if script.list_endless || end < all {
        Some(cursor_of(at + 1, script.cursor_bytes))
    } else {
        None
    };
    let next = next.map_or(String::new(), |next| {
        format!(r#","nextCursor":{}"#, json!(next))
    });
    Outcome::Result(format!(r#"{{"tools":[{}]{next}}}"#, tools.join(",")))
}

/// The number of tools.
fn count(script: &Script) -> usize {
    let bulk = script.bulk.as_ref().map_or(0, |bulk| bulk.tools);
    script.tools.len() + bulk
}

fn tool(script: &Script, at: usize) -> String {
    match (&script.bulk, script.tools.get(at)) {
        (_, Some(tool)) => tool.clone(),
        (Some(bulk), None) => bulk.tool(at - script.tools.len()),
        (None, None) => String::new(),
    }
}

fn cursor_of(page: usize, least: usize) -> String {
    let cursor = match page {
        1 if least == 0 => String::new(),
        page => format!("page-{page}"),
    };
    let padding = "-".repeat(least.saturating_sub(cursor.len()));
    cursor + &padding
}

/// Whether the page at this cursor is never answered.
pub(crate) fn hangs(script: &Script, cursor: &Value) -> bool {
    let page = page_number(script, cursor);
    script
        .list_hang_after
        .is_some_and(|pages| page.is_some_and(|page| page >= pages))
}

fn page_number(script: &Script, cursor: &Value) -> Option<usize> {
    let page: usize = match cursor {
        Value::Null => 0,
        Value::String(_) if script.list_loop => 0,
        Value::String(cursor) if cursor.is_empty() => 1,
        Value::String(cursor) => cursor
            .strip_prefix("page-")?
            .trim_end_matches('-')
            .parse()
            .ok()?,
        _ => return None,
    };
    let size = script.page_size.unwrap_or(usize::MAX);
    let exists = page == 0 || page.saturating_mul(size) < count(script);
    (exists || script.list_endless).then_some(page)
}
