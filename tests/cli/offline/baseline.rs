//! `diff --baseline`: a comparison with the lock of a git revision.

use std::process::Command;

use harness::{Bench, contains};
use serde_json::json;

use super::bench::{config, tool, write_lock};

/// Runs git in a folder of the bench.
pub(crate) fn git(bench: &Bench, args: &[&str]) {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the program that they test with"
    )]
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(bench.path(""))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {said}");
}

/// A repository with the lock of `x` in its first commit, and of a changed `x` in the folder.
pub(crate) fn repository() -> Bench {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x"), tool("y")]);
    git(&bench, &["init", "-q", "-b", "main"]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", "one"]);
    let mut changed = tool("x");
    changed["description"] = "Does x. And a lot more.".into();
    write_lock(
        &bench,
        "c",
        &config(json!({})),
        &[changed, tool("y"), tool("z")],
    );
    bench
}

#[test]
fn diff_with_a_git_baseline_compares_with_that_revision() {
    let bench = repository();
    for baseline in ["git:HEAD", "git:main:c.lock.json", "git:HEAD:./c.lock.json"] {
        let output = bench.run(&["diff", "--config", "c.json", "--baseline", baseline]);
        assert_eq!(output.code, Some(3), "{baseline}: {}", output.stderr);
        contains(&output.stdout, &["text: /a/x", "added: /a/z"]);
    }
    // A file as well, and another lock than the config's.
    let output = bench.run(&["diff", "--baseline", "c.lock.json", "c.lock.json"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "summary: 3 same\n")
    );
    git(&bench, &["commit", "-qam", "two"]);
    let output = bench.run(&["diff", "--config", "c.json", "--baseline", "git:HEAD"]);
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    let output = bench.run(&["diff", "--config", "c.json", "--baseline", "git:HEAD~1"]);
    assert_eq!(output.code, Some(3), "{}", output.stdout);
}

#[test]
fn diff_of_a_config_in_a_subfolder_finds_its_lock_in_git() {
    let bench = repository();
    std::fs::create_dir(bench.path("below")).expect("a new folder");
    for name in ["c.json", "c.lock.json"] {
        std::fs::rename(bench.path(name), bench.path("below").join(name)).expect("mine");
    }
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", "moved"]);
    let output = bench.run(&["diff", "--config", "below/c.json", "--baseline", "git:HEAD"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let old = [
        "diff",
        "--config",
        "below/c.json",
        "--baseline",
        "git:HEAD~1:c.lock.json",
    ];
    assert_eq!(bench.run(&old).code, Some(3));
}

#[test]
fn diff_with_an_unknown_git_baseline_shows_the_error_of_git() {
    let bench = repository();
    for (baseline, said) in [
        ("git:nope", "nope"),
        ("git:", "a revision was expected"),
        ("git:--output=stolen", "a revision was expected"),
        ("git:HEAD:.", "git said"),
        ("git:\u{1b}[31mred", "\\u{1b}[31mred"),
    ] {
        let output = bench.run(&["diff", "--config", "c.json", "--baseline", baseline]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{baseline}: {}",
            output.stderr
        );
        contains(&output.stderr, &["baseline_unreadable", said]);
        assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
    }
    assert!(!bench.path("stolen").exists());
    // A file in git that is not a lock.
    let output = bench.run(&[
        "diff",
        "--config",
        "c.json",
        "--baseline",
        "git:HEAD:c.json",
    ]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(&output.stderr, &["HEAD:c.json"]);

    let outside = Bench::new();
    write_lock(&outside, "c", &config(json!({})), &[tool("x")]);
    let output = outside.run(&["diff", "--config", "c.json", "--baseline", "git:HEAD"]);
    assert_eq!(output.code, Some(2));
    contains(&output.stderr, &["not a git repository"]);
}

#[test]
fn diff_takes_two_locks_or_one_with_a_baseline() {
    let bench = repository();
    for args in [
        &["c.lock.json"][..],
        &["--baseline", "git:HEAD", "c.lock.json", "c.lock.json"],
        &[],
    ] {
        let output = bench.run(&[&["diff"], args].concat());
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn baseline_that_lacks_the_lock_is_an_empty_lock() {
    let bench = repository();
    write_lock(&bench, "new", &config(json!({})), &[tool("x")]);
    for baseline in ["git:HEAD", "git:HEAD:none.lock.json"] {
        let output = bench.run(&[
            "diff",
            "--config",
            "new.json",
            "--baseline",
            baseline,
            "--output",
            "markdown=changes.md",
        ]);
        assert_eq!(output.code, Some(0), "{baseline}: {}", output.stderr);
        contains(&output.stdout, &["added: /a/x", "summary: 0 same, 2 added"]);
        let note = format!("the lock is new: the baseline {baseline} does not have it");
        contains(&output.stderr, &[&note]);
        contains(&bench.read("changes.md"), &["/a/x"]);
    }
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", "two"]);
    let source = format!("file://{}", bench.path("").display());
    git(&bench, &["clone", "-q", "--depth", "1", &source, "shallow"]);
    let output = bench.run(&[
        "diff",
        "--config",
        "shallow/c.json",
        "--baseline",
        "git:HEAD~1",
    ]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &["baseline_unreadable", "shallow", "fetch-depth: 0"],
    );
}

#[test]
fn baseline_is_beside_the_config_whatever_repository_the_variables_of_git_name() {
    let bench = repository();
    git(&bench, &["commit", "-qam", "two"]);
    std::fs::create_dir(bench.path("below")).expect("a new folder");
    let below = bench.path("below");
    write_lock(&bench, "below/c", &config(json!({})), &[tool("only")]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", "three"]);
    let (folder, root) = (bench.path(".git"), bench.path(""));
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    for env in [
        vec![("GIT_DIR", text(&folder))],
        vec![("GIT_DIR", text(&folder)), ("GIT_WORK_TREE", text(&root))],
        vec![("GIT_INDEX_FILE", text(&below.join("none")))],
        vec![("GIT_DIR", "/nowhere".to_owned())],
    ] {
        let env: Vec<_> = env.iter().map(|(name, value)| (*name, &**value)).collect();
        let args = ["diff", "--config", "below/c.json", "--baseline", "git:HEAD"];
        let output = bench.run_with_env(&args, &env);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(0), "summary: 1 same\n"),
            "{env:?}: {}",
            output.stderr
        );
    }
}
