//! Tool results in the form of each era. The members of a server's result are forwarded unread; only
//! members that an era does not know are removed, and those that it requires are added.

use std::borrow::Cow;

use broker_model::CallCode;
use broker_wire::protocol::META_SERVER_INFO;
use broker_wire::write::{Json, ObjectWriter};
use broker_wire::{Era, JsonMembers};
use serde::Serialize;
use serde_json::Value;

use super::cut_note::Place;
use super::error_text::error_text;
use super::server_info::server_info;
use broker_core::{CoreError, ItemKind, Outcome};

/// The `_meta` keys of the broker, for cuts and warnings.
const META_TRUNCATED: &str = "dev.mcp-broker/truncated";
const META_WARNINGS: &str = "dev.mcp-broker/warnings";
/// The `_meta` key of a refused request's id in the log.
const META_REQUEST_ID: &str = "dev.mcp-broker/request_id";
/// The value of `content` in a result without blocks.
const NO_CONTENT: &str = "[]";
/// The maximum characters of the broker around a result, apart from the values of its notes:
/// `,"resultType":"complete"`, `,"isError":true` and `,"_meta":{…}` with both keys.
pub(super) const MAX_ADDED_CHARS: usize = 112;
/// The maximum memory that a reply of the broker needs as a result, as a multiple of its length: as
/// text in JSON it has at most twice its bytes, and it is copied.
pub(super) const MAX_OWN_COPIES: usize = 6;
/// The value of `resultType` in results of the modern era, and the bytes that the member needs.
const COMPLETE: &str = "\"complete\"";
const MAX_TYPE_BYTES: usize = 32;
/// The bytes of a result of the broker around its members.
const MAX_OWN_BYTES: usize = 256;
/// Members of results that the legacy era does not have.
const MODERN_ONLY: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Returns a result of a meta-tool: a text for the model. It has no second copy as structured content, since some
/// clients show it in place of the text.
pub(super) fn own(text: &str, era: Era) -> Json {
    object(
        [
            ("content", text_content(text)),
            ("isError", "false".to_owned()),
        ],
        Vec::new(),
        era,
    )
}

/// Returns a result of the broker: a text, a further block of content, and the same facts as structured content.
pub(super) fn with_structured(
    text: &str,
    block: Option<&Value>,
    structured: String,
    era: Era,
) -> Json {
    let mut content = text_content(text);
    let more = block.map(|block| format!(",{block}"));
    content.insert_str(content.len() - 1, more.as_deref().unwrap_or_default());
    object(
        [
            ("content", content),
            ("structuredContent", structured),
            ("isError", "false".to_owned()),
        ],
        Vec::new(),
        era,
    )
}

/// Turns an error of the broker into a tool result: its text is a short form of the error object that explains how to
/// correct the call. The id of the request is in `_meta`.
pub(super) fn error(error: &CoreError, request_id: &str, era: Era) -> Json {
    let text = error_text(&hinted(error), request_id);
    object(
        [
            ("content", text_content(&text)),
            ("isError", "true".to_owned()),
        ],
        vec![(META_REQUEST_ID, request_id.into())],
        era,
    )
}

/// The error object, for an error that is not a tool result.
pub(super) fn error_object(error: &CoreError, request_id: &str) -> Value {
    let text = json(&hinted(error).members(Some(request_id)));
    // The error of a server may have members twice; the strict reader refuses them.
    let strict = broker_model::json::parse(&text).ok();
    strict.unwrap_or_else(|| serde_json::from_str(&text).unwrap_or_default())
}

/// The error with a hint for this surface.
fn hinted(error: &CoreError) -> CoreError {
    let mut error = error.clone();
    if let Some(hint) = waiting_hint(&error) {
        error.hint = Some(hint);
    }
    error
}

/// Returns a hint in place of the code's hint. The hints of these codes mention headers and routes that this caller
/// does not have.
fn waiting_hint(error: &CoreError) -> Option<String> {
    let own = error.hint.as_deref() != Some(error.code.hint());
    let what = match error.code == CallCode::SourceUnavailable {
        true => "`details.cause` says what the operator must fix. ",
        false => "",
    };
    let waits = [
        CallCode::SourceUnavailable,
        CallCode::Starting,
        CallCode::Overloaded,
    ];
    if own || !waits.contains(&error.code) {
        return None;
    }
    let wait = error.retry_after.map_or(1, |wait| wait.as_secs().max(1));
    Some(format!("{what}Wait {wait} s, then call again."))
}

/// The result that a client gets for a server's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerResult {
    /// The same result.
    Same,
    /// The same result of a tool whose listed schema promises structured content. A result that was cut has no
    /// structured content, so it is an error: a client refuses every other result without structured content, and its
    /// user loses it.
    Promised,
    /// The same result. Clients of the modern era may cache it: it gets the members for this if it lacks them.
    Cacheable {
        /// Whether only the caller may use it, since other callers may not see the entry.
        is_private: bool,
    },
    /// A tool result that contains it: a prompt or resource that `meta_call` got.
    AsToolResult,
}

impl ServerResult {
    /// The maximum memory that it takes, as a multiple of the server's result.
    pub(super) const fn max_copies(self) -> usize {
        match self {
            Self::Same | Self::Promised | Self::Cacheable { .. } => 1,
            // As a value and as text, whose quotes are escaped.
            Self::AsToolResult => 4,
        }
    }
}

/// Returns a server's result with notes of the broker in `_meta`, and for a result that was cut at the end of its
/// text too.
pub(super) fn forward(
    outcome: &Outcome,
    form: ServerResult,
    era: Era,
) -> Result<Json, Box<CoreError>> {
    let unreadable = |what: &str| {
        let message = format!("the server's result cannot be forwarded: {what}");
        let error = CoreError::new(CallCode::SourceProtocol, message);
        Box::new(error.maybe_executed(true))
    };
    let result = std::str::from_utf8(&outcome.result).map_err(|_| unreadable("it is not UTF-8"))?;
    let cut = outcome.cut.as_ref().map(json);
    let warnings = (!outcome.warnings.is_empty()).then(|| json(&outcome.warnings));
    let said: Vec<_> = [(META_TRUNCATED, &cut), (META_WARNINGS, &warnings)]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.as_deref()?)))
        .collect();
    // The message that contains the result was read as JSON, and a render mode writes JSON.
    let members =
        JsonMembers::from_valid(result).ok_or_else(|| unreadable("it is not a JSON object"))?;
    if form == ServerResult::AsToolResult {
        return Ok(as_tool_result(result, &said, era));
    }

    let breaks_promise = form == ServerResult::Promised && outcome.cut.is_some();
    let mut out = ObjectWriter::with_capacity(result.len() + MAX_TYPE_BYTES);
    let mut has_meta = false;
    let mut has_type = false;
    let mut note_place = None;
    for (name, value) in members.iter() {
        if name == "resultType" && !is_complete(value) {
            return Err(unreadable("its `resultType` is not `complete`"));
        }
        if name == "_meta" {
            has_meta = true;
            if let Some(meta) = meta(value, &said, era) {
                out.member(name, &meta);
            }
        } else if is_scope_replaced(form, name) || (breaks_promise && name == "isError") {
            // Added below.
        } else if era == Era::Modern || is_legacy(name, value) {
            has_type |= name == "resultType";
            out.member(name, value);
            if name == "content" && outcome.cut.is_some() {
                note_place = place(&out, value);
            }
        }
    }
    if outcome.cut.is_some() && outcome.kind == ItemKind::Tool && members.get("content").is_none() {
        out.member("content", NO_CONTENT);
        note_place = place(&out, NO_CONTENT);
    }
    if breaks_promise {
        out.member("isError", "true");
    }
    if !has_meta
        && !said.is_empty()
        && let Some(meta) = meta("{}", &said, era)
    {
        out.member("_meta", &meta);
    }
    if era == Era::Modern && !has_type {
        out.member("resultType", COMPLETE);
    }
    if let (ServerResult::Cacheable { is_private }, Era::Modern) = (form, era) {
        if members.get("ttlMs").is_none() {
            out.member("ttlMs", "0");
        }
        if is_private || members.get("cacheScope").is_none() {
            out.member("cacheScope", "\"private\"");
        }
    }
    let mut json = out.end();
    if let (Some(cut), Some((at, place))) = (&outcome.cut, note_place) {
        let chars = String::from_utf8_lossy(json.as_ref()).chars().count();
        json.insert(at, place.note(cut, cut.limit.saturating_sub(chars)));
    }
    Ok(json)
}

/// Whether the server's `cacheScope` is replaced.
fn is_scope_replaced(form: ServerResult, name: &str) -> bool {
    form == ServerResult::Cacheable { is_private: true } && name == "cacheScope"
}

/// A tool result with the JSON text of another result, and the other result as structured content.
fn as_tool_result(result: &str, said: &[(&'static str, &str)], era: Era) -> Json {
    let notes = said.iter().map(|(key, note)| {
        let note = serde_json::from_str(note).unwrap_or_default();
        (*key, note)
    });
    object(
        [
            ("content", text_content(result.trim())),
            ("structuredContent", result.trim().to_owned()),
            ("isError", "false".to_owned()),
        ],
        notes.collect(),
        era,
    )
}

/// Returns the place of a note in `out`. `out` ends with `content`.
fn place(out: &ObjectWriter, content: &str) -> Option<(usize, Place)> {
    let place = Place::in_content(content)?;
    Some((out.len() - content.len() + place.offset(), place))
}

/// Whether a `resultType` has the only value that is forwarded: on any other, a client would act for
/// the broker.
fn is_complete(value: &str) -> bool {
    serde_json::from_str::<String>(value).is_ok_and(|kind| kind == "complete")
}

/// Whether a legacy client may get this member.
fn is_legacy(name: &str, value: &str) -> bool {
    // Only the modern era allows a value that is not an object; legacy clients refuse the whole result.
    let odd = name == "structuredContent" && !value.starts_with('{');
    !odd && !MODERN_ONLY.contains(&name)
}

/// `_meta` with the notes of the broker and, for a legacy client, without `serverInfo`; `None` if it would be empty.
fn meta<'v>(value: &'v str, said: &[(&str, &str)], era: Era) -> Option<Cow<'v, str>> {
    if said.is_empty() && era == Era::Modern {
        return (value.starts_with('{') && value != "{}").then_some(Cow::Borrowed(value));
    }
    let members = JsonMembers::from_valid(value)?;
    let kept = members
        .iter()
        .filter(|(name, _)| era == Era::Modern || *name != META_SERVER_INFO);
    let mut out = ObjectWriter::with_capacity(value.len());
    for (name, value) in kept.chain(said.iter().copied()) {
        out.member(name, value);
    }
    if out.is_empty() {
        return None;
    }
    let json = String::from_utf8(out.end().as_ref().to_vec());
    json.ok().map(Cow::Owned)
}

fn object<const N: usize>(
    members: [(&str, String); N],
    mut meta: Vec<(&'static str, Value)>,
    era: Era,
) -> Json {
    let length: usize = members.iter().map(|(_, value)| value.len()).sum();
    let mut out = ObjectWriter::with_capacity(length + MAX_OWN_BYTES);
    for (name, value) in members {
        out.member(name, &value);
    }
    if era == Era::Modern {
        out.member("resultType", COMPLETE);
        meta.push((META_SERVER_INFO, server_info()));
    }
    if !meta.is_empty() {
        out.member("_meta", &json(&Value::from_iter(meta)));
    }
    out.end()
}

fn text_content(text: &str) -> String {
    format!("[{{\"type\":\"text\",\"text\":{}}}]", json(&text))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and JSON values always serialize")
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_core::Cut;
    use bytes::Bytes;
    use serde_json::json;

    fn outcome(result: &str) -> Outcome {
        Outcome {
            job: None,
            path: "/a/t",
            kind: ItemKind::Tool,
            result: Bytes::copy_from_slice(result.as_bytes()),
            is_error: false,
            cut: None,
            warnings: Vec::new(),
            receipt: None,
        }
    }

    fn shown(json: &Json) -> String {
        String::from_utf8(json.as_ref().to_vec()).unwrap()
    }

    fn forwarded(result: &str, era: Era) -> String {
        shown(&forward(&outcome(result), ServerResult::Same, era).unwrap())
    }

    #[test]
    fn result_for_a_modern_client_is_unchanged_and_has_its_type() {
        let result = r#"{"content": [ ],"n":1.00,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#;
        let expected: Value = serde_json::from_str(result).unwrap();
        let got = forwarded(result, Era::Modern);
        assert!(got.contains("\"n\":1.00") && got.contains("[ ]"), "{got}");
        assert_eq!(serde_json::from_str::<Value>(&got).unwrap(), expected);
        assert_eq!(
            forwarded(r#"{"content":[]}"#, Era::Modern),
            r#"{"content":[],"resultType":"complete"}"#
        );
        assert_eq!(forwarded("{}", Era::Modern), r#"{"resultType":"complete"}"#);
    }

    #[test]
    fn result_for_a_legacy_client_has_no_modern_members() {
        let result = r#"{"resultType":"complete","ttlMs":5,"cacheScope":"public","isError":true,"_meta":{"io.modelcontextprotocol/serverInfo":{},"x/y":1},"structuredContent":[1]}"#;
        assert_eq!(
            forwarded(result, Era::Legacy),
            r#"{"isError":true,"_meta":{"x/y":1}}"#
        );
        let only =
            r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"structuredContent":{"a":[]}}"#;
        assert_eq!(
            forwarded(only, Era::Legacy),
            r#"{"structuredContent":{"a":[]}}"#
        );
        assert_eq!(forwarded("{}", Era::Legacy), "{}");
    }

    #[test]
    fn result_with_an_empty_meta_is_valid_in_both_eras() {
        for meta in ["{}", "{ }", "null", "1"] {
            let result = format!(r#"{{"content":[],"_meta":{meta}}}"#);
            for era in [Era::Legacy, Era::Modern] {
                let got: Value = serde_json::from_str(&forwarded(&result, era)).unwrap();
                let meta = &got["_meta"];
                assert!(meta.is_null() || *meta == json!({}), "{got}");
            }
        }
    }

    #[test]
    fn result_of_another_type_is_refused() {
        for result in [
            r#"{"resultType":"input_required"}"#,
            r#"{"result\u0054ype":"input_required"}"#,
            r#"{"resultType":"complete","resultType":"task"}"#,
            r#"{"resultType":null}"#,
        ] {
            for era in [Era::Modern, Era::Legacy] {
                let error = forward(&outcome(result), ServerResult::Same, era).unwrap_err();
                assert_eq!(error.code, CallCode::SourceProtocol, "{result}");
            }
        }
    }

    #[test]
    fn result_meta_describes_cuts_and_warnings() {
        let mut changed = outcome(r#"{"content":[]}"#);
        changed.warnings = vec!["w".to_owned()];
        changed.cut = Some(Box::new(Cut {
            original_chars: 900,
            limit: 500,
            cuts: Vec::new(),
            unnamed: 0,
            rest: None,
            whole: None,
        }));
        let note = "[The broker cut this result: at most 500 of 900 characters. Ask for less with other `args`: a filter, a smaller range, fewer items.]";
        let got = shown(&forward(&changed, ServerResult::Same, Era::Legacy).unwrap());
        let got: Value = serde_json::from_str(&got).unwrap();
        let meta = json!({
            "dev.mcp-broker/truncated": {"original_chars": 900, "limit": 500, "cuts": []},
            "dev.mcp-broker/warnings": ["w"],
        });
        let content = json!([{"type": "text", "text": note}]);
        assert_eq!(got, json!({"content": content, "_meta": meta}));
    }

    #[test]
    fn cut_result_ends_with_a_note_within_its_limit() {
        for (result, place) in [
            (
                r#"{"content":[{"type":"text","text":"ab…"}],"isError":true}"#,
                0,
            ),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"image"}]}"#,
                2,
            ),
            (r#"{"structuredContent":{"a":1}}"#, 0),
        ] {
            for (limit, era) in [(1000, Era::Modern), (1000, Era::Legacy), (350, Era::Legacy)] {
                let mut changed = outcome(result);
                changed.cut = Some(Box::new(Cut {
                    original_chars: 90_000,
                    limit,
                    cuts: Vec::new(),
                    unnamed: 7,
                    rest: None,
                    whole: None,
                }));
                let got = shown(&forward(&changed, ServerResult::Same, era).unwrap());
                assert!(got.chars().count() <= limit, "{got}");
                let got: Value = serde_json::from_str(&got).unwrap();
                let blocks = got["content"].as_array().unwrap();
                assert_eq!(blocks.len(), place + 1);
                let text = blocks[place]["text"].as_str().unwrap();
                assert!(text.ends_with(']') && text.contains("90000"), "{text}");
            }
        }
    }

    #[test]
    fn error_hint_over_mcp_names_nothing_of_http() {
        for &code in CallCode::ALL {
            let hint = waiting_hint(&CoreError::new(code, "m"));
            let hint = hint.unwrap_or_else(|| code.hint().to_owned());
            let surface_only = [
                CallCode::HeaderInvalid,
                CallCode::Unauthorized,
                CallCode::MethodNotAllowed,
                CallCode::ContentType,
                CallCode::RouteNotFound,
            ];
            if !surface_only.contains(&code) {
                for word in ["Retry-After", "GET /", "header"] {
                    assert!(!hint.contains(word), "{code}: {hint}");
                }
            }
        }
    }

    #[test]
    fn error_over_mcp_is_a_result_with_the_error_object() {
        let core = CoreError::new(CallCode::PathNotFound, "no entry `/x`").path("/x");
        let got: Value = serde_json::from_str(&shown(&error(&core, "r-1", Era::Legacy))).unwrap();
        assert_eq!(
            (&got["isError"], &got["resultType"]),
            (&json!(true), &Value::Null)
        );
        let text = got["content"][0]["text"].as_str().unwrap();
        let object: Value = serde_json::from_str(text).unwrap();
        assert_eq!(object["code"], "path_not_found");
        assert_eq!(got["_meta"], json!({"dev.mcp-broker/request_id": "r-1"}));
        assert!(object["hint"].is_string());
    }
}
