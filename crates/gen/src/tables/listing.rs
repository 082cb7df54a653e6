//! The forms of the schemas of tools in lists for MCP clients that see every tool directly.

use std::borrow::Cow;
use std::collections::BTreeSet;

use broker_model::header_params;
use broker_model::item::ItemKind;
use broker_schema::{arguments_form, results_form};
use serde_json::{Value, json};

use super::{Span, Writer};
use crate::plan::ToolEntry;
mod unlisted;
pub use unlisted::unlisted;

/// The schemas of a tool as clients read them in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedSchemas {
    /// The schema of its arguments.
    pub input: Span,
    /// The schema of its structured results.
    pub output: Option<Span>,
}

impl Writer<'_, '_> {
    /// The schemas of a tool in lists. A schema that clients read as it is has the place that it has already.
    pub(super) fn listed(
        &mut self,
        tool: &ToolEntry<'_>,
        args_schema: Span,
        output_schema: Option<Span>,
    ) -> Option<ListedSchemas> {
        if tool.tool.kind() != ItemKind::Tool {
            return None;
        }
        let forms = self.listed_forms.next(tool).ok()?;
        let input = match forms.input {
            Cow::Borrowed(_) => args_schema,
            Cow::Owned(form) => self.push(&broker_model::json::to_text(&form)),
        };
        let output = match forms.output {
            None | Some(Err(_)) => None,
            Some(Ok(Cow::Borrowed(_))) => output_schema,
            Some(Ok(Cow::Owned(form))) => Some(self.push(&broker_model::json::to_text(&form))),
        };
        Some(ListedSchemas { input, output })
    }
}

/// The forms of the schemas of one tool.
struct ListedForms<'t> {
    /// The schema of its arguments.
    input: Cow<'t, Value>,
    /// The schema of its results, if it has one, or the reason why clients cannot compile it.
    output: Option<Result<Cow<'t, Value>, &'static str>>,
}

/// Makes the forms of all tools of a plan, in its order.
#[derive(Default)]
pub(super) struct ListedFormsOfAll {
    /// The `$id`s of listed schemas of results: a client keeps one schema by each for all tools.
    ids: BTreeSet<String>,
}

impl ListedFormsOfAll {
    /// The forms of the next tool, or the reason why clients cannot read any.
    fn next<'t>(&mut self, tool: &ToolEntry<'t>) -> Result<ListedForms<'t>, &'static str> {
        let raw = &tool.tool.raw;
        if header_params::read_params(raw).is_none() {
            return Err(
                "`x-mcp-header` breaks the rules of MCP 2026-07-28, by which clients drop the tool",
            );
        }
        let input = match raw.get("inputSchema") {
            Some(schema) => arguments_form(schema).map_err(|problem| problem.reason())?,
            None => Cow::Owned(json!({"type": "object"})),
        };
        let schema = raw.get("outputSchema").filter(|schema| !schema.is_null());
        let output = schema.map(|schema| {
            let form = results_form(schema).map_err(|problem| problem.reason())?;
            let id = form.get("$id").and_then(Value::as_str);
            match id.is_none_or(|id| self.ids.insert(id.to_owned())) {
                true => Ok(form),
                false => Err("another tool has a schema with the same `$id`"),
            }
        });
        Ok(ListedForms { input, output })
    }
}
