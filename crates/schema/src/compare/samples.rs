//! Strings that match a pattern, made from its structure; the caller validates them.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum repetitions of an unbounded repetition.
const MAX_REPEAT: u32 = 64;

/// Maximum number of pattern parts for one string.
const MAX_STEPS: usize = 20_000;

/// A few strings that probably match.
pub(super) fn from_pattern(pattern: &str) -> Vec<String> {
    let Ok(tree) = regex_syntax::Parser::new().parse(pattern) else {
        return Vec::new();
    };
    let mut all: Vec<String> = (0..3)
        .map(|variant| {
            let (mut text, mut steps) = (String::new(), MAX_STEPS);
            write(&tree, variant, &mut text, &mut steps);
            text
        })
        .collect();
    all.dedup();
    all
}

fn write(tree: &Hir, variant: usize, out: &mut String, steps: &mut usize) {
    // Nested repetitions of parts that may be empty would run long without adding text.
    if out.len() > 4096 || *steps == 0 {
        return;
    }
    *steps -= 1;
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => out.extend(one_of(class, variant)),
        HirKind::Repetition(repetition) => {
            let wanted = repetition.min.saturating_add(variant as u32);
            let times = repetition.max.map_or(wanted, |max| wanted.min(max));
            for _ in 0..times.min(MAX_REPEAT) {
                if *steps == 0 {
                    break;
                }
                write(&repetition.sub, variant, out, steps);
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, variant, out, steps),
        HirKind::Concat(parts) => parts
            .iter()
            .for_each(|part| write(part, variant, out, steps)),
        HirKind::Alternation(parts) => {
            if let Some(part) = parts.get(variant % parts.len().max(1)) {
                write(part, variant, out, steps);
            }
        }
    }
}

/// A character of the class, a readable one if possible.
fn one_of(class: &Class, variant: usize) -> Option<char> {
    let Class::Unicode(class) = class else {
        return None;
    };
    let has = |c: char| {
        class
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&c))
    };
    let readable: Vec<char> = "a0A_-.x1Z/: ".chars().filter(|c| has(*c)).collect();
    if readable.is_empty() {
        return class.iter().next().map(|range| range.start());
    }
    Some(readable[variant % readable.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_samples_match_their_pattern() {
        for pattern in [
            "^[a-z]{2}-\\d{3,}$",
            "^(red|green)$",
            "^https?://[^/]+(/.*)?$",
            "^app[A-Za-z0-9]{14}$",
        ] {
            let schema = serde_json::json!({ "pattern": pattern });
            let validator = crate::compile(&schema).unwrap();
            for text in from_pattern(pattern) {
                assert!(validator.is_valid(&text.clone().into()), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn pattern_samples_of_nested_repetitions_end_soon() {
        let nested = (0..10).fold("(?:|a)".to_owned(), |inner, _| format!("(?:{inner}){{64}}"));
        assert!(!from_pattern(&nested).is_empty());
    }
}
