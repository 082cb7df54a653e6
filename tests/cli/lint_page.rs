//! The lint over the recorded tools of 55 public servers, checked against `docs/lint.md`, which has every
//! rule with the number of its findings. `UPDATE_EXPECT=1` updates the tables; `SHOW_LINT=1` makes the
//! test fail with every finding.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use broker_config::Config;
use broker_drift::FindingSeverity;
use broker_drift::LintResult;
use broker_model::lock::LockedSource;
use broker_model::snapshot::Snapshot;
use broker_review::lint::{advice, lint, rules};
use harness::assert_expected;
use serde_json::{Value, json};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every recording as it would be locked on a separate node.
fn corpus() -> Vec<LockedSource> {
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("tests/corpus-broker/servers"))
        .expect("the recordings are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    let names: Vec<String> = files
        .iter()
        .map(|file| {
            file.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let nodes: Vec<Value> = names
        .iter()
        .map(|name| json!({"path": format!("/{name}"), "type": "node", "source": {"command": "x"}}))
        .collect();
    let config = json!({ "tree": nodes }).to_string();
    let config = Config::parse("c.json", config.as_bytes())
        .expect("the config is valid")
        .config;
    let locked = config.sources().zip(&files).map(|(source, file)| {
        let text = fs::read(file).expect("a readable file");
        let recorded: Value = serde_json::from_slice(&text).expect("JSON");
        let tools = recorded["tools"].as_array().expect("a list").iter();
        let snapshot = Snapshot {
            resources: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            server_info: recorded["serverInfo"].clone(),
            protocol_version: recorded["protocolVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            capabilities: recorded["capabilities"].clone(),
            instructions: recorded["instructions"].as_str().map(str::to_owned),
            tools: tools
                .map(|tool| tool.as_object().expect("an object").clone().into())
                .collect(),
        };
        source.to_locked(&snapshot)
    });
    locked.collect()
}

/// Findings of each rule: how many, and on how many sources.
fn rates(linted: &[LintResult]) -> BTreeMap<&'static str, (usize, usize)> {
    let mut rates: BTreeMap<&'static str, (usize, Vec<&str>)> = BTreeMap::new();
    for one in linted {
        for finding in &one.findings {
            let (count, sources) = rates.entry(finding.rule).or_default();
            *count += 1;
            sources.push(one.source.as_str());
        }
    }
    let distinct = |mut sources: Vec<&str>| {
        sources.sort_unstable();
        sources.dedup();
        sources.len()
    };
    rates
        .into_iter()
        .map(|(rule, (count, sources))| (rule, (count, distinct(sources))))
        .collect()
}

fn tables(sources: &[LockedSource], linted: &[LintResult]) -> String {
    let rates = rates(linted);
    let tools: usize = sources.iter().map(|source| source.exposed.len()).sum();
    let mut out = String::new();
    for (severity, title) in [
        (FindingSeverity::Error, "Errors"),
        (FindingSeverity::Warning, "Warnings"),
    ] {
        let _ = writeln!(
            out,
            "\n### {title}\n\n| rule | why | what to do | in {tools} tools | in {} sources |\n|---|---|---|--:|--:|",
            sources.len()
        );
        for rule in rules().iter().filter(|rule| rule.severity == severity) {
            let (count, distinct) = rates.get(rule.id).copied().unwrap_or_default();
            let _ = writeln!(
                out,
                "| <a id=\"{0}\"></a>`{0}` | {1} | {2} | {count} | {distinct} |",
                rule.id,
                rule.reason,
                advice(rule.id)
            );
        }
    }
    out
}

#[test]
fn lint_page_has_every_rule_with_its_counts() {
    let sources = corpus();
    let linted = lint(&sources);
    if std::env::var_os("SHOW_LINT").is_some() {
        let mut out = String::new();
        for one in &linted {
            for finding in &one.findings {
                let _ = writeln!(
                    out,
                    "{} | {} | {} | {} | {}",
                    finding.rule,
                    one.path,
                    finding.pointer,
                    finding.message,
                    finding.new.clone().unwrap_or_default()
                );
            }
        }
        panic!("{out}");
    }
    let errors: Vec<_> = linted
        .iter()
        .filter(|one| {
            one.findings
                .iter()
                .any(|finding| finding.severity == FindingSeverity::Error)
        })
        .collect();
    assert!(errors.is_empty(), "innocent servers: {errors:#?}");

    let file = root().join("docs/lint.md");
    let page = fs::read_to_string(&file).expect("the page is there");
    let (head, rest) = page
        .split_once("<!-- rules -->\n")
        .expect("the tables begin");
    let (_, tail) = rest.split_once("<!-- end -->").expect("the tables end");
    let expected = format!(
        "{head}<!-- rules -->\n{}\n<!-- end -->{tail}",
        tables(&sources, &linted)
    );
    assert_expected(&file, &expected);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real work takes real time")]
fn lint_of_fifteen_hundred_tools_ends_in_time() {
    let sources = corpus();
    let began = Instant::now();
    let found = lint(&sources).len();
    // A debug build on a busy machine; a release build takes a fraction.
    assert!(
        found > 0 && began.elapsed().as_secs() < 60,
        "{:?}",
        began.elapsed()
    );
}
