//! `review` in a terminal of its own: what it shows, what it asks, and what it writes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::baseline::{git, repository};
use crate::bench::{Bench, config, contains, tool};

/// Nothing here takes so long.
const LATE: Duration = Duration::from_secs(60);

/// A review whose questions get these answers, typed ahead; the exit code, and the screen.
fn review(
    bench: &Bench,
    args: &[&str],
    answers: &str,
    env: &[(&str, &str)],
) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("it is mine");
    unlockpt(&master).expect("it is mine");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let side = || -> OwnedFd {
        open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it opens")
    };
    let mut command = bench.command();
    command
        .args(["review", "--config", "c.json", "--who", "A"])
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::from(side()))
        .stdout(Stdio::from(side()))
        .stderr(Stdio::from(side()));
    let mut child = command.spawn().expect("broker-gen starts");
    // The command holds the terminal open, which would then never end.
    drop(command);
    let mut terminal = File::from(master);
    terminal.write_all(answers.as_bytes()).expect("it listens");
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut screen = Vec::new();
        // Linux ends a terminal that nobody holds with an error.
        let _ = terminal.read_to_end(&mut screen);
        let _ = sender.send(screen);
    });
    let screen = receiver.recv_timeout(LATE).unwrap_or_else(|_| {
        child.kill().expect("it is mine");
        panic!("the review does not end")
    });
    let code = child.wait().expect("it ends").code();
    (
        code,
        String::from_utf8(screen)
            .expect("text")
            .replace("\r\n", "\n"),
    )
}

#[test]
fn the_worst_comes_first_and_each_acceptance_is_written_at_once() {
    let bench = repository();
    let mut worse = tool("y");
    worse["inputSchema"] =
        json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    let mut text = tool("x");
    text["description"] = "Does x. And \u{202e}more\u{1b}[31m.".into();
    bench.lock("c", &config(json!({})), &[text, worse, tool("z")]);
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
            "`sure` is none of a, s, q, d, n",
            "-    \"Does x. Then more.\"\n+    \"Does x. And \\u202emore\\u001b[31m.\"",
            "2 accepted, 1 skipped, 0 not looked at",
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
            "0 accepted, 0 skipped, 1 not looked at",
        ],
    );
    // The end of the input is quitting, and what came before it stays.
    bench.lock("c", &config(json!({})), &[tool("z"), tool("w")]);
    let (code, screen) = review(&bench, &[], "a\n\u{4}", &[]);
    assert_eq!(code, Some(0), "{screen}");
    contains(
        &screen,
        &[
            "left since then: /a/x",
            "1 accepted, 0 skipped, 1 not looked at",
        ],
    );
    assert_eq!(bench.read("c.audits.toml").matches("[[audits]]").count(), 3);
}

#[test]
fn without_git_everything_is_new_and_shown_whole() {
    let bench = Bench::new();
    bench.lock("c", &config(json!({})), &[tool("x")]);
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
fn a_baseline_that_was_asked_for_must_be_there() {
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
fn without_a_terminal_nobody_is_asked() {
    let bench = repository();
    let output = bench.run_with_input(&["review", "--config", "c.json", "--who", "A"], "a\na\na\n");
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    contains(&output.stderr, &["terminal_needed", "broker-gen accept"]);
    assert!(!bench.path("c.audits.toml").exists());
}

#[test]
fn it_fits_eighty_columns_and_has_no_colour_where_none_is_wanted() {
    let bench = repository();
    let mut long = tool("x");
    long["description"] = "Many words that go on. ".repeat(20).into();
    long["inputSchema"] = json!({"type": "object", "description": "x".repeat(300)});
    let mut new = tool("new");
    new["description"] = "No end to it ".repeat(30).into();
    bench.lock("c", &config(json!({})), &[long, new]);
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
