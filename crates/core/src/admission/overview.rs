//! Who may call what, for operators: of each item the groups that may call it.

use broker_model::access::Decision;
use serde::Serialize;

use super::Policy;
use crate::Fleet;

/// Maximum number of items.
const MAX_ITEMS: usize = 10_000;

/// The access rules applied to the items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccessOverview {
    /// The names of the groups; none without rules.
    pub groups: Vec<String>,
    /// The first items, in the order of the catalog.
    pub tools: Vec<AccessOfItem>,
    /// The number of further ones.
    pub more: usize,
}

/// Who may call one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessOfItem {
    /// Its path.
    pub path: &'static str,
    /// The groups that may call it, by index. A caller in several groups may be denied by another one.
    pub may_call: Vec<usize>,
    /// The groups that may call it with some arguments only.
    pub narrowed: Vec<usize>,
}

impl AccessOverview {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let policy: &Policy = &fleet.policy();
        let groups = policy.group_names();
        if groups.is_empty() {
            return Self::default();
        }
        let view = fleet.drift_state.view.load();
        let items = fleet.catalog.items.iter().zip(0..);
        let mut items = items.filter(|(item, at)| !item.for_pages_only && !view.is_hidden(*at));
        let tools = items.by_ref().take(MAX_ITEMS).map(|(item, at)| {
            let with = |wanted| {
                let all = 0..groups.len();
                all.filter(|group| policy.decide_for_group(*group, at) == wanted)
                    .collect()
            };
            AccessOfItem {
                path: fleet.catalog.entry(item.entry).path,
                may_call: with(Decision::Callable),
                narrowed: with(Decision::Narrowed),
            }
        });
        Self {
            tools: tools.collect(),
            more: items.count(),
            groups: groups.to_vec(),
        }
    }
}
