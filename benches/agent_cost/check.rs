//! Keeps the bounds on what an agent pays for the texts of the broker, and the figures of `docs/agent-cost.md`.

mod caller;
mod figures;
mod refusals;
mod stage;
mod tokens;

use std::path::Path;

use figures::{COMMON, Figures};

/// Bounds in tokens for the servers that most people use.
const MAX_START: usize = 600;
const MAX_FIRST_CALL: usize = 900;
const MAX_REFUSAL: usize = 150;
/// Calls up to the first call of a tool, which is counted.
const MAX_CALLS: usize = 3;

/// The report in the page, between these lines.
const BEGIN: &str = "<!-- report of agent_cost -->\n";
const END: &str = "<!-- end of the report -->\n";

#[test]
fn agent_pays_no_more_than_the_bounds() {
    let figures = Figures::measure();
    let common = &figures.common;
    assert_eq!(common.servers, COMMON.len());
    assert!(common.start <= MAX_START, "session start: {}", common.start);
    let with_jobs = figures.start_with_jobs;
    assert!(
        with_jobs <= MAX_START,
        "session start with jobs: {with_jobs}"
    );
    for refusal in figures.refused.iter().chain(&figures.failed) {
        assert!(refusal.tokens <= MAX_REFUSAL, "{refusal:?}");
    }
    for (path, tokens) in &figures.missing_arguments {
        assert!(*tokens <= MAX_REFUSAL, "{path} without arguments: {tokens}");
    }
    let ways = common.by_tree.iter().chain(&common.by_search);
    for way in ways {
        assert!(way.calls <= MAX_CALLS, "{way:?}");
    }
    for way in &common.by_search {
        assert!(way.tokens <= MAX_FIRST_CALL, "by search: {way:?}");
    }
    page_has(&figures.report());
}

/// Compares the report with the one in the page; `UPDATE_EXPECT=1` renews it.
fn page_has(report: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/agent-cost.md");
    let page = std::fs::read_to_string(&file).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the report begins");
    let (_, after) = rest.split_once(END).expect("the report ends");
    harness::assert_expected(&file, &format!("{before}{BEGIN}\n{report}\n{END}{after}"));
}
