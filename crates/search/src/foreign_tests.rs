//! Tests of the tables of words, and of queries in other languages.

use std::collections::BTreeMap;

use super::*;

/// The numbers of keys with English words.
const KEYS: std::ops::RangeInclusive<usize> = 300..=600;

/// The rows of a table: key, English words, words.
fn rows(table: &'static str) -> Vec<[&'static str; 3]> {
    let row = |line: &'static str| {
        let cells: Vec<_> = line.split('\t').collect();
        let [key, english, words] = cells[..] else {
            panic!("a row has three cells: {line}");
        };
        [key, english, words]
    };
    table.lines().map(row).collect()
}

fn folded(word: &str) -> String {
    fold(word).chars().flat_map(char::to_lowercase).collect()
}

#[test]
fn tables_are_sorted_by_the_stems_of_their_words() {
    let spaced = SPACED.iter().map(|it| (it.table, Some((it.stems)())));
    let unspaced = [CHINESE, JAPANESE].map(|table| (table, None));
    for (table, stemmer) in spaced.chain(unspaced) {
        let rows = rows(table);
        assert!(rows.is_sorted_by(|one, other| one[0] < other[0]));
        let content = rows.iter().filter(|row| !row[1].is_empty()).count();
        assert!(KEYS.contains(&content), "{content}: {:?}", rows[0]);
        for [key, english, words] in rows {
            for word in words.split(' ') {
                let word = folded(word);
                let stem = stemmer.as_ref().map(|it| it.stem(&word).into_owned());
                assert_eq!(stem.unwrap_or(word), key);
            }
            assert_eq!(find(table, key), Some(english));
            let is_english = |c: char| c.is_ascii_lowercase() || c == ' ';
            assert!(english.chars().all(is_english), "{key}: {english}");
        }
        assert_eq!(find(table, ""), None);
        assert_eq!(find(table, "zzzz"), None);
    }
}

/// `UPDATE_EXPECT=1` writes the file.
#[test]
fn english_words_are_those_of_the_tables() {
    let english = Stemmer::create(Algorithm::English);
    let spaced = SPACED.iter().map(|it| it.table);
    let words = spaced.chain([CHINESE, JAPANESE]).flat_map(rows);
    let words = words.flat_map(|row| row[1].split(' '));
    let words = words.filter(|word| !word.is_empty());
    let stems: BTreeMap<_, _> = words
        .map(|word| (english.stem(word).into_owned(), word))
        .collect();
    let lines = stems.iter().map(|(stem, word)| format!("{stem}\t{word}\n"));
    let expected: String = lines.collect();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/words/en.tsv");
        return std::fs::write(file, expected).unwrap();
    }
    assert_eq!(ENGLISH, expected);
}

#[test]
fn query_in_another_language_becomes_english_words() {
    let known = ["slack", "in", "read"];
    let knows = |stem: &str| known.contains(&stem);
    for (query, english) in [
        ("Lösche die Datei", Some("delete remove file")),
        ("Verzeichnisbaum anzeigen", Some("directory tree list")),
        (
            "Crée un répertoire in Slack",
            Some("create directory slack"),
        ),
        ("¿Cuál es la ruta?", Some("path route directions")),
        ("Mova a mensagem", Some("move message")),
        ("删除文件", Some("delete remove document file")),
        ("ファイルを検索", Some("file search")),
        // English, and words of no table.
        ("delete the file", None),
        ("archive file, rename tag", None),
        ("calandar", None),
        ("please remvoe the frobnicator", None),
        ("한국어", None),
    ] {
        let got = in_english(query, knows);
        assert_eq!(got.as_deref(), english, "{query}");
    }
    let all = |_: &str| true;
    assert_eq!(
        in_english("Lösche die Datei", all),
        None,
        "the tools know it"
    );
    assert_eq!(in_english("删除文件", all), None);
}
