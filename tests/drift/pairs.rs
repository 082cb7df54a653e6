//! Releases of public servers, an older and a newer one: each tool's change gets the class that a
//! person gave it, and what breaks never comes out safe. `docs/internals/pairs.md` argues the exceptions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use broker_config::Config;
use broker_drift::{Class, Report, ToolDrift, classify};
use broker_model::snapshot::Snapshot;
use broker_model::trust::Exposure;
use broker_schema::compile;
use serde_json::{Value, json};

/// Where the pairs are that were found and judged here.
const OWN: &str = "tests/drift/pairs/own";

struct Pair {
    name: String,
    document: Value,
    report: Report,
}

fn snapshot(side: &Value) -> Snapshot {
    let tools = side["tools"].as_array().expect("a list of tools").iter();
    Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: side["serverInfo"].clone(),
        protocol_version: side["protocolVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        capabilities: side["capabilities"].clone(),
        instructions: side["instructions"].as_str().map(str::to_owned),
        tools: tools
            .map(|tool| tool.as_object().expect("a tool").clone().into())
            .collect(),
    }
}

/// The report of the classifier on `new`, with `old` as the lock.
fn report(old: &Value, new: &Value) -> Report {
    let config = json!({"tree": [{"path": "/s", "type": "node", "source": {"command": "server"}}]});
    let config = Config::parse("c.json", config.to_string().as_bytes())
        .expect("a config")
        .config;
    let source = config.sources().next().expect("one source");
    let locked = source.to_locked(&snapshot(old));
    classify(&locked, &snapshot(new), &Exposure::expose_all())
}

/// The pairs that were given, and those that were found and judged here.
fn pairs() -> Vec<Pair> {
    let mut pairs = pairs_of("tests/drift/pairs");
    pairs.extend(pairs_of(OWN));
    pairs
}

fn pairs_of(folder: &str) -> Vec<Pair> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the fixtures are there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| {
            let text = fs::read(path).expect("a readable file");
            let document: Value = serde_json::from_slice(&text).expect("JSON");
            let report = report(&document["old"], &document["new"]);
            let name = document["name"].as_str().expect("a name").to_owned();
            Pair {
                name,
                document,
                report,
            }
        })
        .collect()
}

impl Pair {
    fn found(&self, tool: &str) -> Option<&ToolDrift> {
        self.report.tools.iter().find(|drift| drift.tool == tool)
    }

    fn verdicts(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document["verdicts"]
            .as_object()
            .expect("verdicts")
            .iter()
    }
}

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/internals/pairs.md");
    fs::read_to_string(page).expect("the page is there")
}

/// The exceptions that `docs/internals/pairs.md` argues: `| pair | tool | verdict | ours |` rows.
fn argued() -> BTreeSet<String> {
    let page = page();
    let (_, exceptions) = page.split_once("## Exceptions").expect("the section");
    exceptions
        .lines()
        .filter_map(|line| {
            let cells: Vec<_> = line
                .split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect();
            let row = cells.get(1..5)?;
            (row[0] != "pair" && !row[0].starts_with('-')).then(|| row.join(" "))
        })
        .collect()
}

#[test]
fn release_pairs_get_the_class_of_the_human_verdict() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut mismatched = BTreeSet::new();
    let mut shown = String::new();
    for pair in pairs() {
        for (tool, verdict) in pair.verdicts() {
            let drift = pair.found(tool);
            let ours = drift.map_or("same", |drift| drift.class.as_str());
            let wanted = verdict["class"].as_str().expect("a class");
            let alt = verdict["alt"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|alt| alt == ours);
            let how = match () {
                () if ours == wanted => "matched",
                () if alt => "alternative",
                () => "mismatched",
            };
            *counts.entry(how.to_owned()).or_default() += 1;
            *counts.entry(format!("{wanted} as {ours}")).or_default() += 1;
            if how == "mismatched" {
                let row = [pair.name.as_str(), tool, wanted, ours].join(" ");
                let findings = drift.map(|drift| &drift.findings).into_iter().flatten();
                shown.push_str(&format!("{row}\n"));
                for one in findings {
                    let witness = one
                        .witness
                        .as_ref()
                        .map(Value::to_string)
                        .unwrap_or_default();
                    shown.push_str(&format!(
                        "    {} {} {} {} {witness}\n",
                        one.class.as_str(),
                        one.rule,
                        one.pointer,
                        one.message
                    ));
                }
                for why in verdict["why"].as_array().into_iter().flatten() {
                    shown.push_str(&format!("    expected {why}\n"));
                }
                mismatched.insert(row);
            }
            let harmful = matches!(wanted, "breaking" | "security" | "gone");
            let safe = drift.is_none_or(|drift| !drift.class.withdraws());
            assert!(
                !harmful || !safe || alt,
                "{} {tool} is {wanted}, and came out {ours}",
                pair.name
            );
        }
        for drift in &pair.report.tools {
            let judged = pair.verdicts().any(|(tool, _)| *tool == drift.tool);
            assert!(
                judged,
                "{} {} has no verdict, and is {:?}",
                pair.name, drift.tool, drift.class
            );
        }
    }
    assert_eq!(mismatched, argued(), "{counts:#?}\n{shown}");
}

/// Rules of members that a schema no longer declares.
const LOST: [&str; 4] = [
    "input-property-removed",
    "input-property-renamed",
    "input-schema-emptied",
    "input-member-lost",
];

/// Whether a schema accepts a value, on which our validator and the library agree.
fn takes(schema: &Value, value: &Value) -> bool {
    let ours = compile(schema).expect("it compiles").is_valid(value);
    let library = jsonschema::validator_for(schema).expect("it compiles");
    assert_eq!(library.is_valid(value), ours, "{schema} {value}");
    ours
}

/// A witness is what a person tries first.
#[test]
fn release_pair_witnesses_are_valid_on_one_side_only() {
    let mut seen = 0;
    for pair in pairs() {
        for drift in &pair.report.tools {
            for one in &drift.findings {
                let Some(witness) = &one.witness else {
                    continue;
                };
                let member = if one.rule.starts_with("input") {
                    "inputSchema"
                } else {
                    "outputSchema"
                };
                let schema = |side: &str| {
                    let tools = pair.document[side]["tools"].as_array().expect("tools");
                    let tool = tools
                        .iter()
                        .find(|tool| tool["name"] == drift.tool.as_str());
                    let tool = tool.expect("the tool is on both sides");
                    tool.get(member).cloned().unwrap_or_else(|| json!({}))
                };
                let (old, mut new) = (schema("old"), schema("new"));
                // The example of a member that only went from an open object is refused once the object is closed.
                if LOST.contains(&one.rule) && takes(&new, witness) {
                    new["additionalProperties"] = false.into();
                }
                let wanted = if member == "inputSchema" {
                    (true, false)
                } else {
                    (false, true)
                };
                let found = (takes(&old, witness), takes(&new, witness));
                assert_eq!(found, wanted, "{} {} {witness}", pair.name, drift.tool);
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "only {seen} witnesses");
}

/// In reverse order every pair is a release that was withdrawn.
#[test]
fn release_pairs_in_reverse_agree_on_unchanged_tools() {
    let mut turned = 0;
    for pair in pairs() {
        let (old, new) = (&pair.document["old"], &pair.document["new"]);
        let back = report(new, old);
        assert_eq!(back.same, pair.report.same, "{}", pair.name);
        let classes = |report: &Report| -> BTreeMap<String, Class> {
            let named = report.tools.iter().map(|one| (one.tool.clone(), one.class));
            named.collect()
        };
        let (there, back) = (classes(&pair.report), classes(&back));
        assert!(there.keys().eq(back.keys()), "{}", pair.name);
        for (tool, class) in there {
            let wanted = match class {
                Class::Added => Some(Class::Gone),
                Class::Gone => Some(Class::Added),
                Class::Equivalent => Some(Class::Equivalent),
                _ => None,
            };
            if let Some(wanted) = wanted {
                assert_eq!(back[&tool], wanted, "{} {tool}", pair.name);
                turned += 1;
            }
        }
    }
    assert!(turned > 100, "only {turned} tools");
}

/// The notes of a person are tested as well: each witness, and the worst class of the source.
#[test]
fn release_pair_verdicts_have_valid_witnesses_and_classes() {
    for pair in pairs() {
        for (tool, verdict) in pair.verdicts() {
            let Some(witness) = verdict.get("witness") else {
                continue;
            };
            let (member, value, wanted) = if witness["side"] == "input" {
                ("inputSchema", &witness["args"], (true, false))
            } else {
                ("outputSchema", &witness["answer"], (false, true))
            };
            let takes = |side: &str| {
                let mut tools = pair.document[side]["tools"]
                    .as_array()
                    .expect("tools")
                    .iter();
                let tool = tools.find(|one| one["name"] == tool.as_str());
                let schema = &tool.expect("the tool is on both sides")[member];
                compile(schema).expect("it compiles").is_valid(value)
            };
            let found = (takes("old"), takes("new"));
            assert_eq!(found, wanted, "{} {tool} {value}", pair.name);
        }
        let source = pair.document["source"].as_array().expect("a list");
        let wanted = ["security", "text"]
            .into_iter()
            .find(|class| source.iter().any(|one| one["class"] == *class));
        let found = pair.report.sources.first().map(|one| one.class.as_str());
        assert_eq!(
            found.unwrap_or("same"),
            wanted.unwrap_or("same"),
            "{}",
            pair.name
        );
    }
}

/// The page lists our own pairs with what the classifier makes of them.
#[test]
fn release_pairs_of_this_project_are_listed_in_the_page() {
    let page = page();
    for pair in pairs_of(OWN) {
        let tools = |side: &str| pair.document[side]["tools"].as_array().map_or(0, Vec::len);
        let version = |side: &str| pair.document[side]["version"].as_str().unwrap_or_default();
        let mut verdicts = BTreeMap::<&str, usize>::new();
        let mut matched = 0;
        for (tool, verdict) in pair.verdicts() {
            let class = verdict["class"].as_str().expect("a class");
            *verdicts.entry(class).or_default() += 1;
            let ours = pair
                .found(tool)
                .map_or("same", |drift| drift.class.as_str());
            matched += usize::from(ours == class);
        }
        let counted: Vec<_> = verdicts
            .iter()
            .map(|(class, count)| format!("{class} {count}"))
            .collect();
        let judged: usize = verdicts.values().sum();
        let row = format!(
            "| {} | {} | {} → {} | {} / {} | {} | {matched} / {} |",
            pair.name,
            pair.document["package"].as_str().expect("a package"),
            version("old"),
            version("new"),
            tools("old"),
            tools("new"),
            counted.join(", "),
            judged - matched,
        );
        assert!(page.contains(&row), "docs/internals/pairs.md lacks\n{row}");
    }
}

#[test]
fn release_pair_renames_are_recognised() {
    let all = pairs();
    let successor = |pair: &str, tool: &str| {
        let pair = all.iter().find(|one| one.name == pair).expect("the pair");
        let gone = pair.found(tool).expect("it is gone");
        assert_eq!(gone.class, Class::Gone, "{tool}");
        let mut findings = gone.findings.iter();
        let note = findings.find(|found| found.rule == "tool-renamed")?;
        note.new.as_ref().map(|new| new["name"].clone())
    };
    for (pair, old, new) in [
        ("tavily-2-renamed", "tavily-search", "tavily_search"),
        ("tavily-2-renamed", "tavily-map", "tavily_map"),
        ("sqlite-1-renamed", "read-query", "read_query"),
        ("sqlite-1-renamed", "write-query", "write_query"),
        ("everything-2-renamed", "printEnv", "get-env"),
        ("everything-2-renamed", "getTinyImage", "get-tiny-image"),
        (
            "everything-2-renamed",
            "longRunningOperation",
            "trigger-long-running-operation",
        ),
    ] {
        assert_eq!(successor(pair, old), Some(json!(new)), "{pair} {old}");
    }
    assert_eq!(successor("everything-2-renamed", "sampleLLM"), None);
    assert_eq!(successor("exa-1-minlength", "get_code_context_exa"), None);
}

/// Every breaking verdict has an example, which two validators confirm.
#[test]
fn release_pair_breaking_verdicts_have_a_witness() {
    let mut without = Vec::new();
    for pair in pairs() {
        let breaking = pair.report.tools.iter();
        for drift in breaking.filter(|drift| drift.class == Class::Breaking) {
            if drift.findings.iter().all(|one| one.witness.is_none()) {
                without.push(format!("{} {}", pair.name, drift.tool));
            }
        }
    }
    assert!(without.is_empty(), "{without:#?}");
}
