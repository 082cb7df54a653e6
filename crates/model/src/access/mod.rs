//! Access: the tools that each group of callers sees and calls.
//!
//! A config has groups and rules ([`Access`]). Together with the tools of a lock they give a [`Matrix`]: one [`Row`]
//! for each tool. A row says for every set of groups whether the tool exists for a caller in them.

mod claims;
mod facts;
mod hints;
mod matrix;
mod rule;

pub use claims::{ClaimError, check_claims, claim_names, fill_claims};
pub use facts::ToolFacts;
pub use hints::{CallSafety, Hint, Hints, reviewed_annotations};
pub use matrix::{Decision, DenyMask, Matrix, NarrowMask, Narrowing, Row, RowRef};
pub use rule::{Effect, PathPatterns, PatternError, Rule};

/// The maximum number of groups: each is one bit.
pub const MAX_GROUPS: usize = 64;

/// A set of groups of one config; a group is the bit of its index in [`Access::groups`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupSet(u64);

impl GroupSet {
    /// Without a group.
    pub const NONE: Self = Self(0);
    /// Every group that a config can have.
    pub const ALL: Self = Self(u64::MAX);

    /// The set with these bits.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// The first `count` groups.
    pub const fn first(count: usize) -> Self {
        match count {
            0 => Self::NONE,
            MAX_GROUPS.. => Self::ALL,
            _ => Self((1 << count) - 1),
        }
    }

    /// The group with this index alone.
    pub const fn one(index: usize) -> Self {
        Self(1 << index)
    }

    /// Its bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether it has no group.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether both have a group in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The groups of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns its groups without the groups of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The answer to a caller that names an entry it may not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Denied {
    /// The answer for a path without an entry.
    #[default]
    Hidden,
    /// `forbidden`: a tool at this path exists, and the caller may not use it.
    Forbidden,
}

/// The section `access` of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The names of all groups.
    pub groups: Vec<String>,
    /// The rules, in the order of the file. The order has no meaning.
    pub rules: Vec<Rule>,
    /// The groups of the program that starts or contains the broker.
    pub local: GroupSet,
    /// The groups of callers with the broker's secret.
    pub secret: GroupSet,
    /// The groups of callers without a credential.
    pub anonymous: GroupSet,
    /// The groups that see the state of the sources; `None` for callers with the secret and the local program.
    pub operators: Option<GroupSet>,
    /// The answer for an entry that the caller may not use.
    pub denied: Denied,
}

impl Access {
    /// The group with this name.
    pub fn group(&self, name: &str) -> Option<GroupSet> {
        let at = self.groups.iter().position(|group| group == name)?;
        Some(GroupSet::one(at))
    }

    /// Returns the groups with these names. A name that is not one of [`Access::groups`] is ignored.
    pub fn set_of<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> GroupSet {
        let groups = names.into_iter().filter_map(|name| self.group(name));
        groups.fold(GroupSet::NONE, GroupSet::union)
    }

    /// Every group of the config.
    pub const fn all(&self) -> GroupSet {
        GroupSet::first(self.groups.len())
    }

    /// The names of the groups of a set.
    pub fn names(&self, set: GroupSet) -> impl Iterator<Item = &str> {
        let names = self.groups.iter().enumerate();
        names
            .filter(move |(at, _)| set.intersects(GroupSet::one(*at)))
            .map(|(_, name)| name.as_str())
    }

    /// The names of the claims that the rules read.
    pub fn claims(&self) -> std::collections::BTreeSet<&str> {
        let schemas = self.rules.iter().filter_map(|rule| rule.args.as_ref());
        schemas.flat_map(claim_names).collect()
    }
}
