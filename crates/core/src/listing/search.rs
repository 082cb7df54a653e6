//! Search: the tools that a caller may see, ranked for a query.

use std::ops::Range;
use std::sync::OnceLock;

use broker_model::CallCode;
use broker_model::item::ItemKind;
use broker_search::{Index, MAX_HITS, MAX_QUERY_CHARS, Ranking, Similarity, StaticTable};

use crate::catalog::{EntryKind, Item, SearchTables};
use crate::errors::error::CoreError;
use crate::listing::entry::ListedEntry;
use crate::listing::paths;
use crate::listing::query_vector::QueryVector;
use crate::listing::scope::Scope;
use crate::listing::tools::{self, CallableTool};
use crate::snapshot::Snapshot;
use crate::types::{Detail, SearchQuery};

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
    /// The path of the node above all of them.
    pub place: &'static str,
    /// The best first.
    pub hits: Vec<FoundTool>,
    /// Up to three nodes of the best tools, without children.
    pub nodes: Vec<ListedEntry>,
    /// Whether the query may fit no tool of the caller.
    pub is_weak: bool,
    /// Whether words answered, since the model gave no vector.
    pub is_degraded: bool,
}

/// A tool that was found for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTool {
    /// The tool, as listings show it.
    pub entry: ListedEntry,
    /// What a call of it needs, with [`Detail::Call`].
    pub callable: Option<CallableTool>,
    /// From 0 to 1, with two digits.
    pub score: f64,
}

/// Answers a query with its vector.
pub(crate) fn found(
    snapshot: &Snapshot,
    root: &'static str,
    what: &SearchQuery<'_>,
    vector: &QueryVector,
) -> Result<FoundTools, Box<CoreError>> {
    let (core, scope) = (&snapshot.core, snapshot.scope());
    check(what.query, what.limit)?;
    let place = match (what.detail, what.path) {
        // A caller may be restricted to one tool, or to an entry that a reload removed.
        (Detail::Call { .. }, None) => root,
        (Detail::Listing, None) => node_at(scope, root)?,
        (Detail::Call { .. } | Detail::Listing, Some(path)) => node_at(scope, path)?,
    };
    let vectors = core.query_vectors.as_ref();
    let similarity = vectors.and_then(|vectors| vectors.similarity(vector));
    let search = &core.search;
    let mut ranking = search.ranking(scope, place, what.query, similarity);
    let is_weak = ranking.is_weak;
    let (hits, nodes) = match what.detail {
        Detail::Listing => {
            let best: Vec<_> = ranking.hits.by_ref().take(what.limit).collect();
            let hits = best.iter().map(|hit| FoundTool {
                entry: scope.listed_entry(scope.catalog.item(hit.tool).entry, 0),
                callable: None,
                score: rounded(hit.score),
            });
            let hits = hits.collect();
            let tools = best.into_iter().chain(ranking.hits).map(|hit| hit.tool);
            let nodes = nodes(scope, place, tools);
            let nodes = nodes.into_iter().map(|node| scope.listed_entry(node, 0));
            (hits, nodes.collect())
        }
        Detail::Call { max_bytes } => (
            callable_hits(scope, ranking, what.limit, max_bytes),
            Vec::new(),
        ),
    };
    Ok(FoundTools {
        place,
        hits,
        nodes,
        is_weak,
        is_degraded: vector.has_failed(),
    })
}

/// Returns the path of the node that a caller names.
fn node_at(scope: Scope<'_>, path: &str) -> Result<&'static str, Box<CoreError>> {
    let entry = scope.catalog.entry(paths::resolve(scope, path)?);
    match entry.kind {
        EntryKind::Item(_) => Err(paths::is_tool(entry.path)),
        EntryKind::Node { .. } => Ok(entry.path),
    }
}

/// Returns the served tools of a ranking, with what a call needs: at most `limit`, and after the first one only those
/// that fit into `max_bytes`.
fn callable_hits(
    scope: Scope<'_>,
    ranking: Ranking,
    limit: usize,
    max_bytes: usize,
) -> Vec<FoundTool> {
    let served = ranking.hits.filter(|hit| {
        let is_tool = scope.catalog.item(hit.tool).kind == ItemKind::Tool;
        is_tool && scope.view.is_served(hit.tool)
    });
    let (mut hits, mut bytes) = (Vec::new(), 0);
    for hit in served.take(limit) {
        let tool = tools::called(scope, hit.tool);
        bytes += tool.description.len() + tool.input_schema.len();
        if bytes > max_bytes && !hits.is_empty() {
            break;
        }
        hits.push(FoundTool {
            entry: scope.listed_entry(scope.catalog.item(hit.tool).entry, 0),
            callable: Some(tool),
            score: rounded(hit.score),
        });
    }
    hits
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
}

/// Returns the nodes of the best tools, each once, without the one that was searched.
fn nodes(scope: Scope<'_>, place: &str, tools: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut nodes = Vec::with_capacity(MAX_NODES);
    for tool in tools {
        let (parent, _) = scope.path_of(tool).rsplit_once('/').unwrap_or_default();
        let parent = if parent.is_empty() { "/" } else { parent };
        let Some(node) = scope.catalog.find(parent) else {
            continue;
        };
        if parent != place && scope.admits(node) && !nodes.contains(&node) {
            nodes.push(node);
        }
        if nodes.len() == MAX_NODES {
            break;
        }
    }
    nodes
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
