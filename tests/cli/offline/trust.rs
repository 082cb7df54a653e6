//! Trust levels in `diff`, `review`, `tree` and in a config for which a lock is stale.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::baseline::{git, repository};
use super::bench::{config, tool, write_lock};
use super::review::review;

/// The tools of the server; one has a sensitive name.
fn tools() -> [Value; 3] {
    [tool("get"), tool("put"), tool("bulkDelete")]
}

/// Writes the locks of a source with each of these members; the report of `diff` and its exit code.
fn diff(old: Value, new: Value) -> (Option<i32>, Value) {
    let bench = Bench::new();
    write_lock(&bench, "old", &config(old), &tools());
    write_lock(&bench, "new", &config(new), &tools());
    let output = bench.run(&["diff", "old.lock.json", "new.lock.json", "--format", "json"]);
    let report = serde_json::from_str(&output.stdout);
    let report = report.unwrap_or_else(|error| panic!("{error}: {}", output.stderr));
    (output.code, report)
}

/// Rule, class and message of each finding about the source.
fn findings(report: &Value) -> Vec<[&str; 3]> {
    let found = report["sources"][0]["findings"].as_array();
    let found = found.map(Vec::as_slice).unwrap_or_default().iter();
    found
        .map(|one| ["rule", "class", "message"].map(|member| one[member].as_str().expect("a text")))
        .collect()
}

#[test]
fn diff_reports_a_raised_level_as_a_security_change() {
    let (code, report) = diff(json!({"trust": "untrusted"}), json!({"trust": "trusted"}));
    assert_eq!(code, Some(3));
    assert_eq!(report["sources"][0]["class"], "security");
    let message = "the trust level was raised from `untrusted` to `trusted`";
    assert_eq!(findings(&report), [["trust-raised", "security", message]]);
    let found = &report["sources"][0]["findings"][0];
    assert_eq!(
        [
            &found["severity"],
            &found["pointer"],
            &found["old"],
            &found["new"]
        ],
        [
            &json!("error"),
            &json!("/trust"),
            &json!("untrusted"),
            &json!("trusted")
        ]
    );
    // The tool that it exposes is reported as well.
    assert_eq!(report["tools"][0]["tool"], "bulkDelete");
    assert_eq!(report["tools"][0]["class"], "added");

    // Without the key the level is the default; a filter that names all tools exposes no other one.
    let filter = json!(["get", "put", "bulkDelete"]);
    let (code, report) = diff(
        json!({"trust": "verified", "tool_filter": filter}),
        json!({"tool_filter": filter}),
    );
    let message = "the trust level was raised from `verified` to `trusted`";
    assert_eq!((code, &report["tools"]), (Some(3), &json!([])));
    assert_eq!(findings(&report), [["trust-raised", "security", message]]);
}

#[test]
fn diff_reports_a_lowered_level_as_a_changed_config() {
    let (code, report) = diff(json!({}), json!({"trust": "untrusted"}));
    assert_eq!(code, Some(3));
    let message = "the trust level was lowered from `trusted` to `untrusted`";
    assert_eq!(
        findings(&report),
        [["source-config-changed", "unknown", message]]
    );
    assert_eq!(report["tools"][0]["findings"][0]["rule"], "tool-hidden");
}

#[test]
fn diff_of_a_level_that_is_written_as_its_default_is_empty() {
    let (code, report) = diff(json!({}), json!({"trust": "trusted"}));
    assert_eq!((code, &report["sources"]), (Some(0), &json!([])));
}

#[test]
fn diff_with_other_sensitive_words_says_so() {
    let bench = Bench::new();
    let old = config(json!({"trust": "untrusted"}));
    let mut new = old.clone();
    new["trust"] = json!({"sensitive": ["delete", "reboot"]});
    write_lock(&bench, "old", &old, &tools());
    write_lock(&bench, "new", &new, &tools());
    let output = bench.run(&["diff", "old.lock.json", "new.lock.json"]);
    assert_eq!(output.code, Some(3), "{}", output.stdout);
    let words = output.stdout.split_whitespace().collect::<Vec<_>>();
    contains(
        &words.join(" "),
        &["`env` or `inherit_env`, or words in `trust.sensitive`"],
    );
}

#[test]
fn review_shows_a_raised_level_although_every_tool_has_an_audit() {
    let bench = repository();
    let named = |level: &str| config(json!({"trust": level, "tool_filter": ["get", "put"]}));
    write_lock(&bench, "c", &named("verified"), &tools());
    let (code, screen) = review(&bench, &[], "r\ny\n", &[("NO_COLOR", "1")]);
    assert_eq!(code, Some(0), "{screen}");
    git(&bench, &["add", "--all"]);
    git(&bench, &["commit", "-qm", "verified"]);
    let shown = |level: &str| {
        write_lock(&bench, "c", &named(level), &tools());
        let (code, screen) = review(&bench, &[], "q\n", &[("NO_COLOR", "1")]);
        assert_eq!(code, Some(0), "{screen}");
        screen.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    contains(
        &shown("trusted"),
        &[
            "compared with git:HEAD",
            "changed since then: /a: security[trust-raised] the trust level was raised from `verified` to `trusted`",
            "nothing to review",
        ],
    );
    contains(
        &shown("untrusted"),
        &["changed since then: /a: the trust level was lowered from `verified` to `untrusted`"],
    );
    assert!(!shown("verified").contains("changed since"));
}

#[test]
fn tree_shows_the_level_and_the_word_of_each_hidden_tool() {
    let bench = Bench::new();
    let source = json!({"trust": "untrusted", "tool_filter": ["!put"]});
    write_lock(&bench, "c", &config(source), &tools());
    let tree = bench.fine(&["tree", "--config", "c.json", "--hidden"]);
    contains(
        &tree,
        &[
            "    get         Does get\n",
            "    bulkDelete  hidden by the trust level `untrusted`: its name has the word `delete`\n",
            "    put         hidden by `tool_filter`\n",
            "1 tool of 1 source, 2 hidden",
        ],
    );
    assert!(
        !bench
            .fine(&["tree", "--config", "c.json"])
            .contains("bulkDelete")
    );
}

#[test]
fn override_of_a_tool_with_a_sensitive_name_names_the_word() {
    let bench = Bench::new();
    let overrides = json!({"bulkDelete": {"summary": "All"}});
    for (filter, beside) in [
        (json!([]), ", beside `*` for the other tools"),
        (json!(["*"]), ""),
    ] {
        let members =
            json!({"trust": "untrusted", "tool_filter": filter, "tool_overrides": overrides});
        write_lock(&bench, "c", &config(members), &tools());
        let output = bench.run(&["tree", "--config", "c.json"]);
        assert_eq!(output.code, Some(2), "{}", output.stdout);
        let help = format!("Add the name to `tool_filter`{beside}, or remove the key.");
        contains(
            &output.stderr,
            &[
                "error[override_unknown]: `tool_overrides` names `bulkDelete` of `/a`, which is hidden by the trust level `untrusted`: its name has the word `delete`",
                &help,
            ],
        );
    }
    let named = json!({"trust": "untrusted", "tool_filter": ["*", "bulkDelete"], "tool_overrides": overrides});
    write_lock(&bench, "c", &config(named), &tools());
    contains(
        &bench.fine(&["tree", "--config", "c.json"]),
        &["bulkDelete"],
    );
}
