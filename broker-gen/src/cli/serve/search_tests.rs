//! A property of the search: the answer to a caller is the answer of a broker without the tools that the caller may not
//! see.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use broker_build::{plan, tables};
use broker_config::Config;
use broker_core::{Broker, Core, Detail, Identity, SearchQuery};
use broker_model::Snapshot;
use broker_model::lock::{LOCK_VERSION, Lock};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::memory;

const SOURCES: [&str; 4] = ["/a", "/a/deep", "/a-b", "/c"];
const WORDS: [&str; 16] = [
    "read",
    "write",
    "file",
    "files",
    "mail",
    "issue",
    "pull",
    "request",
    "kubernetes",
    "calendar",
    "event",
    "weather",
    "search",
    "web",
    "データ",
    "löschen",
];
const GROUPS: [&str; 3] = ["one", "two", "three"];

/// Tools by source and name, each with a description.
type Tools = Vec<(usize, String, String)>;

fn words(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), count)
}

fn tools() -> impl Strategy<Value = Tools> {
    let name = words(1..3).prop_map(|words| {
        let ascii = words.into_iter().filter(|word| word.is_ascii());
        ascii.chain(["it"]).collect::<Vec<_>>().join("_")
    });
    let tool = (
        0..SOURCES.len(),
        name,
        words(0..9).prop_map(|it| it.join(" ")),
    );
    prop::collection::vec(tool, 1..14).prop_map(|mut tools| {
        tools.sort();
        tools.dedup_by(|a, b| (a.0, &a.1) == (b.0, &b.1));
        tools
    })
}

/// A rule: whether it allows, the number of the tool that it is about, and the group.
fn rules() -> impl Strategy<Value = Vec<(bool, usize, usize)>> {
    prop::collection::vec((any::<bool>(), 0usize..14, 0..GROUPS.len()), 1..24)
}

/// A query of known, mistyped and unknown words.
fn query() -> impl Strategy<Value = String> {
    let other = prop::sample::select(&["reed", "filse", "k8s", "calandar", "zzz", "the", "PR"][..]);
    let word = prop_oneof![prop::sample::select(&WORDS[..]), other];
    prop::collection::vec(word, 1..5).prop_map(|words| words.join(" "))
}

fn path(tool: &(usize, String, String)) -> String {
    format!("{}/{}", SOURCES[tool.0], tool.1)
}

/// A core with these tools; nodes without any are not in its tree.
fn core(tools: &[(usize, String, String)], access: Option<&Value>) -> Core {
    let has = |at: usize| tools.iter().any(|tool| tool.0 == at);
    let node = |at: usize, children: Vec<Value>| {
        let mut node = json!({"path": SOURCES[at], "summary": format!("at {}", SOURCES[at])});
        if has(at) {
            node["source"] = json!({"command": "x"});
        }
        if !children.is_empty() {
            node["children"] = children.into();
        }
        (has(at) || node["children"].is_array()).then_some(node)
    };
    let below = node(1, Vec::new()).into_iter().collect();
    let nodes = [node(0, below), node(2, Vec::new()), node(3, Vec::new())];
    let mut document = json!({"tree": nodes.into_iter().flatten().collect::<Vec<_>>()});
    if let Some(access) = access {
        document["access"] = access.clone();
    }
    let config = Config::parse("c.json", document.to_string().as_bytes());
    let config = config.expect("the config is valid").config;
    let sources = config.sources().map(|source| {
        let own = tools
            .iter()
            .filter(|tool| SOURCES[tool.0] == source.path.as_str());
        let raw = own.map(|(_, name, text)| {
            let tool = json!({"name": name, "description": text, "inputSchema": {}});
            tool.as_object().expect("an object").clone().into()
        });
        let snapshot = Snapshot {
            resources: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            server_info: json!({"name": "server"}),
            protocol_version: "2025-11-25".to_owned(),
            capabilities: json!({}),
            instructions: None,
            tools: raw.collect(),
        };
        source.to_locked(&snapshot)
    });
    let lock = Lock {
        version: LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "test".to_owned(),
        sources: sources.collect(),
        left_out: Vec::new(),
    };
    let plan = plan::plan(&config, &lock.sources).expect("config and lock fit");
    let catalog = memory::catalog(tables::tables(&config, &lock, &plan)).expect("there is room");
    Core::builder(catalog)
        .build()
        .expect("the catalog is valid")
}

/// The answer, or the error without its suggestions.
fn answer(core: &Core, caller: &Identity, query: &str, path: Option<&str>) -> String {
    let what = SearchQuery {
        query,
        path,
        limit: 50,
        detail: Detail::Listing,
        account: &core.services().memory().account(),
    };
    // Without a model, a search does not wait.
    let mut context = Context::from_waker(Waker::noop());
    match pin!(core.search(caller, what)).poll(&mut context) {
        Poll::Ready(Ok(found)) => String::from_utf8(found.json(query).to_vec()).expect("UTF-8"),
        Poll::Ready(Err(error)) => format!("{error:?}"),
        Poll::Pending => panic!("the search waits"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn answer_of_a_core_equals_that_of_one_without_the_denied_tools(
        tools in tools(),
        rules in rules(),
        groups in prop::collection::vec(prop::sample::select(&GROUPS[..]), 0..3),
        queries in prop::collection::vec(query(), 3),
    ) {
        // A rule for a tool that does not exist would be refused.
        let rules: Vec<_> = rules.into_iter().filter(|(_, tool, _)| *tool < tools.len()).collect();
        let written = rules.iter().map(|(allows, tool, group)| {
            let effect = if *allows { "allow" } else { "deny" };
            json!({effect: [path(&tools[*tool])], "to": [GROUPS[*group]]})
        });
        let access = json!({"groups": GROUPS, "rules": written.collect::<Vec<_>>()});
        let is_hit = |wanted: bool, at: usize| {
            rules.iter().any(|(allows, tool, group)| {
                *allows == wanted && *tool == at && groups.contains(&GROUPS[*group])
            })
        };
        let visible = tools.iter().enumerate().filter(|(at, _)| is_hit(true, *at) && !is_hit(false, *at));
        let visible: Tools = visible.map(|(_, tool)| tool.clone()).collect();
        let names: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let caller = Identity::key("k", names);
        let (whole, reduced) = (core(&tools, Some(&access)), core(&visible, None));
        for query in &queries {
            for path in [None, Some("/"), Some("/a"), Some("/a/deep"), Some("/c")] {
                let own = answer(&whole, &caller, query, path);
                prop_assert_eq!(own, answer(&reduced, &caller, query, path), "{} at {:?}", query, path);
            }
        }
    }
}
