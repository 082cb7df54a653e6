//! Renders the plan as Rust data: a blob of pre-rendered text, and tables of offsets into it.
//!
//! Emitted code is data and names types of `mcp_broker::catalog`; no text of a server becomes code, an
//! identifier or a comment. The plan decides the order, so equal plans give equal bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use broker_model::NodePath;
use broker_model::config::Config;
use broker_model::digest::Digest;
use broker_model::lock::Lock;
use proc_macro2::TokenStream;
use quote::quote;
use serde_json::{Value, json};

use crate::plan::{Entry, Plan, ToolEntry};
use crate::text::first_sentence;

/// The version of the emitted tables; a library with another version refuses them.
pub const CATALOG_FORMAT: u32 = 2;
/// The name of the file with the tables, which `include_catalog!` includes.
pub const CATALOG_FILE: &str = "catalog.rs";
/// The name of the file with the text, which the tables include.
pub const BLOB_FILE: &str = "catalog.json";

/// The name of the file with the types of the tools, which `include_tools!` includes.
pub const TOOLS_FILE: &str = "tools.rs";

/// The output of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The content of [`CATALOG_FILE`].
    pub tables: String,
    /// The content of [`BLOB_FILE`].
    pub blob: String,
    /// The content of [`TOOLS_FILE`].
    pub tools: String,
    /// The digest of everything that callers can see and call.
    pub catalog_digest: String,
}

/// The files of a build, by name.
pub fn files(emitted: &Emitted) -> Vec<(&'static str, &str)> {
    vec![
        (CATALOG_FILE, &emitted.tables),
        (BLOB_FILE, &emitted.blob),
        (TOOLS_FILE, &emitted.tools),
    ]
}

/// Renders everything. `lock` must be fresh for `config`, and `plan` made of both.
pub fn emit(config: &Config, lock: &Lock, plan: &Plan<'_>) -> Emitted {
    let mut emitter = Emitter {
        blob: String::new(),
        entry_ids: plan
            .entries
            .keys()
            .enumerate()
            .map(|(id, path)| (path.clone(), id as u32))
            .collect(),
        plan,
    };
    let root_digest = lock.root_digest();
    let mut tools = Vec::new();
    let mut tools_of = vec![Vec::new(); plan.sources.len()];
    let mut shape = Vec::new();
    let entries: Vec<_> = plan
        .entries
        .iter()
        .map(|(path, entry)| match entry {
            Entry::Node { children, .. } => {
                let desc = emitter.node_reply(path);
                shape.push(Value::from(desc.as_str()));
                emitter.node(path, children, &desc)
            }
            Entry::Tool(tool) => {
                let desc = ToolReply::new(path, tool);
                shape.push(Value::from(desc.text.as_str()));
                let id = tools.len() as u32;
                tools_of[tool.source].push(id);
                let (entry, tool) = emitter.tool(path, id, tool, &desc);
                tools.push(tool);
                entry
            }
        })
        .collect();
    let sources: Vec<_> = plan
        .sources
        .iter()
        .zip(&tools_of)
        .map(|((_, locked), tools)| {
            let span = emitter.push(&locked.to_json().to_string());
            let (path, revision) = (locked.path.as_str(), &locked.protocol_version);
            quote!(Source { path: #path, protocol_version: #revision, lock: #span, tools: &[#(#tools),*] })
        })
        .collect();
    let catalog_digest = Digest::of(
        "mcp-broker:catalog:1",
        &json!({"entries": shape, "root_digest": root_digest.as_str()}),
    );

    let areas = emitter.areas();
    let config_text = config.compiled_text();
    let config_name = config.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let (catalog_digest, root_digest, config_digest) = (
        catalog_digest.as_str(),
        root_digest.as_str(),
        lock.config_digest.as_str(),
    );
    let tables = render(&quote! {
        pub static CATALOG: ::mcp_broker::catalog::Catalog = {
            use ::mcp_broker::catalog::{Area, Catalog, Entry, EntryKind, Source, Span, Tool};
            Catalog {
                format: #CATALOG_FORMAT,
                catalog_digest: #catalog_digest,
                root_digest: #root_digest,
                config_digest: #config_digest,
                config_name: #config_name,
                config: #config_text,
                blob: include_str!(#BLOB_FILE),
                entries: &[#(#entries),*],
                tools: &[#(#tools),*],
                sources: &[#(#sources),*],
                areas: &[#(#areas),*],
            }
        };
    });
    let tools = render(&crate::types::types(plan).tokens);
    Emitted {
        tables,
        blob: emitter.blob,
        tools,
        catalog_digest: catalog_digest.to_owned(),
    }
}

/// Tokens as formatted source under a header. Deterministic: no time, no path.
fn render(tokens: &TokenStream) -> String {
    let file = syn::parse2(tokens.clone()).expect("the emitter writes a valid file");
    format!(
        "// @generated by broker-gen from config and lock. Do not edit: lock and build again.\n\n{}",
        prettyplease::unparse(&file)
    )
}

struct Emitter<'p, 'a> {
    blob: String,
    entry_ids: BTreeMap<NodePath, u32>,
    plan: &'p Plan<'a>,
}

impl Emitter<'_, '_> {
    /// Appends to the blob; returns the tokens of the span.
    fn push(&mut self, text: &str) -> TokenStream {
        let at = self.blob.len();
        self.blob.push_str(text);
        self.blob.push('\n');
        span(at, text.len())
    }

    fn node(&mut self, path: &NodePath, children: &[NodePath], desc: &str) -> TokenStream {
        let head = self.push(&self.head(path));
        let tree_text = format!("{},{}}}", self.head(path), self.children_member(children));
        let tree = self.push(&tree_text);
        let at = self.blob.len();
        let desc_span = self.push(desc);
        let desc_head = span(at, desc.len() - self.children_member(children).len() - 2);
        let ids = children.iter().map(|child| self.entry_ids[child]);
        let (text, tree_etag, desc_etag) = (path.as_str(), etag(&tree_text), etag(desc));
        quote! {
            Entry {
                path: #text,
                kind: EntryKind::Node { children: &[#(#ids),*], tree: #tree, tree_etag: #tree_etag },
                head: #head, desc: #desc_span, desc_head: #desc_head, desc_etag: #desc_etag,
            }
        }
    }

    fn tool(
        &mut self,
        path: &NodePath,
        id: u32,
        tool: &ToolEntry<'_>,
        desc: &ToolReply,
    ) -> (TokenStream, TokenStream) {
        let head = self.push(&self.head(path));
        let at = self.blob.len();
        let desc_span = self.push(&desc.text);
        let desc_head = span(at, desc.text.len() - 1);
        // The description contains the schema, so the validator needs only its place there.
        let schema = span(at + desc.args_schema.start, desc.args_schema.len());
        let (text, desc_etag, entry) = (path.as_str(), etag(&desc.text), self.entry_ids[path]);
        let (source, name, digest) = (
            tool.source as u32,
            &tool.tool.upstream_name,
            tool.tool.digest.as_str(),
        );
        let idempotent = is_idempotent(tool);
        (
            quote!(Entry { path: #text, kind: EntryKind::Tool(#id), head: #head, desc: #desc_span, desc_head: #desc_head, desc_etag: #desc_etag }),
            quote!(Tool { entry: #entry, source: #source, name: #name, digest: #digest, args_schema: #schema, idempotent: #idempotent, allow: u64::MAX }),
        )
    }

    /// The children of the root.
    fn areas(&self) -> Vec<TokenStream> {
        let Some(Entry::Node { children, .. }) = self.plan.entries.get(&NodePath::root()) else {
            return Vec::new();
        };
        let area = |child: &NodePath| {
            let (entry, (_, summary)) = (self.entry_ids[child], self.kind_and_summary(child));
            quote!(Area { entry: #entry, summary: #summary })
        };
        children.iter().map(area).collect()
    }

    fn kind_and_summary(&self, path: &NodePath) -> (&'static str, String) {
        match &self.plan.entries[path] {
            Entry::Node { node, .. } => ("node", node_summary(path, node)),
            Entry::Tool(tool) => ("tool", tool_summary(tool)),
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
        let Entry::Node { node, children } = &self.plan.entries[path] else {
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

fn span(at: usize, len: usize) -> TokenStream {
    let (at, len) = (at as u32, len as u32);
    quote!(Span { at: #at, len: #len })
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

/// The summary, else the description's first sentence, else the name.
pub(crate) fn node_summary(path: &NodePath, node: &broker_model::config::Node) -> String {
    let from_description = || node.description.as_deref().and_then(first_sentence);
    let name = || {
        if path.is_root() {
            "All tools of this broker".to_owned()
        } else {
            path.leaf().to_owned()
        }
    };
    node.summary
        .clone()
        .or_else(from_description)
        .unwrap_or_else(name)
}

/// The override, else the title, else the description's first sentence, else the name.
pub(crate) fn tool_summary(tool: &ToolEntry<'_>) -> String {
    let raw = &tool.tool.raw;
    let text = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
            .map(str::to_owned)
    };
    tool.said
        .and_then(|said| said.summary.clone())
        .or_else(|| text(raw.get("title")))
        .or_else(|| {
            text(
                raw.get("annotations")
                    .and_then(|annotations| annotations.get("title")),
            )
        })
        .or_else(|| {
            raw.get("description")
                .and_then(Value::as_str)
                .and_then(first_sentence)
        })
        .unwrap_or_else(|| tool.tool.upstream_name.clone())
}

/// The server's schema; a missing one accepts anything.
fn args_schema(tool: &ToolEntry<'_>) -> String {
    tool.tool
        .raw
        .get("inputSchema")
        .map_or_else(|| "{}".to_owned(), Value::to_string)
}

/// Whether the reviewed annotations say that a second call has no further effect.
fn is_idempotent(tool: &ToolEntry<'_>) -> bool {
    let annotations = tool.tool.raw.get("annotations");
    let says = |hint: &str| annotations.is_some_and(|annotations| annotations[hint] == true);
    says("readOnlyHint") || says("idempotentHint")
}

/// The `meta_desc` reply of a tool.
struct ToolReply {
    text: String,
    /// The place of the argument schema in it.
    args_schema: Range<usize>,
}

impl ToolReply {
    fn new(path: &NodePath, tool: &ToolEntry<'_>) -> Self {
        let raw = &tool.tool.raw;
        let said = tool.said.and_then(|said| said.description.clone());
        let description = said
            .or_else(|| {
                raw.get("description")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            })
            .unwrap_or_default();
        let mut text = head(path, "tool", &tool_summary(tool));
        // Returns the place of the value.
        let mut member = |key: &str, value: String| {
            text.push_str(&format!(",\"{key}\":{value}"));
            text.len() - value.len()..text.len()
        };
        member("description", Value::from(description).to_string());
        let args_schema = member("args_schema", args_schema(tool));
        if let Some(example) = tool.said.and_then(|said| said.example_args.as_ref()) {
            member("example_args", Value::Object(example.clone()).to_string());
        }
        for (key, from) in [
            ("output_schema", "outputSchema"),
            ("annotations", "annotations"),
        ] {
            if let Some(value) = raw.get(from) {
                member(key, value.to_string());
            }
        }
        member("digest", Value::from(tool.tool.digest.as_str()).to_string());
        text.push('}');
        Self { text, args_schema }
    }
}
