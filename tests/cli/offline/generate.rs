//! `generate` and `tree`: the output of config and lock without a build.

use std::fs;

use harness::{Bench, contains};
use serde_json::json;

use super::bench::{config, tool, write_lock};

fn files(bench: &Bench, folder: &str) -> Vec<(String, String)> {
    let mut found: Vec<_> = fs::read_dir(bench.path(folder))
        .expect("the folder is there")
        .map(|entry| {
            let name = entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned();
            // One character for each byte: the search index is not text.
            let bytes = fs::read(bench.path(&format!("{folder}/{name}"))).expect("readable");
            (name, bytes.into_iter().map(char::from).collect())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn generate_writes_equal_bytes_from_any_folder() {
    let (one, other) = (Bench::new(), Bench::new());
    let source = config(json!({"tool_overrides": {"x": {"summary": "Ex"}}}));
    for bench in [&one, &other] {
        write_lock(bench, "c", &source, &[tool("x"), tool("y")]);
    }
    one.fine(&["generate", "--config", "c.json", "--out", "made/here"]);
    let absolute = other.path("c.json");
    let absolute = absolute.to_str().expect("UTF-8");
    other.fine(&["generate", "--config", absolute, "--out", "made"]);
    let made = files(&one, "made/here");
    assert_eq!(made, files(&other, "made"));
    let names: Vec<_> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.contains(&"catalog.rs") && names.contains(&"catalog.json"),
        "{names:?}"
    );
    for (name, text) in &made {
        for folder in [one.path(""), other.path("")] {
            assert!(
                !text.contains(&*folder.to_string_lossy()),
                "{name} names a folder"
            );
        }
    }
}

#[test]
fn generate_with_check_reports_stale_files_and_writes_nothing() {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    let run = |check: bool| {
        let mut args = vec!["generate", "--config", "c.json", "--out", "made"];
        args.extend(check.then_some("--check"));
        bench.run(&args)
    };
    let missing = run(true);
    assert_eq!(missing.code, Some(5), "{}", missing.stderr);
    contains(
        &missing.stderr,
        &["generated_stale", "catalog.rs", "catalog.json"],
    );
    assert!(!bench.path("made").exists(), "a check wrote something");
    assert_eq!((run(false).code, run(true).code), (Some(0), Some(0)));

    bench.write("made/catalog.json", "{}");
    let stale = run(true);
    assert_eq!(stale.code, Some(5));
    contains(&stale.stderr, &["catalog.json", "broker-gen generate"]);
    assert!(!stale.stderr.contains("catalog.rs"), "{}", stale.stderr);
    assert_eq!(bench.read("made/catalog.json"), "{}");
    assert_eq!((run(false).code, run(true).code), (Some(0), Some(0)));

    write_lock(&bench, "c", &config(json!({})), &[tool("x"), tool("y")]);
    assert_eq!(run(true).code, Some(5), "another lock gives other code");
    fs::remove_file(bench.path("c.lock.json")).expect("it was there");
    let none = run(true);
    assert_eq!(none.code, Some(5));
    contains(&none.stderr, &["lock_missing"]);
}

#[test]
fn tree_shows_exposed_and_on_request_hidden_tools() {
    let bench = Bench::new();
    let source = json!({"tool_filter": ["!h*"], "path_aliases": {"x": "ex"}});
    write_lock(
        &bench,
        "c",
        &config(source),
        &[tool("x"), tool("y"), tool("hid")],
    );
    let tree = bench.fine(&["tree", "--config", "c.json"]);
    let lines: Vec<_> = tree.lines().collect();
    let expected = [
        "/             All tools of this broker",
        "  a/          ex, y",
        "    ex (`x`)  Does x",
        "    y         Does y",
    ];
    assert_eq!(lines[..4], expected, "{tree}");
    contains(lines[4], &["2 tools of 1 source, 1 hidden, lock sha256/1:"]);
    let hidden = bench.fine(&["tree", "--config", "c.json", "--hidden"]);
    contains(&hidden, &["    hid       hidden by `tool_filter`"]);
}

#[test]
fn completions_contain_every_verb() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.fine(&["completions", shell]);
        contains(
            &script,
            &[
                "lock",
                "check",
                "diff",
                "generate",
                "tree",
                "schema",
                "new",
                "completions",
            ],
        );
    }
    assert_eq!(bench.run(&["completions", "tcsh"]).code, Some(2));
}

#[test]
fn completions_and_man_pages_exist_for_both_programs() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.fine(&["completions", shell, "--program", "mcp-broker"]);
        for word in ["doctor", "status", "log-level", "mcp-broker"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let page = bench.fine(&["man", "--program", "my-broker"]);
    assert!(
        page.contains(".TH my-broker 1") && page.contains("doctor"),
        "{page}"
    );
    assert!(bench.fine(&["man"]).contains(".TH broker-gen 1"));
    bench.fine(&["man", "--out", "pages"]);
    for file in ["broker-gen.1", "broker-gen-lock.1", "broker-gen-new.1"] {
        assert!(
            bench.read(&format!("pages/{file}")).contains(".SH"),
            "{file}"
        );
    }
    let output = bench.run(&["completions", "bash", "--program", "$(x)"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
}
