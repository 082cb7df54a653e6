//! Envelopes: every line is something, always the same, and what is handed on is a part of the line.

use broker_mcp::fuzzing::messages;
use fuzz::behaviour;

#[test]
fn f_16_envelope() {
    let words = [
        "\"jsonrpc\":\"2.0\"",
        "\"id\":7",
        "\"id\":\"7\"",
        "\"result\":{}",
        "\"error\":{}",
        "\"method\":\"ping\"",
        "\"params\":{\"requestId\":7}",
        "notifications/cancelled",
        "null",
        "[",
        "{",
        "id",
        "result",
        "error",
        "method",
    ];
    fuzz::run("envelope", &words, |bytes| {
        let (found, repaired) = messages(bytes);
        if (found.clone(), repaired) != messages(bytes) {
            return Err("it is not the same twice".to_owned());
        }
        if repaired == std::str::from_utf8(bytes).is_ok() {
            return Err("repaired, or not, against the facts".to_owned());
        }
        for message in &found {
            let Some(payload) = &message.payload else {
                continue;
            };
            if serde_json::from_slice::<&serde_json::value::RawValue>(payload).is_err() {
                return Err(format!("{}: a payload that is no JSON", message.kind));
            }
            let inside = bytes
                .windows(payload.len())
                .any(|part| part == &payload[..]);
            if !repaired && !inside {
                return Err(format!(
                    "{}: a payload that the line does not have",
                    message.kind
                ));
            }
        }
        // A line end and blanks around it change nothing that is known of an object.
        let kinds: Vec<_> = found
            .iter()
            .map(|message| (message.kind, message.id.is_some()))
            .take(6)
            .collect();
        Ok(behaviour((kinds, repaired)))
    });
}
