//! Files that are symbolic links, as in a repository of dotfiles: every verb writes the file behind the link, and refuses a
//! link to a file that does not exist.

use std::fs;
use std::os::unix::fs::symlink;

use harness::{Bench, contains};
use serde_json::{Value, json};

/// Moves a file into the folder `store`, and makes a link in its place.
fn move_behind_link(bench: &Bench, name: &str) {
    let stored = bench.path("store").join(name);
    let folder = stored.parent().expect("it is in a folder");
    fs::create_dir_all(folder).expect("a folder can be made");
    fs::rename(bench.path(name), &stored).expect("a rename within one folder");
    symlink(&stored, bench.path(name)).expect("a link can be made");
}

fn is_link(bench: &Bench, name: &str) -> bool {
    fs::symlink_metadata(bench.path(name)).is_ok_and(|found| found.is_symlink())
}

fn tool(description: &str) -> Value {
    json!({"name": "x", "description": description, "inputSchema": {"type": "object"}})
}

#[test]
fn verb_writes_the_file_behind_a_link_and_the_link_stays() {
    let bench = Bench::with_sources(&["a"]);
    bench.one_tool("a", tool("Does x."));
    bench.lock();
    let who = ["--who", "A. Reviewer <a@example.org>"];
    let accept = [&["accept", "--all"], &who[..]].concat();
    for (file, args) in [
        ("c.lock.json", &["lock"][..]),
        ("c.audits.toml", &accept),
        ("out/catalog.rs", &["generate", "--out", "out"]),
        ("r.json", &["check", "--output", "json=r.json"]),
        ("task.json", &["hints", "--export", "task.json"]),
    ] {
        bench.one_tool("a", tool("Does x."));
        bench.lock();
        bench.verb(args);
        move_behind_link(&bench, file);
        let before = bench.read(file);
        bench.one_tool("a", tool(&format!("Does x, for {file}.")));
        // `check` reports the difference from the lock.
        if !["lock", "check"].contains(&args[0]) {
            bench.lock();
        }
        let output = bench.verb(args);
        assert_ne!(output.code, Some(2), "{args:?}: {}", output.stderr);
        assert!(is_link(&bench, file), "{file}");
        let stored = bench.read(&format!("store/{file}"));
        assert_ne!(
            stored, before,
            "{args:?}: {}{}",
            output.stdout, output.stderr
        );
        let beside = fs::read_dir(bench.path("store")).expect("the folder is there");
        let drafts = beside.flatten().map(|entry| entry.file_name());
        let drafts: Vec<_> = drafts
            .filter(|name| name.to_string_lossy().starts_with('.'))
            .collect();
        assert!(drafts.is_empty(), "{drafts:?}");
        fs::remove_file(bench.path(file)).expect("the link can be removed");
        fs::rename(bench.path("store").join(file), bench.path(file)).expect("a rename");
    }
}

#[test]
fn link_to_a_file_that_does_not_exist_is_refused_by_name() {
    let bench = Bench::with_sources(&["a"]);
    bench.one_tool("a", tool("Does x."));
    let who = ["--who", "A. Reviewer <a@example.org>"];
    let accept = [&["accept", "--all"], &who[..]].concat();
    for (file, args) in [
        ("c.lock.json", &["lock"][..]),
        ("c.audits.toml", &accept),
        ("r.json", &["check", "--output", "json=r.json"]),
        ("task.json", &["hints", "--export", "task.json"]),
    ] {
        symlink("store/missing", bench.path(file)).expect("a link can be made");
        let output = bench.verb(args);
        assert_ne!(output.code, Some(0), "{args:?}: {}", output.stdout);
        let name = format!("{file}` cannot be written: it is a symbolic link");
        contains(&output.stderr, &[&name]);
        assert!(
            is_link(&bench, file) && !bench.path("store").exists(),
            "{file}"
        );
        fs::remove_file(bench.path(file)).expect("the link can be removed");
        bench.lock();
    }
}
