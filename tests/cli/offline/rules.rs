//! `rules`: the list, the explanation of one rule, and the generated page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use broker_drift::{Class, rules};
use broker_review::lint;
use harness::{Bench, assert_expected, contains};
use serde_json::Value;

use super::bench::workspace;

/// The sections of the page: what a rule's id begins with, and what such rules are about.
const SECTIONS: [(&str, &[&str]); 4] = [
    ("What callers may send", &["input-"]),
    ("What callers must read", &["output-"]),
    (
        "A source as a whole",
        &[
            "source-",
            "server-",
            "instructions-",
            "capabilities-",
            "protocol-",
            "hidden-tool-",
            "package-",
            "trust-",
        ],
    ),
    ("A tool, its texts and its hints", &[""]),
];

fn page() -> String {
    let mut out = "# Drift rules\n\nFor operators and CI. Reference: every rule by which a server is compared with the lock.\n\nGenerated from the rules in the code; `broker-gen rules` prints the same. The class of a rule decides the\nreaction of a broker. A changed schema gets a milder class than its rule's if a proof shows that it is safe.\n\n## Classes\n\nFrom harmless to worst; `added` and `unchecked` are outside this order. A tool has the class of its worst finding.\n\n| class | meaning, and reaction of a broker |\n|---|---|\n".to_owned();
    for class in Class::ALL {
        let _ = writeln!(out, "| {} | {} |", class.as_str(), class.meaning());
    }
    let mut sections: BTreeMap<usize, String> = BTreeMap::new();
    for rule in rules() {
        let at = SECTIONS
            .iter()
            .position(|(_, prefixes)| prefixes.iter().any(|prefix| rule.id.starts_with(prefix)))
            .expect("the last section takes all");
        let text = sections.entry(at).or_default();
        let _ = write!(
            text,
            "\n### {}\n\n{}, {}. {}\n",
            rule.id,
            rule.class.as_str(),
            rule.severity.as_str(),
            rule.reason
        );
    }
    for (at, text) in sections {
        let _ = write!(out, "\n## {}\n{text}", SECTIONS[at].0);
    }
    out
}

#[test]
fn drift_rules_page_is_current_and_each_rule_links_to_it() {
    let path = workspace().join("docs/drift-rules.md");
    let made = page();
    assert_expected(&path, &made);
    for rule in rules() {
        let page = rule.page();
        let (file, anchor) = page.split_once('#').expect("an anchor");
        assert_eq!(file, "docs/drift-rules.md");
        assert!(made.contains(&format!("\n### {anchor}\n")), "{page}");
    }
}

#[test]
fn rules_verb_lists_every_rule_and_explains_one() {
    let bench = Bench::new();
    let table = bench.fine(&["rules"]);
    let every = || rules().iter().chain(lint::rules());
    assert_eq!(table.lines().count(), every().count());
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    let list: Value =
        serde_json::from_str(&bench.fine(&["rules", "--format", "json"])).expect("JSON");
    let ids: Vec<_> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|rule| rule["rule"].clone())
        .collect();
    assert_eq!(
        ids,
        every().map(|rule| Value::from(rule.id)).collect::<Vec<_>>()
    );
    let one = bench.fine(&["rules", "input-required-added"]);
    contains(
        &one,
        &[
            "input-required-added: breaking, error\n",
            "Calls without the property were valid",
            "docs/drift-rules.md#input-required-added",
        ],
    );
    let one = bench.fine(&["rules", "control-sequence"]);
    contains(
        &one,
        &[
            "control-sequence: security, error\n",
            "  help: hide the tool",
            "docs/lint.md",
        ],
    );
    let wrong = bench.run(&["rules", "input-required-addd"]);
    assert_eq!(wrong.code, Some(2));
    contains(
        &wrong.stderr,
        &[
            "no rule `input-required-addd`",
            "did you mean `input-required-added`?",
        ],
    );
}
