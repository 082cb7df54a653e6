//! The note at the end of a result that was cut: clients show the text of a result to the model, but not
//! its `_meta`.

use std::fmt;

use broker_model::text::shown_line;
use broker_wire::JsonMembers;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use broker_core::{Cut, CutDetail};

/// The maximum length of a note, in characters of JSON, with the block around it.
pub(super) const MAX_NOTE_CHARS: usize = 400;
/// The maximum number of cuts that a note names.
const MAX_NAMED_CUTS: usize = 3;
/// The remedy where the rest is not kept.
const ASK_FOR_LESS: &str =
    "Ask for less with other `args`: a filter, a smaller range, fewer items.";
/// Characters of a pointer that a note shows.
const MAX_POINTER_CHARS: usize = 60;

/// The place of the note in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this offset of `content`, at the end of the text of its last block.
    Text(usize),
    /// At this offset of `content`, as a block behind others.
    Block(usize),
    /// At this offset of `content`, as the only block.
    OnlyBlock(usize),
}

impl Place {
    /// The place in the JSON of `content`; `None` if it is not a list.
    pub(super) fn in_content(content: &str) -> Option<Self> {
        let end = content.strip_suffix(']')?.len();
        let mut reader = serde_json::Deserializer::from_str(content);
        let last = reader.deserialize_seq(LastItem).ok()?;
        Some(match last {
            None => Self::OnlyBlock(end),
            Some(block) => text_end(block.get())
                .map(|at| {
                    Self::Text(block.get().as_ptr() as usize - content.as_ptr() as usize + at)
                })
                .unwrap_or(Self::Block(end)),
        })
    }

    /// Its offset in `content`.
    pub(super) fn offset(self) -> usize {
        let (Self::Text(at) | Self::Block(at) | Self::OnlyBlock(at)) = self;
        at
    }

    /// Returns the longest note on `cut` that has at most `room` characters, as it is inserted here. Empty if no note
    /// fits.
    pub(super) fn note(self, cut: &Cut, room: usize) -> String {
        let (before, after) = match self {
            Self::Text(_) => ("\\n\\n", ""),
            Self::Block(_) => (",{\"type\":\"text\",\"text\":\"", "\"}"),
            Self::OnlyBlock(_) => ("{\"type\":\"text\",\"text\":\"", "\"}"),
        };
        let room = room.min(MAX_NOTE_CHARS);
        let fits = |text: String| {
            let json = serde_json::to_string(&text).unwrap_or_default();
            let inner = json
                .get(1..json.len().saturating_sub(1))
                .unwrap_or_default();
            let note = format!("{before}{inner}{after}");
            (note.chars().count() <= room).then_some(note)
        };
        texts(cut).find_map(fits).unwrap_or_default()
    }
}

/// The texts for a note, the longest first.
fn texts(cut: &Cut) -> impl Iterator<Item = String> {
    let (limit, original) = (cut.limit, cut.original_chars);
    let head = format!("The broker cut this result: at most {limit} of {original} characters");
    let remedy = match (&cut.rest, cut.cuts.first()) {
        (Some(rest), Some(first)) => {
            let pointer = shown_line(&first.pointer, MAX_POINTER_CHARS);
            format!(
                "Ask for less with other `args`, or read the rest with the tool `job`: id {rest}, action read, pointer {pointer}."
            )
        }
        (Some(rest), None) => format!(
            "Ask for less with other `args`, or read the rest with the tool `job`: id {rest}, action read."
        ),
        (None, _) => ASK_FOR_LESS.to_owned(),
    };
    let named = cut.cuts.len().min(MAX_NAMED_CUTS);
    let detailed = (1..=named).rev().map({
        let (head, remedy) = (head.clone(), remedy.clone());
        move |count| {
            let mut parts: Vec<_> = cut.cuts[..count].iter().map(part).collect();
            match cut.cuts.len() - count + cut.unnamed {
                0 => {}
                1 => parts.push("1 more place".to_owned()),
                more => parts.push(format!("{more} more places")),
            }
            format!("[{head}. Left out: {}. {remedy}]", parts.join("; "))
        }
    });
    detailed.chain([
        format!("[{head}. {remedy}]"),
        format!("[Cut: {limit} of {original} characters. Ask for less.]"),
    ])
}

/// The part that one cut left out.
fn part(cut: &CutDetail) -> String {
    let (left_out, from) = (cut.from.saturating_sub(cut.to), cut.from);
    let pointer = shown_line(&cut.pointer, MAX_POINTER_CHARS);
    match cut.kind {
        "list" => format!("{left_out} of {from} items at `{pointer}`"),
        "head" => format!("{left_out} of {from} characters of its JSON"),
        _ => format!("{left_out} of {from} characters at `{pointer}`"),
    }
}

/// The offset of the end of the text in a text block.
fn text_end(block: &str) -> Option<usize> {
    let members = JsonMembers::parse(block).ok()?;
    let is_text = members.get("type") == Some("\"text\"");
    let text = members
        .get("text")
        .filter(|text| is_text && text.starts_with('"'))?;
    let at = text.as_ptr() as usize - block.as_ptr() as usize;
    Some(at + text.len() - 1)
}

/// Reads the last item of a list, and keeps no other.
struct LastItem;

impl<'de> Visitor<'de> for LastItem {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut last = None;
        while let Some(item) = items.next_element()? {
            last = Some(item);
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(cuts: usize) -> Cut {
        let detail = |kind, pointer: &str| CutDetail {
            pointer: pointer.to_owned(),
            kind,
            from: 5000,
            to: 700,
        };
        let all = [
            detail("string", "/content/0/text"),
            detail("list", "/structuredContent/rows"),
            detail("string", &format!("/{}", "\"x".repeat(200))),
            detail("head", ""),
        ];
        Cut {
            original_chars: 9000,
            limit: 1000,
            cuts: all[..cuts].to_vec(),
            unnamed: 5,
            rest: None,
            whole: None,
        }
    }

    #[test]
    fn place_of_the_note_is_the_end_of_the_last_text() {
        let last = r#"[{"type":"text","text":"a"},{"type":"text","text":"b\"…" } ]"#;
        let at = last.rfind("\" }").unwrap();
        for (content, place) in [
            (last, Place::Text(at)),
            ("[]", Place::OnlyBlock(1)),
            ("[ ]", Place::OnlyBlock(2)),
            (r#"[{"type":"image","text":"x"}]"#, Place::Block(28)),
            (r#"[{"type":"text","text":7}]"#, Place::Block(25)),
            ("[7]", Place::Block(2)),
        ] {
            assert_eq!(Place::in_content(content), Some(place), "{content}");
        }
        for content in ["{}", "null", "\"]"] {
            assert_eq!(Place::in_content(content), None, "{content}");
        }
    }

    #[test]
    fn note_says_how_to_read_the_rest_that_is_kept() {
        let kept = Cut {
            rest: Some("r_1".into()),
            ..cut(1)
        };
        assert_eq!(
            Place::Text(0).note(&kept, 400),
            "\\n\\n[The broker cut this result: at most 1000 of 9000 characters. Left out: 4300 of 5000 characters at `/content/0/text`; 5 more places. Ask for less with other `args`, or read the rest with the tool `job`: id r_1, action read, pointer /content/0/text.]"
        );
    }

    #[test]
    fn note_names_the_cuts_for_which_there_is_room() {
        let note = |cuts, room| Place::Text(0).note(&cut(cuts), room);
        let long = note(2, 400);
        assert_eq!(
            long,
            "\\n\\n[The broker cut this result: at most 1000 of 9000 characters. Left out: 4300 of 5000 characters at `/content/0/text`; 4300 of 5000 items at `/structuredContent/rows`; 5 more places. Ask for less with other `args`: a filter, a smaller range, fewer items.]"
        );
        assert!(note(2, 240).contains("6 more places"));
        let one_more = Cut {
            unnamed: 0,
            ..cut(2)
        };
        let one_more = Place::Text(0).note(&one_more, 240);
        assert!(one_more.contains("; 1 more place. "), "{one_more}");
        assert!(note(2, 150).contains("fewer items") && !note(2, 150).contains("Left out"));
        assert_eq!(
            note(4, 60),
            "\\n\\n[Cut: 1000 of 9000 characters. Ask for less.]"
        );
        assert_eq!(note(4, 10), "");
        for room in 0..500 {
            for place in [Place::Text(0), Place::Block(0), Place::OnlyBlock(0)] {
                let note = place.note(&cut(4), room);
                assert!(note.chars().count() <= room.min(MAX_NOTE_CHARS), "{room}");
            }
        }
    }
}
