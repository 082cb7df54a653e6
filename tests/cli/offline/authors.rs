//! `verify --require-other-author`: who audited a tool is not an author of the commits that brought it into the lock.

use harness::{Output, contains};
use serde_json::{Value, json};

use super::bench::{tool, write_lock};
use crate::merge::repository::{AUDITS, Clone, LOCK};

const STEM: &str = "below/c";
const ANN: &str = "Ann <ann@example.org>";
const BEN: &str = "Ben <ben@example.org>";

fn config_at(path: &str) -> Value {
    let source = json!({"command": "server"});
    json!({"audits_required": true, "tree": [{"path": path, "type": "node", "source": source}]})
}

/// Locks these tools on `/a`.
fn lock(clone: &Clone, tools: &[&str]) {
    let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
    write_lock(&clone.bench, STEM, &config_at("/a"), &tools);
}

/// Commits everything as this author.
fn commit_as(clone: &Clone, author: &str, message: &str) {
    let (name, rest) = author.split_once(" <").expect("a name and an address");
    let address = rest.trim_end_matches('>');
    clone.git_fine(&["add", "-A"]);
    let variables = [("GIT_AUTHOR_NAME", name), ("GIT_AUTHOR_EMAIL", address)];
    let output = clone.git_with(&["commit", "-q", "-m", message], &variables);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

fn accept(clone: &Clone, who: &str, tool: &str) {
    clone.verb_fine(&["accept", "--who", who, "--source", "/a", "--tool", tool]);
}

fn verify(clone: &Clone) -> Output {
    clone.verb(&["verify", "--offline", "--require-other-author"])
}

#[track_caller]
fn is_refused(clone: &Clone, said: &[&str]) {
    let output = verify(clone);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(&output.stderr, said);
}

#[track_caller]
fn is_fine(clone: &Clone) {
    let output = verify(clone);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stdout, &["verified: "]);
}

#[test]
fn audit_by_an_author_of_the_change_is_refused() {
    let clone = Clone::new();
    lock(&clone, &["x"]);
    accept(&clone, BEN, "x");
    commit_as(&clone, ANN, "x");
    is_fine(&clone);
    // Ben brings in `y`, and may not audit it; his audit of `x` stays valid.
    lock(&clone, &["x", "y"]);
    accept(&clone, "ben <other@example.org>", "y");
    commit_as(&clone, BEN, "y");
    is_refused(
        &clone,
        &[
            "audit_by_author",
            "`/a/y` was audited by ben <other@example.org>, and Ben <ben@example.org> is an author of the commit ",
            "It needs the audit of another person",
        ],
    );
    assert!(!verify(&clone).stderr.contains("`/a/x`"));
    // Without the option the audit is enough.
    clone.verb_fine(&["verify", "--offline"]);
    accept(&clone, "Nickname <BEN@example.org>", "y");
    assert_eq!(verify(&clone).code, Some(5));
    accept(&clone, ANN, "y");
    is_fine(&clone);
}

#[test]
fn person_of_a_trailer_is_an_author() {
    let clone = Clone::new();
    lock(&clone, &["x"]);
    accept(&clone, BEN, "x");
    let message = "x\n\nIt is new.\n\nco-authored-by: B <BEN@example.org>\nSigned-off-by: C <c@x>";
    commit_as(&clone, ANN, message);
    is_refused(
        &clone,
        &["audit_by_author", "B <BEN@example.org> is an author"],
    );
}

#[test]
fn merge_that_takes_over_a_tool_adds_no_author() {
    let clone = Clone::new();
    lock(&clone, &["x"]);
    commit_as(&clone, ANN, "x");
    clone.git_fine(&["checkout", "-q", "-b", "side"]);
    lock(&clone, &["x", "y"]);
    commit_as(&clone, ANN, "y");
    clone.git_fine(&["checkout", "-q", "main"]);
    let by_ben = [
        ("GIT_AUTHOR_NAME", "Ben"),
        ("GIT_AUTHOR_EMAIL", "ben@example.org"),
    ];
    let merged = clone.git_with(&["merge", "-q", "--no-ff", "-m", "merge", "side"], &by_ben);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    accept(&clone, BEN, "x");
    accept(&clone, BEN, "y");
    is_fine(&clone);
    // A merge that brings in what no parent has is a change of its author.
    clone.git_fine(&["checkout", "-q", "-b", "other"]);
    lock(&clone, &["x", "y", "w"]);
    commit_as(&clone, ANN, "w");
    clone.git_fine(&["checkout", "-q", "main"]);
    clone.git_fine(&["merge", "-q", "--no-ff", "--no-commit", "other"]);
    lock(&clone, &["x", "y", "w", "z"]);
    accept(&clone, BEN, "w");
    accept(&clone, BEN, "z");
    commit_as(&clone, BEN, "merge with more");
    is_refused(&clone, &["`/a/z` was audited by Ben"]);
    let said = verify(&clone).stderr;
    assert!(
        !said.contains("`/a/w`") && !said.contains("`/a/y`"),
        "{said}"
    );
}

#[test]
fn author_of_the_tool_at_an_older_path_stays_one() {
    let clone = Clone::new();
    write_lock(&clone.bench, STEM, &config_at("/old"), &[tool("x")]);
    commit_as(&clone, BEN, "/old");
    lock(&clone, &["x"]);
    accept(&clone, BEN, "x");
    commit_as(&clone, ANN, "/a");
    is_refused(&clone, &["`/a/x` was audited by Ben"]);
    accept(&clone, ANN, "x");
    // Ann moved it.
    assert_eq!(verify(&clone).code, Some(5));
    accept(&clone, "Cleo <cleo@example.org>", "x");
    is_fine(&clone);
}

#[test]
fn tool_that_needs_two_people_needs_two_others() {
    let clone = Clone::new();
    let mut config = config_at("/a");
    config["audits_required"] = 2.into();
    write_lock(&clone.bench, STEM, &config, &[tool("x")]);
    for who in [ANN, BEN] {
        accept(&clone, who, "x");
    }
    commit_as(&clone, ANN, "x");
    is_refused(
        &clone,
        &["audit_by_author", "It needs the audit of 2 other people"],
    );
    accept(&clone, "Cleo", "x");
    is_fine(&clone);
}

#[test]
fn history_that_is_not_known_is_refused_with_the_remedy() {
    let clone = Clone::new();
    lock(&clone, &["x"]);
    accept(&clone, BEN, "x");
    let unknown = |why: &str| is_refused(&clone, &["authors_unknown", why, "fetch-depth: 0"]);
    unknown("git said: ");
    clone.git_fine(&["commit", "-q", "--allow-empty", "-m", "empty"]);
    unknown("it is not committed");
    commit_as(&clone, ANN, "x");
    is_fine(&clone);
    lock(&clone, &["x", "y"]);
    accept(&clone, BEN, "y");
    unknown("it is not as it is committed");
    commit_as(&clone, ANN, "y");
    is_fine(&clone);

    let folder = clone.bench.path("");
    let from = format!("file://{}", folder.display());
    let shallow = Clone::new();
    shallow.git_fine(&["clone", "-q", "--depth", "1", &from, "shallow"]);
    let config = ["--config", "shallow/below/c.json"];
    let args = [
        &["verify", "--offline", "--require-other-author"],
        &config[..],
    ]
    .concat();
    let output = shallow.bench.run(&args);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &["authors_unknown", "this clone is shallow", "fetch-depth: 0"],
    );
    // Outside a repository, with the variables that git sets for hooks.
    let outside = harness::Bench::new();
    for name in [LOCK, AUDITS, "below/c.json"] {
        let short = name.trim_start_matches("below/");
        outside.write(short, &clone.bench.read(name));
    }
    let git = clone.bench.path(".git");
    let git = git.to_str().expect("a name");
    let args = [
        "verify",
        "--offline",
        "--require-other-author",
        "--config",
        "c.json",
    ];
    let output = outside.run_with_env(&args, &[("GIT_DIR", git)]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(&output.stderr, &["authors_unknown", "git said: "]);
}

#[test]
fn settings_of_git_hide_no_author() {
    let clone = Clone::new();
    lock(&clone, &["x"]);
    accept(&clone, BEN, "x");
    commit_as(&clone, BEN, "x");
    for (key, value) in [
        ("log.follow", "true"),
        ("log.diffMerges", "off"),
        ("log.showRoot", "false"),
        ("log.mailmap", "true"),
        ("mailmap.file", "map"),
        ("format.pretty", "oneline"),
        ("color.ui", "always"),
        ("log.decorate", "full"),
    ] {
        clone.git_fine(&["config", key, value]);
    }
    clone
        .bench
        .write("map", "Ann <ann@example.org> <ben@example.org>\n");
    is_refused(
        &clone,
        &["audit_by_author", "Ben <ben@example.org> is an author"],
    );
}
