//! Suggestions for a wrong name: the known names that resemble it.

/// The least similarity of a suggestion, from 0 to 1 by the measure of Jaro and Winkler.
const MIN_SIMILARITY: f64 = 0.8;
/// Characters of a name that are compared: the measure costs the product of both lengths.
const MAX_CHARS: usize = 64;

/// At most `max` of `candidates` that resemble `name`, the most similar first. Case, `_` and `-` do not
/// matter, so that `toolFilter` suggests `tool_filter`.
pub fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let mut ranked = ranked(name, candidates);
    ranked.retain(|(similarity, candidate)| *similarity >= MIN_SIMILARITY && *candidate != name);
    ranked.into_iter().take(max).map(|(_, name)| name).collect()
}

/// All candidates with their similarity to `name`, the most similar first; equal ones in the order of
/// the alphabet.
pub fn ranked<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<(f64, &'a str)> {
    let wanted = plain(name);
    let mut ranked: Vec<_> = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&wanted, &plain(candidate)), candidate))
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    ranked
}

/// Whether a name differs from a known one by exactly one character: written twice, left out, replaced, or exchanged with
/// the next one. Short names such as `env` have no similarity after such a mistake.
pub fn is_one_mistake(name: &str, known: &str) -> bool {
    let (wrong, known) = (plain(name), plain(known));
    known.chars().count() > 2 && strsim::osa_distance(&wrong, &known) == 1
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .take(MAX_CHARS)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_suggests_misspelled_names_and_nothing_else() {
        let keys = ["tool_filter", "timeout", "path_aliases", "inherit_env"];
        for (wrong, right) in [
            ("toolFilter", "tool_filter"),
            ("timout", "timeout"),
            ("inheritEnv", "inherit_env"),
        ] {
            assert_eq!(nearest(wrong, keys, 1), [right], "{wrong}");
        }
        assert!(nearest("zzz", keys, 3).is_empty());
        assert!(nearest("timeout", ["timeout"], 1).is_empty());
    }

    #[test]
    fn ranked_candidates_of_equal_distance_are_sorted_by_name() {
        let names: Vec<&str> = ranked("ab", ["abd", "abc"])
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(names, ["abc", "abd"]);
    }
}
