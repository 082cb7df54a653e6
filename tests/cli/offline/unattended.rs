//! Verbs that write, on a machine with `CI` or `MCP_BROKER_LOCKED`: none of them does, and each names the variable.

use harness::{Bench, contains};
use serde_json::json;

use super::bench::{config, tool, write_lock};

const VARIABLES: [(&str, &str); 2] = [("CI", "true"), ("MCP_BROKER_LOCKED", "1")];

/// The names of the files below the folder.
fn files(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.path("")).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn verbs_that_write_are_refused_where_a_variable_says_so() {
    for (name, value) in VARIABLES {
        let bench = Bench::new();
        write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
        bench.write(
            "answers.json",
            r#"{"tools":[{"path":"/a/x","digest":"","hints":[]}]}"#,
        );
        bench.write("client.json", r#"{"mcpServers":{"a":{"command":"x"}}}"#);
        let (config, before) = (bench.read("c.json"), files(&bench));
        let reason = format!("`{name}` is set, so nothing is written; `{name}=");
        for (code, said, args) in [
            (2, "write_refused", &["new", "crate"][..]),
            (
                2,
                "write_refused",
                &["import", "client.json", "-o", "new.json"],
            ),
            (
                2,
                "write_refused",
                &["hints", "--config", "c.json", "--import", "answers.json"],
            ),
            (
                5,
                "generated_stale",
                &["generate", "--config", "c.json", "--out", "generated"],
            ),
            (5, "lock_missing", &["lock", "--config", "client.json"]),
            (
                5,
                "lock_missing",
                &[
                    "lock",
                    "--config",
                    "client.json",
                    "--pin",
                    "--write-client-file",
                ],
            ),
        ] {
            let output = bench.run_with_env(args, &[(name, value)]);
            assert_eq!(output.code, Some(code), "{args:?}: {}", output.stderr);
            contains(&output.stderr, &[said, &reason]);
            assert_eq!(files(&bench), before, "{args:?}");
        }
        assert_eq!(bench.read("c.json"), config);
        // The ones that only print do.
        let output = bench.run_with_env(&["import", "client.json"], &[(name, value)]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
}

#[test]
fn vectors_that_are_missing_are_not_made_where_a_variable_says_so() {
    let bench = Bench::new();
    let mut config = config(json!({}));
    config["search"] = json!({"embedder": "OPENAI"});
    write_lock(&bench, "c", &config, &[tool("x")]);
    let output = bench.verb_with(&["vectors"], &[("CI", "true")]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    let said = ["vectors_stale", "`CI` is set, so nothing is written"];
    contains(&output.stderr, &said);
}

#[test]
fn generated_files_are_compared_where_a_variable_says_so() {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    let args = ["generate", "--config", "c.json", "--out", "generated"];
    bench.fine(&args);
    let output = bench.run_with_env(&args, &[("CI", "true")]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["generated is current"]);
}
