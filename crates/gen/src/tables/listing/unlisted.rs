//! What lists for clients leave out, for people who read the lock.

use broker_model::NodePath;
use broker_model::item::ItemKind;

use super::ListedFormsOfAll;
use crate::plan::{Entry, Plan};

/// A tool that lists for clients lack, or whose schema of results they lack.
#[derive(Debug)]
pub struct Unlisted<'p> {
    pub path: &'p NodePath,
    /// The index of its source in the plan.
    pub source: usize,
    /// Whether the whole tool is left out.
    pub whole: bool,
    pub reason: &'static str,
}

/// Everything of a plan that lists for clients leave out, in the order of the paths.
pub fn unlisted<'p>(plan: &'p Plan<'_>) -> Vec<Unlisted<'p>> {
    let mut forms = ListedFormsOfAll::default();
    let tools = plan.entries.iter().filter_map(|(path, entry)| match entry {
        Entry::Tool(tool) if tool.tool.kind() == ItemKind::Tool => Some((path, tool)),
        _ => None,
    });
    tools
        .filter_map(|(path, tool)| {
            let (whole, reason) = match forms.next(tool) {
                Ok(forms) => (false, forms.output?.err()?),
                Err(reason) => (true, reason),
            };
            Some(Unlisted {
                path,
                source: tool.source,
                whole,
                reason,
            })
        })
        .collect()
}
