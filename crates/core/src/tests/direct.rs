//! Tools under their flat names.

use serde_json::{Value, json};

use super::fixture::{
    CALLER, MetaReplies, fixture, fixture_of, fixture_with, member_of, setup, snapshot,
};
use crate::listing::tools::is_listed_otherwise;
use crate::{Broker, Core, Identity, StartMode, ToolPage, ToolQuery};

const ALL: usize = usize::MAX;

fn page(core: &Core, after: Option<&str>, max_tools: usize, max_bytes: usize) -> ToolPage {
    let what = ToolQuery {
        after,
        max_tools,
        max_bytes,
        ..ToolQuery::default()
    };
    core.tools(&CALLER, &what).expect("the cursor is valid")
}

/// Returns the tools after the one with this flat name.
fn after(core: &Core, caller: &Identity, name: Option<&str>) -> Option<ToolPage> {
    let what = ToolQuery {
        after: name,
        ..ToolQuery::default()
    };
    core.tools(caller, &what)
}

fn entries(page: &ToolPage) -> Vec<Value> {
    serde_json::from_slice(&page.json()).expect("a JSON array")
}

fn names(page: &ToolPage) -> Vec<String> {
    let name = |entry: Value| entry["name"].as_str().expect("a text").to_owned();
    entries(page).into_iter().map(name).collect()
}

#[tokio::test]
async fn direct_tools_are_entries_of_a_tools_list() {
    let core = fixture(StartMode::Plain).core;
    let whole = page(&core, None, ALL, ALL);
    assert_eq!(whole.last, None);
    assert_eq!(names(&whole), ["a-deep-b-echo", "a-echo", "a-twin"]);
    let schema = snapshot(&["x"]).tools[0].read()["inputSchema"].clone();
    let expected = json!({"name": "a-echo", "description": "Says it back.",
        "inputSchema": schema, "outputSchema": {"type": "object"}});
    assert_eq!(entries(&whole)[1], expected);
    assert!(entries(&whole)[2].get("outputSchema").is_none());
}

#[tokio::test]
async fn direct_tools_in_pages_are_the_whole_list() {
    let core = fixture(StartMode::Plain).core;
    let whole = page(&core, None, ALL, ALL);
    let two = page(&core, None, 2, ALL);
    assert_eq!(two.last, Some("a-echo"));
    // Exactly the bytes of two tools, and one byte less.
    assert_eq!(page(&core, None, ALL, two.json().len()), two);
    assert_eq!(
        names(&page(&core, None, ALL, two.json().len() - 1)).len(),
        1
    );
    assert_eq!(page(&core, None, ALL, whole.json().len()), whole);
    for (max_tools, max_bytes) in [(1, ALL), (2, ALL), (3, ALL), (ALL, 0), (0, 0)] {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let part = page(&core, after, max_tools, max_bytes);
            assert!(!names(&part).is_empty());
            all.extend(entries(&part));
            let Some(last) = part.last else { break };
            after = Some(last);
        }
        assert_eq!(all, entries(&whole), "{max_tools} {max_bytes}");
    }
    assert_eq!(after(&core, &CALLER, Some("a-none")), None);
    assert_eq!(after(&core, &CALLER, Some("")), None);
}

#[tokio::test]
async fn direct_tools_continue_after_a_tool_that_was_withdrawn() {
    let broker = fixture(StartMode::Tolerant);
    let first = page(&broker.core, None, 2, ALL);
    broker.lists(0, &snapshot(&["twin"]));
    let rest = page(&broker.core, first.last, ALL, ALL);
    assert_eq!(names(&rest), ["a-twin"]);
    let whole = page(&broker.core, None, ALL, ALL);
    assert_eq!(names(&whole), ["a-deep-b-echo", "a-twin"]);
    let found = broker.core.flat(&CALLER, "a-echo");
    assert!(found.is_some(), "it exists, though it is withdrawn");
    // No empty page after the last served tool.
    broker.lists(0, &snapshot(&["echo"]));
    assert_eq!(page(&broker.core, None, 2, ALL).last, None);
    let after = page(&broker.core, Some("a-twin"), ALL, ALL);
    assert_eq!((after.json().as_slice(), after.last), (&b"[]"[..], None));
}

#[tokio::test]
async fn flat_name_finds_the_tool_that_exists_for_the_caller() {
    let broker = fixture_with(json!([
        {"allow": ["/**"], "to": ["second"]},
        {"allow": ["/**"], "to": ["*"]},
        {"deny": ["/a/twin"], "to": ["first"], "except": ["second"]},
    ]));
    let core = &broker.core;
    let found = core.flat(&CALLER, "a-deep-b-echo").unwrap();
    assert_eq!(found.item.path, "/a/deep/b/echo");
    assert!(found.header_params.is_empty());
    let narrow = member_of(&["first"]);
    assert!(core.flat(&CALLER, "a-twin").is_some());
    for name in ["a-twin", "a-twi", "A-echo", "/a/echo", "a", ""] {
        assert_eq!(core.flat(&narrow, name), None, "{name}");
    }
    assert_eq!(after(core, &narrow, Some("a-twin")), None);
    let less = after(core, &narrow, None).unwrap();
    assert_eq!(names(&less), ["a-deep-b-echo", "a-echo"]);
    assert_eq!(less.last, None);

    let hidden = fixture_of(
        StartMode::Plain,
        json!({"tool_filter": ["!twin"]}),
        json!({}),
    );
    assert_eq!(hidden.core.flat(&CALLER, "a-twin"), None);
    let less = page(&hidden.core, None, ALL, ALL);
    assert_eq!(names(&less), ["a-deep-b-echo", "a-echo"]);
}

#[tokio::test]
async fn output_schema_is_listed_only_for_results_in_the_form_of_the_server() {
    let has_schema = |setting: Value| {
        let over = json!({"tool_overrides": {"echo": setting}});
        let core = setup(StartMode::Plain, over, json!({})).unwrap();
        entries(&page(&core, None, ALL, ALL))[1]
            .get("outputSchema")
            .is_some()
    };
    assert!(has_schema(json!({})) && has_schema(json!({"render_mode": "json"})));
    assert!(
        has_schema(json!({"max_output_chars": 600})),
        "a cut result says so"
    );
    for setting in [
        json!({"render_mode": "text"}),
        json!({"render_mode": "structured"}),
    ] {
        assert!(!has_schema(setting.clone()), "{setting}");
    }
}

#[tokio::test]
async fn tool_changes_grow_only_if_other_tools_are_listed() {
    let broker = fixture_of(
        StartMode::Tolerant,
        json!({"tool_filter": ["!twin"]}),
        json!({}),
    );
    let mut changes = broker.core.services().tool_changes();
    let mut has_grown = || {
        let grown = changes.has_changed().unwrap();
        changes.borrow_and_update();
        grown
    };
    broker.matches(0);
    broker.matches(1);
    assert!(!has_grown(), "the first verdict finds no difference");
    broker.lists(0, &snapshot(&["echo"]));
    assert!(!has_grown(), "a hidden tool is withdrawn");
    broker.lists(0, &snapshot(&["twin"]));
    assert!(has_grown(), "a tool is withdrawn");
    broker.lists(0, &snapshot(&["twin"]));
    assert!(!has_grown(), "it is still withdrawn");
    broker.matches(0);
    assert!(has_grown(), "it comes back");
    let drift_state = broker.core.0.call_path().fleet.drift_state.clone();
    drift_state.hide([1].into());
    assert!(has_grown(), "a reload hides `/a/echo` instead of `/a/twin`");
    drift_state.hide([1].into());
    assert!(!has_grown(), "a reload hides the same tools");
}

#[tokio::test]
async fn settings_change_the_list_only_through_output_schemas() {
    let core = |echo: Value, twin: Value| {
        let over = json!({"tool_overrides": {"echo": echo, "twin": twin}});
        setup(StartMode::Plain, over, json!({}))
            .unwrap()
            .0
            .call_path()
    };
    let rendered = || json!({"render_mode": "text"});
    let before = core(json!({}), json!({}));
    let differs = |other: &crate::CallPath, is_served: bool| {
        let (one, two) = (before.fleet.in_force(), other.fleet.in_force());
        let (one, two) = (&one.terms.settings, &two.terms.settings);
        is_listed_otherwise(before.catalog, |_| is_served, one, two)
    };
    assert!(differs(&core(rendered(), json!({})), true));
    assert!(!differs(&core(rendered(), json!({})), false));
    // `twin` has no output schema.
    assert!(!differs(&core(json!({"timeout": 3}), rendered()), true));
}
