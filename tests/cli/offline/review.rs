//! `review` in a separate terminal: its output, its questions, and the audits that it writes.

use harness::{Bench, contains, on_terminal};
use serde_json::json;

use super::baseline::{git, repository};
use super::bench::{config, tool, write_lock};

/// A review whose questions get these answers, typed ahead; the exit code, and the screen.
pub(crate) fn review(
    bench: &Bench,
    args: &[&str],
    answers: &str,
    env: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut command = bench.command();
    command
        .args(["review", "--config", "c.json", "--who", "A"])
        .args(args)
        .envs(env.iter().copied());
    on_terminal(command, answers)
}

#[test]
fn review_shows_the_worst_class_first_and_writes_each_audit() {
    let bench = repository();
    let mut worse = tool("y");
    worse["inputSchema"] =
        json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    let mut text = tool("x");
    text["description"] = "Does x. And \u{202e}more\u{1b}[31m.".into();
    write_lock(&bench, "c", &config(json!({})), &[text, worse, tool("z")]);
    // Accept with a note, look at the whole and accept, an unclear answer and skip.
    let (code, screen) = review(
        &bench,
        &[],
        "n\nasked upstream\na\nd\na\nsure\ns\n",
        &[("NO_COLOR", "1")],
    );
    assert_eq!(code, Some(0), "{screen}");
    let at = |text: &str| {
        screen
            .find(text)
            .unwrap_or_else(|| panic!("`{text}` is missing in:\n{screen}"))
    };
    assert!(at("[1/3] security: /a/x") < at("[2/3] breaking: /a/y"));
    assert!(at("[2/3] breaking: /a/y") < at("[3/3] new: /a/z"));
    contains(
        &screen,
        &[
            "3 without an audit; compared with git:HEAD; signed as A",
            "input-required-added",
            "+    \"required\": [\n+      \"id\"\n+    ],",
            "`sure` is not one of a, s, q, d, n",
            "-    \"Does x. Then more.\"\n+    \"Does x. And \\u202emore\\u001b[31m.\"",
            "2 accepted, 1 skipped, 0 not reviewed",
            "the audits are in c.audits.toml: commit it",
        ],
    );
    assert!(
        !screen.contains('\u{1b}') && !screen.contains('\u{202e}'),
        "{screen:?}"
    );
    let audits = bench.read("c.audits.toml");
    contains(
        &audits,
        &[
            "tool = \"y\"",
            "looked_at = [\"description\"]\nnotes = \"asked upstream\"",
            "tool = \"x\"",
            "looked_at = [\"description\", \"inputSchema\", \"name\"]",
        ],
    );
    assert_eq!(audits.matches("[[audits]]").count(), 2);

    // What was accepted is not asked again; what was skipped is.
    let (_, screen) = review(&bench, &[], "q\n", &[]);
    contains(
        &screen,
        &[
            "[1/1] new: /a/z",
            "\u{1b}[1m",
            "0 accepted, 0 skipped, 1 not reviewed",
        ],
    );
    // The end of the input is quitting, and what came before it stays.
    write_lock(&bench, "c", &config(json!({})), &[tool("z"), tool("w")]);
    let (code, screen) = review(&bench, &[], "a\n\u{4}", &[]);
    assert_eq!(code, Some(0), "{screen}");
    contains(
        &screen,
        &[
            "left since then: /a/x",
            "1 accepted, 0 skipped, 1 not reviewed",
        ],
    );
    assert_eq!(bench.read("c.audits.toml").matches("[[audits]]").count(), 3);
}

#[test]
fn review_without_git_shows_every_tool_as_new() {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    let (code, screen) = review(&bench, &[], "a\n", &[]);
    assert_eq!(code, Some(0), "{screen}");
    contains(
        &screen,
        &[
            "compared with nothing: git does not have the lock",
            "[1/1] new: /a/x",
            "\"description\": [",
            "accepted: description, inputSchema, name",
        ],
    );
    let (code, screen) = review(&bench, &[], "", &[]);
    assert_eq!(code, Some(0));
    contains(&screen, &["nothing to review"]);
}

#[test]
fn review_with_a_missing_baseline_is_refused() {
    let bench = repository();
    let (code, screen) = review(&bench, &["--baseline", "git:nope"], "", &[]);
    assert_eq!(code, Some(2), "{screen}");
    contains(&screen, &["baseline_unreadable"]);
    git(&bench, &["commit", "-qam", "two"]);
    let (_, screen) = review(&bench, &["--baseline", "git:HEAD~1"], "q\n", &[]);
    contains(&screen, &["[1/3] new: /a/z", "compared with git:HEAD~1"]);
    let (_, screen) = review(&bench, &[], "q\n", &[]);
    contains(&screen, &["[1/3] same: /a/x"]);
}

#[test]
fn review_without_a_terminal_is_refused() {
    let bench = repository();
    let output = bench.run_with_input(&["review", "--config", "c.json", "--who", "A"], "a\na\na\n");
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    contains(&output.stderr, &["terminal_needed", "broker-gen accept"]);
    assert!(!bench.path("c.audits.toml").exists());
}

#[test]
fn review_fits_80_columns_and_respects_no_color() {
    let bench = repository();
    let mut long = tool("x");
    long["description"] = "Many words that go on. ".repeat(20).into();
    long["inputSchema"] = json!({"type": "object", "description": "x".repeat(300)});
    let mut new = tool("new");
    new["description"] = "No end to it ".repeat(30).into();
    write_lock(&bench, "c", &config(json!({})), &[long, new]);
    let (code, screen) = review(&bench, &[], "d\ns\nd\nq\n", &[("NO_COLOR", "1")]);
    assert_eq!(code, Some(0), "{screen}");
    // The echo of an answer ends its line; here it came before the question.
    let screen = screen.replace("a note: ", "a note: \n");
    let wide: Vec<_> = screen
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
    // Every word of the change is there, folded, each line with its sign.
    let came: String = screen
        .lines()
        .filter_map(|line| line.strip_prefix('+'))
        .collect();
    assert!(came.matches("words").count() >= 20, "{screen}");
}
