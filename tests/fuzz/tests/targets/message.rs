//! Messages of both sides: every line has one result, and forwarded values are parts of the line. A
//! valid line of a client means the same to the lenient reader of servers.

use broker_wire::fuzzing::{ParsedMessage, client_messages, server_messages};
use fuzz::behaviour;
use serde_json::value::RawValue;

/// Elements of a server's batch that are not messages and after which the rest is skipped.
const MAX_NOISE: usize = 100;

#[test]
fn message_of_any_line_has_one_result_on_both_sides() {
    let words = [
        "\"jsonrpc\":\"2.0\"",
        "\"jsonrpc\":\"2.0\",\"method\":\"m\"",
        "\"id\":7",
        "\"id\":\"7\"",
        "\"result\":{}",
        "\"error\":{}",
        "\"method\":\"ping\"",
        "\"params\":{\"requestId\":7}",
        "notifications/cancelled",
        "null",
        "[",
        "]",
        "{",
        ",",
        "1,",
        "id",
        "result",
        "error",
        "method",
        "{\"id\":7,\"result\":{}}",
        "{\"id\":\"q\",\"method\":\"ping\"}",
        "{\"i\\u0064\":9,\"result\":[]}",
    ];
    fuzz::run("message", &words, |bytes| {
        let (of_server, repaired) = server_messages(bytes);
        let of_client = client_messages(bytes);
        if (of_server.clone(), repaired) != server_messages(bytes)
            || of_client != client_messages(bytes)
        {
            return Err("it is not the same twice".to_owned());
        }
        if repaired == std::str::from_utf8(bytes).is_ok() {
            return Err("repaired, or not, against the facts".to_owned());
        }
        payloads_are_parts(&of_client, bytes)?;
        if repaired {
            let repaired = String::from_utf8_lossy(bytes);
            payloads_are_parts(&of_server, repaired.as_bytes())?;
        } else {
            payloads_are_parts(&of_server, bytes)?;
        }
        batch_is_walked(&of_server, bytes)?;
        both_agree(&of_client, &of_server)?;
        let kinds = |found: &[ParsedMessage]| -> Vec<_> {
            let kinds = found.iter().map(|one| (one.kind, one.id.is_some()));
            kinds.take(6).collect()
        };
        Ok(behaviour((
            kinds(&of_server),
            kinds(&of_client),
            of_server.len().min(8),
            repaired,
        )))
    });
}

fn payloads_are_parts(found: &[ParsedMessage], line: &[u8]) -> Result<(), String> {
    for message in found {
        let Some(payload) = &message.payload else {
            continue;
        };
        if serde_json::from_slice::<&RawValue>(payload).is_err() {
            return Err(format!("{}: a payload that is not JSON", message.kind));
        }
        if !line.windows(payload.len()).any(|part| part == &payload[..]) {
            return Err(format!(
                "{}: a payload that the line does not have",
                message.kind
            ));
        }
    }
    Ok(())
}

/// Reading a server's batch message by message gives the same messages as parsing the whole array.
fn batch_is_walked(found: &[ParsedMessage], bytes: &[u8]) -> Result<(), String> {
    if !bytes.starts_with(b"[") {
        return Ok(());
    }
    let noise = found.iter().filter(|one| one.kind == "noise").count();
    if noise > MAX_NOISE + 1 {
        return Err(format!("{noise} elements that are not messages"));
    }
    let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(bytes) else {
        return Ok(());
    };
    let whole: Vec<_> = elements
        .iter()
        .flat_map(|element| alone(element.get()))
        .collect();
    // The last element represents the skipped rest.
    let same = match found.split_last() {
        Some((_, walked)) if noise > MAX_NOISE => whole.starts_with(walked),
        _ => found == whole,
    };
    if same {
        Ok(())
    } else {
        Err(format!("walked: {found:?}, whole: {whole:?}"))
    }
}

/// The message that an element gives in a separate line.
fn alone(element: &str) -> Vec<ParsedMessage> {
    if element.starts_with('[') {
        // A batch within a batch is not a message.
        return server_messages(b"0").0;
    }
    server_messages(element.as_bytes()).0
}

/// A message that the strict reader accepts is the same for the lenient one, unless it nests too
/// deeply.
fn both_agree(of_client: &[ParsedMessage], of_server: &[ParsedMessage]) -> Result<(), String> {
    for (strict, lenient) in of_client.iter().zip(of_server) {
        let is_taken = matches!(strict.kind, "request" | "notification");
        let is_deep = matches!(lenient.kind, "noise" | "unreadable");
        if is_taken && !is_deep && strict != lenient {
            return Err(format!("of a client {strict:?}, of a server {lenient:?}"));
        }
    }
    Ok(())
}
