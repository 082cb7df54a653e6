//! The words of a path. With them a similar path is found for one that does not exist. The build writes the words of
//! every path into the catalog.

/// Separates the words of the last segment from those before it.
const LEAF: char = '\t';

/// Returns the words of a path in lower case: the words before its last segment, and the words of the last segment.
pub fn words_of_path(path: &str) -> String {
    let (parent, leaf) = path.rsplit_once('/').unwrap_or(("", path));
    let joined = |text| {
        words(text)
            .map(str::to_ascii_lowercase)
            .collect::<Vec<_>>()
            .join(" ")
    };
    format!("{}{LEAF}{}", joined(parent), joined(leaf))
}

/// Whether all sought words, in lower case, are among the words of a path, one of them at least in its last segment.
pub fn has_words(words: &str, sought: &[String]) -> bool {
    let (parent, leaf) = words.split_once(LEAF).unwrap_or(("", words));
    let has = |words: &str, word: &String| words.split(' ').any(|one| one == word);
    sought.iter().any(|word| has(leaf, word))
        && sought
            .iter()
            .all(|word| has(leaf, word) || has(parent, word))
}

/// The words of a text: `/repo/getFile_now` has `repo`, `get`, `File` and `now`.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .flat_map(humps)
        .filter(|word| !word.is_empty())
}

/// The parts of a word in camel case.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let end = (1..bytes.len())
            .find(|at| bytes[at - 1].is_ascii_lowercase() && bytes[*at].is_ascii_uppercase());
        let (first, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!first.is_empty()).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_split_into_words_at_separators_and_capitals() {
        let found: Vec<_> = words("/repo-x/getFile_now.2/HTTPGet").collect();
        assert_eq!(found, ["repo", "x", "get", "File", "now", "2", "HTTPGet"]);
        assert_eq!(
            words("/天气/查询_file").collect::<Vec<_>>(),
            ["天气", "查询", "file"]
        );
        assert_eq!(words("/").count() + words("").count(), 0);
        assert_eq!(words_of_path("/repo-x/getFile_now"), "repo x\tget file now");
        assert_eq!(words_of_path("/"), "\t");
    }

    #[test]
    fn path_has_words_if_its_leaf_has_one_of_them() {
        let path = words_of_path("/repo/read/get_File");
        let has = |sought: &[&str]| {
            has_words(
                &path,
                &sought
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert!(has(&["file"]) && has(&["file", "get", "repo"]));
        assert!(!has(&["repo"]) && !has(&["fil"]) && !has(&["file", "all"]) && !has(&[]));
        assert!(!has(&[""]));
    }
}
