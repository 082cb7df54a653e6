//! Compares a config that is given at start with the compiled-in one: a tighter filter or a lower trust level
//! narrows the exposed tools, values and limits may differ, anything else needs a new lock or a new build.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{self, Key};
use super::{Config, Node, Source, ToolOverride, digest};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::path::NodePath;
use broker_model::text::shown_line;
use broker_model::trust::HiddenBy;

/// The member of the digest that names the tools that are served unvalidated. Others are a widening.
const UNVALIDATED: &str = "schema";

/// The tools of one source in the lock, by upstream name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTools {
    /// Exposed tools.
    pub exposed: Vec<String>,
    /// Hidden tools.
    pub hidden: Vec<String>,
}

/// The tools that the given config hides in addition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Source and upstream name of each tool.
    pub hidden: BTreeSet<(NodePath, String)>,
}

/// Compares `given` with `built`. All differences are reported in one run, at their places in the given
/// file.
pub fn compare(
    built: &Config,
    given: &Config,
    known: &dyn Fn(&NodePath) -> KnownTools,
) -> Result<Narrowing, Vec<Diagnostic>> {
    let mut comparison = Comparison {
        digests: format!("built {}, given {}", built.digest(), given.digest()),
        narrowing: Narrowing::default(),
        found: Vec::new(),
    };
    for key in keys::table()
        .rows
        .iter()
        .filter(|key| key.change == "build")
    {
        if let (Some(was), Some(is)) = (setting(built, key), setting(given, key))
            && was != is
        {
            comparison.setting(key, &was, &is);
        }
    }
    comparison.shape(&built.root, &given.root);
    let (locked_sources, given_sources) = (by_path(built), by_path(given));
    for source in given.sources() {
        match locked_sources.get(&source.path) {
            Some(locked) => comparison.source(locked, source, &known(&source.path)),
            None => comparison.widens(
                &source.pointer,
                format!("the source `{}` is not compiled in", source.path),
            ),
        }
    }
    for source in built.sources() {
        if !given_sources.contains_key(&source.path) {
            comparison.differs(
                "",
                format!("the compiled-in source `{}` is missing", source.path),
            );
        }
    }
    if comparison.found.is_empty() {
        return Ok(comparison.narrowing);
    }
    Err(comparison
        .found
        .into_iter()
        .map(|found| given.place(found))
        .collect())
}

/// Returns a setting that is compiled in, as a message shows it; `None` for a text or a node.
pub(super) fn setting(config: &Config, key: &Key) -> Option<String> {
    Some(match (key.level, key.name) {
        ("Mcp", "max_name") => config.mcp.max_name.to_string(),
        ("Search", "table") => config.search.table.to_string(),
        ("Search", "embedder") => config.search.embedder.as_str().to_owned(),
        _ => return None,
    })
}

/// Whether a member of the digest affects only the exposure of tools. The tools themselves are compared.
fn is_exposure(name: &str) -> bool {
    let mut rows = keys::table().rows.iter();
    rows.any(|key| key.change == "narrow" && key.name == name)
}

fn by_path(config: &Config) -> BTreeMap<&NodePath, &Source> {
    config
        .sources()
        .map(|source| (&source.path, source))
        .collect()
}

struct Comparison {
    digests: String,
    narrowing: Narrowing,
    found: Vec<Diagnostic>,
}

impl Comparison {
    fn widens(&mut self, pointer: &str, message: String) {
        let help = "make a new lock and a new build with this config: `broker-gen lock`, then `cargo build`";
        self.found.push(
            Diagnostic::error(Code::LockWiden, message)
                .at(pointer)
                .help(help),
        );
    }

    /// A difference in a field that the digest covers.
    fn differs(&mut self, pointer: &str, message: String) {
        let message = format!("{message} ({})", self.digests);
        let help = "make a new lock and a new build with this config: `broker-gen lock`, then `cargo build`";
        self.found.push(
            Diagnostic::error(Code::LockMismatch, message)
                .at(pointer)
                .help(help),
        );
    }

    /// A difference in a text of the catalog.
    fn catalog(&mut self, pointer: &str, message: String) {
        let help = "the text is compiled in: build the broker with this config, `cargo build`";
        self.found.push(
            Diagnostic::error(Code::LockMismatch, message)
                .at(pointer)
                .help(help),
        );
    }

    /// A difference in a setting that is compiled in.
    fn setting(&mut self, key: &Key, was: &str, is: &str) {
        let section = key.level.to_ascii_lowercase();
        let message = format!(
            "`{section}.{}` is `{is}`, and the broker was built with `{was}`",
            key.name
        );
        let help = match key.name {
            "embedder" => {
                "make the vectors and build the broker with this config: `broker-gen vectors`, then `cargo build`; the variable MCP_BROKER_EMBEDDER=BM25 chooses words without a build"
            }
            _ => "build the broker with this config: `cargo build`",
        };
        self.found.push(
            Diagnostic::error(Code::LockMismatch, message)
                .at(format!("/{section}/{}", key.name))
                .help(help),
        );
    }

    /// Two nodes with the same path, and the nodes below them.
    fn shape(&mut self, built: &Node, given: &Node) {
        let texts = [
            ("summary", built.summary != given.summary),
            ("description", built.description != given.description),
        ];
        let texts = names(texts);
        if !texts.is_empty() {
            self.catalog(
                &given.pointer,
                format!(
                    "{texts} of `{}` differs from the compiled-in config",
                    given.path
                ),
            );
        }
        let paths = |node: &Node| -> Vec<NodePath> {
            node.children.iter().map(|n| n.path.clone()).collect()
        };
        let (was, is) = (paths(built), paths(given));
        if was != is {
            self.children(given, &was, &is);
        }
        let built: BTreeMap<_, _> = built.children.iter().map(|n| (&n.path, n)).collect();
        for child in &given.children {
            if let Some(same) = built.get(&child.path) {
                self.shape(same, child);
            }
        }
    }

    fn children(&mut self, given: &Node, was: &[NodePath], is: &[NodePath]) {
        let list = |from: &[NodePath], other: &[NodePath]| -> String {
            let paths: Vec<String> = from
                .iter()
                .filter(|path| !other.contains(path))
                .map(|path| format!("`{path}`"))
                .collect();
            paths.join(", ")
        };
        let (new, gone) = (list(is, was), list(was, is));
        let mut parts = Vec::new();
        if !new.is_empty() {
            parts.push(format!("new {new}"));
        }
        if !gone.is_empty() {
            parts.push(format!("missing {gone}"));
        }
        if parts.is_empty() {
            parts.push("another order".to_owned());
        }
        self.catalog(
            &given.pointer,
            format!(
                "the nodes below `{}` differ from the compiled-in config: {}",
                given.path,
                parts.join("; ")
            ),
        );
    }

    fn source(&mut self, built: &Source, given: &Source, known: &KnownTools) {
        let was: BTreeMap<_, _> = digest::members(built).into_iter().collect();
        let is: BTreeMap<_, _> = digest::members(given).into_iter().collect();
        let names: BTreeSet<_> = was.keys().chain(is.keys()).collect();
        let differing: Vec<String> = names
            .into_iter()
            .filter(|name| !is_exposure(name) && **name != UNVALIDATED)
            .filter(|name| was.get(*name) != is.get(*name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !differing.is_empty() {
            self.differs(
                &given.pointer,
                format!(
                    "{} of the source `{}` differ from the config that was locked",
                    differing.join(", "),
                    given.path
                ),
            );
        }
        self.unvalidated(built, given);
        self.level(built, given);
        self.exposure(built, given, known);
        self.overrides(built, given);
    }

    /// A config cannot add a tool that is served unvalidated, nor take back that one is.
    fn unvalidated(&mut self, built: &Source, given: &Source) {
        let tools = |source| digest::unvalidated_tools(source).collect::<BTreeSet<_>>();
        let (was, is) = (tools(built), tools(given));
        let shown = |names: BTreeSet<&str>| {
            let shown: Vec<_> = names
                .into_iter()
                .map(|name| format!("`{}`", shown_line(name, 80)))
                .collect();
            shown.join(", ")
        };
        let added: BTreeSet<_> = is.difference(&was).copied().collect();
        if !added.is_empty() {
            let message = format!(
                "`\"schema\": \"as_is\"` of `{}` is new for {}",
                given.path,
                shown(added)
            );
            self.widens(&given.pointer, message);
        } else if was != is {
            let gone = was.difference(&is).copied().collect();
            let message = format!(
                "`\"schema\": \"as_is\"` of `{}` is gone for {}",
                given.path,
                shown(gone)
            );
            self.differs(&given.pointer, message);
        }
    }

    /// A higher trust level is refused, whether or not it exposes a tool of today.
    fn level(&mut self, built: &Source, given: &Source) {
        let (was, is) = (built.exposure.level(), given.exposure.level());
        if is <= was {
            return;
        }
        // Without the key the level is the default.
        let pointer = match given.trust {
            Some(_) => format!("{}/trust", given.pointer),
            None => given.pointer.clone(),
        };
        let message = format!(
            "the trust level of `{}` is `{is}`, higher than `{was}`, with which it was locked",
            given.path
        );
        self.widens(&pointer, message);
    }

    fn exposure(&mut self, built: &Source, given: &Source, known: &KnownTools) {
        let (mut by_filter, mut by_list) = (Vec::new(), Vec::new());
        let wider = known.hidden.iter();
        for name in wider.filter(|name| given.exposure.exposes(name)) {
            let shown = format!("`{}`", shown_line(name, 80));
            match built.exposure.hidden_by(name) {
                // The level was reported.
                Some(HiddenBy::Word(_)) if given.exposure.level() > built.exposure.level() => {}
                Some(HiddenBy::Word(_)) if given.exposure.sensitive().find(name).is_none() => {
                    by_list.push(shown);
                }
                _ => by_filter.push(shown),
            }
        }
        for (names, cause, pointer) in [
            (
                by_filter,
                "filter",
                format!("{}/tool_filter", given.pointer),
            ),
            (
                by_list,
                "list of sensitive words",
                "/trust/sensitive".to_owned(),
            ),
        ] {
            if !names.is_empty() {
                let message = format!(
                    "the {cause} of `{}` would expose {}, which the lock hides",
                    given.path,
                    names.join(", ")
                );
                self.widens(&pointer, message);
            }
        }
        self.narrowing.hidden.extend(
            known
                .exposed
                .iter()
                .filter(|name| !given.exposure.exposes(name))
                .map(|name| (given.path.clone(), name.clone())),
        );
    }

    fn overrides(&mut self, built: &Source, given: &Source) {
        let none = ToolOverride::default();
        let tools: BTreeSet<&String> = built
            .overrides
            .keys()
            .chain(given.overrides.keys())
            .collect();
        for tool in tools {
            let was = built.overrides.get(tool).unwrap_or(&none);
            let is = given.overrides.get(tool).unwrap_or(&none);
            let differing = names([
                ("summary", was.summary != is.summary),
                ("description", was.description != is.description),
                ("example_args", was.example_args != is.example_args),
                ("annotations", was.annotations != is.annotations),
                ("audit", was.audit != is.audit),
            ]);
            if !differing.is_empty() {
                let pointer = broker_model::json::child_pointer(
                    &format!("{}/tool_overrides", given.pointer),
                    tool,
                );
                self.catalog(
                    &pointer,
                    format!(
                        "{differing} of `{}` at `{}` differs from the compiled-in config",
                        shown_line(tool, 80),
                        given.path
                    ),
                );
            }
        }
    }
}

/// The marked names, in backticks.
fn names<const N: usize>(marked: [(&str, bool); N]) -> String {
    let names: Vec<String> = marked
        .iter()
        .filter(|(_, marked)| *marked)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    names.join(", ")
}
