//! Summaries made of the names of tools: they name no tool that does not exist for the caller.

use serde_json::json;

use super::fixture::{CALLER, Describe, MetaReplies, fixture, fixture_of, json_of};
use crate::{Core, StartMode, areas};

/// The summary of `/a`: in the listings and descriptions of itself and of the node above it, and as an area.
fn summaries(core: &Core) -> Vec<String> {
    let list = |path, depth| json_of(&core.tree(&CALLER, path, depth).unwrap());
    let describe = |path| json_of(&core.described(&CALLER, Describe::One(path)).unwrap());
    let all = [
        list("/a", 1)["summary"].clone(),
        list("/a", 3)["summary"].clone(),
        list("/", 1)["children"][0]["summary"].clone(),
        list("/", 2)["children"][0]["summary"].clone(),
        describe("/a")["summary"].clone(),
        describe("/")["children"][0]["summary"].clone(),
        areas(core, &CALLER)[0].summary.as_ref().into(),
    ];
    all.map(|summary| summary.as_str().unwrap().to_owned())
        .to_vec()
}

#[tokio::test]
async fn summary_of_names_has_no_hidden_tool() {
    let core = fixture(StartMode::Plain).core;
    assert_eq!(summaries(&core), ["echo, twin"; 7]);
    let without = |filter| {
        let filter = json!({ "tool_filter": filter });
        fixture_of(StartMode::Plain, filter, json!({})).core
    };
    let core = without(json!(["!twin"]));
    assert_eq!(summaries(&core), ["echo"; 7]);
    let description = json_of(&core.described(&CALLER, Describe::One("/a")).unwrap());
    assert_eq!(description["description"], "d", "the rest is unchanged");
    assert_eq!(summaries(&without(json!(["!twin", "!echo"]))), ["a"; 7]);
}
