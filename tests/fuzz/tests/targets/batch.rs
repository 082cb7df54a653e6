//! Batches: reading message by message gives the same messages as parsing the whole array.

use broker_mcp::fuzzing::{Found, messages};
use fuzz::behaviour;
use serde_json::value::RawValue;

/// Elements that are not messages and after which the rest is skipped.
const MAX_NOISE: usize = 100;

#[test]
fn batches_are_walked_as_they_were_written() {
    let words = [
        "[",
        "]",
        ",",
        " ",
        "1,",
        "{\"id\":7,\"result\":{}}",
        "{\"id\":8,\"error\":{\"code\":1}}",
        "{\"method\":\"m\"}",
        "{\"id\":\"q\",\"method\":\"ping\"}",
        "{\"i\\u0064\":9,\"result\":[]}",
    ];
    fuzz::run("batch", &words, |bytes| {
        let (found, _) = messages(bytes);
        let noise = found.iter().filter(|one| one.kind == "noise").count();
        if bytes.starts_with(b"[") && noise > MAX_NOISE + 1 {
            return Err(format!("{noise} elements that are not messages"));
        }
        let elements = serde_json::from_slice::<Vec<&RawValue>>(bytes).ok();
        if let Some(elements) = elements.filter(|_| bytes.starts_with(b"[")) {
            let alone = elements.iter().flat_map(|element| alone(element.get()));
            let whole: Vec<_> = alone.collect();
            // The last element represents the skipped rest.
            let same = match found.split_last() {
                Some((_, walked)) if noise > MAX_NOISE => whole.starts_with(walked),
                _ => found == whole,
            };
            if !same {
                return Err(format!("walked: {found:?}, whole: {whole:?}"));
            }
        }
        let kinds: Vec<_> = found.iter().map(|one| one.kind).take(6).collect();
        Ok(behaviour((kinds, found.len().min(8))))
    });
}

/// The message that an element gives in a line of its own.
fn alone(element: &str) -> Vec<Found> {
    if element.starts_with('[') {
        // A batch within a batch is not a message.
        return messages(b"0").0;
    }
    messages(element.as_bytes()).0
}
