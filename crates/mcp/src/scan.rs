//! Looks over JSON bytes without parsing them: how deep they nest, and which id a message carries
//! when it is too long or too broken to be read. Never recurses, never keeps more than a few bytes.

use memchr::memchr2;

/// The deepest nesting that is handed on. Raw slices have no such limit of their own.
pub(crate) const MAX_DEPTH: usize = 512;
/// Keys and ids longer than this are not ours; `result` takes 36 bytes where every letter is escaped.
const TOKEN_BYTES: usize = 40;

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

/// Where the string whose content begins at `at` is over.
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

/// Finds the members of a message by looking at its outermost level alone, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct HeadScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The token that is being read at the outermost level.
    token: Vec<u8>,
    /// The key whose value comes next.
    key: Option<Vec<u8>>,
    id: Option<u64>,
    is_answer: bool,
    /// The id, as soon as it is that of an answer; what comes later changes nothing, so that it does
    /// not depend on how the bytes were split.
    answered: Option<u64>,
}

impl HeadScan {
    /// Looks at the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            // The inside of strings further in is most of a long line, and passed over in one go.
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

    /// The id of an answer (which has a `result` or an `error`), where the id is an integer or a
    /// string of one.
    pub(crate) fn answered(&self) -> Option<u64> {
        self.answered
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return if self.in_string {
                self.keep(byte)
            };
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => {
                self.depth += 1;
                self.token.clear();
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                let key = decoded(std::mem::take(&mut self.token));
                self.is_answer |= matches!(&key[..], b"result" | b"error");
                self.key = Some(key);
                self.conclude();
            }
            b',' => self.end_value(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        let token = std::mem::take(&mut self.token);
        if self.key.take().as_deref() == Some(b"id") && token.len() < TOKEN_BYTES {
            self.id = std::str::from_utf8(&token)
                .ok()
                .and_then(|id| id.parse().ok());
            self.conclude();
        }
    }

    fn conclude(&mut self) {
        self.answered = self.answered.or(self.id.filter(|_| self.is_answer));
    }
}

/// The key with its escapes decoded; a key that cannot be decoded matches nothing.
fn decoded(key: Vec<u8>) -> Vec<u8> {
    if !key.contains(&b'\\') {
        return key;
    }
    let quoted = [b"\"", &key[..], b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map_or(key, String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answered(text: &str) -> Option<u64> {
        let mut scan = HeadScan::default();
        scan.feed(text.as_bytes());
        scan.answered()
    }

    #[test]
    fn finds_the_id_of_an_answer_at_the_outermost_level_only() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":12,"result":{}}"#, Some(12)),
            (
                r#"{"result":{"id":1,"x":[{"id":2}]},"id" : "34" }"#,
                Some(34),
            ),
            (r#"{"id":5,"result":{"a":"}}}","#, Some(5)),
            (r#"{"result":"\"id\":9,","x":"id","id":6}"#, Some(6)),
            (r#"{"id":5,"result":1,"id":6,"#, Some(5)),
            (r#"{"i\u0064":5,"resul\u0074":1,"#, Some(5)),
            (r#"{"id\\":5,"result\"":1,"id":6,"#, None),
            (r#"{"id":5,"method":"x"}"#, None),
            (r#"{"result":{"id":1}}"#, None),
            (r#"{"id":-1,"error":{}}"#, None),
            (r#"{"id":{"x":7},"error":{}}"#, None),
            ("id:5,result", None),
        ];
        for (text, expected) in table {
            assert_eq!(answered(text), expected, "{text}");
        }
    }

    #[test]
    fn f_17_depth_is_bounded_and_strings_do_not_count() {
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
        fn pieces_do_not_matter(text in r#"[a-z0-9{}:,"\\ ]{0,80}"#, at in 0usize..80) {
            let mut scan = HeadScan::default();
            let (head, tail) = text.as_bytes().split_at(at.min(text.len()));
            scan.feed(head);
            scan.feed(tail);
            prop_assert_eq!(scan.answered(), answered(&text));
        }
    }
}
