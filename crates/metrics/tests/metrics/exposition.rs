//! The series of a scrape: when each appears, what it counts, and the whole text in both formats.

use std::path::Path;
use std::thread;

use broker_metrics::{DRIFT_CLASSES, EndedCall, Format, Method, OutcomeClass, ScrapedState, Side};
use broker_model::CallCode;
use broker_model::item::ItemKind;

use crate::stage::{Names, call, full_state, scrape, text};

#[test]
fn series_of_a_tool_appear_with_its_first_call() {
    let metrics = Names::new(2, 8, str::to_owned).metrics();
    let before = scrape(&metrics, ScrapedState::default());
    assert_eq!(before.with_value("/source_0/tool_0"), 0);
    metrics.call_ended(call(0, ItemKind::Tool, OutcomeClass::Ok, 15));
    let after = scrape(&metrics, ScrapedState::default());
    assert_eq!(after.with_value("/source_0/tool_0"), 17 + 4 + 2);
    assert_eq!(after.with_value("/source_0/tool_4"), 0);
    assert_eq!(after.series.len(), before.series.len() + 17 + 4 + 2);
    for outcome in ["tool_error", "refused", "failed"] {
        let series = format!(
            "mcp_broker_calls_total{{source=\"/source_0\",tool=\"/source_0/tool_0\",outcome=\"{outcome}\"}}"
        );
        assert_eq!(after.value(&series), Some(0.0), "a rate begins at zero");
    }
}

#[test]
fn scrape_has_the_stored_text_in_both_formats() {
    let metrics = Names::new(2, 4, str::to_owned).metrics();
    for (tool, kind) in (0..).zip(ItemKind::ALL) {
        for (outcome, millis) in [
            (OutcomeClass::Ok, 15),
            (OutcomeClass::ToolError, 400_000),
            (OutcomeClass::from_code(CallCode::ArgsInvalid), 1),
            (OutcomeClass::from_code(CallCode::CallTimeout), 30_000),
            (OutcomeClass::Abandoned, 70),
        ] {
            metrics.call_ended(call(tool, kind, outcome, millis));
        }
        metrics.call_ended(EndedCall {
            side: Side::Client,
            ..call(tool, kind, OutcomeClass::Ok, 12)
        });
    }
    metrics.call_ended(EndedCall {
        tool: None,
        method: Method::ListTools,
        ..call(0, ItemKind::Tool, OutcomeClass::Ok, 2)
    });
    metrics.request_refused(CallCode::Unauthorized);
    metrics.drift_found("breaking", 2);
    for (format, name) in [
        (Format::Prometheus, "prometheus.txt"),
        (Format::OpenMetrics, "openmetrics.txt"),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metrics/golden");
        let text = text(&metrics, format, full_state(2));
        harness::assert_expected(&folder.join(name), &text);
    }
}

#[test]
fn formats_have_the_same_series_and_types() {
    let metrics = Names::new(3, 12, str::to_owned).metrics();
    metrics.call_ended(call(0, ItemKind::Tool, OutcomeClass::Ok, 15));
    let prometheus = scrape(&metrics, full_state(3));
    let open_metrics = text(&metrics, Format::OpenMetrics, full_state(3));
    assert!(open_metrics.ends_with("\n# EOF\n"));
    let open_metrics = crate::scrape::Scrape::read(&open_metrics);
    assert_eq!(prometheus.series, open_metrics.series);
    assert_eq!(prometheus.types["mcp_broker_calls_total"], "counter");
    assert_eq!(open_metrics.types["mcp_broker_calls"], "counter");
    assert_eq!(prometheus.types["target_info"], "gauge");
    assert_eq!(open_metrics.types["target"], "info");
}

#[test]
fn client_chooses_the_format_by_its_accept_header() {
    for (accept, format) in [
        ("", Format::Prometheus),
        ("text/plain;version=0.0.4", Format::Prometheus),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            Format::OpenMetrics,
        ),
        (
            "application/openmetrics-text; version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format::OpenMetrics,
        ),
        (
            "text/plain, application/openmetrics-text;q=0.1",
            Format::Prometheus,
        ),
        (
            "text/plain, application/openmetrics-text;q=0",
            Format::Prometheus,
        ),
        ("application/OpenMetrics-Text", Format::OpenMetrics),
        ("application/json", Format::Prometheus),
    ] {
        assert_eq!(Format::from_accept(accept), format, "{accept}");
    }
}

#[test]
fn call_counts_by_its_outcome_and_its_code() {
    let metrics = Names::new(1, 1, str::to_owned).metrics();
    let timeout = OutcomeClass::from_code(CallCode::CallTimeout);
    for outcome in [OutcomeClass::Ok, timeout, timeout, OutcomeClass::Abandoned] {
        metrics.call_ended(call(0, ItemKind::Tool, outcome, 5));
        metrics.call_ended(EndedCall {
            side: Side::Client,
            ..call(0, ItemKind::Tool, outcome, 5)
        });
    }
    metrics.call_ended(EndedCall {
        tool: None,
        result_bytes: 0,
        ..call(
            0,
            ItemKind::Tool,
            OutcomeClass::from_code(CallCode::PathNotFound),
            5,
        )
    });
    let scrape = scrape(&metrics, ScrapedState::default());
    let tool = "source=\"/source_0\",tool=\"/source_0/tool_0\"";
    for (series, value) in [
        (
            format!("mcp_broker_calls_total{{{tool},outcome=\"ok\"}}"),
            1.0,
        ),
        (
            format!("mcp_broker_calls_total{{{tool},outcome=\"failed\"}}"),
            2.0,
        ),
        (
            "mcp_broker_calls_total{source=\"_unknown\",tool=\"_unknown\",outcome=\"refused\"}"
                .to_owned(),
            1.0,
        ),
        (
            "mcp_broker_calls_failed_total{code=\"call_timeout\"}".to_owned(),
            2.0,
        ),
        (
            "mcp_broker_calls_refused_total{code=\"path_not_found\"}".to_owned(),
            1.0,
        ),
        (
            "mcp_broker_calls_abandoned_total{source=\"/source_0\"}".to_owned(),
            1.0,
        ),
        (
            "mcp_broker_result_bytes_total{tool=\"/source_0/tool_0\"}".to_owned(),
            4004.0,
        ),
        (
            "mcp_broker_result_tokens_estimated_total{tool=\"/source_0/tool_0\"}".to_owned(),
            1001.0,
        ),
    ] {
        assert_eq!(scrape.value(&series), Some(value), "{series}");
    }
}

#[test]
fn completion_for_a_prompt_is_not_a_call_of_the_prompt() {
    let metrics = Names::new(1, 4, str::to_owned).metrics();
    metrics.call_ended(EndedCall {
        method: Method::Complete,
        ..call(1, ItemKind::Prompt, OutcomeClass::Ok, 5)
    });
    let scrape = scrape(&metrics, ScrapedState::default());
    assert_eq!(scrape.with_value("completion/complete"), 17);
    assert_eq!(scrape.with_value("/source_0/tool_1"), 0);
    assert_eq!(scrape.with_value("_unknown"), 0);
}

#[test]
fn method_outside_the_list_is_counted_as_other() {
    let metrics = Names::new(1, 1, str::to_owned).metrics();
    for name in ["tools/eval", "_other", "", "TOOLS/CALL"] {
        metrics.call_ended(EndedCall {
            tool: None,
            method: Method::from_name(name),
            ..call(0, ItemKind::Tool, OutcomeClass::Ok, 5)
        });
    }
    let scrape = scrape(&metrics, ScrapedState::default());
    let series = "mcp_server_operation_duration_seconds_count{mcp_method_name=\"_other\",network_transport=\"tcp\"}";
    assert_eq!(scrape.value(series), Some(4.0));
    for method in Method::ALL {
        let is_method = Method::from_name(method.as_str()).as_str() == method.as_str();
        assert!(is_method, "{method:?}");
    }
}

#[test]
fn tools_with_one_name_at_their_server_have_separate_series() {
    let mut names = Names::new(1, 3, str::to_owned);
    for (_, name, kind) in &mut names.tools {
        *kind = ItemKind::Tool;
        "run".clone_into(name);
    }
    let metrics = names.metrics();
    for tool in 0..3 {
        metrics.call_ended(EndedCall {
            side: Side::Client,
            ..call(tool, ItemKind::Tool, OutcomeClass::Ok, 5)
        });
    }
    // Reading it fails if a series is there twice.
    let scrape = scrape(&metrics, ScrapedState::default());
    for name in ["run", "run~2", "run~3"] {
        assert_eq!(scrape.with_value(name), 17, "{name}");
    }
}

#[test]
fn every_drift_class_is_counted_by_its_name() {
    let metrics = Names::new(1, 1, str::to_owned).metrics();
    for class in broker_drift::Class::ALL {
        metrics.drift_found(class.as_str(), 1);
    }
    metrics.drift_found("made up", 5);
    let scrape = scrape(&metrics, ScrapedState::default());
    for class in DRIFT_CLASSES {
        let series = format!("mcp_broker_drift_findings_total{{class=\"{class}\"}}");
        let count = if class == "_other" { 5.0 } else { 1.0 };
        assert_eq!(scrape.value(&series), Some(count), "{class}");
    }
}

#[test]
fn metrics_without_a_value_have_no_series() {
    let metrics = Names::new(1, 1, str::to_owned).metrics();
    let scrape = scrape(&metrics, ScrapedState::default());
    for name in [
        "mcp_broker_audit_seq",
        "mcp_broker_audit_available",
        "mcp_broker_search_degraded",
        "mcp_broker_key_expiry_timestamp_seconds",
    ] {
        assert_eq!(scrape.value(name), None, "{name}");
        assert_eq!(scrape.types[name], "gauge");
    }
    assert_eq!(scrape.value("mcp_broker_sessions"), Some(0.0));
}

#[test]
fn scrape_during_calls_is_consistent_and_loses_no_call() {
    const THREADS: u32 = 4;
    const CALLS: u32 = 5_000;
    let metrics = Names::new(1, 1, str::to_owned).metrics();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for millis in 0..CALLS {
                    metrics.call_ended(call(0, ItemKind::Tool, OutcomeClass::Ok, millis.into()));
                }
            });
        }
        for _ in 0..20 {
            // Reading it checks that the buckets of each histogram grow up to its count.
            scrape(&metrics, ScrapedState::default());
        }
    });
    let scrape = scrape(&metrics, ScrapedState::default());
    let calls = scrape.value(
        "mcp_broker_calls_total{source=\"/source_0\",tool=\"/source_0/tool_0\",outcome=\"ok\"}",
    );
    assert_eq!(calls, Some(f64::from(THREADS * CALLS)));
}
