//! The quality of tool search over the recorded tools of 55 servers: the share of queries with a right tool among the
//! first five hits. The queries and their labels are in `tests/search/queries`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use broker_gen::plan::{Entry, Plan, plan};
use broker_gen::search_documents::search_documents;
use broker_model::config::Config;
use broker_model::lock::Lock;
use broker_search::{
    DEFAULT_HITS, FIELDS, Index, SearchScope, StaticTable, TABLE, index_bytes, search,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Query {
    kind: String,
    query: String,
    language: String,
    right: Vec<String>,
}

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests")
        .join(path)
}

fn with_corpus<T>(run: impl FnOnce(&Plan<'_>) -> T) -> T {
    let read = |name: &str| {
        fs::read_to_string(folder("corpus-broker").join(name)).expect("the corpus has it")
    };
    let config = Config::parse("config.json", read("config.json").as_bytes());
    let config = config.expect("the config is valid").config;
    let lock = Lock::parse("config.lock.json", &read("config.lock.json")).expect("a lock");
    run(&plan(&config, &lock.sources).expect("config and lock fit"))
}

fn queries(file: &str) -> Vec<Query> {
    let text = fs::read_to_string(folder("search/queries").join(file)).expect("the queries");
    let read = |line| serde_json::from_str(line).expect("a query");
    text.lines().map(read).collect()
}

/// The recall in percent and the number of queries, by kind and over all.
fn recall(file: &str, with_table: bool) -> BTreeMap<String, (f64, usize)> {
    with_corpus(|plan| {
        let table = StaticTable::new(&TABLE).expect("the table of the package");
        let table = with_table.then_some(&table);
        let entries = plan.entries.iter();
        let tools = entries.filter(|(_, entry)| matches!(entry, Entry::Tool(_)));
        let paths: Vec<_> = tools.map(|(path, _)| path.as_str()).collect();
        let bytes = index_bytes(&search_documents(plan), table);
        let index = Index::new(&bytes).expect("it was made now");
        let scope = SearchScope::new(&index, |_| true);
        let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for query in queries(file).iter().filter(|query| query.kind != "none") {
            let ranking = search(&index, &scope, table, &query.query, 0..index.tools());
            let mut first = ranking.hits.take(DEFAULT_HITS);
            let is_found = first.any(|hit| {
                query
                    .right
                    .iter()
                    .any(|path| path == paths[hit.tool as usize])
            });
            let kind = match (query.kind.as_str(), query.language.as_str()) {
                ("task", "en") => "task, English",
                ("task", _) => "task, not English",
                (kind, _) => kind,
            };
            for key in [kind, "all"] {
                let (right, all) = found.entry(key.to_owned()).or_default();
                *right += usize::from(is_found);
                *all += 1;
            }
        }
        let percent = |(right, all)| (right as f64 * 100.0 / all as f64, all);
        found
            .into_iter()
            .map(|(kind, counts)| (kind, percent(counts)))
            .collect()
    })
}

/// The bounds for words and table, in percent.
const BOUNDS: [(&str, f64); 6] = [
    ("task, English", 41.0),
    ("task, not English", 11.0),
    ("capability", 87.0),
    ("specific", 93.0),
    ("ambiguous", 80.0),
    ("all", 66.0),
];

#[test]
fn recall_over_the_second_half_reaches_the_bounds() {
    let found = recall("second_half.jsonl", true);
    for (kind, bound) in BOUNDS {
        let (percent, count) = found[kind];
        // A bound that lies between two numbers of queries is the lower one.
        let needed = (bound * count as f64 / 100.0).floor() * 100.0 / count as f64;
        assert!(
            percent + 1e-9 >= needed,
            "{kind}: {percent:.1} of {count} queries"
        );
    }
}

#[test]
fn words_alone_are_found_without_the_table() {
    let found = recall("second_half.jsonl", false);
    assert!(found["all"].0 >= 61.0, "{found:?}");
    let first = recall("first_half.jsonl", true);
    assert!(first["all"].0 >= 66.0, "{first:?}");
}

#[test]
fn mean_lengths_of_fields_are_those_of_the_recorded_tools() {
    let means = with_corpus(|plan| {
        let documents = search_documents(plan);
        let mut sums = [0; FIELDS.len()];
        for document in &documents {
            for (sum, length) in sums.iter_mut().zip(document.lengths()) {
                *sum += length;
            }
        }
        sums.map(|sum| sum as f64 / documents.len() as f64)
    });
    for (field, mean) in FIELDS.iter().zip(means) {
        assert!(
            (field.mean_length - mean).abs() <= 0.05,
            "{}: {mean:.2}",
            field.name
        );
    }
}
