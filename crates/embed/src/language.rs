//! Which of two models embeds a query: the first one for English, the second one for other languages.

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
    let found = whatlang::detect(query);
    found.is_some_and(|found| found.lang() != whatlang::Lang::Eng && found.is_reliable())
}
