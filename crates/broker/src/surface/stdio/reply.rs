//! Lines that go out: results, errors and notifications, each one JSON text on one line.

use bytes::Bytes;
use serde_json::{Value, json};

use super::message::Id;
use crate::core::Charge;

/// JSON-RPC: the line is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the message is no request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the parameters make no sense.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the broker failed.
pub(super) const INTERNAL_ERROR: i64 = -32603;

/// Left to the server by JSON-RPC: there is no room in memory for the line. The error object is `data`.
pub(super) const NO_ROOM: i64 = -32000;

/// What a request is answered with instead of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

/// JSON on its way out, with what it is charged.
#[derive(Debug, Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    charge: Charge,
}

/// An answer: the result as JSON, or an error.
pub(super) type Answer = Result<Text, RpcError>;

impl Text {
    /// A long text whose memory is charged until it is written.
    pub(super) fn charged(bytes: Vec<u8>, charge: Charge) -> Self {
        Self { bytes, charge }
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        let charge = Charge::default();
        Self { bytes, charge }
    }
}

impl RpcError {
    /// An error without data.
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The same with data.
    pub(super) fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// The answer to a request, without the end of its line.
pub(super) fn answer(id: &Id, answer: Answer) -> Text {
    match answer {
        Ok(Text { bytes, mut charge }) => {
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
            let mut line = Vec::with_capacity(head.len() + bytes.len() + 2);
            line.extend_from_slice(head.as_bytes());
            line.extend_from_slice(&bytes);
            line.push(b'}');
            charge.shrink(line.len());
            Text::charged(line, charge)
        }
        Err(error) => refusal(Some(id), error),
    }
}

/// An error. The id is left out where it could not be read, as the protocol's schema has it.
pub(super) fn refusal(id: Option<&Id>, error: RpcError) -> Text {
    let mut body = json!({ "code": error.code, "message": error.message });
    if let Some(data) = error.data {
        body["data"] = data;
    }
    let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
    format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{body}}}")
        .into_bytes()
        .into()
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> Text {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}")
        .into_bytes()
        .into()
}

/// The answers to a batch.
pub(super) fn batch(parts: Vec<Text>) -> Text {
    let length = parts.iter().map(|part| part.bytes.len() + 1).sum::<usize>();
    let mut line = Vec::with_capacity(length + 1);
    let mut charge = Charge::default();
    for (at, part) in parts.into_iter().enumerate() {
        line.push(if at == 0 { b'[' } else { b',' });
        line.extend_from_slice(&part.bytes);
        charge.join(part.charge);
    }
    line.push(b']');
    Text::charged(line, charge)
}

/// One line for standard output.
pub(super) fn line(text: Text) -> Bytes {
    let Text {
        bytes: mut text,
        charge,
    } = text;
    // Line ends can stand in JSON between two tokens only, where a blank means the same.
    if memchr::memchr2(b'\n', b'\r', &text).is_some() {
        for byte in &mut text {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    text.push(b'\n');
    charge.hold(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_json_on_one_line() {
        let id = Id::Text("a\n\"".to_owned());
        let text = line(answer(&id, Ok(b"{\n\"a\":\r\n1}".to_vec().into())));
        assert_eq!(
            &text[..],
            b"{\"jsonrpc\":\"2.0\",\"id\":\"a\\n\\\"\",\"result\":{ \"a\":  1}}\n"
        );
        let error = RpcError::new(PARSE_ERROR, "no \"json\"").data(json!({"x": 1}));
        let value: Value = serde_json::from_slice(&refusal(None, error).bytes).unwrap();
        assert_eq!(
            value,
            json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no \"json\"", "data": {"x": 1}}})
        );
        let parts = [b"1", b"2"].map(|part| Text::from(part.to_vec()));
        assert_eq!(batch(parts.into()).bytes, b"[1,2]");
    }
}
