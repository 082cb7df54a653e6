//! Short texts from long ones.

/// Maximum length of a summary from a description, in characters.
const SUMMARY_CHARS: usize = 120;

/// The first sentence of a description in one line, at most 120 characters; `None` for a blank one.
pub fn first_sentence(description: &str) -> Option<String> {
    let paragraph = description.trim().split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return None;
    }
    let end = line
        .match_indices(['.', '!', '?'])
        .map(|(at, mark)| at + mark.len())
        .find(|&end| {
            // A full stop ends a sentence if a space and a capital follow; `e.g. this` and `1.5` do not.
            let rest = &line[end..];
            rest.is_empty()
                || rest
                    .strip_prefix(' ')
                    .is_some_and(|next| !next.starts_with(|c: char| c.is_lowercase()))
        });
    let sentence = line[..end.unwrap_or(line.len())].trim_end_matches('.');
    if sentence.chars().count() <= SUMMARY_CHARS {
        return Some(sentence.to_owned());
    }
    let mut cut: String = sentence.chars().take(SUMMARY_CHARS - 1).collect();
    if let Some(space) = cut.rfind(' ').filter(|at| *at > SUMMARY_CHARS / 2) {
        cut.truncate(space);
    }
    cut.push('…');
    Some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sentence_ends_at_a_period_or_120_characters() {
        let check = |text, want: Option<&str>| assert_eq!(first_sentence(text).as_deref(), want);
        check("Reads a file. Then more.", Some("Reads a file"));
        check(
            "Use e.g. this one\nor 1.5 of it! Yes",
            Some("Use e.g. this one or 1.5 of it!"),
        );
        check("First line\n\nSecond paragraph.", Some("First line"));
        check("  \n", None);
        let long = first_sentence(&"word ".repeat(60)).unwrap();
        assert!(
            long.chars().count() <= 120 && long.ends_with("word…"),
            "{long}"
        );
    }
}
