//! The scripted caller: it follows the texts of the tools by fixed rules and wants one tool, which it recognises by
//! its path. No model is used.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::{Value, json};

use crate::stage::{Reply, Stage};
use crate::tokens::tokens;

/// The rules, as the report prints them.
pub(crate) const RULES: &[&str] = &[
    "The caller has read the start of the session: the whole answer of `tools/list` as JSON, and the instructions.",
    "It wants one tool, and recognises the tool and the nodes above it when their paths are in a text.",
    "By tree: it lists the nodes above the tool from the top by `meta_tree`, except those whose child on the way it has \
     read already. So it begins below the areas that the start of the session names.",
    "By search: it sends one `query` of at most six words: those of the tool's name, then those of the nodes above it, \
     each once. If the tool is not in the reply, it goes on by tree. It does not want a tool that calls itself deprecated: \
     such tools rank last.",
    "Then it describes the tool by `meta_desc` and calls it by `meta_call`.",
    "A call costs the tokens of its arguments and of its reply: of the text, or of `structuredContent`, which some clients \
     show in its place, whichever is more. The first call of the tool costs those of its \
     arguments with empty `args`: the tool's own arguments and result cost the same in every way.",
];

/// The maximum number of words of a query.
const MAX_QUERY_WORDS: usize = 6;

/// The way to one tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Calls up to the first call of the tool, which is counted.
    pub(crate) calls: usize,
    /// Tokens from the start of the session, which are counted, up to the first call of the tool.
    pub(crate) tokens: usize,
    /// Whether the search had the tool in its reply.
    pub(crate) is_found: bool,
}

/// A caller at the start of its session.
pub(crate) struct Caller<'s> {
    stage: &'s Stage,
    /// What it has read.
    start: String,
    start_tokens: usize,
    /// Listings are the same for every tool below a node.
    listings: RefCell<HashMap<String, (Reply, usize)>>,
}

impl<'s> Caller<'s> {
    pub(crate) fn new(stage: &'s Stage) -> Self {
        let (tools, instructions) = (stage.tools(), stage.instructions());
        let start_tokens = tokens(&tools.to_string()) + tokens(&instructions);
        let texts = tools.as_array().into_iter().flatten();
        let texts = texts.filter_map(|tool| tool["description"].as_str());
        let start: Vec<&str> = texts.chain([instructions.as_str()]).collect();
        Self {
            stage,
            start: start.join("\n"),
            start_tokens,
            listings: RefCell::default(),
        }
    }

    /// Tokens of the start of the session.
    pub(crate) const fn start_tokens(&self) -> usize {
        self.start_tokens
    }

    /// The way to a tool by listings.
    pub(crate) fn by_tree(&self, path: &str) -> Way {
        let mut way = Way {
            calls: 0,
            tokens: self.start_tokens,
            is_found: false,
        };
        self.list_down(path, &mut way);
        self.describe_and_call(path, &mut way);
        way
    }

    /// The way to a tool by one search.
    pub(crate) fn by_search(&self, path: &str) -> Way {
        let arguments = json!({ "query": query(path) });
        let reply = self.stage.call("meta_tree", &arguments);
        assert!(!reply.is_error, "{}", reply.text);
        let mut way = Way {
            calls: 1,
            tokens: self.start_tokens + cost(&arguments, &reply),
            is_found: names(&reply.text, path),
        };
        if !way.is_found {
            self.list_down(path, &mut way);
        }
        self.describe_and_call(path, &mut way);
        way
    }

    fn list_down(&self, path: &str, way: &mut Way) {
        let mut read = self.start.clone();
        let steps = path.match_indices('/').skip(1).map(|(at, _)| &path[..at]);
        let steps: Vec<&str> = std::iter::once("/").chain(steps).collect();
        for (at, node) in steps.iter().enumerate() {
            let next = steps.get(at + 1).copied().unwrap_or(path);
            if names(&read, next) {
                continue;
            }
            let (reply, cost) = self.listing(node);
            way.calls += 1;
            way.tokens += cost;
            read.push('\n');
            read.push_str(&reply.text);
            assert!(
                names(&read, next),
                "`{node}` lists `{next}`: {}",
                reply.text
            );
        }
    }

    fn listing(&self, node: &str) -> (Reply, usize) {
        let mut listings = self.listings.borrow_mut();
        let listing = listings.entry(node.to_owned()).or_insert_with(|| {
            let arguments = json!({ "path": node });
            let reply = self.stage.call("meta_tree", &arguments);
            assert!(!reply.is_error, "{}", reply.text);
            let cost = cost(&arguments, &reply);
            (reply, cost)
        });
        listing.clone()
    }

    fn describe_and_call(&self, path: &str, way: &mut Way) {
        let arguments = json!({ "path": path });
        let reply = self.stage.call("meta_desc", &arguments);
        assert!(!reply.is_error, "{}", reply.text);
        way.calls += 2;
        way.tokens += cost(&arguments, &reply);
        way.tokens += tokens(&json!({ "path": path, "args": {} }).to_string());
    }
}

fn cost(arguments: &Value, reply: &Reply) -> usize {
    let structured = reply.structured.as_deref().map_or(0, tokens);
    tokens(&arguments.to_string()) + tokens(&reply.text).max(structured)
}

/// Whether a text names an entry: its path, and not only that of another entry that begins with it.
fn names(text: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + path.len()..].chars();
        let ends = match after.next() {
            Some('/') => after.next().is_none_or(|next| !is_part(next)),
            next => next.is_none_or(|next| !is_part(next)),
        };
        ends && before.is_none_or(|before| !is_part(before) && before != '/')
    })
}

/// The words of the tool's name and of the nodes above it.
fn query(path: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for segment in path.rsplit('/').filter(|segment| !segment.is_empty()) {
        for word in segment.split(['_', '-', '.']) {
            let word = word.to_lowercase();
            if !word.is_empty() && !words.contains(&word) && words.len() < MAX_QUERY_WORDS {
                words.push(word);
            }
        }
    }
    words.join(" ")
}
