//! The sources as a table of 80 columns. Long paths and causes of failures have separate lines.

use std::time::SystemTime;

use broker_model::SourceCause;
use serde_json::Value;

use super::age::{age, until};
use super::shown;
use broker_model::terminal::Text;
use broker_model::text;
use broker_terminal::{Layout as _, WIDTH, columns, middle};

const HEAD: [&str; 8] = [
    "PATH",
    "STATE",
    "SINCE",
    "TOOLS",
    "WITHDRAWN",
    "CALLS",
    "FAILURES",
    "RESTARTS",
];
/// Columns between two columns.
const GAP: usize = 2;

/// The table; `now` is when it is shown.
pub(super) fn render(sources: &[Value], now: SystemTime) -> Text {
    let rows: Vec<[String; 8]> = sources.iter().map(|source| row(source, now)).collect();
    let mut widths = HEAD.map(|title| title.len());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row).skip(1) {
            *width = (*width).max(columns(cell));
        }
    }
    let others: usize = widths[1..].iter().map(|width| width + GAP).sum();
    let room = WIDTH.saturating_sub(others).max(HEAD[0].len());
    let fitting = rows
        .iter()
        .map(|row| columns(&row[0]))
        .filter(|width| *width <= room);
    widths[0] = fitting.max().unwrap_or_default().max(HEAD[0].len());

    let mut out = Text::new();
    line(&mut out, &HEAD.map(str::to_owned), &widths);
    for (source, row) in sources.iter().zip(rows) {
        let [path, rest @ ..] = row;
        if columns(&path) > widths[0] {
            out.push(text!("{}\n", middle(&path, WIDTH)));
            let mut cells = HEAD.map(|_| String::new());
            cells[1..].clone_from_slice(&rest);
            line(&mut out, &cells, &widths);
        } else {
            let mut cells = HEAD.map(|_| path.clone());
            cells[1..].clone_from_slice(&rest);
            line(&mut out, &cells, &widths);
        }
        below(&mut out, source, now);
    }
    out
}

fn row(source: &Value, now: SystemTime) -> [String; 8] {
    let counters = &source["counters"];
    // Without its secret, a broker shows only states.
    let path = source["path"]
        .as_str()
        .map_or_else(|| "-".to_owned(), |_| shown(&source["path"], 512));
    [
        path,
        shown(&source["state"], 10),
        source["since"]
            .as_str()
            .map_or_else(|| "-".to_owned(), |since| age(since, now)),
        count(&source["tools"]),
        count(&source["withdrawn"]),
        count(&counters["calls"]),
        count(&counters["failures"]),
        count(&counters["restarts"]),
    ]
}

/// `1234`, `12k`, `1.2M`: at most five characters.
fn count(value: &Value) -> String {
    match value.as_u64() {
        None => "-".to_owned(),
        Some(few @ 0..10_000) => few.to_string(),
        Some(many @ 0..1_000_000) => format!("{}k", many / 1000),
        Some(many @ 0..100_000_000) => format!("{}.{}M", many / 1_000_000, many / 100_000 % 10),
        Some(many) => format!("{}M", many / 1_000_000),
    }
}

fn line(out: &mut Text, cells: &[String; 8], widths: &[usize; 8]) {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let gap = " ".repeat(if at == 0 { 0 } else { GAP });
        let fill = " ".repeat(width.saturating_sub(columns(cell)));
        // Names are aligned left, numbers right.
        if at < 2 {
            line.extend([&gap, cell, &fill].map(String::as_str));
        } else {
            line.extend([&gap, &fill, cell].map(String::as_str));
        }
    }
    out.push(text!("{}\n", line.trim_end()));
}

/// Adds the reason why a source is down, its parts that are not served, the time of the next attempt, and the number of
/// its processes that are up.
fn below(out: &mut Text, source: &Value, now: SystemTime) {
    if let Some(code) = source["cause"].as_str() {
        let known = SourceCause::ALL.iter().find(|known| known.as_str() == code);
        let meaning = known.map_or_else(String::new, |known| {
            format!(": {} {}", known.cause(), known.remedy())
        });
        out.wrap(
            "  cause: ",
            "    ",
            &format!("{}{meaning}", shown(&source["cause"], 60)),
        );
    }
    answers(out, source, now);
    withdrawn_tools(out, source);
    listing_notes(out, source);
    let instances = members(source, "instances");
    // A ready process has one only during a pause.
    let is_ready = source["state"] == "ready";
    let next = instances
        .iter()
        .filter(|one| (one["state"] == "ready") == is_ready)
        .filter_map(|one| one["next_attempt"].as_str())
        .min();
    if let Some(next) = next {
        let name = match is_ready {
            true => "  pause that the server asked for: ends ",
            false => "  next attempt: ",
        };
        out.wrap(name, "    ", &until(next, now));
    }
    if instances.len() > 1 {
        let ready = instances
            .iter()
            .filter(|one| one["state"] == "ready")
            .count();
        let text = format!("{ready} of {} ready", instances.len());
        out.wrap("  processes: ", "    ", &text);
    }
}

/// Adds when the source last answered a call, its failures in a row since, and the time of its calls.
fn answers(out: &mut Text, source: &Value, now: SystemTime) {
    let mut parts = Vec::new();
    if let Some(last_ok) = source["last_ok"].as_str() {
        parts.push(format!("the last one {} ago", age(last_ok, now)));
    }
    match source["counters"]["consecutive_failures"].as_u64() {
        None | Some(0) => {}
        Some(failures) => parts.push(format!("failures in a row: {failures}")),
    }
    let latency = &source["latency_ms"];
    if let (Some(p50), Some(p99)) = (latency["p50"].as_u64(), latency["p99"].as_u64()) {
        parts.push(format!("p50 {p50} ms, p99 {p99} ms"));
    }
    if !parts.is_empty() {
        out.wrap("  answers: ", "    ", &parts.join("; "));
    }
}

/// Names the withdrawn tools with their class and rules.
fn withdrawn_tools(out: &mut Text, source: &Value) {
    let tools = members(source, "withdrawn_tools");
    for tool in tools {
        let rules = members(tool, "rules").iter().map(|rule| shown(rule, 60));
        let rules = rules.collect::<Vec<_>>().join(", ");
        let text = format!(
            "`{}`: {} ({rules})",
            shown(&tool["path"], 512),
            shown(&tool["class"], 20)
        );
        out.wrap("  withdrawn: ", "    ", &text);
    }
    // A broker of an older version counts its withdrawn tools only.
    if !tools.is_empty() {
        count_more(out, "  withdrawn: ", &source["withdrawn"], tools);
    }
}

/// Says how many of `all` parts are not among the `named`.
fn count_more(out: &mut Text, name: &'static str, all: &Value, named: &[Value]) {
    let all = all.as_u64().unwrap_or_default();
    if let Some(more @ 1..) = all.checked_sub(named.len() as u64) {
        out.wrap(name, "    ", &format!("{more} more"));
    }
}

fn members<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// Shows the parts of the latest listing that are not used, and its warnings.
fn listing_notes(out: &mut Text, source: &Value) {
    let parts = members(source, "left_out");
    for part in parts {
        let kind = shown(&part["kind"], 20);
        let name = match part["name"].is_string() {
            true => format!("`{}`", shown(&part["name"], 120)),
            false => "without a name".to_owned(),
        };
        let place = match part["place"].is_string() {
            true => format!(" at `{}`", shown(&part["place"], 120)),
            false => String::new(),
        };
        let [reason, code, remedy] =
            ["reason", "code", "remedy"].map(|member| shown(&part[member], 300));
        let text = format!("{kind} {name}{place}: {reason} ({code}); {remedy}");
        out.wrap("  left out: ", "    ", &text);
    }
    count_more(out, "  left out: ", &source["left_out_count"], parts);
    for warning in members(source, "warnings") {
        out.wrap("  warning: ", "    ", &shown(warning, 300));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::{Duration, UNIX_EPOCH};

    fn source(path: &str, state: &str, cause: Option<&str>, calls: u64) -> Value {
        json!({
            "path": path, "state": state, "cause": cause, "since": "1970-01-01T00:00:00Z",
            "tools": 5, "withdrawn": 0,
            "counters": {"calls": calls, "failures": calls / 2, "restarts": 3},
            "instances": [{"state": state, "next_attempt": "1970-01-01T00:03:20Z"}],
        })
    }

    #[test]
    fn status_table_fits_80_columns_and_is_escaped() {
        let long = format!("/{}", "segment/".repeat(12));
        let sources = [
            source("/a", "ready", None, 1_234_567),
            source(&long, "withdrawn", None, 99_999_000_000),
            source("/b", "backoff", Some("exited"), 0),
            source("/漢字🦀", "ready", None, 1),
            source("/c\u{1b}[31m", "failed", Some("no\u{202e}such"), 0),
            json!({"state": "ready"}),
        ];
        let table = render(&sources, UNIX_EPOCH + Duration::from_secs(180));
        let table = table.as_str();
        assert!(table.lines().all(|line| columns(line) <= WIDTH), "{table}");
        assert!(!table.contains(['\u{1b}', '\u{202e}']), "{table}");
        for part in [
            "/a ",
            "  1.2M  ",
            "  3m  ",
            "  cause: exited: The process ended",
            "  next attempt: in 20s",
            "  pause that the server asked for: ends in 20s",
            "…",
        ] {
            assert!(table.contains(part), "{part:?} in\n{table}");
        }
    }

    #[test]
    fn status_names_the_withdrawn_tools_and_counts_the_rest() {
        let mut degraded = source("/a", "ready", None, 1);
        degraded["withdrawn"] = json!(3);
        degraded["withdrawn_tools"] = json!([{"path": "/a/b\u{1b}", "class": "breaking", "rules": ["type-narrowed", "gone"]}]);
        let table = render(&[degraded], UNIX_EPOCH);
        let lines: Vec<_> = table.as_str().lines().skip(2).take(2).collect();
        assert_eq!(
            lines,
            [
                "  withdrawn: `/a/b\\u{1b}`: breaking (type-narrowed, gone)",
                "  withdrawn: 2 more"
            ]
        );
    }

    #[test]
    fn status_table_shows_a_long_path_on_a_separate_line() {
        let path = "/company/engineering/tools";
        let table = render(&[source(path, "ready", None, 1)], UNIX_EPOCH);
        let table = table.as_str();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[1], path);
        assert!(lines[2].trim_start().starts_with("ready "), "{table}");
        assert!(lines.iter().all(|line| columns(line) <= WIDTH), "{table}");
    }
}
