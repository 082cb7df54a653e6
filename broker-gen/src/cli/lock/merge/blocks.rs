//! The text of an audits file as blocks: an entry with the comment above it. It is pure.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// The members that say what an entry is about. Two entries that differ in others are about the same.
const SUBJECT: [&str; 4] = ["source", "tool", "digest", "rule"];

/// A text as blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Blocks<'t> {
    /// The lines before the first block.
    pub(super) head: &'t str,
    pub(super) blocks: Vec<Block<'t>>,
    /// The index of each block by its key.
    places: BTreeMap<Key, usize>,
}

/// An entry, and its number among equal ones of the file.
pub(super) type Key = (String, usize);

impl<'t> Blocks<'t> {
    /// The block with this key.
    pub(super) fn find(&self, key: &Key) -> Option<&Block<'t>> {
        self.places.get(key).map(|at| &self.blocks[*at])
    }
}

/// An entry with its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block<'t> {
    pub(super) key: Key,
    /// What it is about.
    pub(super) subject: String,
    /// Its lines, the lines of the comment directly above it, and the text that follows it.
    pub(super) text: &'t str,
}

/// Splits a valid text. Returns `None` if it is not written as one table for each entry.
pub(super) fn split(text: &str) -> Option<Blocks<'_>> {
    let whole: Table = text.parse().ok()?;
    let starts = starts(text);
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let blocks = starts.iter().zip(ends).map(|(start, end)| {
        let text = &text[*start..end];
        let (list, entry) = entry(text)?;
        let key = format!("{list} {entry:?}");
        let count = counts.entry(key.clone()).or_default();
        *count += 1;
        let about = SUBJECT.map(|member| entry.get(member));
        Some(Block {
            key: (key, *count),
            subject: format!("{list} {about:?}"),
            text,
        })
    });
    let blocks: Vec<_> = blocks.collect::<Option<_>>()?;
    let entries = whole
        .values()
        .map(|list| list.as_array().map_or(1, Vec::len));
    let head = &text[..starts.first().copied().unwrap_or(text.len())];
    // A header in a text over several lines is not one of an entry.
    let is_whole = entries.sum::<usize>() == blocks.len();
    let has_head = head.parse::<Table>().is_ok_and(|table| table.is_empty());
    let places = blocks.iter().enumerate();
    let places = places.map(|(at, block)| (block.key.clone(), at)).collect();
    (is_whole && has_head).then_some(Blocks {
        head,
        blocks,
        places,
    })
}

/// Returns the start offsets of the blocks.
fn starts(text: &str) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    // The start of the comment lines directly above.
    let mut comment = None;
    for line in text.split_inclusive('\n') {
        let words = line.trim_start();
        if words.starts_with("[[") {
            starts.push(comment.unwrap_or(at));
            comment = None;
        } else if words.starts_with('#') {
            comment = comment.or(Some(at));
        } else {
            comment = None;
        }
        at += line.len();
    }
    starts
}

/// The list and the only entry of a block.
fn entry(text: &str) -> Option<(String, Table)> {
    let table: Table = text.parse().ok()?;
    let mut lists = table.into_iter();
    let (Some((name, Value::Array(mut entries))), None) = (lists.next(), lists.next()) else {
        return None;
    };
    let (Some(Value::Table(entry)), true) = (entries.pop(), entries.is_empty()) else {
        return None;
    };
    Some((name, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_its_entries_with_their_comments() {
        let text =
            "# head\n\n[[audits]]\nwho = \"A\"\n\n# why\n[[audits]] # here\nwho = \"B\"\n# end\n";
        let blocks = split(text).expect("valid");
        assert_eq!(blocks.head, "# head\n\n");
        let texts: Vec<_> = blocks.blocks.iter().map(|block| block.text).collect();
        assert_eq!(
            texts,
            [
                "[[audits]]\nwho = \"A\"\n\n",
                "# why\n[[audits]] # here\nwho = \"B\"\n# end\n"
            ]
        );
        assert_ne!(blocks.blocks[0].key, blocks.blocks[1].key);
        assert_eq!(blocks.blocks[0].subject, blocks.blocks[1].subject);
        assert_eq!(split("# only a comment\n").expect("valid").blocks, []);
        let twice = split("[[a]]\nx = 1\n[[a]]\nx = 1\n").expect("valid");
        let numbers: Vec<_> = twice.blocks.iter().map(|block| block.key.1).collect();
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn text_in_another_form_is_not_split() {
        for text in [
            "audits = [{who = \"A\"}]\n",
            "audits = [\n[[1]],\n]\n",
            "[[audits]]\nnotes = \"\"\"\n[[audits]]\nx = 1\n\"\"\"\n",
            "[[audits]]\nwho = \"A\"\n[other]\nx = 1\n",
            "[[audits]\n",
        ] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
