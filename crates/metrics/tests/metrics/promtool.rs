//! The text and the files of `deploy`, read by the programs of Prometheus. `tests/proxies/install` installs them.

use std::fs;
use std::path::Path;

use broker_metrics::{Format, OutcomeClass};
use broker_model::item::ItemKind;
use harness::{Output, Run};
use tempfile::TempDir;

use crate::stage::{Names, call, full_state, text};
use crate::workspace;

/// Runs `promtool` in a folder; `input` is a file there for its standard input.
fn promtool(folder: &Path, args: &str, input: Option<&str>) -> Output {
    let input = input.unwrap_or("/dev/null");
    let command = format!("promtool {args} < {input}");
    let output = Run::new("/bin/sh".as_ref())
        .folder(folder)
        .args(["-c", &command])
        .output();
    assert_ne!(
        output.code,
        Some(127),
        "tests/proxies/install installs promtool"
    );
    output
}

/// Returns texts of scrapes in a format: with plain names, and with names that must be escaped.
fn texts(format: Format) -> [String; 2] {
    let odd = |name: &str| format!("{name} \"a\"\\b\n{{c=\"d\"}} ü");
    [Names::new(3, 8, str::to_owned), Names::new(3, 8, odd)].map(|names| {
        let metrics = names.metrics();
        for (tool, (.., kind)) in (0..).zip(&names.tools) {
            metrics.call_ended(call(tool, *kind, OutcomeClass::Ok, 15));
        }
        text(&metrics, format, full_state(3))
    })
}

#[test]
fn promtool_accepts_the_text_of_prometheus_without_a_remark() {
    let folder = TempDir::new().expect("a folder");
    for text in texts(Format::Prometheus) {
        fs::write(folder.path().join("metrics"), text).expect("it is written");
        let output = promtool(folder.path(), "check metrics", Some("metrics"));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    }
}

#[test]
fn prometheus_reads_the_text_of_openmetrics() {
    let folder = TempDir::new().expect("a folder");
    for text in texts(Format::OpenMetrics) {
        // A file of history has times, as a scrape does not.
        let lines = text.lines().map(|line| match line.starts_with('#') {
            true => format!("{line}\n"),
            false => format!("{line} 1700000000\n"),
        });
        let file = folder.path().join("metrics");
        fs::write(file, lines.collect::<String>()).expect("it is written");
        let verb = "tsdb create-blocks-from openmetrics metrics blocks";
        let output = promtool(folder.path(), verb, None);
        assert_eq!(output.code, Some(0), "{output:?}");
    }
}

#[test]
fn text_that_is_damaged_is_refused_by_promtool() {
    let folder = TempDir::new().expect("a folder");
    let metrics = Names::new(1, 1, str::to_owned).metrics();
    metrics.call_ended(call(0, ItemKind::Tool, OutcomeClass::Ok, 15));
    let text = text(&metrics, Format::Prometheus, full_state(1));
    let line = "mcp_broker_sessions 2\n";
    assert!(text.contains(line));
    for damaged in [
        text.replace(line, "mcp_broker_sessions two\n"),
        text.replace(line, "mcp_broker_sessions{a=\"\"\"} 2\n"),
    ] {
        fs::write(folder.path().join("metrics"), damaged).expect("it is written");
        let output = promtool(folder.path(), "check metrics", Some("metrics"));
        assert_ne!(output.code, Some(0));
    }
}

#[test]
fn alert_rules_are_valid_and_pass_their_tests() {
    let folder = workspace().join("deploy");
    for args in [
        "check rules --lint-fatal alerts.rules.yml",
        "test rules alerts.test.yml",
    ] {
        let output = promtool(&folder, args, None);
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("the file is there");
    let (rules, tests) = (read("alerts.rules.yml"), read("alerts.test.yml"));
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        // A time at which it is silent, and one at which it fires.
        let asked: Vec<_> = tests
            .split(&format!("alertname: {alert}\n"))
            .skip(1)
            .collect();
        let fires = |rest: &&&str| rest.trim_start().starts_with("exp_alerts:");
        let firing = asked.iter().filter(fires).count();
        assert!(
            firing > 0 && firing < asked.len(),
            "{alert} has no test of both"
        );
    }
}
