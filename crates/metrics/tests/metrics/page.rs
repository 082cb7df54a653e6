//! The table of all metrics in `docs/telemetry.md`, between `<!-- metrics -->` and `<!-- end -->`. `UPDATE_EXPECT=1` writes it.

use broker_metrics::{FAMILIES, ScrapedState};

use crate::stage::{Names, scrape};
use crate::workspace;

const BEGIN: &str = "<!-- metrics -->\n";
const END: &str = "<!-- end -->";

/// Returns the table of all metrics.
fn table() -> String {
    let rows = FAMILIES.iter().map(|family| {
        let labels: Vec<_> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let (name, kind) = (family.name, family.kind.as_str());
        let (labels, unit, help) = (labels.join(", "), family.unit, family.help);
        format!("| `{name}` | {kind} | {labels} | {unit} | {help} |\n")
    });
    let head = "| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n";
    head.to_owned() + &rows.collect::<String>()
}

#[test]
fn telemetry_page_has_every_metric() {
    let file = workspace().join("docs/telemetry.md");
    let page = std::fs::read_to_string(&file).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the table begins");
    let (_, after) = rest.split_once(END).expect("the table ends");
    let expected = format!("{before}{BEGIN}{}{END}{after}", table());
    harness::assert_expected(&file, &expected);
}

#[test]
fn scrape_has_the_families_of_the_table_and_no_other() {
    let metrics = Names::new(1, 1, str::to_owned).metrics();
    let types = scrape(&metrics, ScrapedState::default()).types;
    let mut of_table: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
    of_table.sort_unstable();
    let of_scrape: Vec<_> = types.keys().map(String::as_str).collect();
    assert_eq!(of_scrape, of_table);
}
