//! The merge driver without git: what it refuses, and what it leaves in the file.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use broker_model::lock::{LOCK_VERSION, Lock, MIN_LOCK_VERSION};
use harness::{Bench, Output, contains};
use serde_json::json;

use crate::offline::bench::{config, tool, write_lock, write_lock_of_version};

/// The locks of one source: `base` with the tool `x`, `ours` with `y` too, `theirs` as the base.
fn sides() -> Bench {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x"), tool("y")]);
    rename(&bench, "ours");
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    rename(&bench, "base");
    bench.write("theirs", &bench.read("base"));
    bench
}

fn rename(bench: &Bench, name: &str) {
    fs::rename(bench.path("c.lock.json"), bench.path(name)).expect("mine");
}

fn drive(bench: &Bench, files: &[&str]) -> Output {
    let args: Vec<_> = ["lock", "--merge-driver"]
        .iter()
        .chain(files)
        .copied()
        .collect();
    bench.run(&args)
}

/// The driver must fail, and leave nothing that a reader takes.
#[track_caller]
fn is_refused(bench: &Bench, said: &[&str]) {
    let output = drive(bench, &["base", "ours", "theirs", "c.lock.json"]);
    let code = output.code.expect("it ends by itself");
    // Git counts codes up to 128 as a conflict.
    assert!((1..=128).contains(&code), "{code}: {}", output.stderr);
    contains(&output.stderr, said);
    contains(&output.stderr, &["run `broker-gen lock --merge`"]);
    let text = bench.read("ours");
    contains(&text, &["<<<<<<< ours\n", "\n>>>>>>> theirs\n"]);
    Lock::parse("ours", &text).expect_err("it is not a lock");
    bench.write("c.lock.json", &text);
    let output = bench.verb(&["verify", "--offline"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &["lock_corrupt", "`broker-gen lock --merge`"],
    );
}

#[test]
fn driver_takes_the_side_that_changed_with_and_without_a_path() {
    for path in [&["c.lock.json"][..], &[]] {
        let bench = sides();
        let ours = bench.read("ours");
        let files = [&["base", "ours", "theirs"], path].concat();
        let output = drive(&bench, &files);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let merged = Lock::parse("ours", &bench.read("ours")).expect("a lock");
        let before = Lock::parse("ours", &ours).expect("a lock");
        assert_eq!(merged.root_digest(), before.root_digest());
        assert!(!output.stderr.contains("config:"), "{}", output.stderr);
    }
}

#[test]
fn driver_that_cannot_merge_leaves_no_valid_lock() {
    // A side was edited.
    let bench = sides();
    let edited = bench.read("theirs").replace("Does x.", "Does X.");
    bench.write("theirs", &edited);
    is_refused(
        &bench,
        &["lock_corrupt", "c.lock.json (theirs)", "the digest of `x`"],
    );
    let bench = sides();
    bench.write("ours", &bench.read("ours").replace("Does y.", "Does Y."));
    is_refused(&bench, &["lock_corrupt", "c.lock.json (ours)"]);
    // A side is not a lock, is cut, or is missing.
    for text in ["", "[]", "\u{1b}[2J::error::x", "{\"lock_version\": 2"] {
        let bench = sides();
        bench.write("theirs", text);
        is_refused(&bench, &["lock_corrupt"]);
    }
    let bench = sides();
    fs::remove_file(bench.path("theirs")).expect("mine");
    is_refused(&bench, &["merge_unreadable", "`theirs` cannot be read"]);
    // A side is larger than every lock that is read.
    for side in ["theirs", "ours", "base"] {
        let bench = sides();
        let file = File::create(bench.path(side)).expect("a file");
        file.set_len(500 << 20).expect("a sparse file");
        is_refused(
            &bench,
            &["merge_unreadable", side, "more than 268435456 bytes"],
        );
        let size = fs::metadata(bench.path("ours")).expect("a file").len();
        assert!(size < 1 << 20, "{size}");
    }
    // A folder.
    let bench = sides();
    fs::remove_file(bench.path("theirs")).expect("mine");
    fs::create_dir(bench.path("theirs")).expect("a new folder");
    is_refused(&bench, &["merge_unreadable", "it is a folder"]);
}

#[test]
fn driver_without_a_base_that_can_be_read_merges_what_is_equal() {
    for base in ["", "<<<<<<< ours\n=======\n>>>>>>> theirs\n"] {
        let bench = sides();
        bench.write("base", base);
        is_refused(&bench, &["both sides have the source `/a`, and it differs"]);
        let bench = sides();
        bench.write("base", base);
        bench.write("ours", &bench.read("theirs"));
        let output = drive(&bench, &["base", "ours", "theirs", "c.lock.json"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        Lock::parse("ours", &bench.read("ours")).expect("a lock");
    }
}

#[test]
fn driver_that_gets_one_file_twice_or_a_link_leaves_no_valid_lock() {
    for (files, said) in [
        (["base", "ours", "ours"], "are the same file"),
        (["ours", "ours", "theirs"], "are the same file"),
        (["base", "ours", "./ours"], "are the same file"),
        (["base", "ours", "hard"], "are the same file"),
        (["base", "ours", "link"], "is a symbolic link"),
        (["link", "ours", "theirs"], "is a symbolic link"),
    ] {
        let bench = sides();
        symlink(bench.path("theirs"), bench.path("link")).expect("a link");
        fs::hard_link(bench.path("ours"), bench.path("hard")).expect("a link");
        let others = [bench.read("theirs"), bench.read("hard")];
        let output = drive(&bench, &[files[0], files[1], files[2], "c.lock.json"]);
        assert_eq!(output.code, Some(2), "{files:?}: {}", output.stderr);
        contains(&output.stderr, &["merge_unreadable", said]);
        let text = bench.read("ours");
        contains(&text, &["<<<<<<< ours\n", "\n>>>>>>> theirs\n"]);
        Lock::parse("ours", &text).expect_err("it is not a lock");
        assert_eq!([bench.read("theirs"), bench.read("hard")], others);
    }
    let bench = sides();
    symlink(bench.path("ours"), bench.path("link")).expect("a link");
    let output = bench.verb(&["lock", "--merge", "ours", "link"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["are the same file"]);
}

#[test]
fn driver_leaves_a_link_and_its_target_and_says_so() {
    let bench = sides();
    let ours = bench.read("ours");
    symlink(bench.path("ours"), bench.path("link")).expect("a link");
    let output = drive(&bench, &["base", "link", "theirs", "c.lock.json"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    let said = ["is a symbolic link", "link: unchanged, and not merged"];
    contains(&output.stderr, &said);
    assert_eq!(bench.read("ours"), ours);
    let data = fs::symlink_metadata(bench.path("link")).expect("the link");
    assert!(data.is_symlink());
    // A folder in its place.
    fs::remove_file(bench.path("ours")).expect("mine");
    fs::create_dir(bench.path("ours")).expect("a new folder");
    let output = drive(&bench, &["base", "ours", "theirs", "c.lock.json"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["ours: unchanged, and not merged"]);
}

#[test]
fn driver_whose_sides_changed_the_config_needs_git_to_know_it() {
    let bench = sides();
    let filter = |pattern: &str| config(json!({"tool_filter": [pattern]}));
    for (name, pattern) in [("ours", "x*"), ("theirs", "x?*")] {
        write_lock(&bench, "c", &filter(pattern), &[tool("x1")]);
        rename(&bench, name);
    }
    is_refused(&bench, &["both sides changed the source `/a`"]);
    // The sources are the same, and the rules of access are not.
    let bench = sides();
    for name in ["ours", "theirs"] {
        let mut config = config(json!({}));
        config["access"] = json!({"groups": [name], "rules": [{"to": [name], "allow": ["/a/*"]}]});
        write_lock(&bench, "c", &config, &[tool("x")]);
        rename(&bench, name);
    }
    is_refused(&bench, &["both sides changed the config"]);
}

#[test]
fn driver_merges_locks_of_two_format_versions() {
    let bench = sides();
    for (name, version, tools) in [
        ("base", MIN_LOCK_VERSION, &["x"][..]),
        ("theirs", MIN_LOCK_VERSION, &["x"]),
        ("ours", LOCK_VERSION, &["x", "y"]),
    ] {
        let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
        write_lock_of_version(version, &bench, "c", &config(json!({})), &tools);
        rename(&bench, name);
    }
    let ours = bench.read("ours");
    let output = drive(&bench, &["base", "ours", "theirs", "c.lock.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let merged = Lock::parse("ours", &bench.read("ours")).expect("a lock");
    assert_eq!(merged.version, LOCK_VERSION);
    let before = Lock::parse("ours", &ours).expect("a lock");
    assert_eq!(merged.root_digest(), before.root_digest());
    // A side of version 1 that is the result stays so.
    bench.write("ours", &bench.read("base"));
    let output = drive(&bench, &["base", "ours", "theirs", "c.lock.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&bench.read("ours"), &["\"lock_version\": 1"]);
}
