//! What is printed on request: the compiled-in tree, the version. Starts nothing.

use broker_model::exit::Exit;
use serde_json::Value;

use super::failure::Failure;
use crate::catalog::{Catalog, Kind};
use crate::logging::Output;
use broker_model::text::shown_line;

/// The longest summary in a line.
const SUMMARY: usize = 120;

/// Prints to stdout.
pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    match Output::print(text) {
        Ok(()) => Ok(Exit::Ok),
        // `--dump-tree | head` is no failure of anybody.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
        Err(error) => Err(Failure::Internal(format!(
            "cannot write to stdout: {error}"
        ))),
    }
}

/// One line an entry, in the order of `meta_tree`, indented by depth; nodes end with `/`.
pub(super) fn render(catalog: &Catalog) -> String {
    let mut lines = Vec::new();
    let root = catalog.find("/");
    let mut pending: Vec<(u32, usize)> = root.map(|at| (at, 0)).into_iter().collect();
    while let Some((at, depth)) = pending.pop() {
        let entry = catalog.entry(at);
        let mut name = format!("{}{}", "  ".repeat(depth), leaf(entry.path));
        if let Kind::Node { children, .. } = &entry.kind {
            if !name.ends_with('/') {
                name.push('/');
            }
            pending.extend(children.iter().rev().map(|child| (*child, depth + 1)));
        }
        lines.push((name, summary(catalog.text(entry.head))));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let tools = catalog.tools.len();
    let mut out: String = lines
        .iter()
        .map(|(name, summary)| format!("{name:width$}  {summary}").trim_end().to_owned() + "\n")
        .collect();
    out.push_str(&format!(
        "{tools} tools of {} sources, catalog {}\n",
        catalog.sources.len(),
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

/// The summary in an entry's pre-rendered beginning, which lacks its closing brace.
fn summary(head: &str) -> String {
    let entry: Option<Value> = serde_json::from_str(&format!("{head}}}")).ok();
    let text = entry
        .as_ref()
        .and_then(|entry| entry.get("summary")?.as_str());
    shown_line(text.unwrap_or_default(), SUMMARY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Entry, Span};

    const NONE: Span = Span { at: 0, len: 0 };
    const BLOB: &str = r##"{"path":"/","type":"node","summary":"All"{"path":"/a","type":"node","summary":"A\nnode"{"path":"/a/t","type":"tool","summary":"Tool""##;

    const fn entry(path: &'static str, head: Span, kind: Kind) -> Entry {
        Entry {
            path,
            kind,
            head,
            desc: NONE,
            desc_head: NONE,
            desc_etag: "",
        }
    }

    const fn node(children: &'static [u32]) -> Kind {
        Kind::Node {
            children,
            tree: NONE,
            tree_etag: "",
        }
    }

    static CATALOG: Catalog = Catalog {
        format: 1,
        catalog_digest: "sha256/1:00",
        root_digest: "",
        config_digest: "",
        config_name: "c.json",
        config: "{}",
        blob: BLOB,
        entries: &[
            entry("/", Span { at: 0, len: 41 }, node(&[1])),
            entry("/a", Span { at: 41, len: 46 }, node(&[2])),
            entry("/a/t", Span { at: 87, len: 45 }, Kind::Tool(0)),
        ],
        tools: &[],
        sources: &[],
    };

    #[test]
    fn the_tree_is_one_line_an_entry() {
        assert_eq!(
            render(&CATALOG),
            "/      All\n  a/   A node\n    t  Tool\n0 tools of 0 sources, catalog sha256/1:00\n"
        );
    }
}
