//! Invisible characters, by their effect.

use super::TextFinding;
use broker_model::text::counted;
use broker_model::unseen::{Unseen, UnseenCharacter, spelled, unseen_characters};

const KINDS: [(Unseen, &str, &str); 4] = [
    (Unseen::Hidden, "hidden-code-point", "character"),
    (
        Unseen::Bidirectional,
        "bidirectional-code-point",
        "bidirectional mark",
    ),
    (Unseen::Tag, "tag-code-point", "tag character"),
    (Unseen::Control, "control-sequence", "control character"),
];

/// One finding for each kind.
pub(super) fn check(text: &str) -> Vec<TextFinding> {
    let all = unseen_characters(text);
    let found = KINDS.iter().filter_map(|(kind, rule, what)| {
        let spots: Vec<UnseenCharacter> = all
            .iter()
            .filter(|spot| spot.kind == *kind)
            .copied()
            .collect();
        let first = spots.first()?;
        let mut message = format!(
            "{}{}, the first U+{:04X}",
            counted(spots.len(), what),
            if *kind == Unseen::Hidden {
                " without a width"
            } else {
                ""
            },
            u32::from(first.c)
        );
        if let Some(words) = spelled(&spots) {
            message = format!("{message}, which spell {}", super::quoted(&words));
        }
        // Consecutive characters are shown as one place.
        let mut to = first.at;
        for spot in &spots {
            if spot.at != to {
                break;
            }
            to = spot.at + spot.c.len_utf8();
        }
        Some(TextFinding {
            rule,
            at: first.at,
            to,
            message,
        })
    });
    found.collect()
}
