//! The rules applied to the tools: one row for each tool.

use serde_json::Value;

use super::facts::ToolFacts;
use super::rule::Effect;
use super::{Access, GroupSet};

/// Groups that may not use a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenyMask {
    /// The tool is denied to callers in one of these groups, one bit each,
    pub to: u64,
    /// unless they are in one of these.
    pub except: u64,
}

/// Groups that may call a tool with some arguments only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NarrowMask {
    /// The groups, one bit each.
    pub to: u64,
    /// The index of the schema for the arguments.
    pub narrowing: u32,
}

/// The callers that may see a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The groups that may call it, one bit each.
    pub allow: u64,
    /// The groups that may call it with some arguments.
    pub narrowed: Vec<NarrowMask>,
    /// The groups that may not use it. They take precedence over the other fields.
    pub deny: Vec<DenyMask>,
}

/// A row that a catalog has, or a [`Row`].
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'r> {
    /// The groups that may call the tool.
    pub allow: u64,
    /// The groups that may call it with some arguments.
    pub narrowed: &'r [NarrowMask],
    /// The groups that may not use it.
    pub deny: &'r [DenyMask],
}

/// A schema that narrows the arguments of the tools of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowing {
    /// The index of the rule.
    pub rule: usize,
    /// The schema. A `$claim` in it refers to values of the caller's token.
    pub schema: Value,
}

/// Whether a tool exists for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It does not.
    Absent,
    /// The caller may call it with arguments that one of its narrowings accepts.
    Narrowed,
    /// The caller may call it.
    Callable,
}

/// The decision on every tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// In the order of the tools.
    pub rows: Vec<Row>,
    /// The schemas that rows name by index.
    pub narrowings: Vec<Narrowing>,
}

impl Matrix {
    /// Applies the rules to tools.
    pub fn new(access: &Access, tools: &[ToolFacts<'_>]) -> Self {
        let mut matrix = Self {
            rows: vec![Row::default(); tools.len()],
            narrowings: Vec::new(),
        };
        for (at, rule) in access.rules.iter().enumerate() {
            let narrowing = rule.args.as_ref().map(|schema| {
                matrix.narrowings.push(Narrowing {
                    rule: at,
                    schema: schema.clone(),
                });
                matrix.narrowings.len() as u32 - 1
            });
            let rows = matrix.rows.iter_mut().zip(tools);
            for (row, _) in rows.filter(|(_, tool)| rule.matches(tool)) {
                match (rule.effect, narrowing) {
                    (Effect::Deny, _) => row.deny(rule.to, rule.except),
                    (Effect::Allow, None) => row.allow |= rule.to.bits(),
                    (Effect::Allow, Some(narrowing)) => row.narrowed.push(NarrowMask {
                        to: rule.to.bits(),
                        narrowing,
                    }),
                }
            }
        }
        matrix
            .rows
            .iter_mut()
            .for_each(Row::drop_needless_narrowings);
        matrix
    }

    /// The tools, by index, that some caller may use here and not in `wider`, or with more arguments. Both are of the
    /// same tools and groups.
    pub fn widened_from(&self, wider: &Self) -> Vec<usize> {
        let tools = 0..self.rows.len().min(wider.rows.len());
        tools
            .filter(|at| self.widened_groups(*at, wider).is_some())
            .collect()
    }

    /// The groups of a caller that may use the tool with this index here and not in `wider`, or with more arguments.
    /// The set may have bits of groups that no config has.
    pub fn widened_groups(&self, at: usize, wider: &Self) -> Option<GroupSet> {
        let (row, other) = (&self.rows[at], &wider.rows[at]);
        // Without an argument that narrows it.
        let groups = exceeding_groups(row.allow, row, other.allow, other).or_else(|| {
            let mut masks = row.narrowed.iter();
            masks.find_map(|mask| {
                let schema = &self.narrowings[mask.narrowing as usize].schema;
                let same = other
                    .narrowed
                    .iter()
                    .filter(|other| wider.narrowings[other.narrowing as usize].schema == *schema);
                let allowed = same.fold(other.allow, |all, one| all | one.to);
                exceeding_groups(mask.to, row, allowed, other)
            })
        });
        groups.map(GroupSet::new)
    }
}

/// A set of groups whose callers get the tool by `to` and the denials of `row`, and not by `allowed` and the denials of
/// `other`.
///
/// A set of groups that no denial of `row` hits stays one if another such set is added to it, so that the largest such
/// set within given groups decides.
fn exceeding_groups(to: u64, row: &Row, allowed: u64, other: &Row) -> Option<u64> {
    let largest = |mut groups: u64| {
        while let Some(hit) = row.deny.iter().find(|deny| deny.hits(groups)) {
            groups &= !hit.to;
        }
        groups
    };
    let without_right = largest(!allowed);
    if without_right & to != 0 {
        return Some(without_right);
    }
    other.deny.iter().find_map(|deny| {
        let groups = largest(!deny.except);
        (groups & deny.to != 0 && groups & to != 0).then_some(groups)
    })
}

impl Row {
    /// The row as a reference.
    pub fn as_ref(&self) -> RowRef<'_> {
        RowRef {
            allow: self.allow,
            narrowed: &self.narrowed,
            deny: &self.deny,
        }
    }

    fn deny(&mut self, to: GroupSet, except: GroupSet) {
        let same = self
            .deny
            .iter_mut()
            .find(|known| known.except == except.bits());
        match same {
            Some(known) => known.to |= to.bits(),
            None => self.deny.push(DenyMask {
                to: to.bits(),
                except: except.bits(),
            }),
        }
    }

    /// A group that may call the tool with any arguments needs no narrowing.
    fn drop_needless_narrowings(&mut self) {
        let allow = self.allow;
        self.narrowed.retain_mut(|mask| {
            mask.to &= !allow;
            mask.to != 0
        });
    }
}

impl DenyMask {
    /// Whether the tool is denied to callers in exactly these groups.
    const fn hits(&self, groups: u64) -> bool {
        groups & self.to != 0 && groups & self.except == 0
    }
}

impl<'r> RowRef<'r> {
    /// Whether the tool exists for callers in `groups`. `applies` says whether the caller has the claims of a narrowing.
    pub fn decide(self, groups: GroupSet, applies: impl Fn(u32) -> bool) -> Decision {
        let bits = groups.bits();
        if self.deny.iter().any(|deny| deny.hits(bits)) {
            return Decision::Absent;
        }
        if self.allow & bits != 0 {
            return Decision::Callable;
        }
        match self.narrowings(groups).any(applies) {
            true => Decision::Narrowed,
            false => Decision::Absent,
        }
    }

    /// The narrowings of the rules that apply to `groups`. A call must match one of them.
    pub fn narrowings(self, groups: GroupSet) -> impl Iterator<Item = u32> + 'r {
        let masks = self.narrowed.iter();
        masks
            .filter(move |mask| mask.to & groups.bits() != 0)
            .map(|mask| mask.narrowing)
    }
}
