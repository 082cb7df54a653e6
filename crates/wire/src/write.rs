//! Writes messages, each on one line. A long result is a part of its line and is not copied.

use broker_memory::Charge;
use bytes::Bytes;
use memchr::memchr2;
use serde_json::json;

use crate::{Id, RpcError};

/// The bytes of a request in addition to its method and params.
const REQUEST_CAPACITY: usize = 64;

/// Outgoing JSON on one line, with its memory charge.
#[derive(Clone, Debug)]
pub struct Text(Bytes);

/// An outgoing message, without its line end.
#[derive(Debug)]
pub struct Outgoing {
    parts: Vec<Bytes>,
}

/// A line to be written: its parts in order, with its line end.
#[derive(Debug)]
pub struct Line {
    parts: Vec<Bytes>,
}

impl Text {
    /// A text that is charged until it was written. A charge beyond its bytes is returned.
    pub fn charged(mut json: Vec<u8>, mut charge: Charge) -> Self {
        // Line ends occur in JSON only between two tokens, where a blank means the same.
        if memchr2(b'\n', b'\r', &json).is_some() {
            for byte in &mut json {
                if matches!(byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
        }
        charge.shrink(json.len());
        Self(charge.hold(json))
    }
}

impl From<Vec<u8>> for Text {
    fn from(json: Vec<u8>) -> Self {
        Self::charged(json, Charge::default())
    }
}

impl Outgoing {
    /// The parts of the message, in order and none of them empty.
    pub fn into_parts(self) -> Vec<Bytes> {
        self.parts
    }

    /// The line of this single message.
    pub fn into_line(self) -> Line {
        let mut parts = self.parts;
        parts.push(Bytes::from_static(b"\n"));
        Line { parts }
    }
}

impl Line {
    /// The parts, none of them empty.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The complete line, copied.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.parts.concat())
    }
}

/// A request of the broker as a complete line. `params` writes one JSON object of about `size` bytes.
pub fn request(id: u64, method: &str, size: usize, params: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut line = Vec::with_capacity(REQUEST_CAPACITY + method.len() + size);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    push_number(&mut line, id);
    line.extend_from_slice(br#","method":""#);
    line.extend_from_slice(method.as_bytes());
    line.extend_from_slice(br#"","params":"#);
    params(&mut line);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

/// A notification. `params` is one JSON object.
pub fn notification(method: &str, params: Option<&str>) -> Outgoing {
    let mut text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"").into_bytes();
    if let Some(params) = params {
        text.extend_from_slice(br#","params":"#);
        push_one_line(&mut text, params.as_bytes());
    }
    text.push(b'}');
    whole(text)
}

/// The answer to a request: a result, which is not copied.
pub fn result(id: &Id, result: Text) -> Outgoing {
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
    // With room for the line end.
    let mut parts = Vec::with_capacity(4);
    parts.extend([Bytes::from(head), result.0, Bytes::from_static(b"}")]);
    Outgoing { parts }
}

/// The answer to a request: an error. The id is left out if it could not be read, as in the protocol's
/// schema.
pub fn error(id: Option<&Id>, error: RpcError) -> Outgoing {
    let mut body = json!({ "code": error.code, "message": error.message });
    if let Some(data) = error.data {
        body["data"] = data;
    }
    let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
    whole(format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{body}}}").into_bytes())
}

/// The answers to a batch.
pub fn batch(messages: Vec<Outgoing>) -> Outgoing {
    let count = messages
        .iter()
        .map(|message| message.parts.len() + 1)
        .sum::<usize>();
    let mut parts = Vec::with_capacity(count + 2);
    for (at, message) in messages.into_iter().enumerate() {
        parts.push(Bytes::from_static(if at == 0 { b"[" } else { b"," }));
        parts.extend(message.parts);
    }
    parts.push(Bytes::from_static(b"]"));
    Outgoing { parts }
}

/// Appends a string as JSON.
pub fn push_string(line: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(line, text).expect("writing a string to memory cannot fail");
}

/// Appends JSON on one line: a line end in it occurs only between tokens, where a blank means the same.
pub fn push_one_line(line: &mut Vec<u8>, mut json: &[u8]) {
    while let Some(at) = memchr2(b'\n', b'\r', json) {
        line.extend_from_slice(&json[..at]);
        line.push(b' ');
        json = &json[at + 1..];
    }
    line.extend_from_slice(json);
}

fn whole(text: Vec<u8>) -> Outgoing {
    Outgoing {
        parts: vec![Bytes::from(text)],
    }
}

fn push_number(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use broker_memory::{MemoryBudget, Size};
    use serde_json::Value;

    use super::*;
    use crate::protocol::PARSE_ERROR;

    fn text(message: Outgoing) -> String {
        String::from_utf8(message.into_line().into_bytes().to_vec()).unwrap()
    }

    #[test]
    fn written_answer_is_json_on_one_line() {
        let id = Id::Text("a\n\"".to_owned());
        let answer = result(&id, b"{\n\"a\":\r\n1}".to_vec().into());
        assert_eq!(
            text(answer),
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\\n\\\"\",\"result\":{ \"a\":  1}}\n"
        );
        let refused = RpcError::new(PARSE_ERROR, "no \"json\"").data(json!({"x": 1}));
        let value: Value = serde_json::from_str(&text(error(None, refused))).unwrap();
        assert_eq!(
            value,
            json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no \"json\"", "data": {"x": 1}}})
        );
        assert_eq!(
            text(notification("m", Some("{\n}"))),
            "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{ }}\n"
        );
        assert_eq!(
            text(notification("m", None)),
            "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n"
        );
    }

    #[test]
    fn written_batch_keeps_the_order_of_its_answers() {
        let parts = [1, 2].map(|id| result(&Id::Integer(id), b"{}".to_vec().into()));
        assert_eq!(
            text(batch(parts.into())),
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]\n"
        );
    }

    #[test]
    fn written_result_is_not_copied_and_charged_until_its_line_is_dropped() {
        let budget = MemoryBudget::new(1 << 20);
        let charge = budget.account().charge(250_000, Size::Large).unwrap();
        let json = format!("\"{}\"", "x".repeat(99_998)).into_bytes();
        let place = json.as_ptr();
        let line = result(&Id::Integer(1), Text::charged(json, charge)).into_line();
        assert_eq!(line.parts()[1].as_ptr(), place);
        assert_eq!(budget.used(), 100_000);
        drop(line);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn written_request_is_one_line() {
        let line = request(1_234_567_890, "m", 2, |line| push_one_line(line, b"{\r\n}"));
        assert_eq!(
            &line[..],
            b"{\"jsonrpc\":\"2.0\",\"id\":1234567890,\"method\":\"m\",\"params\":{  }}\n"
        );
        assert!(request(0, "m", 0, |_| {}).starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":0,"));
    }
}
