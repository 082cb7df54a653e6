//! Prints the compiled-in tree and the version. Starts no server.

use broker_model::exit::Exit;
use serde_json::{Value, json};

use super::failure::Failure;
use crate::catalog::{Catalog, EntryKind};
use crate::cli::TreeForm;
use crate::logging::LogOutput;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{counted, shown_line};

/// The maximum length of a summary in a line, in characters.
const MAX_SUMMARY_CHARS: usize = 120;

/// Prints to stdout.
pub(super) fn print(text: &Text) -> Result<Exit, Failure> {
    match LogOutput::print(text) {
        Ok(()) => Ok(Exit::Ok),
        // `--dump-tree | head` is not a failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
        Err(error) => Err(Failure::Internal(format!(
            "cannot write to stdout: {error}"
        ))),
    }
}

/// The version of the binary and of its catalog.
pub(super) fn version(catalog: &Catalog) -> Text {
    text!(
        "mcp-broker {}\ncatalog {}\nbuilt from {}, config {}, lock {}\n",
        env!("CARGO_PKG_VERSION"),
        catalog.catalog_digest,
        catalog.config_name,
        catalog.config_digest,
        catalog.root_digest
    )
}

/// The whole tree.
pub(super) fn render(catalog: &Catalog, form: TreeForm) -> Text {
    match form {
        TreeForm::Human => human(catalog),
        TreeForm::Json => {
            let tree = catalog.find("/").map(|root| json(catalog, root));
            let document = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "catalog_digest": catalog.catalog_digest,
                "tools": catalog.items.len(),
                "sources": catalog.sources.len(),
                "tree": tree,
            });
            Text::json(&document)
        }
    }
}

/// An entry as in `meta_tree`, with all levels and the digest of a tool.
fn json(catalog: &Catalog, at: u32) -> Value {
    let entry = catalog.entry(at);
    let mut out = head(catalog.text(entry.head));
    match &entry.kind {
        EntryKind::Node { children, .. } => {
            let below = children.iter().map(|child| json(catalog, *child));
            out["children"] = below.collect();
        }
        EntryKind::Item(tool) => out["digest"] = catalog.item(*tool).digest.into(),
    }
    out
}

/// One line for each entry, in the order of `meta_tree`, indented by depth; nodes end with `/`.
fn human(catalog: &Catalog) -> Text {
    let mut lines = Vec::new();
    let root = catalog.find("/");
    let mut pending: Vec<(u32, usize)> = root.map(|at| (at, 0)).into_iter().collect();
    while let Some((at, depth)) = pending.pop() {
        let entry = catalog.entry(at);
        let mut name = format!("{}{}", "  ".repeat(depth), leaf(entry.path));
        if let EntryKind::Node { children, .. } = &entry.kind {
            if !name.ends_with('/') {
                name.push('/');
            }
            pending.extend(children.iter().rev().map(|child| (*child, depth + 1)));
        }
        lines.push((name, summary(catalog.text(entry.head))));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let tools = catalog.items.len();
    let mut out: Text = lines
        .iter()
        .map(|(name, summary)| {
            let line = format!("{name:width$}  {summary}");
            text!("{}\n", line.trim_end())
        })
        .collect();
    out.push(text!(
        "{} of {}, catalog {}\n",
        counted(tools, "tool"),
        counted(catalog.sources.len(), "source"),
        catalog.catalog_digest
    ));
    out
}

fn leaf(path: &str) -> &str {
    match path.rsplit('/').next() {
        Some("") | None => path,
        Some(leaf) => leaf,
    }
}

/// Reads an entry's pre-rendered beginning. It lacks its closing brace.
fn head(text: &str) -> Value {
    serde_json::from_str(&format!("{text}}}")).unwrap_or_default()
}

fn summary(text: &str) -> String {
    let entry = head(text);
    let text = entry.get("summary").and_then(Value::as_str);
    shown_line(text.unwrap_or_default(), MAX_SUMMARY_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Entry, Item, ItemKind, Span};

    const NONE: Span = Span { at: 0, len: 0 };
    const BLOB: &str = r##"{"path":"/","type":"node","summary":"All"{"path":"/a","type":"node","summary":"A\nnode"{"path":"/a/t","type":"tool","summary":"Tool""##;

    const fn entry(path: &'static str, head: Span, kind: EntryKind) -> Entry {
        Entry {
            path,
            words: "\t",
            kind,
            head,
            desc: NONE,
            desc_head: NONE,
            desc_etag: "",
        }
    }

    const fn node(children: &'static [u32]) -> EntryKind {
        EntryKind::Node {
            children,
            tree: NONE,
            tree_etag: "",
        }
    }

    static CATALOG: Catalog = Catalog {
        format: crate::catalog::FORMAT,
        catalog_digest: "sha256/1:00",
        root_digest: "sha256/1:0d",
        config_digest: "sha256/1:0c",
        config_name: "c.json",
        config: "{}",
        blob: BLOB,
        entries: &[
            entry("/", Span { at: 0, len: 41 }, node(&[1])),
            entry("/a", Span { at: 41, len: 46 }, node(&[2])),
            entry("/a/t", Span { at: 87, len: 45 }, EntryKind::Item(0)),
        ],
        items: &[Item {
            entry: 2,
            source: 0,
            kind: ItemKind::Tool,
            id: "t",
            key: "t",
            flat_name: "a-t",
            digest: "sha256/1:01",
            args_schema: NONE,
            output_schema: None,
            list_head: NONE,
            listed: None,
            header_params: &[],
            idempotent: false,
            for_pages_only: false,
            requires_task: false,
            unvalidated: false,
            audit: &[],
            allow: u64::MAX,
            narrowed: &[],
            deny: &[],
        }],
        flat_order: &[0],
        sources: &[],
        access: None,
        search: crate::catalog::SearchTables::EMPTY,
    };

    #[test]
    fn tree_dump_has_one_line_per_entry() {
        assert_eq!(
            render(&CATALOG, TreeForm::Human).as_str(),
            "/      All\n  a/   A node\n    t  Tool\n1 tool of 0 sources, catalog sha256/1:00\n"
        );
    }

    #[test]
    fn tree_dump_as_json_has_every_level() {
        let document: Value =
            serde_json::from_str(render(&CATALOG, TreeForm::Json).as_str()).unwrap();
        assert_eq!(document["catalog_digest"], "sha256/1:00");
        let tool = document.pointer("/tree/children/0/children/0").unwrap();
        assert_eq!(tool["path"], "/a/t");
        assert_eq!(
            (&tool["type"], &tool["summary"]),
            (&json!("tool"), &json!("Tool"))
        );
        assert_eq!(tool["digest"], "sha256/1:01");
    }

    #[test]
    fn version_output_names_catalog_config_and_lock() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            super::version(&CATALOG).as_str(),
            format!(
                "mcp-broker {version}\ncatalog sha256/1:00\nbuilt from c.json, config sha256/1:0c, lock sha256/1:0d\n"
            )
        );
    }
}
