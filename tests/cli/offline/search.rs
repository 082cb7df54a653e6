//! `search`: the tools that callers find, and why.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::{config, write_lock};

/// A lock with three tools, of which one has the text of a hostile server.
fn bench(members: &Value) -> Bench {
    let bench = Bench::new();
    let tool = |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    let tools = [
        tool("list_pods", "Lists the pods of a kubernetes cluster."),
        tool(
            "delete_pod",
            "Deletes a pod.\u{1b}[2J It cannot be restored.",
        ),
        tool("send_mail", "Sends a mail to a person."),
    ];
    let mut config = config(json!({}));
    for (key, value) in members.as_object().expect("members") {
        config[key] = value.clone();
    }
    write_lock(&bench, "c", &config, &tools);
    bench
}

fn found(bench: &Bench, args: &[&str]) -> Value {
    let command = ["search", "--config", "c.json", "--json"];
    let text = bench.fine(&[&command, args].concat());
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn search_prints_the_best_tools_first() {
    let bench = bench(&json!({}));
    let command = ["search", "--config", "c.json", "delete pod"];
    let text = bench.fine(&[&command[..], &["--limit", "2"]].concat());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("1.00  /a/delete_pod  Deletes"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let answer = found(&bench, &["delete pod"]);
    assert_eq!(answer["query"], "delete pod");
    assert_eq!(answer["hits"][0]["path"], "/a/delete_pod");
    assert_eq!(answer["hits"][0].get("explanation"), None);
}

#[test]
fn explanation_names_the_origin_of_each_word() {
    let bench = bench(&json!({}));
    let command = ["search", "--config", "c.json", "--explain", "--limit", "1"];
    let text = bench.fine(&[&command[..], &["list podz k8s whale"]].concat());
    contains(
        &text,
        &[
            "1.00  /a/list_pods  Lists",
            "stem `list`, in 1 tool",
            "corrected to `pod`, in 2 tools",
            "stands for `kubernet`, in 1 tool",
            "no tool has it",
            "of the best sum of words",
            "between the farthest and the nearest tool",
        ],
    );
}

#[test]
fn explained_parts_add_up_to_the_score() {
    for table in [true, false] {
        let bench = bench(&json!({"search": {"table": table}}));
        let answer = found(&bench, &["--explain", "list kubernetes pods"]);
        let hits = answer["hits"].as_array().expect("a list");
        assert!(!hits.is_empty(), "{answer}");
        let sum = |hit: &Value| -> f64 {
            let words = hit["explanation"]["words"].as_array().expect("a list");
            words.iter().map(|word| number(&word["part"])).sum()
        };
        let best = hits.iter().map(sum).fold(0.0, f64::max);
        for hit in hits {
            let explanation = &hit["explanation"];
            let words = sum(hit) / best;
            assert!((words - number(&explanation["words_score"])).abs() < 1e-9);
            let score = match table {
                true => words / 2.0 + number(&explanation["similarity"]) / 2.0,
                false => words,
            };
            assert_eq!(explanation["cosine"].is_null(), !table);
            assert!((score - number(&explanation["score"])).abs() < 1e-9);
            assert!((score - number(&hit["score"])).abs() <= 0.005 + 1e-9);
        }
    }
}

#[test]
fn search_without_a_hit_says_so() {
    let bench = bench(&json!({"search": {"table": false}}));
    let text = bench.fine(&["search", "--config", "c.json", "unicorns"]);
    assert_eq!(
        text,
        "none of 3 tools was found\nweak: neither the words nor the meaning of the best tool are near\n"
    );
    assert_eq!(
        found(&bench, &["unicorns"]),
        json!({"query": "unicorns", "hits": [], "weak": true})
    );
}

#[test]
fn query_and_limit_outside_the_bounds_are_refused() {
    let bench = bench(&json!({}));
    let long = "x".repeat(401);
    for (args, message) in [
        (&["search", "!?"][..], "expected 1 to 400 characters"),
        (&["search", &long], "expected 1 to 400 characters"),
        (&["search", "x", "--limit", "0"], "a number from 1 to 50"),
        (&["search", "x", "--limit", "51"], "a number from 1 to 50"),
    ] {
        let output = bench.run(args);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        contains(&output.stderr, &[message]);
    }
}
