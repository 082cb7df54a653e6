//! The checks of prompts, templates and resources: their filters and aliases, and names that several sources have.

use std::collections::BTreeMap;

use broker_config::Source;
use broker_model::DiagnosticCode;
use broker_model::filter::ToolFilter;
use broker_model::item::{self, ItemKind};
use broker_model::json::escape_token;
use broker_model::lock::{LockedSource, LockedTool};
use broker_model::text::shown_line;
use broker_model::trust::ResourceMode;
use broker_model::uri_template::UriTemplate;

use super::exposure::is_left_out;
use super::{Clash, Diagnostic, Planner};

impl<'a> Planner<'a> {
    /// Filters and aliases of prompts and resources that have no effect.
    pub(super) fn check_items(&mut self, source: &'a Source, locked: &LockedSource) {
        let items = source.exposure.items();
        let ids = |kinds: &'static [ItemKind]| {
            let exposed = locked
                .exposed
                .iter()
                .map(|tool| tool.upstream_name.as_str());
            let hidden = locked.hidden.iter().map(|tool| tool.name.as_str());
            let all = exposed.chain(hidden).map(ItemKind::parse_key);
            let of_kinds = all.filter(|(kind, _)| kinds.contains(kind));
            of_kinds.map(|(_, id)| id).collect::<Vec<_>>()
        };
        if items.prompt_filter.has_positive() {
            let prompts = ids(&[ItemKind::Prompt]);
            self.check_item_patterns(source, "prompt_filter", &items.prompt_filter, &prompts);
        }
        let has_template = || {
            let mut keys = locked.exposed.iter().map(|tool| &tool.upstream_name);
            keys.any(|key| ItemKind::parse_key(key).0 == ItemKind::Template)
        };
        match (items.resources, items.resource_filter.has_positive()) {
            (ResourceMode::None, true) if !has_template() => self.warn_about_filter(
                source,
                "resource_filter",
                format!("`resource_filter` of `{}` matches no template, and without `resources` nothing else", source.path),
                "Add `\"resources\": \"live\"` or `\"locked\"`.",
            ),
            // The resources are not known.
            (ResourceMode::Live | ResourceMode::None, true) | (ResourceMode::None, false) => {}
            (ResourceMode::Locked, true) => {
                let uris = ids(&[ItemKind::Template, ItemKind::Resource]);
                let filter = items.resource_filter.written();
                self.check_item_patterns(source, "resource_filter", filter, &uris);
            }
            (_, false) => self.warn_about_filter(
                source,
                "resources",
                format!(
                    "`resources` of `{}` exposes nothing, since `resource_filter` has no positive pattern",
                    source.path
                ),
                "Add a `resource_filter`; `[\"*\"]` admits every URI.",
            ),
        }
        self.check_aliases(source, locked);
    }

    fn check_item_patterns(
        &mut self,
        source: &Source,
        key: &str,
        filter: &ToolFilter,
        ids: &[&str],
    ) {
        for pattern in filter.patterns() {
            let glob = pattern.strip_prefix('!').unwrap_or(pattern);
            let alone = ToolFilter::compile(&[glob]);
            if alone.is_ok_and(|alone| ids.iter().any(|id| alone.admits(id))) {
                continue;
            }
            let shown = shown_line(pattern, 100);
            let message = format!("the pattern `{shown}` of `{}` matches nothing", source.path);
            let help = match ids {
                [] => "The server lists none.".to_owned(),
                ids => format!(
                    "The nearest: {}.",
                    super::nearest([glob].into_iter(), ids, 3)
                ),
            };
            self.warn_about_filter(source, key, message, &help);
        }
    }

    fn warn_about_filter(&mut self, source: &Source, key: &str, message: String, help: &str) {
        let warning = Diagnostic::warning(DiagnosticCode::FilterEmpty, message)
            .at(format!("{}/{key}", source.pointer))
            .help(help.to_owned());
        self.plan.warnings.push(self.config.place(warning));
    }

    /// An alias of a prompt or resource that is not exposed. One of `resource_aliases` is for a resource or a template.
    fn check_aliases(&mut self, source: &Source, locked: &LockedSource) {
        let has = |kind: ItemKind, id: &str| {
            let key = kind.key(id);
            locked.exposed.iter().any(|tool| tool.upstream_name == key)
        };
        for key in source.item_aliases.keys() {
            let (kind, id) = ItemKind::parse_key(key);
            let (name, is_known) = match kind {
                ItemKind::Prompt => ("prompt_aliases", has(kind, id)),
                // The template with the same text was seen.
                ItemKind::Template => continue,
                ItemKind::Resource | ItemKind::Tool => (
                    "resource_aliases",
                    has(ItemKind::Resource, id) || has(ItemKind::Template, id),
                ),
            };
            if is_known {
                continue;
            }
            let shown = shown_line(id, 100);
            let message = format!(
                "`{name}` names `{shown}`, which `{}` does not expose",
                source.path
            );
            let below = format!("/{name}/{}", escape_token(id));
            let help = "Correct the name, or admit it in the filter.".to_owned();
            if is_left_out(locked, key) {
                self.warn_left_out(source, &below, id, name);
                continue;
            }
            self.error(
                source,
                &below,
                DiagnosticCode::OverrideUnknown,
                message,
                Some(help),
            );
        }
    }

    /// Names of prompts and URIs that several sources lock, and templates of several sources that may have a common URI:
    /// a request by the name or the URI must have one source.
    pub(super) fn check_item_clashes(&mut self) {
        let mut found = Vec::new();
        let mut known: BTreeMap<&str, &Source> = BTreeMap::new();
        let mut templates: Vec<(UriTemplate, &str, &Source)> = Vec::new();
        for (source, locked) in &self.plan.sources {
            let tools = locked.exposed.iter().map(|tool| &*tool.upstream_name);
            for key in tools.filter(|key| has_common_name(key)) {
                let (kind, id) = ItemKind::parse_key(key);
                if let Some(other) = known.insert(key, source) {
                    let what = format!("the {} `{}`", kind.as_str(), shown_line(id, 160));
                    found.push(clash(&what, (other, key), (source, key), kind));
                } else if kind == ItemKind::Template
                    && let Ok(template) = UriTemplate::parse(id)
                {
                    templates.push((template, key, source));
                }
            }
        }
        for (at, (one, key, source)) in templates.iter().enumerate() {
            let others = templates[at + 1..].iter();
            let overlapping =
                others.filter(|(other, _, of)| of.path != source.path && one.may_overlap(other));
            for (other, other_key, of) in overlapping {
                let [one, other] = [one, other].map(|it| shown_line(it.as_str(), 160));
                let what = format!("a URI of both templates `{one}` and `{other}`");
                found.push(clash(
                    &what,
                    (source, key),
                    (of, other_key),
                    ItemKind::Template,
                ));
            }
        }
        for mut clash in found {
            clash.problem = self.config.place(clash.problem);
            self.clashes.push(clash);
        }
    }
}

/// Whether callers name the entry without its path.
fn has_common_name(key: &str) -> bool {
    ItemKind::parse_key(key).0 != ItemKind::Tool && !item::is_live(key)
}

/// What two sources have in common; each side is a source and the key of its entry.
fn clash(what: &str, one: (&Source, &str), other: (&Source, &str), kind: ItemKind) -> Clash {
    let part = |(source, key): (&Source, &str)| (source.path.clone(), key.to_owned());
    let (of_one, of_other) = (&one.0.path, &other.0.path);
    let message = format!("`{of_one}` and `{of_other}` both have {what}");
    let filter = filter_of(kind);
    Clash {
        parts: vec![part(one), part(other)],
        problem: Diagnostic::error(DiagnosticCode::ItemClash, message)
            .at(other.0.pointer.clone())
            .help(format!("Exclude it by `{filter}` of one of them.")),
    }
}

/// The key of the config with the filter of a kind.
pub(super) const fn filter_of(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "tool_filter",
        ItemKind::Prompt => "prompt_filter",
        ItemKind::Template | ItemKind::Resource => "resource_filter",
    }
}

/// Returns the key of the config with the aliases of a kind, and the name of the entry in it.
pub(super) fn alias_of(tool: &LockedTool) -> (&'static str, &str) {
    let (kind, id) = ItemKind::parse_key(&tool.upstream_name);
    let key = match kind {
        ItemKind::Tool => "path_aliases",
        ItemKind::Prompt => "prompt_aliases",
        ItemKind::Template | ItemKind::Resource => "resource_aliases",
    };
    (key, id)
}
