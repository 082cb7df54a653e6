//! The bounds of a scrape: its series and its bytes, whatever callers and servers send, and however long names are.

use std::collections::BTreeSet;
use std::time::Duration;

use broker_metrics::{
    DRIFT_CLASSES, EndedCall, Format, MAX_OTHER_SERIES, MAX_SOURCES, MAX_TOOL_SERIES, Method,
    OutcomeClass, ScrapedState, Side, SourceState,
};
use broker_model::item::ItemKind;
use harness::faults::scaled;

use crate::scrape::{Scrape, Series};
use crate::stage::{Names, call, full_state, outcomes, scrape, text};

/// The maximum size of a scrape of 2 000 tools.
const MAX_BYTES: usize = 16 << 20;
/// The number of events of the test with random events.
const EVENTS: (&str, usize) = ("MCP_BROKER_METRIC_EVENTS", 2_000);

/// Lets everything happen that the metrics count, and that a scrape reads.
fn scrape_everything(names: &Names) -> String {
    let metrics = names.metrics();
    // Counts of eleven digits: years of calls.
    let long = Duration::from_nanos(1_234_567_890_123_456_789);
    for side in [Side::Server, Side::Client] {
        for (tool, (.., kind)) in (0..).zip(&names.tools) {
            for outcome in outcomes() {
                metrics.call_ended(EndedCall {
                    side,
                    result_bytes: 12_345_678_901,
                    ..call(tool, *kind, outcome, 5)
                });
            }
            metrics.call_ended(EndedCall {
                side,
                duration: long,
                ..call(tool, *kind, OutcomeClass::Ok, 5)
            });
        }
        for method in Method::ALL {
            for outcome in outcomes() {
                metrics.call_ended(EndedCall {
                    tool: None,
                    side,
                    method: *method,
                    ..call(0, ItemKind::Tool, outcome, 5)
                });
            }
        }
    }
    for class in DRIFT_CLASSES {
        metrics.drift_found(class, 1);
    }
    let state = full_state(names.sources.len());
    text(&metrics, Format::OpenMetrics, state)
}

/// Returns the number of series of each tool, and of everything else.
fn counts(names: &Names, scrape: &Scrape) -> (usize, usize) {
    // Labels with the name of a tool: what no other series has.
    let is_of_tool = |series: &Series| {
        let label = |key| series.labels.get(key).map(String::as_str);
        let source = label("mcp_broker_source").is_some();
        source || label("tool").is_some_and(|tool| tool != "_unknown")
    };
    let of_tools = scrape.series.keys().filter(|series| is_of_tool(series));
    let of_tools = of_tools.count();
    assert_eq!(of_tools % names.tools.len(), 0, "each tool has the same");
    (of_tools / names.tools.len(), scrape.series.len() - of_tools)
}

#[test]
fn tool_has_at_most_40_series_and_everything_else_2000() {
    assert_eq!((MAX_TOOL_SERIES, MAX_OTHER_SERIES), (40, 2000));
    for sources in [1, MAX_SOURCES, MAX_SOURCES + 1, 500] {
        let names = Names::new(sources, 500, str::to_owned);
        let scrape = Scrape::read(&scrape_everything(&names));
        let (of_tool, others) = counts(&names, &scrape);
        assert_eq!(of_tool, MAX_TOOL_SERIES);
        assert!(
            others <= MAX_OTHER_SERIES,
            "{others} with {sources} sources"
        );
        if sources > MAX_SOURCES {
            assert!(
                others > MAX_OTHER_SERIES - 100,
                "{others}: sources could be shown"
            );
        }
    }
}

#[test]
fn scrape_of_2000_tools_has_at_most_16_mib() {
    let plain = Names::new(40, 2000, str::to_owned);
    let long = Names::new(40, 2000, |name| format!("{name}{}", "_long".repeat(90)));
    // Each of these bytes is escaped as two.
    let escaped = Names::new(2000, 2000, |name| format!("{name}{}", "\"".repeat(200)));
    for names in [plain, long, escaped] {
        let text = scrape_everything(&names);
        assert!(text.len() <= MAX_BYTES, "{} bytes", text.len());
        let (of_tool, others) = counts(&names, &Scrape::read(&text));
        assert_eq!(of_tool, MAX_TOOL_SERIES, "cut names are unique");
        assert!(others <= MAX_OTHER_SERIES);
    }
}

#[test]
fn names_are_cut_only_where_a_scrape_would_be_too_large() {
    let pad = |name: &str| format!("{}/{}", "/long".repeat(60), &name[1..]);
    let path = pad("/source_0/tool_0");
    for (tools, is_cut) in [(200, false), (2000, true)] {
        let names = Names::new(5, tools, pad);
        let metrics = names.metrics();
        metrics.call_ended(call(0, ItemKind::Tool, OutcomeClass::Ok, 5));
        let scrape = scrape(&metrics, ScrapedState::default());
        assert_eq!(scrape.with_value(&path) == 0, is_cut, "{tools} tools");
        let labels = scrape
            .series
            .keys()
            .filter_map(|series| series.labels.get("tool"));
        let labels: BTreeSet<&String> = labels.collect();
        assert!(
            labels.iter().all(|label| label.ends_with("tool_0")),
            "the end tells tools apart: {labels:?}"
        );
    }
    let typical = Names::new(20, 2000, |name| name.replace("tool", "create_a_pull"));
    let metrics = typical.metrics();
    metrics.call_ended(call(0, ItemKind::Tool, OutcomeClass::Ok, 5));
    let scrape = scrape(&metrics, ScrapedState::default());
    assert!(scrape.with_value("/source_0/create_a_pull_0") > 0);
}

#[test]
fn sources_beyond_the_maximum_are_counted_together() {
    let sources = MAX_SOURCES + 6;
    let names = Names::new(sources, sources, str::to_owned);
    let metrics = names.metrics();
    for (tool, (.., kind)) in (0..).zip(&names.tools) {
        metrics.call_ended(call(tool, *kind, OutcomeClass::Abandoned, 5));
    }
    let scrape = scrape(&metrics, full_state(sources));
    let of = |name: &str, source: &str| scrape.value(&format!("{name}{{source=\"{source}\"}}"));
    assert_eq!(of("mcp_broker_queue_depth", "_other"), Some(12.0));
    let depth = |source: usize| of("mcp_broker_queue_depth", &format!("/source_{source}"));
    assert_eq!(depth(MAX_SOURCES - 1), Some(2.0));
    assert_eq!(depth(MAX_SOURCES), None);
    let restarts = (MAX_SOURCES..sources).sum::<usize>();
    let others = of("mcp_broker_source_restarts_total", "_other");
    assert_eq!(others, Some(restarts as f64));
    let abandoned = of("mcp_broker_calls_abandoned_total", "_other");
    assert_eq!(abandoned, Some(6.0));
    for state in SourceState::ALL {
        let state = state.as_str();
        let series = format!("mcp_broker_source_state{{source=\"_other\",state=\"{state}\"}}");
        assert_eq!(scrape.value(&series), Some(1.0), "{state}");
    }
}

/// A generator of numbers (xorshift): the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns one of some names, a variant of it, or a random name.
    fn name(&mut self, known: &[&str]) -> String {
        let name = known[self.below(known.len())];
        match self.below(3) {
            0 => name.to_owned(),
            1 => format!("{name}{}", self.next()),
            _ => format!("\"}} {:x}\n", self.next()),
        }
    }
}

#[test]
fn random_methods_codes_names_and_versions_make_no_series() {
    let names = Names::new(20, 300, str::to_owned);
    let metrics = names.metrics();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let methods: Vec<_> = Method::ALL.iter().map(|method| method.as_str()).collect();
    let codes: Vec<_> = broker_model::CallCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    let versions = ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"];
    let events = scaled(EVENTS.0, EVENTS.1);
    for _ in 0..events {
        let side = [Side::Server, Side::Client][random.below(2)];
        // A version or a name reaches the metrics only as a wrong method or class.
        let method = match random.below(4) {
            0 => random.name(&versions),
            _ => random.name(&methods),
        };
        let tool = [
            None,
            Some(random.next() as u32),
            Some(random.below(300) as u32),
        ];
        let tool = tool[random.below(3)];
        let outcome = match random.below(3) {
            0 => OutcomeClass::Ok,
            _ => OutcomeClass::from_code_name(&random.name(&codes)),
        };
        metrics.call_ended(EndedCall {
            tool,
            side,
            method: Method::from_name(&method),
            outcome,
            duration: Duration::from_nanos(random.next()),
            result_bytes: random.next() % 4096,
        });
        metrics.drift_found(&random.name(&DRIFT_CLASSES), 1);
    }
    let scrape = scrape(&metrics, full_state(20));
    let (all, most) = (
        scrape.series.len(),
        300 * MAX_TOOL_SERIES + MAX_OTHER_SERIES,
    );
    assert!(all <= most, "{all} series");
    let mut known: BTreeSet<String> = names.sources.iter().cloned().collect();
    known.extend(
        names
            .tools
            .iter()
            .flat_map(|(path, name, _)| [path.clone(), name.clone()]),
    );
    known.extend(methods.iter().chain(&codes).map(|name| (*name).to_owned()));
    known.extend(DRIFT_CLASSES.map(str::to_owned));
    known.extend(SourceState::ALL.map(|state| state.as_str().to_owned()));
    let fixed = [
        "_unknown",
        "pipe",
        "tcp",
        "ok",
        "tool_error",
        "refused",
        "failed",
        "limit",
        "used",
        "meta_tree",
        "meta_desc",
        "retrieve_tools",
        "spans",
        "audit_lines",
        "mcp-broker",
        "0.1.0",
        "sha256/1:0123",
    ];
    known.extend(fixed.map(str::to_owned));
    for series in scrape.series.keys() {
        let mut labels = series.labels.iter().filter(|(key, _)| *key != "le");
        assert!(labels.all(|(_, value)| known.contains(value)), "{series:?}");
    }
    let refused = scrape.value("mcp_broker_calls_refused_total{code=\"_other\"}");
    assert!(
        refused > Some(events as f64 / 10.0),
        "unknown codes are counted: {refused:?}"
    );
}
