//! Line and column of a byte offset or of a JSON pointer in a text.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Line and column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

/// The position of a byte offset; the end of the text for one beyond it.
pub fn position_of_offset(text: &str, offset: usize) -> Position {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The position of the value that `pointer` names, else of its nearest existing ancestor. `None` only for
/// a text that is not JSON.
pub fn position_of_pointer(text: &str, pointer: &str) -> Option<Position> {
    let offset_of = |raw: &RawValue| raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let mut here: &RawValue = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let next = if here.get().starts_with('{') {
            serde_json::from_str::<BTreeMap<String, &RawValue>>(here.get())
                .ok()
                .and_then(|mut members| members.remove(&name))
        } else if here.get().starts_with('[') {
            let items = serde_json::from_str::<Vec<&RawValue>>(here.get()).ok();
            name.parse::<usize>()
                .ok()
                .and_then(|index| items.and_then(|items| items.get(index).copied()))
        } else {
            None
        };
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    Some(position_of_offset(text, offset_of(here)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_of_a_missing_pointer_is_that_of_its_parent() {
        let text = "{\n  \"a\": [1,\n   {\"ü\": \"x\", \"b/c\": 2}]\n}";
        let at = |pointer| position_of_pointer(text, pointer).map(|p| (p.line, p.column));
        assert_eq!(at(""), Some((1, 1)));
        assert_eq!(at("/a"), Some((2, 8)));
        assert_eq!(at("/a/1/b~1c"), Some((3, 22)));
        assert_eq!(at("/a/1/nope/deeper"), Some((3, 4)));
        assert_eq!(position_of_pointer("{", ""), None);
    }
}
