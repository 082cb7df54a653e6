//! The error object as a model reads it: the members that help it to correct the call. A client sends the text of a
//! refusal to the model, so that each member costs tokens.

use broker_model::CallCode;
use broker_model::json::serialize_exactly;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::schema_text;
use broker_core::CoreError;

/// The maximum length of the paths of a node's entries together, in bytes.
const MAX_ENTRIES_BYTES: usize = 300;
/// The maximum number of places where arguments do not match.
const MAX_ERRORS: usize = 5;

/// Members of the details of a withdrawn tool that are digests.
const DIGESTS: [&str; 2] = ["expected", "found"];

/// The members of the text. False flags are left out: a model acts on true ones.
#[derive(Serialize)]
struct ErrorText<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    did_you_mean: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    #[serde(skip_serializing_if = "is_false")]
    retryable: bool,
    #[serde(skip_serializing_if = "is_false")]
    maybe_executed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Details<'a> {
    Rpc {
        rpc: &'a RawValue,
    },
    #[serde(serialize_with = "serialize_exactly")]
    Other(Value),
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The text of an error.
pub(super) fn error_text(error: &CoreError, request_id: &str) -> String {
    let mut hint = error.hint.clone();
    let details = match (&error.rpc, &error.details) {
        (Some(rpc), _) => Some(Details::Rpc { rpc }),
        (None, Some(details)) => brief(error, details, &mut hint).map(Details::Other),
        (None, None) => None,
    };
    let text = ErrorText {
        code: error.code.as_str(),
        message: &error.message,
        hint: hint.as_deref(),
        did_you_mean: &error.did_you_mean,
        details,
        retryable: error.retryable,
        maybe_executed: error.maybe_executed == Some(true),
        // Only here a user needs it: the hint says that it is to be reported.
        request_id: (error.code == CallCode::Internal).then_some(request_id),
    };
    serde_json::to_string(&text).expect("strings and JSON values always serialize")
}

/// The details of an error in short; the hint changes if it names what is left out.
fn brief(error: &CoreError, details: &Value, hint: &mut Option<String>) -> Option<Value> {
    if error.code == CallCode::ArgsInvalid {
        *hint = Some("Correct the arguments and call again.".to_owned());
        return arguments(error, details);
    }
    if error.code == CallCode::ToolWithdrawn {
        return Some(without_digests(details));
    }
    if !details["children"].is_array() {
        return Some(details.clone());
    }
    if error.did_you_mean.is_empty() {
        return Some(entries(details));
    }
    let node = details["node"].as_str().unwrap_or("/");
    *hint = Some(format!(
        "Use one of `did_you_mean`, or list `{node}` with `meta_tree`."
    ));
    None
}

/// The places that do not match, unless the message names the only one, and the schema.
fn arguments(error: &CoreError, details: &Value) -> Option<Value> {
    let mut out = Map::new();
    let errors = details["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let is_all = details["more"] != true && errors.len() <= MAX_ERRORS;
    if errors.len() > 1 || !is_all {
        let errors = errors.iter().take(MAX_ERRORS).map(place);
        out.insert("errors".to_owned(), errors.collect());
    }
    if !is_all {
        out.insert("more".to_owned(), true.into());
    }
    let parts = error.schema_parts.as_ref();
    if let Some(parts) = parts {
        out.insert("args_schema_parts".to_owned(), schema_text::parts(parts));
    } else if let Some(schema) = details.get("args_schema") {
        out.insert("args_schema".to_owned(), schema_text::schema(schema));
    }
    (!out.is_empty()).then(|| out.into())
}

/// Where the arguments do not match, and what is expected there. The caller knows what it sent.
fn place(error: &Value) -> Value {
    let expected = &error["expected"];
    match error["pointer"].as_str() {
        None | Some("") => json!({ "expected": expected }),
        Some(pointer) => json!({ "pointer": pointer, "expected": expected }),
    }
}

/// Returns the details without digests, since only an operator compares digests.
fn without_digests(details: &Value) -> Value {
    let mut details = details.clone();
    if let Some(members) = details.as_object_mut() {
        members.retain(|name, _| !DIGESTS.contains(&name.as_str()));
    }
    details
}

/// The entries of a node, as many as fit.
fn entries(details: &Value) -> Value {
    let all = details["children"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let mut room = MAX_ENTRIES_BYTES;
    let fits = |path: &&Value| {
        let length = path.as_str().map_or(0, str::len);
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let kept: Vec<&Value> = all.iter().take_while(fits).collect();
    let more = (all.len() - kept.len()) as u64 + details["more"].as_u64().unwrap_or_default();
    let mut out = json!({"node": details["node"], "children": kept});
    if more > 0 {
        out["more"] = more.into();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(error: &CoreError) -> Value {
        serde_json::from_str(&error_text(error, "r-1")).unwrap()
    }

    #[test]
    fn text_has_only_what_helps_to_correct_the_call() {
        let error = CoreError::new(CallCode::SourceExited, "it exited")
            .path("/a/t")
            .maybe_executed(false);
        let hint = CallCode::SourceExited.hint();
        let short = json!({"code": "source_exited", "message": "it exited", "hint": hint});
        assert_eq!(shown(&error), short);
        let mut error = error.maybe_executed(true);
        error.retryable = true;
        let text = shown(&error);
        assert_eq!(
            (&text["retryable"], &text["maybe_executed"]),
            (&json!(true), &json!(true))
        );
        let internal = CoreError::new(CallCode::Internal, "it failed");
        assert_eq!(shown(&internal)["request_id"], "r-1");
    }

    #[test]
    fn text_of_every_code_is_short() {
        for &code in CallCode::ALL {
            let error = CoreError::new(code, "m".repeat(80)).maybe_executed(true);
            let length = error_text(&error, "2f1c9e07-12").len();
            assert!(length < 400, "{code}: {length} bytes");
        }
    }

    #[test]
    fn entries_of_a_node_are_cut_or_left_out_if_a_near_path_is_known() {
        let children: Vec<_> = (0..20)
            .map(|at| format!("/files/some_tool_{at:02}"))
            .collect();
        let details = json!({"node": "/files", "children": children, "more": 3});
        let mut error = CoreError::new(CallCode::PathNotFound, "no").details(details);
        let text = shown(&error);
        let kept = text["details"]["children"].as_array().unwrap().len();
        assert!((10..20).contains(&kept), "{text}");
        assert_eq!(text["details"]["more"], 23 - kept);
        error.did_you_mean = vec!["/files/some_tool_00".to_owned()];
        let text = shown(&error);
        assert!(text.get("details").is_none(), "{text}");
        assert!(
            text["hint"].as_str().unwrap().contains("`/files`"),
            "{text}"
        );
    }

    #[test]
    fn only_mismatch_is_in_the_message_and_several_are_listed() {
        let place = |at: usize| json!({"pointer": format!("/{at}"), "keyword": "type", "expected": "string", "got": "null"});
        let of = |count: usize| {
            let errors: Vec<_> = (0..count).map(place).collect();
            let details =
                json!({"errors": errors, "more": false, "args_schema": {"type": "object"}});
            shown(&CoreError::new(CallCode::ArgsInvalid, "m").details(details))["details"].take()
        };
        assert_eq!(of(1), json!({"args_schema": {"type": "object"}}));
        assert_eq!(
            of(2)["errors"][1],
            json!({"pointer": "/1", "expected": "string"})
        );
        assert!(of(2).get("more").is_none());
        assert_eq!(
            (of(9)["errors"].as_array().unwrap().len(), &of(9)["more"]),
            (MAX_ERRORS, &json!(true))
        );
    }
}
