//! Hints by which a search finds a tool: part of the lock, compiled into the index, in no text for callers. And a
//! build without the table.

use std::fs;

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};

fn hinted(hints: &[&str]) -> Value {
    config(json!({"tool_overrides": {"x": {"hints": hints}}}))
}

#[test]
fn other_hints_need_another_lock() {
    let bench = Bench::new();
    write_lock(&bench, "c", &hinted(&["zebra crossing"]), &[tool("x")]);
    bench.fine(&["verify", "--config", "c.json"]);
    let lock = bench.lock_json();
    let hints = &lock["sources"][0]["exposed"][0]["search_hints"];
    assert_eq!(hints, &json!(["zebra crossing"]));

    bench.write("c.json", &hinted(&["pedestrian"]).to_string());
    let stale = bench.run(&["verify", "--config", "c.json"]);
    assert_eq!(stale.code, Some(5), "{}", stale.stderr);
    contains(
        &stale.stderr,
        &[
            "lock_stale",
            "the list of search hints of `x` has the new phrase `pedestrian`",
            "`zebra crossing`",
        ],
    );
}

#[test]
fn lock_with_other_hints_than_its_config_is_refused() {
    let bench = Bench::new();
    write_lock(&bench, "c", &hinted(&["zebra crossing"]), &[tool("x")]);
    let lock = broker_model::lock::Lock::parse("c.lock.json", &bench.lock_text());
    let mut lock = lock.expect("the lock is whole");
    lock.sources[0].exposed[0].search_hints = vec!["everything".to_owned()];
    bench.write("c.lock.json", &lock.to_text());
    let refused = bench.run(&["verify", "--config", "c.json"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["lock_stale", "other `search_hints` of `x` of `/a`"],
    );
}

#[test]
fn diff_shows_changed_hints() {
    let bench = Bench::new();
    write_lock(&bench, "old", &hinted(&["one", "two"]), &[tool("x")]);
    write_lock(&bench, "new", &hinted(&["two", "three"]), &[tool("x")]);
    let diff = bench.run(&["diff", "old.lock.json", "new.lock.json"]);
    assert_eq!(diff.code, Some(3), "{}", diff.stderr);
    let words: Vec<_> = diff.stdout.split_whitespace().collect();
    contains(
        &words.join(" "),
        &["search hints of `x` has the new phrase `three`, and no longer has the phrase `one`"],
    );
}

#[test]
fn hints_are_in_the_index_and_in_no_text_for_callers() {
    let bench = Bench::new();
    let generate = |config: &Value, out: &str| {
        write_lock(&bench, "c", config, &[tool("x"), tool("y")]);
        bench.fine(&["generate", "--config", "c.json", "--out", out]);
        let read = |name: &str| fs::read(bench.path(&format!("{out}/{name}"))).expect("made");
        (read("catalog.json"), read("search.index"))
    };
    let (_, words) = generate(&config(json!({})), "plain");
    let (texts, index) = generate(&hinted(&["zebra crossing"]), "hinted");
    let has = |bytes: &[u8], word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    assert!(has(&index, "zebra") && !has(&words, "zebra"));
    assert!(!has(&texts, "zebra"), "a reply has the hint");
}

#[test]
fn catalog_without_the_table_says_so_in_its_digest() {
    let bench = Bench::new();
    let generate = |search: Value, out: &str| {
        let mut config = config(json!({}));
        config["search"] = search;
        write_lock(&bench, "c", &config, &[tool("x")]);
        bench.fine(&["generate", "--config", "c.json", "--out", out]);
        let index = fs::metadata(bench.path(&format!("{out}/search.index"))).expect("made");
        (bench.read(&format!("{out}/catalog.rs")), index.len())
    };
    let (with, index) = generate(json!({}), "with");
    let (without, smaller) = generate(json!({"table": false}), "without");
    contains(&with, &["SEARCH_TABLE"]);
    assert!(!without.contains("SEARCH_TABLE"), "{without}");
    assert!(smaller < index, "{smaller} and {index}");
    let digest = |text: &str| {
        let line = text.lines().find(|line| line.contains("catalog_digest:"));
        line.expect("a digest").to_owned()
    };
    assert_ne!(digest(&with), digest(&without));
}
