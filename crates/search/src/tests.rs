//! Properties of the ranking as a whole.

use proptest::prelude::*;

use crate::test_table::table;
use crate::{Document, Explanation, Index, SearchScope, index_bytes, search};

const WORDS: &[&str] = &[
    "file",
    "fiel",
    "read",
    "write",
    "delete",
    "calendar",
    "calender",
    "event",
    "issue",
    "merge",
    "request",
    "image",
    "convert",
    "pptx",
    "presentation",
    "user",
    "get",
    "the",
    "who",
    "文件",
];

fn words(count: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), count).prop_map(|words| words.join(" "))
}

/// The hits and whether they are weak, with the names of the tools instead of their numbers.
fn answer(
    names: &[String],
    visible: &[bool],
    query: &str,
    with_table: bool,
) -> (Vec<(String, f64)>, bool) {
    let documents: Vec<_> = names
        .iter()
        .map(|name| Document {
            name,
            ..Document::default()
        })
        .collect();
    let table = with_table.then(table);
    let bytes = index_bytes(&documents, table);
    let index = Index::new(&bytes).unwrap();
    let scope = SearchScope::new(&index, |tool| visible[tool as usize]);
    let ranking = search(&index, &scope, table, query, 0..index.tools());
    let hits = ranking
        .hits
        .map(|hit| (names[hit.tool as usize].clone(), hit.score));
    (hits.collect(), ranking.is_weak)
}

proptest! {
    #[test]
    fn answer_equals_that_of_the_visible_tools_alone(
        tools in prop::collection::vec((words(1..5), any::<bool>()), 1..12),
        query in words(1..5),
        with_table in any::<bool>(),
    ) {
        // Equal names would make hits indistinguishable.
        let names: Vec<_> = tools.iter().zip(0..).map(|((name, _), at)| format!("{name} t{at}")).collect();
        let visible: Vec<_> = tools.iter().map(|(_, visible)| *visible).collect();
        let alone: Vec<_> = names.iter().zip(&visible).filter(|(_, it)| **it).map(|(name, _)| name.clone()).collect();
        let scoped = answer(&names, &visible, &query, with_table);
        let alone_answer = answer(&alone, &vec![true; alone.len()], &query, with_table);
        prop_assert_eq!(scoped, alone_answer);
    }

    #[test]
    fn any_text_is_a_query(query in "\\PC{1,60}|[\\x00-\\xff]{1,60}", with_table in any::<bool>()) {
        let names = ["read_file".to_owned(), "文件 löschen".to_owned()];
        let (hits, _) = answer(&names, &[true, true], &query, with_table);
        for (_, score) in hits {
            prop_assert!(score > 0.0 && score <= 1.0);
        }
    }

    #[test]
    fn explanation_adds_up_to_the_score(query in words(1..6)) {
        let documents: Vec<_> = WORDS.iter().map(|name| Document { name, ..Document::default() }).collect();
        let bytes = index_bytes(&documents, Some(table()));
        let index = Index::new(&bytes).unwrap();
        let scope = SearchScope::new(&index, |tool| tool % 5 > 0);
        for hit in search(&index, &scope, Some(table()), &query, 0..index.tools()).hits {
            let why = Explanation::new(&index, &scope, Some(table()), &query, hit.tool);
            prop_assert_eq!(why.score, hit.score);
            let added: f64 = why.words.iter().map(|word| word.part).sum();
            prop_assert_eq!(added > 0.0, why.words_score.unwrap_or_default() > 0.0);
        }
    }
}

#[test]
fn equal_scores_are_in_the_order_of_the_index() {
    let names = ["b".to_owned(), "a".to_owned(), "b".to_owned()];
    let (hits, is_weak) = answer(&names, &[true; 3], "b", false);
    assert_eq!(
        hits.iter().map(|(_, score)| *score).collect::<Vec<_>>(),
        [1.0, 1.0]
    );
    assert!(!is_weak);
}

#[test]
fn a_query_that_fits_no_tool_is_weak() {
    let names = ["read_file".to_owned(), "write_file".to_owned()];
    assert!(answer(&names, &[true; 2], "quantum chromodynamics", true).1);
    assert!(answer(&names, &[true; 2], "quantum chromodynamics", false).1);
    assert!(
        answer(&names, &[false; 2], "read file", true).1,
        "no tool is visible"
    );
    assert!(!answer(&names, &[true; 2], "read file", true).1);
}

#[test]
fn typos_and_abbreviations_are_found() {
    let names = [
        "create_calendar_event",
        "create_merge_request",
        "list_rooms",
    ]
    .map(str::to_owned);
    let first = |query| answer(&names, &[true; 3], query, false).0[0].0.clone();
    assert_eq!(first("calendra evnet"), "create_calendar_event");
    assert_eq!(first("open a MR"), "create_merge_request");
}
