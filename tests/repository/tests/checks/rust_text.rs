//! Rust code as text: its comments and strings masked, its brackets matched, the arms of a `match`.

/// The code of a file without the unit tests at its end.
pub(super) fn code_of(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
}

/// The code with a space for each byte of a comment, a text or a character. Lines stay where they are.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '"' => text_length(rest),
            'r' | 'b' if !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                raw_length(rest)
            }
            '\'' => char_length(rest),
            _ => 0,
        };
        match length {
            0 if c.is_ascii() => out.push(c),
            0 => out.extend(std::iter::repeat_n(' ', c.len_utf8())),
            length => out.extend(rest[..length].bytes().map(|b| match b {
                b'\n' => '\n',
                _ => ' ',
            })),
        }
        rest = &rest[length.max(c.len_utf8())..];
    }
    out
}

/// The masked code with spaces for each item, variant or arm under `#[cfg(test)]`.
pub(super) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(begin) = rest.find(MARK) {
        out.push_str(&rest[..begin]);
        let item = &rest[begin..];
        let mut end = MARK.len();
        while item[end..].trim_start().starts_with("#[") {
            end = (closing(item, end) + 1).min(item.len());
        }
        end = item_end(item, end);
        let blank = |c: char| if c == '\n' { c } else { ' ' };
        out.extend(item[..end].chars().map(blank));
        rest = &item[end..];
    }
    out + rest
}

/// The end of an item that begins here: its semicolon, its comma or its block.
fn item_end(code: &str, begin: usize) -> usize {
    let mut at = begin;
    while let Some(byte) = code.as_bytes().get(at) {
        at = match byte {
            b';' | b',' => return at + 1,
            b'{' => return (closing(code, at) + 1).min(code.len()),
            b'(' | b'[' => closing(code, at) + 1,
            b'}' => return at,
            _ => at + 1,
        };
    }
    code.len()
}

/// The length of a text with escapes, which begins here.
fn text_length(rest: &str) -> usize {
    let mut bytes = rest.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a raw text or a text of bytes that begins here; 0 if there is none.
fn raw_length(rest: &str) -> usize {
    let begin = rest.strip_prefix('b').unwrap_or(rest);
    let prefix = rest.len() - begin.len();
    if prefix > 0 && begin.starts_with('"') {
        return prefix + text_length(begin);
    }
    let Some(raw) = begin.strip_prefix('r') else {
        return 0;
    };
    let marks = raw.len() - raw.trim_start_matches('#').len();
    if !raw[marks..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(marks));
    let inner = &raw[marks + 1..];
    let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    prefix + 1 + marks + 1 + length
}

/// The length of a character that begins here; 0 for a lifetime.
fn char_length(rest: &str) -> usize {
    let inner = &rest[1..];
    if inner.starts_with('\\') {
        let end = inner[2..].find('\'').map(|at| at + 2);
        return end.map_or(rest.len(), |at| at + 2);
    }
    let length = inner.chars().next().map_or(0, char::len_utf8);
    match length > 0 && inner[length..].starts_with('\'') {
        true => length + 2,
        false => 0,
    }
}

/// The place of the bracket that closes the one at or after `open`; the end if there is none.
pub(super) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth <= 1 => return at,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The parts between separators outside all brackets, trimmed, without empty ones.
pub(super) fn split_at_depth_0(code: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0usize, 0, Vec::new());
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                parts.push(code[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(code[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether `part` occurs as the beginning of a path, followed by such a character.
pub(super) fn holds(code: &str, part: &str, is_next: impl Fn(char) -> bool) -> bool {
    code.match_indices(part).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + part.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && after.is_some_and(&is_next)
    })
}

/// The patterns of the arms of a `match`, and whether each has a guard.
pub(super) fn arms(body: &str) -> Vec<(&str, bool)> {
    let mut arms = Vec::new();
    let mut rest = body;
    while let Some(arrow) = find_at_depth_0(rest, "=>") {
        let pattern = rest[..arrow].trim();
        let guard = find_at_depth_0(pattern, " if ").or(find_at_depth_0(pattern, "\nif "));
        let end = guard.unwrap_or(pattern.len());
        arms.push((pattern[..end].trim(), guard.is_some()));
        rest = rest[arrow + 2..].trim_start();
        let end = match rest.starts_with('{') {
            true => closing(rest, 0) + 1,
            false => find_at_depth_0(rest, ",").unwrap_or(rest.len()),
        };
        rest = &rest[end.min(rest.len())..];
        rest = rest.trim_start().trim_start_matches(',');
    }
    arms
}

/// The pattern after a `let`.
pub(super) fn pattern_of_let(rest: &str) -> &str {
    &rest[..find_at_depth_0(rest, "=").unwrap_or(0)]
}

/// The first place of a text outside all brackets.
fn find_at_depth_0(code: &str, wanted: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate() {
        if depth == 0 && code.as_bytes()[at..].starts_with(wanted.as_bytes()) {
            return Some(at);
        }
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[test]
fn mask_leaves_code_and_lines() {
    let code = "let a = \"x { \\\" }\"; // {\nlet b = r#\"\"{\"#; /* } \n */ let c = '{'; f::<'a>('\\'', b\"{\", é)";
    let shown = masked(code);
    assert_eq!(shown.len(), code.len());
    assert_eq!(shown.matches('\n').count(), 2);
    assert!(!shown.contains(['{', '}', '"']), "{shown}");
    assert!(shown.contains("f::<'a>("), "{shown}");
}

#[test]
fn items_for_tests_are_left_out_with_their_attributes() {
    let code = "a;\n#[cfg(test)]\n#[path]\nmod t { f(); }\nb(#[cfg(test)] c, d);\n#[cfg(test)]\nuse x::y;\nz";
    let left = without_tests(code);
    assert_eq!(left.split_whitespace().collect::<String>(), "a;b(d);z");
    assert_eq!(left.lines().count(), code.lines().count());
}

#[test]
fn arms_end_at_a_comma_or_a_block() {
    let body = " A(x) | B => f(x, y), C if x > 1 => { g(), h }\n D { .. } => [1, 2], _ => {} ";
    let expected = [
        ("A(x) | B", false),
        ("C", true),
        ("D { .. }", false),
        ("_", false),
    ];
    assert_eq!(arms(body), expected);
}
