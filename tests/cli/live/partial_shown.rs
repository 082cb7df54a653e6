//! `diff` and `review` of a lock that leaves parts out and has derived aliases.

use harness::{Bench, on_terminal};
use serde_json::json;

use super::bench::tool;

/// Two sources; the lock of the time when all was sound is `old.lock.json`. Now a tool of `/a` is not sound, another one
/// has a name outside the grammar, and `/b` does not start.
fn bench() -> Bench {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.one_tool("a", tool("good"));
    bench.one_tool("b", tool("y"));
    bench.lock();
    bench.write("old.lock.json", &bench.lock_text());
    let odd = json!({"name": "int", "inputSchema": {"type": "object", "properties": {"n": {"type": "int"}}}});
    let tools = [tool("good"), tool("github/git_commit"), odd];
    bench.script("a", &json!({"tools": tools}));
    bench.script("b", &json!({"start_exit": 3}));
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    bench
}

#[test]
fn diff_shows_left_out_parts_and_derived_aliases() {
    let bench = bench();
    let output = bench.run(&["diff", "old.lock.json", "c.lock.json"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(
        output.stdout,
        "\
compatible: source /a
  warning[left-out-changed] `int` of `/a` is left out of the lock
    (schema_refused)
compatible: source /b
  warning[left-out-changed] the source `/b` is kept as it was locked
    (not_started)
added: /a/github_git_commit-2c67b297 (`github/git_commit`)
  warning[tool-added] the new lock exposes `github/git_commit`, which the old
    one does not have
help: review it; it is accepted once the new lock is committed and built
summary: 2 same, 2 compatible, 1 added
"
    );
    let back = bench.run(&["diff", "c.lock.json", "old.lock.json"]);
    assert_eq!(back.code, Some(3), "{}", back.stderr);
    assert_eq!(
        back.stdout,
        "\
gone: /a/github_git_commit-2c67b297 (`github/git_commit`)
  error[tool-gone] the server no longer lists `github/git_commit`
compatible: source /a
  warning[left-out-changed] `int` of `/a` was left out, kept or unvalidated
    before, or for another reason (schema_refused)
compatible: source /b
  warning[left-out-changed] the source `/b` was left out, kept or unvalidated
    before, or for another reason (not_started)
help: review it; it is accepted once the new lock is committed and built
summary: 2 same, 2 compatible, 1 gone
"
    );
}

#[test]
fn review_shows_left_out_parts_and_derived_aliases() {
    let bench = bench();
    let mut command = bench.command();
    command
        .args(["review", "--config", "c.json", "--who", "A"])
        .args(["--baseline", "old.lock.json"])
        .env("NO_COLOR", "1");
    let (code, screen) = on_terminal(command, "q\n");
    assert_eq!(code, Some(0), "{screen}");
    // The terminal shows what is typed before.
    let shown = screen.split_once("not in the lock").map(|(_, shown)| shown);
    let shown = shown.unwrap_or_else(|| panic!("{screen}"));
    let digest = bench.lock_json()["sources"][0]["exposed"][0]["digests"]["whole"].clone();
    let digest = digest.as_str().expect("a digest");
    assert_eq!(
        format!("not in the lock{shown}"),
        format!(
            "\
not in the lock as it is now: `int` of `/a` (schema_refused); to accept that: broker-gen accept --config c.json --source /a --tool int --left-out
not in the lock as it is now: the source `/b` (not_started); to accept that: broker-gen accept --config c.json --source /b --left-out
3 without an audit; compared with old.lock.json; signed as A

[1/3] new: /a/github_git_commit-2c67b297
  it has no valid audit: it was never audited
  {digest}
  name: github_git_commit-2c67b297; the server calls it github/git_commit
  may do: anything; the server gives no annotations
  description:
  | Does github/git_commit.
  arguments: none listed
[a]ccept [s]kip [r]est [b]ack [q]uit, [d] whole [j]son [n]ote, [?] help: 0 accepted, 0 skipped, 3 not reviewed
"
        )
    );
}
