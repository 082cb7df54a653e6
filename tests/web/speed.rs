//! The first list of 2 000 tools: few rows are elements, and they are there within 200 ms. On a machine that other programs
//! use as well, the processor time of the page counts in place of the time.

use serde_json::json;

use crate::stage::{Stage, config, locked, tool};

const MAX_FIRST_ROWS_MS: f64 = 200.0;
/// The best of so many visits counts: other programs use the machine as well.
const VISITS: usize = 30;

#[test]
fn list_of_2000_tools_is_there_within_200_ms() {
    let _machine = harness::whole_machine();
    let names = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];
    let scripts: Vec<_> = names
        .map(|name| {
            let tools = (0..200).map(|at| {
                let text =
                    format!("Does the work number {at} of the source {name} for its callers.");
                tool(
                    &format!("tool_number_{at}"),
                    &text,
                    json!({"n": {"type": "integer"}}),
                    json!({}),
                )
            });
            (
                name,
                json!({"tools": tools.collect::<Vec<_>>(), "built_in": false}),
            )
        })
        .into();
    let stage = Stage::serve(locked(&config(&names, json!({})), &scripts));
    let mut page = stage.page();
    page.count_processor_time();
    let mut best = f64::MAX;
    for _ in 0..VISITS {
        page.go("about:blank");
        page.count_processor_time();
        page.go(&format!("{}ui/", stage.origin()));
        page.wait_for_text(".count", "2010 entries");
        let first = page.value("window.firstRows").as_f64().expect("rows came");
        let busy = page.processor_ms();
        best = best.min(first).min(busy);
        let rows = page.value("document.querySelectorAll('.row').length");
        assert!(rows.as_u64().expect("a number") <= 60, "{rows} rows");
        if best <= MAX_FIRST_ROWS_MS {
            break;
        }
    }
    assert!(
        best <= MAX_FIRST_ROWS_MS,
        "the first rows came after {best} ms"
    );
    // Each row can be reached, and it is the right one.
    page.value("document.querySelector('.rows').focus()");
    page.press("End");
    page.wait_for_text(".rows", "tool_number_99");
    let last =
        page.value("[...document.querySelectorAll('.row')].at(-1).getAttribute('aria-posinset')");
    assert_eq!(last, "2010");
    page.assert_clean(&stage.origin());
}
