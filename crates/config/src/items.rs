//! The keys of a source for prompts, templates and resources.

use super::findings::{Cursor, Findings};
use super::{Source, fields, lists, overrides};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::item::ItemKind;
use broker_model::text::shown_line;
use broker_model::trust::{ItemExposure, ResourceMode};

/// Reads `resources`, `resource_filter` and `prompt_filter` of a source.
pub(super) fn exposure(findings: &mut Findings<'_>, source: &Cursor<'_>) -> ItemExposure {
    let given = |key: &str| source.get(key);
    ItemExposure {
        resources: mode(findings, source).unwrap_or_default(),
        resource_filter: given("resource_filter")
            .map(|value| lists::uri_filter(findings, &value))
            .unwrap_or_default(),
        prompt_filter: given("prompt_filter")
            .map(|value| lists::tool_filter(findings, &value))
            .unwrap_or_default(),
    }
}

fn mode(findings: &mut Findings<'_>, source: &Cursor<'_>) -> Option<ResourceMode> {
    let value = source.get("resources")?;
    let name = fields::string(findings, &value)?;
    let mode = ResourceMode::from_name(name);
    if mode.is_none() {
        let shown = shown_line(name, 40);
        let message = format!("expected `none`, `locked` or `live`, got `{shown}`");
        findings.add(&value, Diagnostic::error(Code::ConfigRange, message));
    }
    mode
}

/// Reads aliases by identifier. An alias applies to each of the kinds.
pub(super) fn aliases(
    findings: &mut Findings<'_>,
    value: &Cursor<'_>,
    kinds: &[ItemKind],
    source: &mut Source,
) {
    for (id, alias) in overrides::aliases(findings, value) {
        for kind in kinds {
            source.item_aliases.insert(kind.key(&id), alias.clone());
        }
    }
}
