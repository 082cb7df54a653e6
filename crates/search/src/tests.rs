//! Properties of the ranking as a whole.

use proptest::prelude::*;

use crate::test_table::table;
use crate::{
    Document, Embedding, Explanation, Index, ModelVectors, SearchScope, Similarity, index_bytes,
    search, vector_bytes,
};

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

/// The similarity that a test adds to words.
#[derive(Clone, Copy, Debug)]
enum With {
    Words,
    Table,
    Model,
}

fn with() -> impl Strategy<Value = With> {
    prop::sample::select(&[With::Words, With::Table, With::Model][..])
}

/// Returns a direction that depends on the letters of a text, as the direction of a model does.
fn embedding(text: &str) -> Option<Embedding> {
    let mut vector = [0f32; 24];
    for (at, byte) in text.bytes().enumerate() {
        vector[usize::from(byte) % 24] += 1.0 + (at % 3) as f32;
    }
    Embedding::new(&vector)
}

/// Returns the hits and whether they are weak, with the names of the tools instead of their numbers.
fn answer(
    names: &[String],
    visible: &[bool],
    query: &str,
    with: With,
) -> (Vec<(String, f64)>, bool) {
    let documents: Vec<_> = names
        .iter()
        .map(|name| Document {
            name,
            ..Document::default()
        })
        .collect();
    let table = matches!(with, With::Table).then(table);
    let bytes = index_bytes(&documents, table);
    let embedded: Vec<_> = names.iter().map(|name| embedding(name)).collect();
    let vectors = vector_bytes(24, &embedded);
    let vectors = ModelVectors::new(&vectors, names.len() as u32).unwrap();
    let query_vector = embedding(query).filter(|_| matches!(with, With::Model));
    let similarity = match &query_vector {
        Some(vector) => Similarity::Model(&vectors, vector),
        None => table.into(),
    };
    let index = Index::new(&bytes).unwrap();
    let scope = SearchScope::new(&index, |tool| visible[tool as usize]);
    let ranking = search(&index, &scope, similarity, query, 0..index.tools());
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
        with in with(),
    ) {
        // Equal names would make hits indistinguishable.
        let names: Vec<_> = tools.iter().zip(0..).map(|((name, _), at)| format!("{name} t{at}")).collect();
        let visible: Vec<_> = tools.iter().map(|(_, visible)| *visible).collect();
        let alone: Vec<_> = names.iter().zip(&visible).filter(|(_, it)| **it).map(|(name, _)| name.clone()).collect();
        let scoped = answer(&names, &visible, &query, with);
        let alone_answer = answer(&alone, &vec![true; alone.len()], &query, with);
        prop_assert_eq!(scoped, alone_answer);
    }

    #[test]
    fn any_text_is_a_query(query in "\\PC{1,60}|[\\x00-\\xff]{1,60}", with in with()) {
        let names = ["read_file".to_owned(), "文件 löschen".to_owned()];
        let (hits, _) = answer(&names, &[true, true], &query, with);
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
        for hit in search(&index, &scope, Similarity::Table(table()), &query, 0..index.tools()).hits {
            let why = Explanation::new(&index, &scope, Similarity::Table(table()), &query, hit.tool);
            prop_assert_eq!(why.score, hit.score);
            let added: f64 = why.words.iter().map(|word| word.part).sum();
            prop_assert_eq!(added > 0.0, why.words_score.unwrap_or_default() > 0.0);
        }
    }
}

#[test]
fn equal_scores_are_in_the_order_of_the_index() {
    let names = ["b".to_owned(), "a".to_owned(), "b".to_owned()];
    let (hits, is_weak) = answer(&names, &[true; 3], "b", With::Words);
    assert_eq!(
        hits.iter().map(|(_, score)| *score).collect::<Vec<_>>(),
        [1.0, 1.0]
    );
    assert!(!is_weak);
}

#[test]
fn a_query_that_fits_no_tool_is_weak() {
    let names = ["read_file".to_owned(), "write_file".to_owned()];
    assert!(answer(&names, &[true; 2], "quantum chromodynamics", With::Table).1);
    assert!(answer(&names, &[true; 2], "quantum chromodynamics", With::Words).1);
    assert!(
        answer(&names, &[false; 2], "read file", With::Table).1,
        "no tool is visible"
    );
    assert!(!answer(&names, &[true; 2], "read file", With::Table).1);
}

#[test]
fn typos_and_abbreviations_are_found() {
    let names = [
        "create_calendar_event",
        "create_merge_request",
        "list_rooms",
    ]
    .map(str::to_owned);
    let first = |query| {
        answer(&names, &[true; 3], query, With::Words).0[0]
            .0
            .clone()
    };
    assert_eq!(first("calendra evnet"), "create_calendar_event");
    assert_eq!(first("open a MR"), "create_merge_request");
}

#[test]
fn tools_that_call_themselves_deprecated_rank_last() {
    let names = ["read_user_deprecated", "read_user", "delete_room"].map(str::to_owned);
    for with in [With::Words, With::Table] {
        let (hits, _) = answer(&names, &[true; 3], "read user", with);
        assert_eq!(hits[0].0, "read_user");
        assert_eq!(hits.last().unwrap().0, "read_user_deprecated");
        assert!(hits.is_sorted_by(|one, other| one.1 >= other.1), "{hits:?}");
    }
    let (hits, _) = answer(&names, &[true; 3], "deprecated read user", With::Words);
    assert_eq!(hits[0].0, "read_user_deprecated", "it was asked for");
    let (hits, _) = answer(&names[..1], &[true], "read user", With::Words);
    assert_eq!(hits.len(), 1, "it is found if there is not another one");
}
