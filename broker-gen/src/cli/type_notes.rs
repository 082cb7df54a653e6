//! Notes on schemas whose types are wider. Many of one kind are one line.

use std::collections::HashMap;

use broker_build::types::Fallback;
use broker_model::text;

use super::output::say;

/// Maximum number of notes of one kind that are shown in full.
const SHOWN_NOTES: usize = 3;
/// Maximum number of types that a line for many names.
const NAMED_TYPES: usize = 4;

/// Prints the notes.
pub(super) fn say_notes(fallbacks: &[Fallback]) {
    for note in notes(fallbacks) {
        say(text!("note: type of {}", note));
    }
}

/// Returns the notes, with the notes of one kind together, in the order of the first of each kind.
fn notes(fallbacks: &[Fallback]) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<&Fallback>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for fallback in fallbacks {
        let kind = fallback.kind();
        let place = *places.entry(kind).or_insert_with_key(|kind| {
            kinds.push((kind.clone(), Vec::new()));
            kinds.len() - 1
        });
        kinds[place].1.push(fallback);
    }
    let mut notes = Vec::new();
    for (kind, of_kind) in kinds {
        if of_kind.len() <= SHOWN_NOTES {
            notes.extend(of_kind.iter().map(ToString::to_string));
            continue;
        }
        let named = of_kind.iter().take(NAMED_TYPES);
        let named: Vec<_> = named.map(|fallback| fallback.subject()).collect();
        let more = match of_kind.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        notes.push(format!("{}{more}: {kind}", named.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_build::types::{Level, Reason, SchemaOf};
    use broker_model::NodePath;

    fn fallback(path: &str, text: &str, pointer: &str) -> Fallback {
        Fallback {
            path: NodePath::parse(path).unwrap(),
            schema: SchemaOf::Args,
            level: Level::Widened,
            reasons: vec![Reason {
                pointer: pointer.to_owned(),
                text: text.to_owned(),
            }],
        }
    }

    #[test]
    fn notes_of_one_kind_are_one_line_if_they_are_many() {
        let few = [
            fallback("/a", "it has `not`", "/x"),
            fallback("/b", "it has `if`", "/y"),
            fallback("/c", "it has `not`", "/z"),
        ];
        assert_eq!(
            notes(&few),
            [
                "/a Args: typed wider than the schema: it has `not` at `/x`",
                "/c Args: typed wider than the schema: it has `not` at `/z`",
                "/b Args: typed wider than the schema: it has `if` at `/y`",
            ]
        );
        let path = |index| format!("/s/t{index}");
        let many = |count| -> Vec<_> {
            let all = (0..count).map(|index| fallback(&path(index), "it has `not`", &path(index)));
            notes(&all.collect::<Vec<_>>())
        };
        let named = "/s/t0 Args, /s/t1 Args, /s/t2 Args, /s/t3 Args";
        let kind = "typed wider than the schema: it has `not`";
        assert_eq!(many(3).len(), 3);
        assert_eq!(many(4), [format!("{named}: {kind}")]);
        assert_eq!(many(9), [format!("{named} and 5 more: {kind}")]);
    }
}
