//! The catalog that the build compiled in: plain tables over one text. Holds data and finds entries by path; `view`
//! holds the entries that are served at a moment.

/// The version of the tables that this library reads.
pub const FORMAT: u32 = 12;

/// A piece of [`Catalog::blob`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its offset, in bytes.
    pub at: u32,
    /// Its length, in bytes.
    pub len: u32,
}

/// Everything that was reviewed, compiled in.
#[derive(Debug)]
pub struct Catalog {
    /// The version of these tables.
    pub format: u32,
    /// The digest of everything that callers can see and call.
    pub catalog_digest: &'static str,
    /// The lock's own digest.
    pub root_digest: &'static str,
    /// The digest of the config fields that the lock covers.
    pub config_digest: &'static str,
    /// The config's file name, for messages.
    pub config_name: &'static str,
    /// The config as JSON, literal secrets replaced by variables.
    pub config: &'static str,
    /// The text that spans point into.
    pub blob: &'static str,
    /// Nodes and tools, sorted by the bytes of their paths.
    pub entries: &'static [Entry],
    /// Tools, prompts, templates and resources, in the order of their entries.
    pub items: &'static [Item],
    /// The items by index, sorted by the bytes of their flat names.
    pub flat_order: &'static [u32],
    /// Sources, in the order of the config.
    pub sources: &'static [Source],
    /// The groups that the rows of the tools name; `None` if the config has no `access`.
    pub access: Option<AccessTable>,
    /// The words and the vectors for searches.
    pub search: SearchTables,
}

/// The catalog without an entry below the root, for a broker that could not read its own catalog.
pub static NONE: Catalog = Catalog {
    format: FORMAT,
    catalog_digest: "",
    root_digest: "",
    config_digest: "",
    config_name: "none.json",
    config: r#"{"mcpServers":{}}"#,
    blob: NONE_BLOB,
    entries: &[Entry {
        path: "/",
        words: "\t",
        kind: EntryKind::Node {
            children: &[],
            tree: span_of_none(NONE_BLOB.len()),
            tree_etag: "\"0\"",
        },
        head: span_of_none(NONE_HEAD),
        desc: span_of_none(NONE_BLOB.len()),
        desc_head: span_of_none(NONE_HEAD),
        desc_etag: "\"0\"",
    }],
    items: &[],
    flat_order: &[],
    sources: &[],
    access: None,
    search: SearchTables::EMPTY,
};

const NONE_BLOB: &str =
    r#"{"path":"/","type":"node","summary":"No tool can be called","children":[]}"#;
/// The length of the head of the root: everything before `,"children"`.
const NONE_HEAD: usize = NONE_BLOB.len() - r#","children":[]}"#.len();

const fn span_of_none(len: usize) -> Span {
    Span {
        at: 0,
        len: len as u32,
    }
}

use broker_config::Config;
use broker_model::item::LIVE;
use broker_model::lock::LockedSource;
use broker_model::trust::WordList;

pub use broker_config::Embedder;
pub use broker_embed::HAS_LOCAL_MODELS;
pub use broker_model::item::ItemKind;
pub use broker_search::{TABLE as SEARCH_TABLE, TableFiles};

/// The data that a search reads.
#[derive(Clone, Copy, Debug)]
pub struct SearchTables {
    /// The bytes of a [`broker_search::Index`] of the tools, in their order.
    pub index: &'static [u8],
    /// The table of the vectors of words; `None` if the config leaves it out.
    pub table: Option<&'static TableFiles>,
    /// The vectors by models; `None` for the embedder `BM25`.
    pub embedder: Option<EmbedderTable>,
}

/// The vectors of the tools by the models of an embedder.
#[derive(Clone, Copy, Debug)]
pub struct EmbedderTable {
    /// The embedder that made them, and makes the query vectors.
    pub embedder: Embedder,
    /// One model, or two: the second one is for queries that are not English.
    pub models: &'static [ModelTable],
}

/// The vectors of the tools by one model.
#[derive(Clone, Copy, Debug)]
pub struct ModelTable {
    /// Its name in the config.
    pub name: &'static str,
    /// The digest of its files; `None` for an endpoint.
    pub files: Option<&'static str>,
    /// The number of components of a vector.
    pub dimensions: u32,
    /// The bytes of [`broker_search::ModelVectors`] of the tools, in their order.
    pub vectors: &'static [u8],
}

impl SearchTables {
    /// The tables of a catalog without tools.
    pub const EMPTY: Self = Self {
        index: broker_search::EMPTY_INDEX,
        table: None,
        embedder: None,
    };
}

/// The section `access` of the config without its rules. The rows of the tools contain the rules.
#[derive(Clone, Copy, Debug)]
pub struct AccessTable {
    /// The digest of the whole section.
    pub digest: &'static str,
    /// The names of the groups; the index of a group is its bit.
    pub groups: &'static [&'static str],
    /// The schemas of rules that narrow arguments, as JSON.
    pub narrowings: &'static [&'static str],
    /// The groups of the program that starts or contains the broker.
    pub local: u64,
    /// The groups of callers with the broker's secret.
    pub secret: u64,
    /// The groups of callers without a credential.
    pub anonymous: u64,
    /// The groups that see the state of the sources, if the config names them.
    pub operators: Option<u64>,
    /// Whether a caller is informed that an entry exists although it may not use it.
    pub is_forbidden_shown: bool,
}

/// The entry that a path names.
#[derive(Debug)]
pub struct Entry {
    /// Its path.
    pub path: &'static str,
    /// The words of its path ([`broker_model::path_words::words_of_path`]).
    pub words: &'static str,
    /// A node or a tool.
    pub kind: EntryKind,
    /// `{"path":…,"type":…,"summary":…` without the closing brace.
    pub head: Span,
    /// The complete `meta_desc` reply.
    pub desc: Span,
    /// A node's description before `,"children":[`; a tool's without its closing brace.
    pub desc_head: Span,
    /// The description's entity tag, with its quotes.
    pub desc_etag: &'static str,
}

/// The kind of an entry.
#[derive(Debug)]
pub enum EntryKind {
    /// Navigation.
    Node {
        /// Entries directly below: nodes in the config's order, then tools by leaf name.
        children: &'static [u32],
        /// The complete `meta_tree` reply of depth 1.
        tree: Span,
        /// Its entity tag, with its quotes.
        tree_etag: &'static str,
    },
    /// An item, by its index in [`Catalog::items`].
    Item(u32),
}

/// A tool, prompt, template or resource of a source.
#[derive(Debug)]
pub struct Item {
    /// Its entry.
    pub entry: u32,
    /// Its source.
    pub source: u32,
    /// Its kind.
    pub kind: ItemKind,
    /// The server's identifier for it: a name, a URI, or the text of a template. [`LIVE`] for the resources that the
    /// source lists while it runs.
    pub id: &'static str,
    /// Its key in lock and config.
    pub key: &'static str,
    /// Its name for MCP clients that see every tool directly; empty for everything but tools.
    pub flat_name: &'static str,
    /// The digest of the raw tool that was reviewed.
    pub digest: &'static str,
    /// The schema of its arguments, as the server gave it.
    pub args_schema: Span,
    /// The schema of its structured results, if it has one.
    pub output_schema: Option<Span>,
    /// The members of its `tools/list` entry other than name and schemas: `"title":…,"description":…`, without
    /// braces. May be empty.
    pub list_head: Span,
    /// Its schemas in `tools/list`; `None` if no form of them can be read by every client, and for everything but
    /// tools.
    pub listed: Option<ListedSchemas>,
    /// The arguments that a client repeats as HTTP headers.
    pub header_params: &'static [HeaderParam],
    /// Whether its reviewed annotations say that a second call has no further effect: `readOnlyHint` or
    /// `idempotentHint` is true.
    pub idempotent: bool,
    /// Whether it is for pages of its server only (`_meta.ui.visibility` without `model`), so that it exists for no
    /// caller.
    pub for_pages_only: bool,
    /// Whether its server says that each call of it is a task (`execution.taskSupport` is `required`).
    pub requires_task: bool,
    /// Whether a schema of it is not valid, so that only the part that is valid is enforced.
    pub unvalidated: bool,
    /// The JSON pointers of the arguments whose values lines of the audit log show.
    pub audit: &'static [&'static str],
    /// The groups that may see and call it, one bit each. Without [`Catalog::access`] it has no meaning.
    pub allow: u64,
    /// The groups that may call it with some arguments only.
    pub narrowed: &'static [NarrowMask],
    /// The denied groups; they override the allowed groups.
    pub deny: &'static [DenyMask],
}

pub use broker_model::access::{DenyMask, NarrowMask};

pub use broker_model::header_params::HeaderParamKind;

/// An argument that a client also sends as the HTTP header `Mcp-Param-{name}`: `x-mcp-header` in the schema of
/// the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderParam {
    /// The end of the name of the header.
    pub name: &'static str,
    /// The names of the properties from the root of the arguments to it.
    pub pointer: &'static [&'static str],
    /// Its type.
    pub kind: HeaderParamKind,
}

/// The schemas of a tool as clients read them in lists.
#[derive(Clone, Copy, Debug)]
pub struct ListedSchemas {
    /// The schema of its arguments. Its root has `"type":"object"`.
    pub input: Span,
    /// The schema of its structured results; `None` without a schema that every client can compile.
    pub output: Option<Span>,
}

/// A server mounted on a node.
#[derive(Debug)]
pub struct Source {
    /// The path of its node.
    pub path: &'static str,
    /// The revision that it spoke when it was locked.
    pub protocol_version: &'static str,
    /// The version of its list of sensitive words, for hidden tools.
    pub sensitive_words: u64,
    /// Its element of the lock's `sources`.
    pub lock: Span,
    /// Its exposed items.
    pub items: &'static [u32],
}

impl Item {
    /// Whether it represents the resources that its source lists at run time.
    pub fn is_live(&self) -> bool {
        self.kind == ItemKind::Resource && self.id == LIVE
    }
}

impl Catalog {
    /// Returns the text of a span.
    pub fn text(&self, span: Span) -> &'static str {
        &self.blob[span.at as usize..span.at as usize + span.len as usize]
    }

    /// Returns the lock of a source, by its index.
    pub fn locked(&self, source: usize) -> Result<LockedSource, String> {
        // The build verified the digests of the compiled lock.
        LockedSource::from_compiled(self.text(self.sources[source].lock))
            .map_err(|error| format!("the compiled lock cannot be read: {error}"))
    }

    /// Compares each tool name with the list of sensitive words in the version of its lock.
    pub fn use_word_lists(&self, config: &mut Config) {
        config.use_word_lists(&|path| {
            let mut sources = self.sources.iter();
            let source = sources.find(|source| source.path == path.as_str())?;
            WordList::from_number(source.sensitive_words)
        });
    }

    /// Finds the index of the entry with this path.
    pub fn find(&self, path: &str) -> Option<u32> {
        self.entries
            .binary_search_by(|entry| entry.path.as_bytes().cmp(path.as_bytes()))
            .ok()
            .map(|at| at as u32)
    }

    /// Finds the index of the tool with this flat name.
    pub fn find_flat(&self, name: &str) -> Option<u32> {
        let order = self.flat_order;
        let found = order.binary_search_by(|at| self.item(*at).flat_name.cmp(name));
        found.ok().map(|index| order[index])
    }

    /// Returns an entry by its index.
    pub fn entry(&self, at: u32) -> &'static Entry {
        &self.entries[at as usize]
    }

    /// Returns an item by its index.
    pub fn item(&self, at: u32) -> &'static Item {
        &self.items[at as usize]
    }
}
