//! Writes messages, each on one line. A long result is a part of its line and is not copied.

use broker_memory::Charge;
use broker_model::json::to_text;
use bytes::{Buf as _, Bytes};
use memchr::memchr2;
use serde_json::Value;

use crate::{Id, RpcError};

mod fitting;
mod object_writer;
mod receipt;

pub use object_writer::ObjectWriter;
use receipt::Receipts;
pub use receipt::{AnswerReader, Receipt};

/// Room in front of a result for the beginning of its message, with an id of up to 63 bytes.
const HEAD_ROOM: usize = 96;
/// Room behind a result for the end of its message and of its line.
const END_ROOM: usize = 2;
/// A result of at most this many bytes is copied if it has no room around it: this costs less than to write its message
/// in parts.
const MAX_COPIED_BYTES: usize = 16 << 10;
/// The bytes of a request in addition to its method and params.
const REQUEST_CAPACITY: usize = 64;

/// A JSON text, perhaps with room around it for the rest of its message.
#[derive(Debug)]
pub struct Json {
    buffer: Vec<u8>,
    /// The index of its first byte.
    from: usize,
}

/// Outgoing JSON on one line, with its memory charge.
#[derive(Debug)]
pub struct Text {
    json: Json,
    charge: Charge,
    receipt: Option<Receipt>,
}

/// An outgoing message, without its line end.
#[derive(Debug)]
pub struct Outgoing(Content);

#[derive(Debug)]
enum Content {
    /// One part that can be continued.
    Whole(Text),
    /// Several non-empty parts. The text of a single answer keeps its receipt.
    Parts(Vec<Bytes>, Receipts),
}

/// A line to be written: its parts in order, with its line end.
#[derive(Debug)]
pub struct Line {
    parts: Vec<Bytes>,
}

impl Json {
    /// Inserts a text at an index of the JSON.
    pub fn insert(&mut self, at: usize, text: String) {
        let at = self.from + at;
        self.buffer.splice(at..at, text.into_bytes());
    }
}

impl AsRef<[u8]> for Json {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.from..]
    }
}

impl From<Vec<u8>> for Json {
    fn from(buffer: Vec<u8>) -> Self {
        Self { buffer, from: 0 }
    }
}

impl Text {
    /// Makes a text that is charged until it was written. A charge beyond its bytes is returned.
    pub fn charged(json: impl Into<Json>, mut charge: Charge) -> Self {
        let mut json: Json = json.into();
        // Line ends occur in JSON only between two tokens, where a blank means the same.
        if memchr2(b'\n', b'\r', json.as_ref()).is_some() {
            for byte in &mut json.buffer {
                if matches!(byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
        }
        charge.shrink(json.as_ref().len());
        Self {
            json,
            charge,
            receipt: None,
        }
    }

    /// Returns the text with a receipt.
    pub fn with_receipt(self, receipt: Option<Receipt>) -> Self {
        Self { receipt, ..self }
    }

    /// Takes the receipt, for a text that is written in place of this one.
    pub fn take_receipt(&mut self) -> Option<Receipt> {
        self.receipt.take()
    }

    /// Writes `head` in front, if there is room.
    fn begin(&mut self, head: &[u8]) -> bool {
        let json = &mut self.json;
        let Some(from) = json.from.checked_sub(head.len()) else {
            return false;
        };
        json.buffer[from..json.from].copy_from_slice(head);
        json.from = from;
        true
    }

    fn push(&mut self, byte: u8) {
        self.json.buffer.push(byte);
    }

    fn into_bytes(self) -> Bytes {
        let from = self.json.from;
        let mut bytes = self.charge.hold(self.json.buffer);
        bytes.advance(from);
        bytes
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.json.as_ref()
    }
}

impl<T: Into<Json>> From<T> for Text {
    fn from(json: T) -> Self {
        Self::charged(json, Charge::default())
    }
}

impl Outgoing {
    /// Returns the number of its bytes.
    pub fn size(&self) -> usize {
        match &self.0 {
            Content::Whole(text) => text.as_ref().len(),
            Content::Parts(parts, _) => parts.iter().map(Bytes::len).sum(),
        }
    }

    fn take_receipts(&mut self) -> Receipts {
        match &mut self.0 {
            Content::Whole(text) => Receipts::from_one(text.receipt.take()),
            Content::Parts(_, receipts) => std::mem::take(receipts),
        }
    }

    /// Returns the non-empty parts of the message, in order.
    pub fn into_parts(self) -> Vec<Bytes> {
        match self.0 {
            Content::Whole(text) => vec![text.into_bytes()],
            Content::Parts(parts, _) => parts,
        }
    }

    /// Returns the line of this single message.
    pub fn into_line(self) -> Line {
        let parts = match self.0 {
            Content::Whole(mut text) => {
                text.push(b'\n');
                vec![text.into_bytes()]
            }
            Content::Parts(mut parts, _) => {
                parts.push(Bytes::from_static(b"\n"));
                parts
            }
        };
        Line { parts }
    }
}

impl Line {
    /// Returns the non-empty parts.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// Removes the first bytes of the line after they were written.
    pub fn advance(&mut self, mut written: usize) {
        let whole = self.parts.iter().take_while(|part| {
            let is_whole = part.len() <= written;
            written -= if is_whole { part.len() } else { 0 };
            is_whole
        });
        let whole = whole.count();
        self.parts.drain(..whole);
        if let Some(part) = self.parts.first_mut() {
            part.advance(written);
        }
    }

    /// Returns the complete line, copied.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.parts.concat())
    }
}

/// Returns a request of the broker as a complete line. `params` writes one JSON object of about `size` bytes.
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

/// Returns a notification. `params` is one JSON object.
pub fn notification(method: &str, params: Option<&str>) -> Outgoing {
    let mut text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"").into_bytes();
    if let Some(params) = params {
        text.extend_from_slice(br#","params":"#);
        push_one_line(&mut text, params.as_bytes());
    }
    text.push(b'}');
    whole(text)
}

/// Returns the answer to a request: a result. A long one is not copied.
pub fn result(id: &Id, mut result: Text) -> Outgoing {
    let mut head = Vec::with_capacity(HEAD_ROOM);
    head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    push_id(&mut head, id);
    head.extend_from_slice(br#","result":"#);
    if result.begin(&head) {
        result.push(b'}');
        return Outgoing(Content::Whole(result));
    }
    let json = result.json.as_ref();
    if json.len() <= MAX_COPIED_BYTES {
        head.reserve_exact(json.len() + END_ROOM);
        head.extend_from_slice(json);
        head.push(b'}');
        let receipt = result.receipt.take();
        return Outgoing(Content::Whole(plain(head).with_receipt(receipt)));
    }
    let receipts = Receipts::from_one(result.receipt.take());
    // With room for the line end.
    let mut parts = Vec::with_capacity(4);
    parts.extend([
        Bytes::from(head),
        result.into_bytes(),
        Bytes::from_static(b"}"),
    ]);
    Outgoing(Content::Parts(parts, receipts))
}

/// Returns the answer to a request: an error. The id is left out if it could not be read, as in the protocol's schema.
pub fn error(id: Option<&Id>, error: RpcError) -> Outgoing {
    let message = Value::from(error.message);
    let data = error
        .data
        .map(|data| format!("\"data\":{},", to_text(&data)))
        .unwrap_or_default();
    let body = format!("{{\"code\":{},{data}\"message\":{message}}}", error.code);
    let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
    whole(format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{body}}}").into_bytes())
}

/// Returns the answers to a batch.
pub fn batch(messages: Vec<Outgoing>) -> Outgoing {
    // With room for the line end.
    let mut parts = Vec::with_capacity(2 * messages.len() + 2);
    let mut receipts = Receipts::default();
    for (at, mut message) in messages.into_iter().enumerate() {
        receipts.add(at, message.take_receipts());
        parts.push(Bytes::from_static(if at == 0 { b"[" } else { b"," }));
        parts.extend(message.into_parts());
    }
    parts.push(Bytes::from_static(b"]"));
    Outgoing(Content::Parts(parts, receipts))
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

fn whole(json: Vec<u8>) -> Outgoing {
    Outgoing(Content::Whole(plain(json)))
}

/// Returns a text without a charge that has no line ends.
fn plain(json: Vec<u8>) -> Text {
    Text {
        json: json.into(),
        charge: Charge::default(),
        receipt: None,
    }
}

fn push_id(line: &mut Vec<u8>, id: &Id) {
    match id.number() {
        Some(number) if matches!(id, Id::Integer(_)) => push_number(line, number),
        _ => line.extend_from_slice(id.to_string().as_bytes()),
    }
}

pub fn push_number(line: &mut Vec<u8>, mut number: u64) {
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
    use serde_json::json;

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
        let long = format!("\"{}\"", "x".repeat(99_992));
        for (id, place_of_result) in [("short".to_owned(), 0), ("long".repeat(100), 1)] {
            let charge = budget.account().charge(250_000, Size::Large).unwrap();
            let mut object = ObjectWriter::with_capacity(100_000);
            object.member("a", &long);
            let json = object.end();
            let place = json.as_ref().as_ptr() as usize;
            assert_eq!(json.as_ref().len(), 100_000);
            let line = result(&Id::Text(id), Text::charged(json, charge)).into_line();
            let part = line.parts()[place_of_result].as_ptr_range();
            assert!((part.start as usize..part.end as usize).contains(&place));
            assert_eq!(line.parts().len(), 1 + 3 * place_of_result);
            assert_eq!(budget.used(), 100_000);
            drop(line);
            assert_eq!(budget.used(), 0);
        }
    }

    #[test]
    fn written_object_has_the_same_message_with_and_without_room() {
        let object = |members: &[(&str, &str)]| {
            let mut object = ObjectWriter::with_capacity(0);
            assert!(object.is_empty());
            for (name, value) in members {
                object.member(name, value);
            }
            object.end()
        };
        let members = [("a\n", "{}"), ("b", "{\"{\": 1}"), ("c", "[]")];
        for members in [&members[..0], &members[..1], &members] {
            for length in [1, 40, 200] {
                let id = Id::Text("i".repeat(length));
                let copied: Json = object(members).as_ref().to_vec().into();
                let [with, without] =
                    [object(members), copied].map(|json| text(result(&id, json.into())));
                assert_eq!(with, without);
                let value: Value = serde_json::from_str(&with).unwrap();
                assert_eq!(value["result"].as_object().unwrap().len(), members.len());
            }
        }
        let mut noted = object(&[("a", "[]")]);
        noted.insert(6, "1".to_owned());
        assert_eq!(noted.as_ref(), b"{\"a\":[1]}");
    }

    #[test]
    fn line_continues_behind_the_bytes_that_were_written() {
        let line = || {
            let answer = |id| result(&Id::Integer(id), b"{}".to_vec().into());
            batch(vec![answer(1), answer(2)]).into_line()
        };
        let whole = line().into_bytes();
        for written in 0..=whole.len() {
            let mut line = line();
            line.advance(written);
            assert!(line.parts().iter().all(|part| !part.is_empty()));
            assert_eq!(line.into_bytes(), whole.slice(written..));
        }
    }

    #[test]
    fn written_id_keeps_its_form() {
        for id in [
            "0",
            "-1",
            "7",
            "18446744073709551615",
            "-9223372036854775808",
            "\"7\"",
        ] {
            let mut line = Vec::new();
            push_id(&mut line, &Id::parse(id).unwrap());
            assert_eq!(line, id.as_bytes());
        }
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
