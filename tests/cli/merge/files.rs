//! `lock --merge` of files, and of audits.

use harness::{Bench, contains};
use serde_json::json;

use crate::offline::bench::{config, tool, write_lock};

/// An entry of the audits.
fn audit(tool: &str, who: &str) -> String {
    format!(
        "[[audits]]\nsource = \"/a\"\ntool = \"{tool}\"\ndigest = \"sha256/1:{}\"\ncriteria = \"safe-to-expose\"\nwho = \"{who}\"\ndate = \"2026-03-01\"\n",
        "0".repeat(64)
    )
}

fn file(entries: &[String]) -> String {
    format!("# head\n\n{}", entries.join("\n"))
}

/// The files `base`, `ours` and `theirs`.
fn audits(base: &[String], ours: &[String], theirs: &[String]) -> Bench {
    let bench = Bench::new();
    for (name, entries) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        bench.write(name, &file(entries));
    }
    bench
}

#[test]
fn locks_in_files_merge_into_the_lock_beside_the_config() {
    let bench = Bench::new();
    for (name, tools) in [
        ("base", &["x"][..]),
        ("theirs", &["x"]),
        ("ours", &["x", "y"]),
    ] {
        let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
        write_lock(&bench, "c", &config(json!({})), &tools);
        std::fs::rename(bench.path("c.lock.json"), bench.path(name)).expect("mine");
    }
    let output = bench.verb(&["lock", "--merge", "ours", "theirs", "base"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &["wrote c.lock.json", "no source was launched"],
    );
    contains(&bench.lock_text(), &["\"y\""]);
    bench.fine(&["verify", "--offline", "--config", "c.json"]);

    let lock = bench.lock_state();
    let without_base = bench.verb(&["lock", "--merge", "ours", "theirs"]);
    assert_eq!(without_base.code, Some(5), "{}", without_base.stderr);
    contains(&without_base.stderr, &["merge_conflict", "`/a`"]);
    let in_ci = bench.verb_with(
        &["lock", "--merge", "ours", "theirs", "base"],
        &[("CI", "true")],
    );
    contains(&in_ci.stderr, &["`CI` is set, so nothing is written"]);
    bench.write("c.json", &format!("<<<<<<< ours\n{}", bench.read("c.json")));
    let first = bench.verb(&["lock", "--merge", "ours", "theirs", "base"]);
    assert_eq!(first.code, Some(2), "{}", first.stderr);
    contains(&first.stderr, &["config_syntax", "Settle the config first"]);
    assert_eq!(bench.lock_state(), lock);
}

#[test]
fn merge_with_a_part_that_a_violation_names_is_refused() {
    let bench = Bench::new();
    for (name, tools) in [
        ("base", &["x"][..]),
        ("theirs", &["x", "z"]),
        ("ours", &["x"]),
    ] {
        let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
        write_lock(&bench, "c", &config(json!({})), &tools);
        std::fs::rename(bench.path("c.lock.json"), bench.path(name)).expect("mine");
    }
    bench.write("c.lock.json", &bench.read("ours"));
    let ours = bench.lock_state();
    let violation = |members: &str| {
        format!(
            "[[violations]]\nsource = \"/a\"\n{members}reason = \"r\"\nwho = \"B\"\ndate = 2026-03-01\n"
        )
    };
    let merge = ["lock", "--merge", "ours", "theirs", "base"];
    for (members, what) in [("tool = \"z\"\n", "`z` of `/a`"), ("", "the source `/a`")] {
        bench.write("c.audits.toml", &violation(members));
        let output = bench.verb(&merge);
        assert_eq!(output.code, Some(5), "{}", output.stderr);
        let said = format!("error[violation]: {what} is refused by the violation of B");
        let help = "Run `broker-gen lock --merge --config c.json --source PATH`";
        contains(
            &output.stderr,
            &[&said, "c.audits.toml:1", help, "the merge was not written"],
        );
        assert_eq!(bench.lock_state(), ours);

        // No config is in git, so the driver merges by the digests alone.
        let before = bench.read("ours");
        let files = ["base", "ours", "theirs", "c.lock.json"];
        let output = bench.run(&[&["lock", "--merge-driver"], &files[..]].concat());
        assert_eq!(output.code, Some(5), "{}", output.stderr);
        contains(&output.stderr, &[&said]);
        contains(&bench.read("ours"), &["<<<<<<< ours\n"]);
        bench.write("ours", &before);
    }
    // Audits that cannot be read refuse the merge as well.
    bench.write("c.audits.toml", "[[violations]]\nsource = \"/a\"\n");
    let output = bench.verb(&merge);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["audits_value"]);
    bench.write("c.audits.toml", &violation("tool = \"none\"\n"));
    let output = bench.verb(&merge);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&bench.lock_text(), &["\"z\""]);
}

#[test]
fn merge_without_sides_is_refused() {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    bench.write("copy", &bench.lock_text());
    for (args, said) in [
        (
            &["lock", "--merge", "c.lock.json"][..],
            "two or three files",
        ),
        (&["lock", "--merge"], "cannot be read"),
        (
            &["lock", "--merge", "c.lock.json", "none"],
            "`none` cannot be read",
        ),
        (
            &["lock", "--merge", "c.lock.json", "copy", "--ours", "a"],
            "--ours a",
        ),
    ] {
        let before = bench.lock_state();
        let output = bench.verb(args);
        assert_ne!(output.code, Some(0), "{args:?}");
        contains(&output.stderr, &[said, "the merge was not written"]);
        assert_eq!(bench.lock_state(), before);
    }
}

#[test]
fn audits_of_both_sides_are_merged_entry_by_entry() {
    let [base, ours, theirs] =
        [["x", "y"], ["y", "z"], ["x", "w"]].map(|tools| tools.map(|tool| audit(tool, "A")));
    let bench = audits(&base, &ours, &theirs);
    let output = bench.verb(&["lock", "--merge", "ours", "theirs", "base"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["wrote c.audits.toml"]);
    let expected = file(&["z", "w"].map(|tool| audit(tool, "A")));
    assert_eq!(bench.read("c.audits.toml"), expected);

    let args = ["lock", "--merge-driver", "base", "ours", "theirs"];
    let output = bench.run(&[&args[..], &["c.audits.toml"]].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(bench.read("ours"), expected);
}

#[test]
fn audits_that_both_sides_changed_conflict_and_are_no_valid_file() {
    let entry = |who: &str| [audit("x", who)];
    let bench = audits(&entry("A"), &entry("B"), &entry("C"));
    let output = bench.verb(&["lock", "--merge", "ours", "theirs", "base"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &["merge_conflict", "both sides changed an entry"],
    );
    assert!(!bench.path("c.audits.toml").exists());

    let args = [
        "lock",
        "--merge-driver",
        "base",
        "ours",
        "theirs",
        "c.audits.toml",
    ];
    let output = bench.run(&args);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    let text = bench.read("ours");
    contains(
        &text,
        &["<<<<<<< ours\nwho = \"B\"\n=======\nwho = \"C\"\n>>>>>>> theirs"],
    );
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    bench.write("c.audits.toml", &text);
    let output = bench.verb(&["verify", "--offline"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &["audits_syntax", "`broker-gen lock --merge`"],
    );

    // One side is not a valid file.
    let bench = audits(&entry("A"), &entry("A"), &[]);
    bench.write("theirs", "[[audits]]\nwhy = 1\n");
    let output = bench.run(&args);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &["audits_unknown_key", "c.audits.toml (theirs)"],
    );
    contains(&bench.read("ours"), &["<<<<<<< ours", ">>>>>>> theirs"]);
}

#[test]
fn violations_of_both_sides_are_merged_and_the_same_one_is_there_once() {
    let violation = |tool: &str, reason: &str| {
        format!(
            "[[violations]]\nsource = \"/a\"\ntool = \"{tool}\"\nreason = \"{reason}\"\nwho = \"A\"\ndate = 2026-03-01\n"
        )
    };
    let both = violation("both", "r");
    let bench = audits(
        &[audit("x", "A")],
        &[audit("x", "A"), violation("y*", "r"), both.clone()],
        &[audit("x", "A"), violation("z*", "r"), both.clone()],
    );
    let output = bench.verb(&["lock", "--merge", "ours", "theirs", "base"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let expected = [
        audit("x", "A"),
        violation("y*", "r"),
        violation("z*", "r"),
        both,
    ];
    assert_eq!(bench.read("c.audits.toml"), file(&expected));

    let of = |reason: &str| [violation("x", reason)];
    let bench = audits(&of("r"), &of("ours"), &of("theirs"));
    let output = bench.verb(&["lock", "--merge", "ours", "theirs", "base"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &["merge_conflict", "both sides changed an entry"],
    );
}
