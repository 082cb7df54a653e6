//! Selects one of two models for a query: the first one for English, the second one for other languages.

/// Above this confidence, a detected language counts as the language of a text.
const SURE: f64 = 0.4;

/// Whether a query is probably not English: most of its letters are not Latin, or it is surely another language.
pub(crate) fn is_other_language(query: &str) -> bool {
    let letters = query.chars().filter(|c| c.is_alphabetic());
    let (mut all, mut foreign) = (0, 0);
    for letter in letters {
        all += 1;
        // The Latin letters of Unicode end before this one, apart from rare ones.
        foreign += usize::from(letter >= '\u{250}');
    }
    if foreign * 2 > all {
        return true;
    }
    // A detector of all languages is seldom sure of a short text; English texts with an accent are rare.
    let found = whatlang::detect(query);
    found.is_some_and(|found| {
        found.lang() != whatlang::Lang::Eng
            && (found.is_reliable() || found.confidence() > SURE || !query.is_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The development queries of tool search, each with its language.
    const QUERIES: [&str; 2] = [
        include_str!("../../../tests/search/queries/first_half.jsonl"),
        include_str!("../../../tests/search/queries/second_half.jsonl"),
    ];

    #[test]
    fn most_queries_get_the_model_of_their_language() {
        let (mut english, mut other) = ((0, 0), (0, 0));
        for line in QUERIES.iter().flat_map(|file| file.lines()) {
            let query: serde_json::Value = serde_json::from_str(line).expect("a query");
            let is_other = is_other_language(query["query"].as_str().expect("a text"));
            let (right, all) = match query["language"].as_str() {
                Some("en") => &mut english,
                _ => &mut other,
            };
            *right += usize::from(is_other == (query["language"] != "en"));
            *all += 1;
        }
        assert!(english.0 * 100 >= english.1 * 95, "{english:?}");
        assert!(other.0 * 100 >= other.1 * 80, "{other:?}");
    }
}
