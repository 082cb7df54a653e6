//! Audits by several people: `accept` adds one for each person, and `"audits_required": N` counts people.

use harness::{Bench, Output, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};
use super::review::review;

/// A config that requires this, and its lock with `/a/x` and `/a/y`.
fn bench(required: Value) -> Bench {
    let bench = Bench::new();
    let mut config = config(json!({}));
    config["audits_required"] = required;
    write_lock(&bench, "c", &config, &[tool("x"), tool("y")]);
    bench
}

fn accept(bench: &Bench, who: &str, tool: &str) -> Output {
    let output = bench.verb(&["accept", "--who", who, "--source", "/a", "--tool", tool]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    output
}

fn verify(bench: &Bench) -> Output {
    bench.verb(&["verify", "--offline"])
}

#[test]
fn acceptance_by_another_person_is_another_entry() {
    let bench = bench(json!(true));
    for (who, is_new) in [
        ("Zoe\u{301} <z@example.org>", true),
        ("zo\u{c9} <z@example.org>", false),
        ("Other <Z@Example.org>", false),
        ("  ZO\u{c9} ", false),
        ("Zo\u{200b}\u{e9}", false),
        ("Zo\u{e9} <b@example.org>", true),
        ("B", true),
        ("b", false),
    ] {
        let before = std::fs::read_to_string(bench.path("c.audits.toml")).unwrap_or_default();
        let output = accept(&bench, who, "x");
        let is_changed =
            std::fs::read_to_string(bench.path("c.audits.toml")).unwrap_or_default() != before;
        assert_eq!(is_changed, is_new, "{who}: {}", output.stderr);
        let said = if is_new {
            "added 1 entry"
        } else {
            "nothing to do"
        };
        contains(&output.stderr, &[said]);
    }
}

#[test]
fn tool_that_needs_two_people_is_missing_until_the_second_one_accepts_it() {
    let bench = bench(json!(2));
    accept(&bench, "A <a@example.org>", "x");
    accept(&bench, "A <a@example.org>", "y");
    accept(&bench, "B <b@example.org>", "y");
    // The same person by another name, and by another entry of the file.
    let audits = bench.read("c.audits.toml");
    let again = audits.replace("A <a@example.org>", "A. Reviewer <A@example.org>");
    bench.write("c.audits.toml", &format!("{audits}\n{again}"));
    let output = verify(&bench);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "audit_missing",
            "`/a/x` has no valid audit: 1 of 2 people accepted it (A <a@example.org>)",
        ],
    );
    assert!(!output.stderr.contains("`/a/y`"), "{}", output.stderr);
    contains(&output.stdout, &["audits   1 of 2, each by 2 people"]);
    accept(&bench, "C", "x");
    assert_eq!(verify(&bench).code, Some(0));
}

#[test]
fn expired_audit_and_a_name_that_is_not_seen_count_for_no_one() {
    let bench = bench(json!(2));
    accept(&bench, "A", "x");
    let audits = bench.read("c.audits.toml");
    let expired = audits.replace("who = \"A\"", "who = \"B\"\nexpires = \"2020-01-01\"");
    let unseen = audits.replace("who = \"A\"", "who = \"\\u200b\"");
    bench.write("c.audits.toml", &format!("{audits}\n{expired}\n{unseen}"));
    contains(&verify(&bench).stderr, &["1 of 2 people accepted it (A)"]);
    // The person whose audit expired may accept it again.
    accept(&bench, "B", "x");
    let output = verify(&bench);
    assert!(!output.stderr.contains("`/a/x`"), "{}", output.stderr);
}

#[test]
fn exemption_needs_no_number_of_people() {
    let bench = bench(json!(2));
    bench.write(
        "c.audits.toml",
        "[[exemptions]]\nsource = \"/a\"\ntool = \"*\"\nreason = \"later\"\nwho = \"A\"\nexpires = \"2999-01-01\"\n",
    );
    assert_eq!(verify(&bench).code, Some(0));
}

#[test]
fn number_of_people_outside_its_range_is_refused() {
    for (required, code) in [
        (json!(0), "config_range"),
        (json!(11), "config_range"),
        (json!("2"), "config_type"),
    ] {
        let bench = Bench::new();
        bench.write(
            "c.json",
            &json!({"tree": [], "audits_required": required}).to_string(),
        );
        let output = verify(&bench);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        contains(&output.stderr, &[code, "from 1 to 10", "audits_required"]);
    }
}

#[test]
fn review_shows_items_that_the_person_has_not_accepted_and_that_need_more_people() {
    let bench = bench(json!(2));
    // The review is signed by `A`.
    accept(&bench, "a", "x");
    accept(&bench, "B", "y");
    let (code, screen) = review(&bench, &[], "a\n", &[("NO_COLOR", "1")]);
    assert_eq!(code, Some(0), "{screen}");
    contains(
        &screen,
        &[
            "you accepted 1 item, for which other people are needed",
            "1 without enough audits",
            "/a/y",
            "1 of 2 people accepted it (B)",
            "1 accepted, 0 skipped, 0 not reviewed",
        ],
    );
    let (_, screen) = review(&bench, &[], "", &[("NO_COLOR", "1")]);
    contains(
        &screen,
        &["nothing to review: you accepted 1 item, for which other people are needed"],
    );
    accept(&bench, "B", "x");
    let (_, screen) = review(&bench, &[], "", &[("NO_COLOR", "1")]);
    contains(&screen, &["everything that is locked has an audit"]);
    assert_eq!(verify(&bench).code, Some(0));
}
