//! Scans JSON bytes without parsing them: their depth, and the id of a message that is too long or too
//! broken to be read. Never recurses, and never keeps more than a kilobyte.

use memchr::memchr2;

use crate::Id;
use crate::id::MAX_ID_BYTES;

/// The maximum depth that is forwarded. Raw slices have no such limit.
pub(crate) const MAX_DEPTH: usize = 512;
/// Names and ids longer than this are cut; a cut token is neither a known name nor an id.
const MAX_TOKEN_BYTES: usize = MAX_ID_BYTES + 1;

/// Whether JSON bytes nest deeper than [`MAX_DEPTH`].
pub(crate) fn is_too_deep(line: &[u8]) -> bool {
    // Every level takes two bytes.
    if line.len() < 2 * MAX_DEPTH {
        return false;
    }
    let (mut at, mut depth) = (0, 0usize);
    while let Some(&byte) = line.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_string(line, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns the index behind the string whose content begins at `at`.
fn after_string(line: &[u8], mut at: usize) -> usize {
    while let Some(found) = line.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if line[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    line.len()
}

/// Returns the index behind the value at the beginning of `json`. The value is valid.
pub(crate) fn after_value(json: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0usize);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = after_string(json, at + 1),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b'}' | b']' | b',' | b':' if depth == 0 => return at,
            _ if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

/// The peer of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It sends requests. A request over the memory budget is answered under its id; a line over the limit is reported
    /// at once, without an id.
    Client,
    /// It sends answers. A skipped line is reported under the id of the request that it answers.
    Server,
}

/// Finds the id of a message among the members of its outermost object, piece by piece. The first
/// member `id` that is an id counts, so that the outcome does not depend on how the bytes were split.
#[derive(Debug, Default)]
pub(crate) struct HeadScan {
    depth: usize,
    /// Whether the outermost value is an object.
    is_object: bool,
    in_string: bool,
    escaped: bool,
    /// The token that is being read at the outermost level, as it was written.
    token: Vec<u8>,
    /// Whether the value of a member `id` comes next.
    id_follows: bool,
    id: Option<Id>,
    has_method: bool,
    is_answer: bool,
}

impl HeadScan {
    /// Scans the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            // Strings at inner levels are most of a long line, and are skipped at once.
            if self.in_string && self.depth > 1 && !self.escaped {
                match memchr2(b'"', b'\\', &bytes[at..]) {
                    Some(found) => at += found,
                    None => return,
                }
                self.step(bytes[at]);
            } else {
                self.step(byte);
            }
            at += 1;
        }
    }

    /// Returns the id to report for a message of this peer: for a client the id of a request or notification, for a
    /// server the id of an answer with a `result` or an `error`.
    pub(crate) fn id(&self, peer: Peer) -> Option<Id> {
        let matters = match peer {
            Peer::Client => self.has_method || !self.is_answer,
            Peer::Server => self.is_answer,
        };
        self.id.clone().filter(|_| matters)
    }

    /// Whether later bytes cannot change the id.
    pub(crate) const fn is_conclusive(&self, peer: Peer) -> bool {
        let has_kind = match peer {
            Peer::Client => self.has_method,
            Peer::Server => self.is_answer,
        };
        has_kind && self.id.is_some()
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return self.keep(byte);
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.is_object |= self.depth == 0 && byte == b'{';
                self.depth += 1;
                self.token.clear();
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.begin_value(),
            b',' => self.end_value(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    fn begin_value(&mut self) {
        self.id_follows = false;
        if self.is_object {
            // Only a name with escapes has to be decoded.
            let decoded: String;
            let name = if self.token.contains(&b'\\') {
                decoded = serde_json::from_slice(&self.token).unwrap_or_default();
                decoded.as_bytes()
            } else {
                let inner = self.token.strip_prefix(b"\"");
                inner
                    .and_then(|rest| rest.strip_suffix(b"\""))
                    .unwrap_or_default()
            };
            match name {
                b"id" => self.id_follows = true,
                b"method" => self.has_method = true,
                b"result" | b"error" => self.is_answer = true,
                _ => {}
            }
        }
        self.token.clear();
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        if std::mem::take(&mut self.id_follows) && self.id.is_none() {
            self.id = std::str::from_utf8(&self.token).ok().and_then(Id::parse);
        }
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(peer: Peer, text: &str) -> Option<String> {
        let mut scan = HeadScan::default();
        scan.feed(text.as_bytes());
        scan.id(peer).map(|id| id.to_string())
    }

    #[test]
    fn id_of_an_answer_is_read_at_the_outermost_level_only() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":12,"result":{}}"#, Some("12")),
            (
                r#"{"result":{"id":1,"x":[{"id":2}]},"id" : "34" }"#,
                Some("\"34\""),
            ),
            (r#"{"id":5,"result":{"a":"}}}","#, Some("5")),
            (r#"{"result":"\"id\":9,","x":"id","id":6}"#, Some("6")),
            (r#"{"id":5,"result":1,"id":6,"#, Some("5")),
            (r#"{"i\u0064":5,"resul\u0074":1,"#, Some("5")),
            (r#"{"id\\":5,"result\"":1,"id":6,"#, None),
            (r#"{"id":5,"method":"x"}"#, None),
            (r#"{"result":{"id":1}}"#, None),
            (r#"{"id":-1,"error":{}}"#, Some("-1")),
            (r#"{"id":{"x":7},"error":{}}"#, None),
            ("id:5,result", None),
        ];
        for (text, expected) in table {
            assert_eq!(id(Peer::Server, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn id_of_a_request_is_read_at_the_outermost_level_only() {
        let long = format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(2000));
        let fits = "y".repeat(MAX_ID_BYTES - 2);
        let longest = format!(r#"{{"id":"{fits}","method":"m"}}"#);
        let quoted = format!("\"{fits}\"");
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"#,
                Some("7"),
            ),
            (
                r#" { "params" : {"id":1} , "i\u0064" : "a\"b" , "#,
                Some(r#""a\"b""#),
            ),
            (r#"{"method":"x","params":["#, None),
            (r#"{"id":-5,"x":"}"#, Some("-5")),
            (r#"{"id":1,"id":2}"#, Some("1")),
            (r#"{"id":[3]}"#, None),
            (r#"{"id":1.5,"method":"m"}"#, None),
            (r#"{"id":7,"result":{"#, None),
            (r#"{"error":{},"id":7}"#, None),
            (r#"{"result":1,"method":"m","id":7}"#, Some("7")),
            (r#"[{"id":7,"method":"m"}]"#, None),
            (r#"["id":7,"method":"m"]"#, None),
            ("id:7,", None),
            (&long, None),
            (&longest, Some(&quoted)),
        ] {
            assert_eq!(id(Peer::Client, text).as_deref(), expected, "{text:.60}");
        }
    }

    #[test]
    fn head_scan_is_conclusive_with_id_and_kind() {
        let mut scan = HeadScan::default();
        scan.feed(br#"{"id":7,"#);
        let conclusive =
            |scan: &HeadScan| [Peer::Client, Peer::Server].map(|peer| scan.is_conclusive(peer));
        assert_eq!(conclusive(&scan), [false, false]);
        scan.feed(br#""method":"#);
        assert_eq!(conclusive(&scan), [true, false]);
        scan.feed(br#"1,"result":"#);
        assert_eq!(conclusive(&scan), [true, true]);
    }

    #[test]
    fn depth_is_limited_and_ignores_strings() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!is_too_deep(nested(MAX_DEPTH).as_bytes()));
        assert!(is_too_deep(nested(MAX_DEPTH + 1).as_bytes()));
        assert!(is_too_deep("[".repeat(20_000).as_bytes()));
        assert!(!is_too_deep(format!("\"{}\"", "[".repeat(2000)).as_bytes()));
        assert!(!is_too_deep(
            format!("[\"\\\"{}\"]", "[".repeat(2000)).as_bytes()
        ));
        assert!(!is_too_deep("[],".repeat(2000).as_bytes()));
    }

    proptest! {
        #[test]
        fn head_scan_in_any_pieces_gives_the_same_id(text in r#"\{?[a-z0-9{}:,"\\ ]{0,80}"#, at in 0usize..80) {
            let mut scan = HeadScan::default();
            let (head, tail) = text.as_bytes().split_at(at.min(text.len()));
            scan.feed(head);
            scan.feed(tail);
            for peer in [Peer::Client, Peer::Server] {
                prop_assert_eq!(scan.id(peer).map(|id| id.to_string()), id(peer, &text));
            }
        }
    }
}
