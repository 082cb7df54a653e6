//! The dashboard and the alert rules in `deploy`: each expression names metrics and labels that are exported.

use std::collections::BTreeSet;
use std::fs;

use broker_metrics::{FAMILIES, FamilyKind};
use serde_json::Value;

use crate::workspace;

/// Words of expressions that are neither metrics nor labels.
const WORDS: [&str; 12] = [
    "and",
    "bool",
    "by",
    "group_left",
    "group_right",
    "ignoring",
    "inf",
    "nan",
    "offset",
    "on",
    "or",
    "unless",
];
/// Labels that Prometheus adds.
const ADDED_LABELS: [&str; 3] = ["instance", "job", "le"];

fn read(name: &str) -> String {
    let file = workspace().join("deploy").join(name);
    fs::read_to_string(file).expect("the file is there")
}

/// Returns the names of all series.
fn exported() -> BTreeSet<String> {
    let names = FAMILIES.iter().flat_map(|family| {
        match family.kind {
            FamilyKind::Histogram => ["_bucket", "_sum", "_count"].map(str::to_owned).to_vec(),
            FamilyKind::Counter | FamilyKind::Gauge | FamilyKind::Info => vec![String::new()],
        }
        .into_iter()
        .map(|suffix| format!("{}{suffix}", family.name))
    });
    names.collect()
}

/// The names in an expression.
#[derive(Debug, Default, PartialEq)]
struct Names {
    metrics: BTreeSet<String>,
    labels: BTreeSet<String>,
}

impl Names {
    fn read(expression: &str) -> Self {
        let mut names = Self::default();
        // Every second part is the text between quotes.
        let code: String = expression.split('"').step_by(2).collect();
        let (mut rest, mut in_braces, mut labels_follow, mut in_list) =
            (code.as_str(), false, false, false);
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c: char| !c.is_alphanumeric() && !"_:$".contains(c));
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()).max(first.len_utf8()));
            match word {
                "{" => in_braces = true,
                "}" => in_braces = false,
                "[" => {
                    rest = after.split_once(']').expect("a duration ends").1;
                    continue;
                }
                "(" => (in_list, labels_follow) = (labels_follow, false),
                ")" => in_list = false,
                "by" | "without" | "on" | "ignoring" => labels_follow = true,
                _ if !first.is_alphabetic() || WORDS.contains(&word) => {}
                _ if in_braces || in_list => drop(names.labels.insert(word.to_owned())),
                _ if is_function(after.trim_start()) => {}
                _ => drop(names.metrics.insert(word.to_owned())),
            }
            rest = after;
        }
        names
    }

    /// Checks that they are exported.
    fn check(&self, expression: &str) {
        let exported = exported();
        let labels = FAMILIES.iter().flat_map(|family| family.labels).copied();
        let labels: BTreeSet<&str> = labels.chain(ADDED_LABELS).collect();
        assert!(!self.metrics.is_empty(), "no metric: {expression}");
        for metric in &self.metrics {
            assert!(exported.contains(metric), "`{metric}` in {expression}");
        }
        for label in &self.labels {
            assert!(labels.contains(label.as_str()), "`{label}` in {expression}");
        }
    }
}

/// Whether the text behind a word makes it a function or an aggregation.
fn is_function(after: &str) -> bool {
    ["(", "by ", "by(", "without ", "without("]
        .iter()
        .any(|begin| after.starts_with(begin))
}

/// Returns the expressions of the dashboard, with the titles of their panels.
fn dashboard() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read("grafana.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let expressions = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().expect("targets");
        let title = text(&panel["title"]);
        targets
            .iter()
            .map(move |target| (title.clone(), text(&target["expr"])))
    });
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables");
    let queries = variables
        .iter()
        .filter(|variable| variable["type"] == "query");
    let queries =
        queries.map(|variable| (text(&variable["name"]), text(&variable["query"]["query"])));
    let queries: Vec<_> = queries
        .map(|(name, query)| {
            // `label_values(METRIC, LABEL)` is a function of Grafana.
            let metric = query.split(['(', ',']).nth(1).expect("a metric");
            (name, metric.to_owned())
        })
        .collect();
    expressions.chain(queries).collect()
}

#[test]
fn names_of_an_expression_are_found() {
    let expression = "histogram_quantile(0.9, sum by (le, a) (rate(one_bucket{b=~\"two|$c\", d!=\"\"}[5m]))) > bool 2 and on(e) max without (f) (three) - time()";
    let names = Names::read(expression);
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let expected = Names {
        metrics: set(&["one_bucket", "three"]),
        labels: set(&["a", "b", "d", "e", "f", "le"]),
    };
    assert_eq!(names, expected);
}

#[test]
fn expressions_of_dashboard_and_alerts_name_exported_metrics() {
    let rules = read("alerts.rules.yml");
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    let alerts: Vec<String> = alerts.map(str::to_owned).collect();
    assert!(alerts.len() >= 8, "the rules were read");
    let panels = dashboard().into_iter().map(|(_, expression)| expression);
    for expression in alerts.into_iter().chain(panels) {
        Names::read(&expression).check(&expression);
    }
}

#[test]
fn dashboard_has_a_panel_for_each_subject() {
    let panels = dashboard();
    for (title, metric) in [
        ("Calls by outcome", "mcp_broker_calls_total"),
        ("p50", "mcp_server_operation_duration_seconds_bucket"),
        ("p95", "mcp_server_operation_duration_seconds_bucket"),
        ("p99", "mcp_server_operation_duration_seconds_bucket"),
        ("by code", "mcp_broker_calls_refused_total"),
        ("Drift", "mcp_broker_drift_findings_total"),
        ("withdrawn", "mcp_broker_tools_withdrawn"),
        ("Queues", "mcp_broker_queue_depth"),
        ("Audit lag", "mcp_broker_audit_lag_lines"),
    ] {
        let has =
            |(of, expression): &(String, String)| of.contains(title) && expression.contains(metric);
        assert!(panels.iter().any(has), "{title}: {metric}");
    }
}
