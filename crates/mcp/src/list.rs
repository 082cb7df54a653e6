//! Reads a server's whole tool list: every page, strictly, within bounds.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::json;
use broker_model::mcp::METHOD_NOT_FOUND;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::connection::{Connection, Kind, Unanswered};
use crate::failure::SourceFailure;
use crate::request;

/// Pages that are asked for.
const MOST_PAGES: usize = 1000;
/// Tools that a source may have.
const MOST_TOOLS: usize = 10_000;

/// All tools, in the server's order. `meta` is what every request of the era carries.
pub(crate) async fn tools(
    connection: &Connection,
    meta: &str,
    time: Duration,
    redactor: &Redactor,
) -> Result<Vec<Map<String, Value>>, SourceFailure> {
    let mut listing = Listing::default();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let line = |id| request::list(id, cursor.as_deref(), meta);
        let page = match connection.request(Kind::Own, line, time).await {
            Ok(answer) => answer.result,
            Err(Unanswered::Error(error)) if is_method_not_found(&error) => {
                return Ok(listing.tools);
            }
            Err(unanswered) => return Err(failure(unanswered, redactor)),
        };
        cursor = listing.add_page(&page, redactor)?;
        if cursor.is_none() {
            return Ok(listing.tools);
        }
    }
    Err(invalid(format!(
        "the tool list has more than {MOST_PAGES} pages"
    )))
}

/// What was listed so far.
#[derive(Default)]
struct Listing {
    tools: Vec<Map<String, Value>>,
    names: HashSet<String>,
    cursors: HashSet<String>,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, rename = "nextCursor")]
    next_cursor: Option<&'a RawValue>,
    #[serde(borrow, rename = "resultType")]
    result_type: Option<&'a RawValue>,
}

impl Listing {
    /// Takes a page in; the cursor of the next, where there is one. An empty cursor is one.
    fn add_page(
        &mut self,
        page: &[u8],
        redactor: &Redactor,
    ) -> Result<Option<String>, SourceFailure> {
        let shown = |text: &str| shown_line(&redactor.redact(text), 120);
        let page: Page<'_> = serde_json::from_slice(page).map_err(|error| {
            invalid(format!(
                "the tool list cannot be read: {}",
                shown(&error.to_string())
            ))
        })?;
        if page
            .result_type
            .is_some_and(|kind| kind.get() != r#""complete""#)
        {
            return Err(invalid(
                "the server asks for input before it lists its tools",
            ));
        }
        for raw in page.tools {
            if self.tools.len() >= MOST_TOOLS {
                return Err(invalid(format!(
                    "the server lists more than {MOST_TOOLS} tools"
                )));
            }
            let tool = self.read_tool(raw.get()).map_err(|reason| {
                let name = name_of(raw.get()).map_or_else(
                    || format!("number {}", self.tools.len() + 1),
                    |name| format!("`{}`", shown(&name)),
                );
                invalid(format!("tool {name}: {}", shown(&reason)))
            })?;
            self.tools.push(tool);
        }
        let Some(raw) = page.next_cursor else {
            return Ok(None);
        };
        let cursor: String =
            serde_json::from_str(raw.get()).map_err(|_| invalid("`nextCursor` is not a string"))?;
        if !self.cursors.insert(cursor.clone()) {
            return Err(invalid(
                "the tool list repeats a cursor, so it would never end",
            ));
        }
        Ok(Some(cursor))
    }

    fn read_tool(&mut self, raw: &str) -> Result<Map<String, Value>, String> {
        let Value::Object(tool) = json::parse(raw).map_err(|error| error.to_string())? else {
            return Err("a tool is not an object".to_owned());
        };
        let name = match tool.get("name") {
            Some(Value::String(name)) if !name.is_empty() => name,
            Some(Value::String(_)) => return Err("its name is empty".to_owned()),
            _ => return Err("`name` is not a string".to_owned()),
        };
        if tool
            .get("description")
            .is_some_and(|text| !text.is_string())
        {
            return Err("`description` is not a string".to_owned());
        }
        if !self.names.insert(name.clone()) {
            return Err("it is listed twice".to_owned());
        }
        Ok(tool)
    }
}

/// A tool's name from text that may be refused for other reasons.
fn name_of(raw: &str) -> Option<String> {
    let tool: HashMap<String, &RawValue> = serde_json::from_str(raw).ok()?;
    serde_json::from_str(tool.get("name")?.get()).ok()
}

fn invalid(message: impl Into<String>) -> SourceFailure {
    SourceFailure::new(SourceCause::ListInvalid, message)
}

fn is_method_not_found(error: &Bytes) -> bool {
    serde_json::from_slice::<Value>(error)
        .is_ok_and(|error| error.get("code").and_then(Value::as_i64) == Some(METHOD_NOT_FOUND))
}

fn failure(unanswered: Unanswered, redactor: &Redactor) -> SourceFailure {
    let message = match unanswered {
        Unanswered::Gone { failure, .. } => return failure,
        Unanswered::Broken(reason) => return invalid(reason),
        Unanswered::TooLarge => return invalid("the tool list is longer than a line may be"),
        Unanswered::Error(error) => format!(
            "the server could not list its tools: {}",
            shown_line(&redactor.redact(&String::from_utf8_lossy(&error)), 300)
        ),
        Unanswered::Timeout { .. } => "the server did not list its tools in time".to_owned(),
        Unanswered::Overloaded { .. } => "too many requests wait".to_owned(),
        Unanswered::NoRoom => {
            "there is no room for the tool list: `limits.memory_bytes` is in use".to_owned()
        }
    };
    SourceFailure::new(SourceCause::ListFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(pages: &[&str]) -> Result<(usize, Option<String>), String> {
        let mut listing = Listing::default();
        let mut cursor = None;
        for page in pages {
            cursor = listing
                .add_page(page.as_bytes(), &Redactor::default())
                .map_err(|failure| {
                    assert_eq!(failure.cause, SourceCause::ListInvalid);
                    failure.message
                })?;
        }
        Ok((listing.tools.len(), cursor))
    }

    #[test]
    fn an_empty_cursor_is_a_cursor_and_null_is_none() {
        let page = r#"{"tools":[{"name":"a"}],"nextCursor":""}"#;
        assert_eq!(add(&[page]), Ok((1, Some(String::new()))));
        assert_eq!(
            add(&[page, r#"{"tools":[{"name":"b"}],"nextCursor":null}"#]),
            Ok((2, None))
        );
        assert_eq!(add(&[r#"{"tools":[]}"#]), Ok((0, None)));
    }

    #[test]
    fn what_breaks_the_protocol_is_named() {
        let check = |pages: &[&str], part: &str| {
            let message = add(pages).unwrap_err();
            assert!(message.contains(part), "{message}");
        };
        check(
            &[
                r#"{"tools":[],"nextCursor":"x"}"#,
                r#"{"tools":[],"nextCursor":"x"}"#,
            ],
            "repeats a cursor",
        );
        check(&[r#"{"tools":[],"nextCursor":7}"#], "`nextCursor`");
        check(
            &[r#"{"tools":[{"name":"a"},{"name":"a"}]}"#],
            "tool `a`: it is listed twice",
        );
        check(&[r#"{"tools":[{"name":""}]}"#], "its name is empty");
        check(&[r#"{"tools":[{"name":"a"},{}]}"#], "tool number 2: `name`");
        check(&[r#"{"tools":[7]}"#], "not an object");
        check(
            &[r#"{"tools":[{"name":"a","description":7}]}"#],
            "tool `a`: `description`",
        );
        check(
            &[r#"{"tools":[{"name":"a","x":{"y":1,"y":2}}]}"#],
            "tool `a`: duplicate key `y`",
        );
        check(
            &[r#"{"tools":[{"name":"a","x":18446744073709551616}]}"#],
            "tool `a`: the number",
        );
        check(&[r#"{"nextCursor":"x"}"#], "cannot be read");
        check(
            &[r#"{"tools":[],"resultType":"input_required"}"#],
            "asks for input",
        );
    }
}
