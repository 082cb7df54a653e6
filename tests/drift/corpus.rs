//! The recorded servers with changes: another order is not drift, a less safe annotation withdraws the
//! tool, and a tool that moved to another source is named. A check of all of them stays cheap.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use broker_model::filter::ToolFilter;
use broker_model::trust::{Exposure, HiddenBy, TrustLevel};
use harness::{Broker, Chaos, Output, Run, binary, refusal, wait_until};
use serde_json::{Value, json};

const TOOLS: usize = 1455;

fn committed() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus-broker"))
}

/// The recordings by the name of their node.
fn recordings() -> BTreeMap<String, Value> {
    let files = fs::read_dir(committed().join("servers")).expect("recordings");
    let read = |file: fs::DirEntry| {
        let text = fs::read_to_string(file.path()).expect("readable");
        let node = file.path();
        let node = node.file_stem().expect("a name").to_string_lossy();
        (
            node.into_owned(),
            serde_json::from_str(&text).expect("JSON"),
        )
    };
    files.flatten().map(read).collect()
}

/// A folder with the config and these recordings, written by `text`.
fn folder(recordings: &BTreeMap<String, Value>, text: fn(&Value) -> String) -> Chaos {
    let folder = Chaos::named("corpus-");
    let at = |file: &str| folder.path().join(file);
    fs::copy(committed().join("config.json"), at("config.json")).expect("copied");
    fs::create_dir(at("servers")).expect("a folder");
    for (node, recorded) in recordings {
        fs::write(at(&format!("servers/{node}.json")), text(recorded)).expect("written");
    }
    folder
}

fn tools(recorded: &mut Value) -> &mut Vec<Value> {
    recorded["tools"].as_array_mut().expect("a list")
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().expect("a name")
}

/// The broker over the config in a folder.
fn run(folder: &Chaos, more: &[&str]) -> Run {
    let args = ["127.0.0.1:0", "config.json", "--log-format", "json"];
    Run::new(&binary("corpus-broker"))
        .folder(folder.path())
        .args([&args, more].concat())
}

fn broker_gen(verb: &str, folder: &Chaos, more: &[&str]) -> Output {
    let config = folder.path().join("config.json");
    let run = Run::new(&binary("broker-gen")).args([verb, "--config", &config.to_string_lossy()]);
    run.args(more).output()
}

/// The number of recorded tools that a source without a filter hides at the level `untrusted`.
const HIDDEN: usize = 136;

#[test]
fn untrusted_level_hides_the_recorded_tools_with_sensitive_names() {
    let untrusted = Exposure::new(
        ToolFilter::default(),
        TrustLevel::Untrusted,
        Default::default(),
    );
    let mut recordings = recordings();
    let (mut hidden, mut all) = (Vec::new(), 0);
    for (node, recorded) in &mut recordings {
        for tool in tools(recorded) {
            all += 1;
            if let Some(HiddenBy::Word(word)) = untrusted.hidden_by(name(tool)) {
                hidden.push((format!("/{node}/{}", name(tool)), word));
            }
        }
    }
    assert_eq!((all, hidden.len()), (TOOLS, HIDDEN), "{hidden:#?}");

    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/trust.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let figure = format!("{HIDDEN} of the {TOOLS} tools");
    assert!(page.contains(&figure), "`{figure}` is not in docs/trust.md");
    let is_row = |line: &&str| line.starts_with("| `/");
    let rows: Vec<&str> = page.lines().filter(is_row).collect();
    assert_eq!(rows.len(), 20, "{rows:#?}");
    for row in rows {
        let mut hidden = hidden.iter();
        let is_known = hidden.any(|(path, word)| row == format!("| `{path}` | `{word}` |"));
        assert!(is_known, "no such tool is hidden: {row}");
    }
}

/// A pseudo-random number that is the same in every run.
fn drawn(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The value as JSON text, the members of each object in another order; lists stay as they are.
fn rearranged(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| drawn(name));
            let members = members.iter();
            let members: Vec<_> = members
                .map(|(name, value)| format!("{} : {}", json!(name), rearranged(value)))
                .collect();
            format!("{{ {} }}", members.join(" , "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(rearranged).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn recorded_tools_in_another_order_give_the_same_lock() {
    let mut recordings = recordings();
    let lock = |folder: &Chaos| {
        let locked = broker_gen("lock", folder, &[]);
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
        fs::read(folder.path().join("config.lock.json")).expect("a lock")
    };
    let in_order = lock(&folder(&recordings, Value::to_string));
    let mut moved = 0;
    for recorded in recordings.values_mut() {
        let tools = tools(recorded);
        let before = tools.clone();
        tools.sort_by_key(|tool| drawn(name(tool)));
        let pairs = before.iter().zip(tools.iter());
        moved += pairs.filter(|(one, other)| one != other).count();
    }
    assert!(moved > TOOLS / 2, "{moved} tools have another place");
    let folder = folder(&recordings, rearranged);
    assert!(
        lock(&folder) == in_order,
        "the order of the tools changes the lock"
    );
    let report = broker_gen("check", &folder, &["--format", "json"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    assert_eq!(
        [
            &report["tools"],
            &report["sources"],
            &report["summary"]["same"]
        ],
        [&json!([]), &json!([]), &json!(TOOLS)]
    );
}

#[test]
fn recorded_tool_less_safe_than_reviewed_is_withdrawn() {
    let mut recordings = recordings();
    let tool = recordings
        .iter_mut()
        .flat_map(|(node, recorded)| tools(recorded).iter_mut().map(move |tool| (node, tool)))
        .find(|(_, tool)| tool["annotations"]["readOnlyHint"] == true);
    let (node, tool) = tool.expect("a tool says so");
    let path = format!("/{node}/{}", name(tool));
    let annotations = tool["annotations"].as_object_mut().expect("an object");
    annotations.insert("readOnlyHint".to_owned(), json!(false));
    let folder = folder(&recordings, Value::to_string);
    let broker = Broker::start_ready(run(&folder, &["--ignore-broken-tool"]));
    let describe = || broker.post("/meta_desc", &json!({ "path": path })).json();
    wait_until("it is withdrawn", || describe()["withdrawn"].is_object());
    let described = describe();
    assert_eq!(
        (
            &described["withdrawn"]["class"],
            &described["withdrawn"]["rules"][0]
        ),
        (&json!("security"), &json!("annotations-less-safe"))
    );
    assert_eq!(
        described["annotations"]["readOnlyHint"], true,
        "the reviewed claim is shown"
    );
    refusal(&broker.call(&path, json!({})), 409, "tool_withdrawn");
    let ready = broker.get("/readyz").json();
    let sources = ready["sources"].as_array().expect("a list");
    let withdrawn = sources.iter().filter_map(|one| one["withdrawn"].as_u64());
    assert_eq!(withdrawn.sum::<u64>(), 1);
}

#[test]
fn recorded_tool_moved_to_another_source_is_named() {
    let mut recordings = recordings();
    let moved = tools(recordings.get_mut("time").expect("recorded")).remove(0);
    let gone = name(&moved).to_owned();
    tools(recordings.get_mut("memory").expect("recorded")).push(moved);
    let folder = folder(&recordings, Value::to_string);
    let refused = run(&folder, &[]).output();
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    let lines = refused.stderr.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("each line is JSON");
    let report = lines.iter().find(|line| line["format_version"].is_u64());
    let report = report.expect("a report");
    let lock = committed().join("config.lock.json");
    fs::copy(lock, folder.path().join("config.lock.json")).expect("copied");
    let checked = broker_gen("check", &folder, &["--format", "json"]);
    assert_eq!(checked.code, Some(3), "{}", checked.stderr);
    let checked: Value = serde_json::from_str(&checked.stdout).expect("JSON");
    for report in [report, &checked] {
        let tools = report["tools"].as_array().expect("a list");
        let found = tools.iter().find(|tool| tool["class"] == "gone");
        let found = found.unwrap_or_else(|| panic!("one is gone: {report}"));
        assert_eq!(found["path"], format!("/time/{gone}"));
        let finding = &found["findings"][0];
        assert_eq!(
            (&finding["rule"], &finding["new"]),
            (
                &json!("tool-moved"),
                &json!({"source": "/memory", "path": format!("/memory/{gone}")})
            )
        );
        assert_eq!(report["summary"]["added"], 1);
    }
}

/// Seconds of processor time, as `times` of the shell shows them: `0m1.25s`.
fn seconds(shown: &str) -> f64 {
    let (minutes, seconds) = shown.split_once('m').expect("minutes");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    number(minutes) * 60.0 + number(seconds.trim_end_matches('s'))
}

#[test]
fn check_of_all_recorded_tools_ends_within_seconds() {
    let mut recordings = recordings();
    // Every schema has to be compared, and every call proven valid.
    for tool in recordings
        .values_mut()
        .flat_map(|one| tools(one).iter_mut())
    {
        tool["inputSchema"]["properties"]["one_more"] = json!({"type": "string"});
    }
    let changed = folder(&recordings, Value::to_string);
    let lock = committed().join("config.lock.json");
    fs::copy(lock, changed.path().join("config.lock.json")).expect("copied");
    for (folder, found) in [
        (committed(), "summary: 1455 same"),
        (changed.path(), "0 same, 1455 compatible"),
    ] {
        let check = Run::new(&binary("broker-gen"))
            .args([Path::new("check"), Path::new("--config")])
            .args([folder.join("config.json")])
            .through("/bin/sh", &["-c", "\"$0\" \"$@\" >&2; times"])
            .output();
        assert!(check.stderr.contains(found), "{found}: {}", check.stderr);
        // The time of the program and of the servers that it started and awaited.
        let used: f64 = check.stdout.split_whitespace().map(seconds).sum();
        assert!(used < 30.0, "{used} s of processor time");
    }
}
