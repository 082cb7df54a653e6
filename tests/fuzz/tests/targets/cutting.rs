//! Cutting: the limit holds for the whole reply, a small limit for the result alone. Both are JSON, and a reply has the
//! path that was called.

use broker_config::{MIN_WHOLE_REPLY_CHARS, min_output_chars};
use broker_core::fuzzing;
use fuzz::behaviour;
use serde_json::Value;

const PATH: &str = "/some/path";

/// The minimum `max_output_chars` of a config.
const MIN_OUTPUT_CHARS: usize = 100;

/// The cut result, and the complete reply in the form of `meta_call`, if the result has to be cut.
fn cut(result: &[u8], beside: &str, limit: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let around = format!("{{\"path\":\"{PATH}\",\"result\":{beside}}}").len();
    let (result, cut) = fuzzing::cut(result, around, limit)?;
    let cut = serde_json::to_string(&cut).expect("strings and numbers serialize");
    let before = format!("{{\"path\":\"{PATH}\",\"result\":");
    let after = format!("{beside},\"truncated\":{cut}}}");
    let body = [before.as_bytes(), &result, after.as_bytes()].concat();
    Some((result, body))
}

#[test]
fn cut_of_any_result_stays_within_its_limit() {
    let words = [
        "content",
        "structuredContent",
        "text",
        "\\u00e9",
        "\\ud83d\\ude00",
        "é",
        "😀",
        "[]",
        "{}",
        "0.5",
    ];
    fuzz::run("cutting", &words, |bytes| {
        // A result that is cut was parsed as an envelope before, so it is a JSON object.
        let whole = match serde_json::from_slice::<Value>(bytes) {
            Ok(whole) if whole.is_object() => whole,
            _ => return Ok(0),
        };
        let result = bytes.trim_ascii();
        let chars = |text: &[u8]| String::from_utf8_lossy(text).chars().count();
        let mut kinds = Vec::new();
        let whole_reply = MIN_WHOLE_REPLY_CHARS.max(min_output_chars(PATH));
        for (beside, limit) in [
            ("", MIN_OUTPUT_CHARS),
            ("", MIN_WHOLE_REPLY_CHARS - 1),
            ("", whole_reply),
            (",\"warnings\":[\"x\"]", whole_reply + 20),
            ("", whole_reply + 300),
            ("", whole_reply + 3000),
        ] {
            let around = match limit < MIN_WHOLE_REPLY_CHARS {
                true => 0,
                false => format!("{{\"path\":\"{PATH}\",\"result\":{beside}}}").len(),
            };
            let Some((cut_result, body)) = cut(result, beside, limit) else {
                if chars(result) + around > limit {
                    return Err(format!(
                        "{} characters pass a limit of {limit}",
                        chars(result) + around
                    ));
                }
                continue;
            };
            if chars(result) + around <= limit {
                return Err("it was cut though it fits".to_owned());
            }
            let counted = match limit < MIN_WHOLE_REPLY_CHARS {
                true => chars(&cut_result),
                false => chars(&body),
            };
            if counted > limit {
                return Err(format!("{counted} characters for a limit of {limit}"));
            }
            let reply: Value =
                serde_json::from_slice(&body).map_err(|error| format!("no JSON: {error}"))?;
            if reply["path"] != PATH
                || !reply["result"].is_object()
                || reply["truncated"]["limit"] != limit
            {
                return Err(format!("no reply: {reply}"));
            }
            if cut(result, beside, limit) != Some((cut_result, body)) {
                return Err("not the same twice".to_owned());
            }
            kinds.push(
                reply["truncated"]["cuts"][0]["kind"]
                    .as_str()
                    .map(str::to_owned),
            );
        }
        Ok(behaviour((
            kinds,
            whole.as_object().map_or(0, serde_json::Map::len),
        )))
    });
}
