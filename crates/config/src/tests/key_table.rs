//! The table of keys: a key is declared once, and readers, schema, page and narrowing agree with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::json_schema;
use crate::keys::{Key, Level, ROWS, Table, key, table};
use crate::narrow::{self, KnownTools};
use broker_model::json::to_review_text;
use serde_json::{Value, json};

/// A row that no program has.
const NEW_ROW: &str = "Search\tnew_key\tinteger\t1..9\t5\treload\tA new key.\n";

/// Returns the path of a file of the workspace.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// Returns the rows of keys, without levels and definitions.
fn keys(table: &Table) -> impl Iterator<Item = &Key> {
    let rows = table.rows.iter();
    rows.filter(|key| key.level != "=" && !key.name.is_empty())
}

#[test]
fn schema_of_the_config_is_the_committed_one() {
    let path = path("schemas/config.schema.json");
    let text = to_review_text(&json_schema::config());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &text).expect("writable");
    }
    let committed = std::fs::read_to_string(&path).expect("the schema");
    assert!(
        committed == text,
        "`UPDATE_EXPECT=1 cargo test -p broker-config key_`"
    );
}

#[test]
fn new_key_is_known_and_in_the_schema_and_on_its_page() {
    let table = Table::read(Box::leak(format!("{ROWS}{NEW_ROW}").into_boxed_str()));
    assert!(table.keys(Level::Search).contains(&"new_key"));
    let schema = json_schema::from_table(&table);
    assert_eq!(
        schema["definitions"]["Search"]["properties"]["new_key"],
        json!({"type": "integer", "minimum": 1, "maximum": 9, "description": "A new key. Default: 5."})
    );
    let row = "| `new_key` | integer, 1 to 9 | 5 | A new key. |\n";
    assert!(key_page::rows(&table, "Search").ends_with(row));
    let new = table.rows.last().unwrap();
    assert_eq!(new.numbers::<u64>(), 1..=9);
    assert_eq!((new.value::<u64>(), new.change), (5, "reload"));
    assert_eq!(sample(new), Some(json!(9)), "the tests below try it");
}

/// Returns a config in which a key has a value, or does not have it; `None` for a level within others.
fn config_with(key: &Key, value: Option<&Value>) -> Option<String> {
    let mut members = serde_json::Map::new();
    members.extend(value.map(|value| (key.name.to_owned(), value.clone())));
    let (mut top, mut source) = (json!({}), json!({"command": ["x"]}));
    let section = key.level.to_ascii_lowercase();
    match key.level {
        "Top" => top = json!(members),
        "Jobs" | "Limits" | "Mcp" | "Search" | "Surfaces" | "Telemetry" | "Trust" => {
            top = json!({section: members});
        }
        "Audit" => {
            members.entry("file").or_insert(json!("audit.jsonl"));
            top = json!({section: members});
        }
        "Source" => source.as_object_mut()?.extend(members),
        "Override" => source["tool_overrides"] = json!({"t": members}),
        _ => return None,
    }
    top["tree"] = json!([{"path": "/a", "source": source}]);
    Some(top.to_string())
}

/// Returns a value of a key that is not its default; `None` for a key that makes another source or section.
fn sample(key: &Key) -> Option<Value> {
    let others: BTreeMap<_, _> = [
        ("args", json!(["a"])),
        ("env", json!({"A": "1"})),
        ("inherit_env", json!(["A"])),
        ("cwd", json!("folder")),
        ("tool_filter", json!(["a"])),
        ("path_aliases", json!({"a": "b"})),
        ("resource_filter", json!(["file:///a"])),
        ("resource_aliases", json!({"file:///a": "b"})),
        ("prompt_filter", json!(["a"])),
        ("prompt_aliases", json!({"a": "b"})),
        ("volatile", json!(["/instructions"])),
        ("extensions", json!(["io.modelcontextprotocol/tasks"])),
        ("summary", json!("a text")),
        ("description", json!("a text")),
        ("example_args", json!({"a": 1})),
        ("annotations", json!({"readOnlyHint": true})),
        ("hints", json!(["a phrase"])),
        ("list_changed_exec", json!(["a"])),
        ("name", json!("a")),
        ("openai_model", json!("a")),
        ("hf_model", json!("a")),
        ("allowed_hosts", json!(["a"])),
        ("allowed_origins", json!(["https://a.example"])),
        ("trusted_proxies", json!(["10.0.0.1"])),
        ("public_url", json!("https://a.example")),
        ("audits_required", json!(true)),
        ("store", json!("jobs.sqlite")),
        ("file", json!("calls.jsonl")),
        ("key_file", json!("audit.key")),
        ("metrics_bind", json!("127.0.0.1:9464")),
    ]
    .into();
    if let Some(value) = others.get(key.name) {
        return Some(value.clone());
    }
    match key.kind {
        "boolean" => Some(json!(key.default != "true")),
        "integer" => Some(json!(key.numbers::<u64>().end())),
        "number" => Some(json!(key.numbers::<f64>().end())),
        _ => key.choices().last().map(|name| json!(name)),
    }
}

/// Keys whose values make another source or section, or that need another key; other tests have them.
const OTHERS: [&str; 31] = [
    "$schema",
    "tree",
    "mcpServers",
    "limits",
    "trust",
    "mcp",
    "search",
    "surfaces",
    "audit",
    "jobs",
    "telemetry",
    "access",
    "identities",
    "backend",
    "command",
    "url",
    "headers",
    "auth",
    "ca_file",
    "client_cert",
    "client_key",
    "allow_plain_http",
    "resources",
    "tool_overrides",
    "disabled",
    "hf_multilingual_model",
    "external",
    "embedder",
    "sensitive",
    "resource_aliases",
    "prompt_aliases",
];

/// Returns every key that can be tried alone, with a value.
fn tried() -> impl Iterator<Item = (&'static Key, Value)> {
    let alone = keys(table()).filter(|key| config_with(key, None).is_some());
    let alone = alone.filter(|key| !OTHERS.contains(&key.name));
    alone.map(|key| {
        (
            key,
            sample(key).unwrap_or_else(|| panic!("no value: {key:?}")),
        )
    })
}

#[test]
fn change_of_each_key_needs_what_the_table_says() {
    for (key, value) in tried() {
        let built = parse(&config_with(key, None).unwrap()).config;
        let given = parse(&config_with(key, Some(&value)).unwrap()).config;
        let known = |_: &_| KnownTools::default();
        let compared = narrow::compare(&built, &given, &known);
        let codes = compared.map_err(|found| found.iter().map(|one| one.code).collect::<Vec<_>>());
        let is_covered = built.digest() != given.digest();
        match key.change {
            "lock" | "names" => {
                assert!(is_covered, "{key:?}");
                assert!(codes.is_err(), "{key:?}");
            }
            "narrow" => assert!(is_covered && codes.is_ok(), "{key:?}: {codes:?}"),
            "build" => {
                assert_eq!(codes, Err(vec![Code::LockMismatch]), "{key:?}");
                assert!(!is_covered, "{key:?}");
            }
            _ => assert!(!is_covered && codes.is_ok(), "{key:?}: {codes:?}"),
        }
    }
}

#[test]
fn value_outside_the_range_of_each_key_is_refused_with_the_range() {
    let mut tried_keys = 0;
    for (key, _) in tried().filter(|(key, _)| matches!(key.kind, "integer" | "number")) {
        let (low, high) = key.bounds().unwrap();
        for value in [json!(-1), json!(1e15 as u64)] {
            let found = refused(&config_with(key, Some(&value)).unwrap());
            assert_eq!(found[0].code, Code::ConfigRange, "{key:?}");
            let message = &found[0].message;
            assert!(
                message.contains(low) && message.contains(high),
                "{key:?}: {message}"
            );
        }
        tried_keys += 1;
    }
    assert!(tried_keys > 15, "{tried_keys}");
}

#[test]
fn default_of_each_key_changes_nothing() {
    for (key, _) in tried() {
        let value = match key.kind {
            "boolean" | "integer" | "number" => serde_json::from_str(key.default).ok(),
            _ => key
                .choices()
                .find(|name| key.default == format!("`{name}`"))
                .map(|name| json!(name)),
        };
        let Some(value) = value else { continue };
        let [without, with] = [None, Some(&value)].map(|value| {
            let mut config = parse(&config_with(key, value).unwrap()).config;
            config.document = Default::default();
            format!("{config:?}")
        });
        assert_eq!(without, with, "{key:?}");
    }
}

#[test]
fn every_level_and_every_compiled_setting_is_in_the_table() {
    let built = parse(r#"{"tree":[]}"#).config;
    for row in keys(table()).filter(|key| matches!(key.level, "Mcp" | "Search")) {
        let is_built = row.change == "build";
        assert_eq!(narrow::setting(&built, row).is_some(), is_built, "{row:?}");
    }
    let level = |name: &str| key(Level::Source, name).level;
    assert_eq!((level("timeout"), level("nothing")), ("Source", ""));
}
