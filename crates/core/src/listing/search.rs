//! Search: the tools that a caller may see, ranked for a query.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::OnceLock;

use broker_model::CallCode;
use broker_model::item::ItemKind;
use broker_search::{Index, MAX_HITS, MAX_QUERY_CHARS, Ranking, Similarity, StaticTable};
use bytes::Bytes;
use serde_json::Value;

use crate::catalog::{EntryKind, Item, SearchTables};
use crate::errors::error::CoreError;
use crate::identity::Identity;
use crate::listing::direct::{self, CallableTool};
use crate::listing::lookup;
use crate::listing::query_vector::QueryVector;
use crate::listing::scope::Scope;
use crate::types::{Reply, SearchOptions};
use crate::{Core, Inner};

/// The maximum number of nodes that an answer names.
const MAX_NODES: usize = 3;

/// The data that all searches of a core read.
pub(crate) struct ToolSearch {
    index: Index<'static>,
    tables: SearchTables,
    /// Read by the first search, so that a broker without searches does not pay for it.
    table: OnceLock<Option<StaticTable>>,
}

/// The tools that were found for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTools {
    /// The best first.
    pub tools: Vec<FoundTool>,
    /// Whether the query may fit no tool of the caller.
    pub is_weak: bool,
    /// Whether words answered, since the model gave no vector.
    pub is_degraded: bool,
}

/// A tool that was found for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTool {
    /// The tool.
    pub tool: CallableTool,
    /// From 0 to 1, with two digits.
    pub score: f64,
}

impl Core {
    /// Finds the tools that fit a query best: `{"path","type","query","children":[…],"nodes":[…],"weak"?,"degraded"?}`.
    /// Each child has its path, type, summary and score, from 0 to 1; `nodes` has up to three nodes of the best tools;
    /// `weak` says that the query may fit no tool, and `"degraded":"words"` that the model gave no vector in time.
    /// Equals the answer of a catalog that has only the tools that exist for the caller.
    ///
    /// # Errors
    ///
    /// `field_invalid` unless the query has 1 to 400 characters with a letter or digit and the limit is from 1 to 50;
    /// `path_not_found`, `path_invalid` and `path_is_tool` for the place.
    pub fn search(
        &self,
        identity: &Identity,
        query: &str,
        options: SearchOptions<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        let similarity = inner.similarity(options.vector);
        let root = self.root(identity);
        inner.search.search(scope, root, query, options, similarity)
    }
}

impl Core {
    /// Finds the served tools that fit a query best, of those below the root of the caller: at most `limit`, and only
    /// as many as `max_bytes` of descriptions and schemas hold, but at least one if any fits.
    ///
    /// # Errors
    ///
    /// `field_invalid` unless the query has 1 to 400 characters with a letter or digit and the limit is from 1 to 50.
    pub fn find_tools(
        &self,
        identity: &Identity,
        query: &str,
        limit: usize,
        max_bytes: usize,
        vector: &QueryVector,
    ) -> Result<FoundTools, Box<CoreError>> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        check(query, limit)?;
        let search = &inner.search;
        let similarity = inner.similarity(Some(vector));
        let ranking = search.ranking(scope, self.root(identity), query, similarity);
        let (tools, is_weak) = found_tools(scope, ranking, limit, max_bytes);
        Ok(FoundTools {
            tools,
            is_weak,
            is_degraded: vector.has_failed(),
        })
    }
}

impl Inner {
    /// Returns the vectors of the tools, for a search with a vector; `None` for words and the table.
    fn similarity<'a>(&'a self, vector: Option<&'a QueryVector>) -> Option<Similarity<'a>> {
        self.query_vectors.as_ref()?.similarity(vector?)
    }
}

/// Returns the served tools of a ranking, with what a call needs: at most `limit`, and after the first one only those
/// that fit into `max_bytes`. And whether the ranking is weak.
fn found_tools(
    scope: Scope<'_>,
    ranking: Ranking,
    limit: usize,
    max_bytes: usize,
) -> (Vec<FoundTool>, bool) {
    let served = ranking.hits.filter(|hit| {
        let is_tool = scope.catalog.item(hit.tool).kind == ItemKind::Tool;
        is_tool && scope.view.is_served(hit.tool)
    });
    let (mut tools, mut bytes) = (Vec::new(), 0);
    for hit in served.take(limit) {
        let found = FoundTool {
            tool: direct::called(scope, hit.tool),
            score: rounded(hit.score),
        };
        bytes += found.tool.description.len() + found.tool.input_schema.len();
        if bytes > max_bytes && !tools.is_empty() {
            break;
        }
        tools.push(found);
    }
    (tools, ranking.is_weak)
}

impl ToolSearch {
    /// Reads the tables; `None` if the index does not have this version and this number of tools.
    pub(crate) fn new(tables: SearchTables, tools: usize) -> Option<Self> {
        let index = Index::new(tables.index).ok()?;
        (index.tools() as usize == tools).then_some(Self {
            index,
            tables,
            table: OnceLock::new(),
        })
    }

    /// Returns the table. A damaged one cannot be compiled in: a test reads it. Without a table, words answer alone.
    fn table(&self) -> Option<&StaticTable> {
        let read = || {
            self.tables
                .table
                .and_then(|files| StaticTable::new(files).ok())
        };
        self.table.get_or_init(read).as_ref()
    }

    /// Answers a query. The answer equals the answer of a catalog with only the tools that the caller may see.
    pub(crate) fn search(
        &self,
        scope: Scope<'_>,
        root: &str,
        query: &str,
        options: SearchOptions<'_>,
        similarity: Option<Similarity<'_>>,
    ) -> Result<Reply, Box<CoreError>> {
        check(query, options.limit)?;
        let at = lookup::resolve(scope, options.path.unwrap_or(root))?;
        let place = scope.catalog.entry(at);
        if matches!(place.kind, EntryKind::Item(_)) {
            return Err(lookup::is_tool(place.path));
        }
        let mut ranking = self.ranking(scope, place.path, query, similarity);
        let best: Vec<_> = ranking.hits.by_ref().take(options.limit).collect();
        let mut out = String::with_capacity(1024);
        out.push_str("{\"path\":");
        push(&mut out, place.path);
        out.push_str(",\"type\":\"node\",\"query\":");
        push(&mut out, query);
        out.push_str(",\"children\":[");
        for (rank, hit) in best.iter().enumerate() {
            let separator = if rank > 0 { "," } else { "" };
            let score = rounded(hit.score);
            out.push_str(separator);
            scope.push_found_tool(&mut out, hit.tool);
            write!(out, ",\"score\":{}}}", Value::from(score)).expect("a string takes all text");
        }
        out.push_str("],\"nodes\":[");
        let found = best.into_iter().chain(ranking.hits).map(|hit| hit.tool);
        for (rank, node) in self.nodes(scope, at, found).into_iter().enumerate() {
            let separator = if rank > 0 { "," } else { "" };
            out.push_str(separator);
            scope.push_found_node(&mut out, node);
        }
        out.push(']');
        if ranking.is_weak {
            out.push_str(",\"weak\":true");
        }
        if options.vector.is_some_and(QueryVector::has_failed) {
            out.push_str(",\"degraded\":\"words\"");
        }
        out.push('}');
        Ok(Reply {
            body: Bytes::from(out),
            etag: None,
        })
    }

    /// Returns the tools below a node, ranked for a query that was checked.
    fn ranking(
        &self,
        scope: Scope<'_>,
        node: &str,
        query: &str,
        similarity: Option<Similarity<'_>>,
    ) -> Ranking {
        let tools = scope
            .caller
            .search_scope(scope.view, scope.catalog, &self.index);
        let below = tools_below(scope, node);
        let similarity = similarity.unwrap_or_else(|| self.table().into());
        broker_search::search(&self.index, &tools, similarity, query, below)
    }

    /// Returns the nodes of the best tools, each once, without the one that was searched.
    fn nodes(&self, scope: Scope<'_>, place: u32, tools: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut nodes = Vec::with_capacity(MAX_NODES);
        for tool in tools {
            let (parent, _) = scope.path_of(tool).rsplit_once('/').unwrap_or_default();
            let parent = if parent.is_empty() { "/" } else { parent };
            let Some(node) = scope.catalog.find(parent) else {
                continue;
            };
            if node != place && scope.admits(node) && !nodes.contains(&node) {
                nodes.push(node);
            }
            if nodes.len() == MAX_NODES {
                break;
            }
        }
        nodes
    }
}

/// Returns a score as answers show it.
fn rounded(score: f64) -> f64 {
    (score * 100.0).round() / 100.0
}

/// Returns the tools below a node: tools are sorted by the bytes of their paths.
fn tools_below(scope: Scope<'_>, node: &str) -> Range<u32> {
    let node = node.trim_end_matches('/');
    let begins_before = |end: char| {
        let tools = &scope.catalog.items;
        let bound = format!("{node}{end}");
        let is_before = |tool: &Item| scope.catalog.entry(tool.entry).path < bound.as_str();
        tools.partition_point(is_before) as u32
    };
    // `0` is the character after `/`.
    begins_before('/')..begins_before('0')
}

/// Refuses queries and limits that are out of bounds.
fn check(query: &str, limit: usize) -> Result<(), Box<CoreError>> {
    let invalid = |message: String, hint: &str| {
        let error = CoreError::new(CallCode::FieldInvalid, message);
        Err(Box::new(error.hint(hint)))
    };
    if !broker_search::is_query(query) {
        let message = format!(
            "`query` must have 1 to {MAX_QUERY_CHARS} characters, with at least one letter or digit"
        );
        return invalid(
            message,
            "Search for two to six English words: action, object and product.",
        );
    }
    match (1..=MAX_HITS).contains(&limit) {
        true => Ok(()),
        false => invalid(
            format!("`limit` is {limit}, but must be from 1 to {MAX_HITS}"),
            "Leave `limit` out for the usual number of hits.",
        ),
    }
}

fn push(out: &mut String, text: &str) {
    write!(out, "{}", Value::from(text)).expect("a string takes all text");
}
