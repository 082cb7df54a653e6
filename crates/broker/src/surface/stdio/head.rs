//! Finds the id of a request in a line that is read past and not kept. Looks at the members of the
//! outermost object only, and keeps a kilobyte at most.

use super::message::{Id, MAX_ID_BYTES};

/// Names and ids longer than this are cut off; what was cut is neither a known name nor an id.
const MAX_TOKEN_BYTES: usize = MAX_ID_BYTES + 1;

/// What is known of a line so far.
#[derive(Debug, Default)]
pub(super) struct HeadScan {
    depth: usize,
    /// Whether the outermost value is an object.
    is_object: bool,
    in_string: bool,
    escaped: bool,
    /// The token that is being read at the outermost level, as it was written.
    token: Vec<u8>,
    /// The member whose value comes next.
    member: Option<Member>,
    id: Option<Id>,
    has_method: bool,
    is_answer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Id,
    Other,
}

impl HeadScan {
    /// Looks at the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            // The inside of strings further in is most of a long line.
            if self.in_string && self.depth > 1 && !self.escaped {
                match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
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

    /// Whether the id and the method of a request were read: nothing that comes later is needed.
    pub(super) const fn is_known(&self) -> bool {
        self.id.is_some() && self.has_method
    }

    /// The id of the message, unless the message answers a request.
    pub(super) fn id(&self) -> Option<Id> {
        self.id
            .clone()
            .filter(|_| self.has_method || !self.is_answer)
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
        let name = serde_json::from_slice::<String>(&self.token);
        self.token.clear();
        self.member = Some(Member::Other);
        match name.as_deref() {
            Ok("id") => self.member = Some(Member::Id),
            Ok("method") => self.has_method |= self.is_object,
            Ok("result" | "error") => self.is_answer = true,
            _ => {}
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        let token = std::mem::take(&mut self.token);
        if self.member.take() == Some(Member::Id) && self.is_object && self.id.is_none() {
            let text = std::str::from_utf8(&token);
            self.id = text.ok().and_then(Id::parse);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> Option<String> {
        let mut scan = HeadScan::default();
        scan.feed(text.as_bytes());
        scan.id().map(|id| id.to_string())
    }

    #[test]
    fn the_id_of_a_request_is_read_at_the_outermost_level_only() {
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
            assert_eq!(id(text).as_deref(), expected, "{text:.60}");
        }
    }

    #[test]
    fn id_and_method_are_enough() {
        let mut scan = HeadScan::default();
        scan.feed(br#"{"id":7,"#);
        assert!(!scan.is_known());
        scan.feed(br#""method":"#);
        assert!(scan.is_known());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in r#"\{[a-z0-9{}:,"\\ ]{0,80}"#, at in 0usize..80) {
            let mut scan = HeadScan::default();
            let (head, tail) = text.as_bytes().split_at(at.min(text.len()));
            scan.feed(head);
            scan.feed(tail);
            prop_assert_eq!(scan.id().map(|id| id.to_string()), id(&text));
        }
    }
}
