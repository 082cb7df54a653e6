//! Computes the tables of a catalog from the plan: pre-rendered replies as one text, and entries with offsets into it.
//!
//! Only this module decides the content of a catalog. [`emit`](crate::emit) renders the tables as Rust data for a
//! build; `broker-gen serve` uses them in memory. The plan decides the order, so equal plans give equal tables.

use std::collections::BTreeMap;
use std::ops::Range;

use broker_config::Config;
use broker_model::access::{DenyMask, Hint, Hints, NarrowMask};
use broker_model::digest::Digest;
use broker_model::flat_name::flat_name;
use broker_model::item::ItemKind;
use broker_model::lock::Lock;
use broker_model::path_words::words_of_path;
use broker_model::trust::WordList;
use broker_model::{NodePath, header_params};
use broker_search::StaticTable;
use serde_json::{Value, json};

mod access;
mod list_head;
pub mod listing;
pub mod summary;
mod tool_reply;

use crate::embedder_table::EmbedderTable;
use crate::plan::{self, Plan, ToolEntry};
use crate::search_documents::search_documents;
use listing::ListedFormsOfAll;
pub use listing::ListedSchemas;
use summary::{node_summary, tool_summary};
use tool_reply::ToolReply;

/// The version of the tables; a library with another version refuses them.
pub const CATALOG_FORMAT: u32 = 12;

/// The owned form of a catalog. Each type has the members of the type of this name in
/// `mcp_broker::catalog`, where they are described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// [`CATALOG_FORMAT`].
    pub format: u32,
    /// The digest of everything that callers can see and call.
    pub catalog_digest: String,
    /// The digest of the lock.
    pub root_digest: String,
    /// The digest of the config fields that the lock covers.
    pub config_digest: String,
    /// The config's file name.
    pub config_name: String,
    /// The config as JSON, literal secrets replaced by variables.
    pub config: String,
    /// The text that spans point into.
    pub blob: String,
    /// Nodes and tools, sorted by the bytes of their paths.
    pub entries: Vec<Entry>,
    /// Tools, in the order of their entries.
    pub items: Vec<Item>,
    /// The items by index, sorted by their flat names.
    pub flat_order: Vec<u32>,
    /// Sources, in the order of the config.
    pub sources: Vec<Source>,
    /// The section `access` of the config.
    pub access: Option<AccessTable>,
    /// The data that a search reads.
    pub search: SearchTables,
}

/// The words and the vectors of the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTables {
    /// The bytes of an index.
    pub index: Vec<u8>,
    /// Whether the catalog has the table of the vectors of words.
    pub has_table: bool,
    /// The vectors by the models of the config.
    pub embedder: Option<EmbedderTable>,
}

/// The section `access`, apart from its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTable {
    /// The digest of the whole section.
    pub digest: String,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// The schemas of rules that narrow arguments.
    pub narrowings: Vec<String>,
    /// The groups of the program that starts or contains the broker.
    pub local: u64,
    /// The groups of callers with the secret.
    pub secret: u64,
    /// The groups of callers without a credential.
    pub anonymous: u64,
    /// The groups that see the state of the sources.
    pub operators: Option<u64>,
    /// Whether a caller is informed of the existence of an entry that it may not use.
    pub is_forbidden_shown: bool,
}

/// A piece of [`Tables::blob`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its offset, in bytes.
    pub at: u32,
    /// Its length, in bytes.
    pub len: u32,
}

/// The entry of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: String,
    /// The words of its path.
    pub words: String,
    /// A node or a tool.
    pub kind: EntryKind,
    /// Its head, without the closing brace.
    pub head: Span,
    /// Its description.
    pub desc: Span,
    /// The beginning of its description.
    pub desc_head: Span,
    /// The entity tag of its description.
    pub desc_etag: String,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A node.
    Node {
        /// The indices of the entries directly below.
        children: Vec<u32>,
        /// Its listing.
        tree: Span,
        /// The entity tag of its listing.
        tree_etag: String,
    },
    /// An item, by its index in [`Tables::items`].
    Item(u32),
}

/// A tool, prompt, template or resource of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub entry: u32,
    pub source: u32,
    pub kind: ItemKind,
    /// The server's identifier for it.
    pub id: String,
    /// Its key in lock and config.
    pub key: String,
    /// Its name for MCP clients that see every tool directly.
    pub flat_name: String,
    /// Its digest.
    pub digest: String,
    /// The schema of its arguments.
    pub args_schema: Span,
    /// The schema of its structured results.
    pub output_schema: Option<Span>,
    /// The members of its `tools/list` entry other than name and schemas.
    pub list_head: Span,
    /// Its schemas in `tools/list`.
    pub listed: Option<ListedSchemas>,
    /// The arguments that a client repeats as headers.
    pub header_params: Vec<header_params::HeaderParam>,
    /// Whether a second call has no further effect.
    pub idempotent: bool,
    /// Whether it is for pages of its server only, so that it exists for no caller.
    pub for_pages_only: bool,
    /// Whether its server says that each call of it is a task.
    pub requires_task: bool,
    pub unvalidated: bool,
    /// The pointers of the arguments that lines of the audit log show.
    pub audit: Vec<String>,
    /// The groups that may see and call it.
    pub allow: u64,
    /// The groups that may call it with some arguments only.
    pub narrowed: Vec<NarrowMask>,
    /// The groups that may not use it.
    pub deny: Vec<DenyMask>,
}

/// A server mounted on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path of its node.
    pub path: String,
    /// The revision that it spoke when it was locked.
    pub protocol_version: String,
    /// The version of the list of sensitive words; it hides tools by this list.
    pub sensitive_words: u64,
    /// Its element of the lock's `sources`.
    pub lock: Span,
    /// Its exposed items.
    pub items: Vec<u32>,
}

/// Computes the tables. `lock` must be fresh for `config`, and `plan` made of both.
pub fn tables(config: &Config, lock: &Lock, plan: &Plan<'_>) -> Tables {
    let mut writer = Writer {
        blob: String::new(),
        entry_ids: plan
            .entries
            .keys()
            .enumerate()
            .map(|(id, path)| (path.clone(), id as u32))
            .collect(),
        plan,
        max_name: config.mcp.max_name,
        listed_forms: ListedFormsOfAll::default(),
    };
    let mut items = Vec::new();
    let mut items_of = vec![Vec::new(); plan.sources.len()];
    let mut shape = Vec::new();
    let entries = plan
        .entries
        .iter()
        .map(|(path, entry)| match entry {
            plan::Entry::Node { children, .. } => {
                let desc = writer.node_reply(path);
                shape.push(Value::from(desc.as_str()));
                writer.node(path, children, &desc)
            }
            plan::Entry::Tool(tool) => {
                let desc = ToolReply::new(path, tool);
                shape.push(Value::from(desc.text.as_str()));
                let id = items.len() as u32;
                items_of[tool.source].push(id);
                let (entry, item) = writer.item(path, id, tool, &desc);
                items.push(item);
                entry
            }
        })
        .collect();
    let sources = plan
        .sources
        .iter()
        .zip(items_of)
        .map(|((_, locked), items)| Source {
            path: locked.path.as_str().to_owned(),
            protocol_version: locked.protocol_version.clone(),
            // A level that is lowered after the build hides by the newest list.
            sensitive_words: locked.word_list().unwrap_or(WordList::NEWEST).number(),
            lock: writer.push(&broker_model::json::to_text(&locked.to_json())),
            items,
        })
        .collect();
    let root_digest = lock.root_digest().as_str().to_owned();
    let mut digested = json!({"entries": shape, "root_digest": root_digest});
    if !config.mcp.has_default_max_name() {
        digested["max_name"] = config.mcp.max_name.into();
    }
    if !config.search.table {
        digested["search"] = json!({"table": false});
    }
    if let Some(vectors) = &plan.vectors {
        digested["vectors"] = vectors.digest.clone().into();
    }
    if let Some(access) = config.access_digest() {
        digested["access"] = access.as_str().into();
    }
    let catalog_digest = Digest::new("mcp-broker:catalog:1", &digested);
    let access = access::apply(config, plan, &mut items);
    let named = items.iter().zip(0..);
    let named = named.filter(|(item, _)| !item.flat_name.is_empty());
    let mut flat_order: Vec<u32> = named.map(|(_, at)| at).collect();
    flat_order.sort_by_key(|at| &items[*at as usize].flat_name);
    let config_name = config.file.rsplit(['/', '\\']).next().unwrap_or_default();
    Tables {
        format: CATALOG_FORMAT,
        catalog_digest: catalog_digest.as_str().to_owned(),
        root_digest,
        config_digest: lock.config_digest.as_str().to_owned(),
        config_name: config_name.to_owned(),
        config: config.compiled_text(),
        blob: writer.blob,
        entries,
        items,
        flat_order,
        sources,
        access,
        search: search_tables(config, plan),
    }
}

/// The index of the tools, with their vectors unless the config leaves the table out.
pub fn search_tables(config: &Config, plan: &Plan<'_>) -> SearchTables {
    let table = config
        .search
        .table
        .then(|| StaticTable::new(&broker_search::TABLE).expect("a test reads the table"));
    SearchTables {
        index: broker_search::index_bytes(&search_documents(plan), table.as_ref()),
        has_table: table.is_some(),
        embedder: plan.vectors.clone(),
    }
}

struct Writer<'p, 'a> {
    blob: String,
    entry_ids: BTreeMap<NodePath, u32>,
    plan: &'p Plan<'a>,
    max_name: usize,
    listed_forms: ListedFormsOfAll,
}

impl Writer<'_, '_> {
    /// Appends to the blob; returns the span.
    fn push(&mut self, text: &str) -> Span {
        let at = self.blob.len();
        self.blob.push_str(text);
        self.blob.push('\n');
        span(at, text.len())
    }

    fn node(&mut self, path: &NodePath, children: &[NodePath], desc: &str) -> Entry {
        let head = self.push(&self.head(path));
        let tree_text = format!("{},{}}}", self.head(path), self.children_member(children));
        let tree = self.push(&tree_text);
        let at = self.blob.len();
        let desc_span = self.push(desc);
        Entry {
            path: path.as_str().to_owned(),
            words: words_of_path(path.as_str()),
            kind: EntryKind::Node {
                children: children.iter().map(|child| self.entry_ids[child]).collect(),
                tree,
                tree_etag: etag(&tree_text),
            },
            head,
            desc: desc_span,
            desc_head: span(at, desc.len() - self.children_member(children).len() - 2),
            desc_etag: etag(desc),
        }
    }

    fn item(
        &mut self,
        path: &NodePath,
        id: u32,
        tool: &ToolEntry<'_>,
        desc: &ToolReply,
    ) -> (Entry, Item) {
        let head = self.push(&self.head(path));
        let at = self.blob.len();
        let desc_span = self.push(&desc.text);
        let entry = Entry {
            path: path.as_str().to_owned(),
            words: words_of_path(path.as_str()),
            kind: EntryKind::Item(id),
            head,
            desc: desc_span,
            desc_head: span(at, desc.text.len() - 1),
            desc_etag: etag(&desc.text),
        };
        let list_head = self.push(&list_head::list_head(tool));
        let inside = |place: &Range<usize>| span(at + place.start, place.len());
        // The description contains the schemas, so that only their places are needed.
        let args_schema = inside(&desc.args_schema);
        let output_schema = desc.output_schema.as_ref().map(inside);
        let listed = self.listed(tool, args_schema, output_schema);
        let (kind, id) = ItemKind::parse_key(&tool.tool.upstream_name);
        let item = Item {
            entry: self.entry_ids[path],
            source: tool.source as u32,
            kind,
            id: id.to_owned(),
            key: tool.tool.upstream_name.clone(),
            flat_name: match kind {
                ItemKind::Tool => flat_name(path, self.max_name),
                ItemKind::Prompt | ItemKind::Template | ItemKind::Resource => String::new(),
            },
            digest: tool.tool.digest.as_str().to_owned(),
            args_schema,
            output_schema,
            list_head,
            listed,
            header_params: header_params::read_params(&tool.tool.raw).unwrap_or_default(),
            idempotent: is_idempotent(tool),
            for_pages_only: tool.is_for_pages_only(),
            requires_task: tool.requires_task(),
            unvalidated: tool.tool.unvalidated,
            audit: tool.said.map_or_else(Vec::new, |said| said.audit.clone()),
            allow: u64::MAX,
            narrowed: Vec::new(),
            deny: Vec::new(),
        };
        (entry, item)
    }

    fn kind_and_summary(&self, path: &NodePath) -> (&'static str, String) {
        match &self.plan.entries[path] {
            plan::Entry::Node { node, .. } => ("node", node_summary(self.plan, path, node)),
            plan::Entry::Tool(tool) => (tool.tool.kind().as_str(), tool_summary(tool)),
        }
    }

    fn head(&self, path: &NodePath) -> String {
        let (kind, summary) = self.kind_and_summary(path);
        head(path, kind, &summary)
    }

    fn children_member(&self, children: &[NodePath]) -> String {
        let heads: Vec<_> = children
            .iter()
            .map(|child| self.head(child) + "}")
            .collect();
        format!("\"children\":[{}]", heads.join(","))
    }

    fn node_reply(&self, path: &NodePath) -> String {
        let plan::Entry::Node { node, children } = &self.plan.entries[path] else {
            unreachable!("only nodes are asked for");
        };
        let description = node
            .description
            .as_deref()
            .or(node.summary.as_deref())
            .unwrap_or_default();
        format!(
            "{},\"description\":{},{}}}",
            self.head(path),
            Value::from(description),
            self.children_member(children)
        )
    }
}

fn span(at: usize, len: usize) -> Span {
    Span {
        at: at as u32,
        len: len as u32,
    }
}

/// A strong validator over the bytes of the reply as sent, with quotes.
fn etag(reply: &str) -> String {
    broker_model::digest::etag(reply.as_bytes())
}

/// The members of an entry that are in every reply, without the closing brace.
fn head(path: &NodePath, kind: &str, summary: &str) -> String {
    format!(
        "{{\"path\":{},\"type\":\"{kind}\",\"summary\":{}",
        Value::from(path.as_str()),
        Value::from(summary)
    )
}

/// The server's schema; a missing one accepts anything.
fn args_schema(tool: &ToolEntry<'_>) -> String {
    tool.tool
        .raw
        .get("inputSchema")
        .map_or_else(|| "{}".to_owned(), broker_model::json::to_text)
}

/// Whether the reviewed annotations say that a second call has no further effect.
fn is_idempotent(tool: &ToolEntry<'_>) -> bool {
    if tool.tool.kind() != ItemKind::Tool {
        // Prompts and resources are read.
        return true;
    }
    let annotations = tool.annotations();
    let hints = Hints::read(annotations.as_ref());
    hints.get(Hint::ReadOnly) || hints.get(Hint::Idempotent)
}
