//! Step 2: finds the tool at the path, if it exists for the caller.

use super::record::Record;
use crate::Inner;
use crate::admission::NarrowedArgs;
use crate::catalog::{EntryKind, Tool};
use crate::errors::error::CoreError;
use crate::identity::Identity;
use crate::listing::lookup;
use crate::listing::view::Withdrawal;
use broker_model::CallCode;

/// The tool that a call names.
#[derive(Clone)]
pub(super) struct Target {
    /// Its index in the catalog's tools.
    pub(super) at: u32,
    pub(super) tool: &'static Tool,
    pub(super) path: &'static str,
    /// The path of its source.
    pub(super) source: &'static str,
    /// The schemas that narrow the arguments for the caller.
    pub(super) narrowed: Option<NarrowedArgs>,
    /// The number of the policy that admits the call.
    pub(super) policy: u64,
}

impl Inner {
    pub(super) fn resolve(
        &self,
        identity: &Identity,
        path: &str,
        record: &mut Record<'_>,
    ) -> Result<Target, Box<CoreError>> {
        let (view, caller) = (self.drift_state.view.load(), self.caller(identity));
        let scope = self.scope(&view, &caller);
        let found = lookup::resolve(scope, path)?;
        let entry = self.catalog.entry(found);
        let EntryKind::Tool(at) = entry.kind else {
            return Err(lookup::is_node(scope, found));
        };
        let tool = self.catalog.tool(at);
        let target = Target {
            at,
            tool,
            path: entry.path,
            source: self.catalog.sources[tool.source as usize].path,
            narrowed: caller.narrowed(at),
            policy: caller.policy_number(),
        };
        record.resolved(&target);
        Ok(target)
    }
}

/// The error for a tool that is withdrawn.
pub(super) fn out_of_service(target: &Target, withdrawn: &Withdrawal) -> Box<CoreError> {
    let details = serde_json::json!({
        "class": withdrawn.class.as_str(),
        "rules": withdrawn.rules,
        "expected": target.tool.digest,
        "found": withdrawn.found,
        "since": withdrawn.since,
    });
    let message = format!(
        "`{}` is withdrawn: {}",
        target.path, withdrawn.reason.public
    );
    let error = CoreError::new(CallCode::ToolWithdrawn, message).path(target.path);
    Box::new(error.details(details).maybe_executed(false))
}
