//! The access rules in the tables: the rows of the tools, and the data that the rows refer to.

use broker_config::Config;
use broker_model::access::{Access, Denied, GroupSet, Matrix};

use super::{AccessTable, Item};
use crate::plan::{Plan, tools_facts};

/// Applies the rules of a config to the items. The items are in the order of the plan.
pub(super) fn apply(config: &Config, plan: &Plan<'_>, items: &mut [Item]) -> Option<AccessTable> {
    let access = config.access.as_ref()?;
    let matrix = Matrix::new(access, &tools_facts(plan));
    for (item, row) in items.iter_mut().zip(matrix.rows) {
        item.allow = row.allow;
        item.narrowed = row.narrowed;
        item.deny = row.deny;
    }
    let narrowings = matrix.narrowings.iter();
    Some(AccessTable {
        digest: config.access_digest()?.as_str().to_owned(),
        narrowings: narrowings
            .map(|one| broker_model::json::to_text(&one.schema))
            .collect(),
        ..settings(access)
    })
}

/// The members of the section other than its rules.
fn settings(access: &Access) -> AccessTable {
    AccessTable {
        digest: String::new(),
        groups: access.groups.clone(),
        narrowings: Vec::new(),
        local: access.local.bits(),
        secret: access.secret.bits(),
        anonymous: access.anonymous.bits(),
        operators: access.operators.map(GroupSet::bits),
        is_forbidden_shown: access.denied == Denied::Forbidden,
    }
}
