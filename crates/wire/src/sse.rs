//! Reads a stream of server-sent events (HTML Living Standard, section 9.2) that a server sends. Comments and
//! unknown fields are skipped; the length of an event is bounded while it is read.

use std::time::Duration;

use broker_memory::{Account, Charge, reserve};
use bytes::{Bytes, BytesMut};
use memchr::memchr2;

/// Maximum length of a line that is not `data`, and of an event's name and id, in bytes.
const MAX_FIELD_BYTES: usize = 4 << 10;
/// Bytes of `retry:` that are read.
const MAX_RETRY_DIGITS: usize = 9;
/// Maximum number of bytes and of events without a message for the reader of the stream. A server may keep a stream
/// open with comments: one of 8 bytes every 15 s is within it for 20 days.
const MAX_BYTES_WITHOUT_MESSAGE: usize = 1 << 20;
const MAX_EVENTS_WITHOUT_MESSAGE: u32 = 10_000;

/// One event with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; `message` if the stream does not name it.
    pub name: String,
    /// The lines of `data`, joined with `\n`. Charged until its last share is dropped.
    pub data: Bytes,
}

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseError {
    /// The data of an event is longer than the limit.
    TooLarge,
    /// The memory budget has no room for an event.
    OutOfMemory,
    /// The server sent 1 MiB or 10 000 events, and no message for the reader among them.
    NoMessage,
}

/// Cuts a stream into events. Bytes go in by [`SseDecoder::push`], events come out of [`SseDecoder::next_event`]. The
/// caller repeats it until it returns `None` before the next bytes.
#[derive(Debug)]
pub struct SseDecoder {
    /// Bytes that were not read yet.
    input: BytesMut,
    /// The number of bytes at the front of `input` without a line end.
    scanned: usize,
    /// Whether the last line ended with CR, so that a LF that follows belongs to it.
    after_cr: bool,
    /// Whether this is the start of the stream, so that a byte order mark is skipped.
    is_start: bool,
    /// Whether the rest of the line is skipped.
    is_skipping: bool,
    name: String,
    data: BytesMut,
    has_data: bool,
    charge: Charge,
    account: Account,
    max_bytes: usize,
    /// The id of the event that is being read.
    next_id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Bytes and events since the last message for the reader.
    without_message: Surplus,
}

/// A number of bytes and of events of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Surplus {
    bytes: usize,
    events: u32,
}

impl SseDecoder {
    /// Makes a decoder of events with at most `max_bytes` of data. `account` is charged for the data.
    pub fn new(max_bytes: usize, account: Account) -> Self {
        Self {
            input: BytesMut::new(),
            scanned: 0,
            after_cr: false,
            is_start: true,
            is_skipping: false,
            name: String::new(),
            data: BytesMut::new(),
            has_data: false,
            charge: Charge::default(),
            account,
            max_bytes,
            next_id: None,
            last_id: None,
            retry: None,
            without_message: Surplus::default(),
        }
    }

    /// Returns a decoder for the rest of the stream from another connection.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self {
            next_id: self.last_id.clone(),
            last_id: self.last_id,
            retry: self.retry,
            without_message: self.without_message,
            ..Self::new(self.max_bytes, self.account)
        }
    }

    /// Adds bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        reserve(&mut self.input, bytes.len());
        self.input.extend_from_slice(bytes);
    }

    /// Returns the id of the last complete event that had one. A stream is resumed with it. An empty id counts as
    /// absent.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns the last `retry:` of the server.
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the account that is charged for events.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Notes that the last event had a message for the reader: what arrived before it does not count against the server.
    pub fn note_message(&mut self) {
        self.without_message = Surplus::default();
    }

    /// Returns the next event with data, `None` if more bytes are needed. After an error the stream cannot be read on.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, SseError> {
        loop {
            let surplus = self.without_message;
            if surplus.bytes > MAX_BYTES_WITHOUT_MESSAGE
                || surplus.events > MAX_EVENTS_WITHOUT_MESSAGE
            {
                return Err(SseError::NoMessage);
            }
            if self.after_cr && !self.input.is_empty() {
                self.after_cr = false;
                if self.input[0] == b'\n' {
                    drop(self.input.split_to(1));
                }
            }
            let Some(at) = memchr2(b'\n', b'\r', &self.input[self.scanned..]) else {
                self.scanned = self.input.len();
                self.check_unfinished()?;
                return Ok(None);
            };
            let length = self.scanned + at;
            self.scanned = 0;
            let line = self.input.split_to(length + 1);
            self.after_cr = line[length] == b'\r';
            if std::mem::take(&mut self.is_skipping) {
                self.without_message.bytes += line.len();
                continue;
            }
            if let Some(event) = self.take_line(&line[..length])? {
                return Ok(Some(event));
            }
        }
    }

    /// Bounds a line whose end has not arrived.
    fn check_unfinished(&mut self) -> Result<(), SseError> {
        let line = &self.input[..];
        let is_data = line.starts_with(b"data:") || b"data:".starts_with(line);
        if is_data && !self.is_skipping {
            // The line is moved into the data when it ends, so it needs the same room.
            return self.cover(self.data.len() + line.len());
        }
        if line.len() > MAX_FIELD_BYTES || self.is_skipping {
            self.is_skipping = true;
            self.without_message.bytes += line.len();
            self.input.clear();
            self.scanned = 0;
        }
        Ok(())
    }

    fn cover(&mut self, bytes: usize) -> Result<(), SseError> {
        if bytes > self.max_bytes.saturating_add(b"data: ".len()) {
            return Err(SseError::TooLarge);
        }
        let charged = self.charge.cover(&self.account, bytes);
        charged.map_err(|_| SseError::OutOfMemory)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<Option<SseEvent>, SseError> {
        let line = match std::mem::take(&mut self.is_start) {
            true => line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            self.without_message.bytes += 1;
            return Ok(self.dispatch());
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = match colon {
            // A comment.
            Some(0) => {
                self.without_message.bytes += line.len();
                return Ok(None);
            }
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if field == b"data" {
            self.add_data(value)?;
            return Ok(None);
        }
        self.without_message.bytes += line.len();
        if value.len() <= MAX_FIELD_BYTES {
            self.set_field(field, value);
        }
        Ok(None)
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        let length = self.data.len() + usize::from(self.has_data) + value.len();
        if length > self.max_bytes {
            return Err(SseError::TooLarge);
        }
        self.cover(length)?;
        let additional = length - self.data.len();
        reserve(&mut self.data, additional);
        if std::mem::replace(&mut self.has_data, true) {
            self.data.extend_from_slice(b"\n");
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn set_field(&mut self, field: &[u8], value: &[u8]) {
        match field {
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                let id = String::from_utf8_lossy(value).into_owned();
                self.next_id = (!id.is_empty()).then_some(id);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = &value[..value.len().min(MAX_RETRY_DIGITS)];
                let millis = std::str::from_utf8(digits)
                    .ok()
                    .and_then(|digits| digits.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }

    /// Returns the event that an empty line ends; `None` for one without data.
    fn dispatch(&mut self) -> Option<SseEvent> {
        self.last_id.clone_from(&self.next_id);
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        let charge = std::mem::take(&mut self.charge);
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        self.without_message.bytes += data.len();
        self.without_message.events += 1;
        Some(SseEvent {
            name: if name.is_empty() {
                "message".to_owned()
            } else {
                name
            },
            data: charge.hold(data),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_memory::MemoryBudget;
    use proptest::prelude::*;
    use std::iter::repeat_n;

    fn decoder(max_bytes: usize) -> SseDecoder {
        SseDecoder::new(max_bytes, MemoryBudget::new(1 << 20).whole_account())
    }

    /// Returns the name and the data of every event of a stream that arrives in these pieces.
    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = decoder(1 << 16);
        let mut out = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(event) = decoder.next_event().unwrap() {
                let data = String::from_utf8(event.data.to_vec()).unwrap();
                out.push((event.name, data));
            }
        }
        out
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn sse_event_has_its_name_and_joined_data() {
        let stream = b"\xef\xbb\xbf: comment\nevent: endpoint\ndata: /a\n\ndata:x\ndata: y\r\ndata\n\nevent: lost\n\nid: 7\rdata:z\r\r";
        let expected = [
            event("endpoint", "/a"),
            event("message", "x\ny\n"),
            event("message", "z"),
        ];
        assert_eq!(events(&[stream]), expected);
    }

    #[test]
    fn sse_id_and_retry_are_kept_across_events() {
        let mut decoder = decoder(100);
        decoder.push(b"id: a\nretry: 250\n\nretry: x\nid: n\0o\ndata: 1\n\n");
        assert!(decoder.next_event().unwrap().is_some());
        assert_eq!(decoder.last_id(), Some("a"));
        assert_eq!(decoder.retry(), Some(Duration::from_millis(250)));
        decoder.push(b"id: lost\ndata: not complete");
        assert!(decoder.next_event().unwrap().is_none());
        assert_eq!(decoder.last_id(), Some("a"));
        let mut decoder = decoder.resumed();
        assert_eq!(decoder.last_id(), Some("a"));
        decoder.push(b"id\ndata: 2\n\nretry: 99999999999999999999\n");
        assert!(decoder.next_event().unwrap().is_some());
        assert!(decoder.next_event().unwrap().is_none());
        assert_eq!(decoder.last_id(), None);
        assert_eq!(decoder.retry(), Some(Duration::from_millis(999_999_999)));
    }

    #[test]
    fn sse_event_over_the_limit_is_refused_before_it_ends() {
        let mut whole = decoder(10);
        whole.push(b"data: 0123456789\n\n");
        assert!(whole.next_event().unwrap().is_some());
        let mut lines = decoder(10);
        lines.push(b"data: 01234\ndata: 56789\n");
        assert_eq!(lines.next_event(), Err(SseError::TooLarge));
        let mut endless = decoder(10);
        endless.push(b"data: 0123456789ab");
        assert_eq!(endless.next_event(), Err(SseError::TooLarge));
        let mut poor = SseDecoder::new(1 << 30, MemoryBudget::new(1 << 20).whole_account());
        poor.push(b"data: ");
        poor.push(&vec![b'x'; 2 << 20]);
        assert_eq!(poor.next_event(), Err(SseError::OutOfMemory));
    }

    #[test]
    fn sse_comment_without_end_takes_no_memory() {
        let mut decoder = decoder(1 << 20);
        for _ in 0..1000 {
            decoder.push(&[b':'; 1024]);
            assert_eq!(decoder.next_event(), Ok(None));
            assert!(decoder.input.len() <= 2 * MAX_FIELD_BYTES);
        }
        decoder.push(b"\ndata: a\n\n");
        assert_eq!(&decoder.next_event().unwrap().unwrap().data[..], b"a");
    }

    #[test]
    fn sse_stream_without_a_message_ends_after_a_number_of_bytes_or_events() {
        for (text, most) in [
            (&b": endless\n\n"[..], 1 << 20),
            (b"event: endless\n\n", 1 << 20),
            (b"\n", 1 << 20),
            (b"data: x\n\n", 10_001 * 9),
            (&[b':'; 1 << 13], (1 << 20) + (1 << 13)),
        ] {
            let mut decoder = decoder(1 << 16);
            let mut sent = 0;
            let error = loop {
                decoder.push(text);
                sent += text.len();
                match decoder.next_event() {
                    Ok(_) => assert!(sent <= most + 2 * text.len() + (1 << 18), "{sent}"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error, SseError::NoMessage);
            assert!(sent >= most - (1 << 14), "{sent} of {most}");
        }
    }

    #[test]
    fn sse_stream_with_messages_has_no_end() {
        let budget = MemoryBudget::new(1 << 24);
        let mut decoder = SseDecoder::new(1 << 21, budget.whole_account());
        let large = format!("data: {}\n\n", "x".repeat(1 << 20));
        let many = repeat_n(": c\n\ndata: x\n\n", 20_000);
        for text in repeat_n(&large[..], 3).chain(many) {
            decoder.push(text.as_bytes());
            assert!(decoder.next_event().unwrap().is_some());
            decoder.note_message();
            assert_eq!(decoder.next_event(), Ok(None));
        }
    }

    proptest! {
        #[test]
        fn sse_events_do_not_depend_on_how_the_stream_is_cut(
            lines in prop::collection::vec("(data: ?[a-z]{0,6}|event: [a-z]{1,4}|id: [0-9]|: c|retry: 5|)(\n|\r|\r\n)", 0..30),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let stream = lines.concat().into_bytes();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events(&pieces), events(&[&stream]));
        }
    }
}
