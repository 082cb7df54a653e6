//! The shape of every refusal.

use serde_json::Value;

use crate::http::Response;

const REQUIRED: [&str; 4] = ["code", "message", "retryable", "request_id"];
const OPTIONAL: [&str; 5] = ["hint", "path", "did_you_mean", "details", "maybe_executed"];

/// Checks status, code, members, `details.help` and headers of a refusal, and returns its `error` object without
/// `details.help`.
pub fn refusal(response: &Response, status: u16, code: &str) -> Value {
    named(response);
    let text = response.text();
    let body = response.json();
    assert_eq!(
        (response.status, body["error"]["code"].as_str()),
        (status, Some(code)),
        "{text}"
    );
    assert_eq!(
        body.as_object().map(serde_json::Map::len),
        Some(1),
        "{text}"
    );
    let error = &body["error"];
    let members = error.as_object().expect("`error` is an object");
    for name in members.keys().map(String::as_str) {
        assert!(
            REQUIRED.contains(&name) || OPTIONAL.contains(&name),
            "`{name}`: {text}"
        );
    }
    let message = error["message"].as_str().expect("a message is text");
    assert!(!message.is_empty() && !message.ends_with('.'), "{text}");
    assert!(error["retryable"].is_boolean(), "{text}");
    assert_eq!(
        error["request_id"].as_str(),
        response.header("x-request-id"),
        "{text}"
    );
    let of_type = |name: &str, right: fn(&Value) -> bool| {
        assert!(members.get(name).is_none_or(right), "`{name}`: {text}");
    };
    of_type("hint", Value::is_string);
    of_type("path", Value::is_string);
    of_type("details", Value::is_object);
    of_type("maybe_executed", Value::is_boolean);
    of_type("did_you_mean", |names| {
        names
            .as_array()
            .is_some_and(|names| !names.is_empty() && names.iter().all(Value::is_string))
    });
    let retry_after = response.header("retry-after").map(str::parse::<u64>);
    match status {
        429 | 503 => assert!(
            matches!(retry_after, Some(Ok(1..))),
            "{retry_after:?}: {text}"
        ),
        _ => assert_eq!(retry_after, None, "{text}"),
    }
    let mut error = error.clone();
    let details = error["details"].as_object_mut();
    let details = details.unwrap_or_else(|| panic!("no details: {text}"));
    let help = details.remove("help");
    assert_eq!(
        help,
        Some(format!("docs/errors.md#{code}").into()),
        "{text}"
    );
    if details.is_empty() {
        error.as_object_mut().map(|error| error.remove("details"));
    }
    error
}

/// Checks the headers of every reply: catalog, request id and content type.
pub fn named(response: &Response) {
    let digest = response.header("x-catalog-digest").unwrap_or_default();
    let text = response.text();
    assert!(digest.starts_with("sha256/1:"), "{digest}: {text}");
    assert!(
        response
            .header("x-request-id")
            .is_some_and(|id| !id.is_empty()),
        "{text}"
    );
    assert_eq!(
        response.header("content-type"),
        Some("application/json"),
        "{text}"
    );
}
