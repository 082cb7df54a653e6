//! Spellings of a URI that Node, Python or Java reads as an excluded or denied one: a committed table has their readings.

use std::path::Path;

use serde_json::{Value, json};

use super::{Items, session};

/// The rows of the table that `make_table.py` beside it wrote.
fn table() -> Vec<Value> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/model/src/uri_spellings/table.json");
    let text = std::fs::read_to_string(file).expect("the table is committed");
    serde_json::from_str(&text).expect("the table is JSON")
}

fn text<'a>(row: &'a Value, member: &str) -> &'a str {
    row[member].as_str().expect("a text")
}

/// The excluded URIs, each once.
fn excluded(rows: &[Value]) -> Vec<&str> {
    let mut uris: Vec<&str> = rows.iter().map(|row| text(row, "excluded")).collect();
    uris.sort_unstable();
    uris.dedup();
    uris
}

/// Reads each spelling, and compares what reaches the server with the table.
fn read_each(items: &Items, rows: &[Value]) {
    let broker = items.serve();
    let session = session(&broker);
    let (mut refused, mut served) = (0, 0);
    for row in rows {
        let (spelling, is_other) = (
            text(row, "spelling"),
            text(row, "differs").starts_with("another"),
        );
        let is_same = !row["same"].as_array().expect("programs").is_empty();
        if !is_same && !is_other {
            continue;
        }
        let before = items.requests().len();
        let answer = session
            .ask(&json!(1), "resources/read", &json!({"uri": spelling}))
            .json();
        let reached = items.requests().len() - before;
        match is_other {
            true => {
                assert!(answer["error"].is_null(), "{row}: {answer}");
                served += 1;
            }
            false => {
                assert_eq!(answer["error"]["code"], -32002, "{row}: {answer}");
                refused += 1;
            }
        }
        assert_eq!(reached, usize::from(is_other), "{row}");
    }
    assert!(refused >= 60 && served >= 10, "{refused} {served}");
}

#[test]
fn excluded_uri_is_refused_in_every_spelling_that_a_program_reads_as_it() {
    let rows = table();
    let lists = json!({"templates": [{"uriTemplate": "{+uri}", "name": "any"}]});
    let excluded = excluded(&rows).into_iter().map(|uri| format!("!{uri}"));
    let filter: Vec<String> = std::iter::once("*".to_owned()).chain(excluded).collect();
    read_each(
        &Items::new(&lists, &json!({"resource_filter": filter})),
        &rows,
    );
}

#[test]
fn denied_resource_is_refused_in_every_spelling_that_a_program_reads_as_it() {
    let rows = table();
    let resources = excluded(&rows).into_iter().enumerate();
    let resources: Vec<Value> = resources
        .map(|(at, uri)| json!({"uri": uri, "name": format!("r{at}")}))
        .collect();
    let lists =
        json!({"resources": resources, "templates": [{"uriTemplate": "{+uri}", "name": "any"}]});
    let items = Items::new(
        &lists,
        &json!({"resources": "locked", "resource_filter": ["*"]}),
    );
    let mut config: Value = serde_json::from_str(&items.0.read("c.json")).expect("JSON");
    config["access"] = json!({
        "groups": ["some"],
        "anonymous": ["some"],
        "rules": [{"to": ["some"], "allow": ["/a/any"]}]
    });
    items.0.write("c.json", &config.to_string());
    read_each(&items, &rows);
}
