//! Changes of access: the groups that gain or lose a tool if the rules of a config are applied to other tools.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use broker_model::access::{
    Access, Decision, Effect, GroupSet, Hint, Hints, Matrix, Row, Rule, ToolFacts,
};
use broker_model::path::NodePath;
use broker_model::text::shown_line;
use serde::Serialize;

/// Maximum number of groups that one line names.
const SHOWN_GROUPS: usize = 5;
/// Maximum number of rules that one line names.
const SHOWN_RULES: usize = 3;

/// The kinds of a change of access for the callers of a group. Kinds that give callers more come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AccessChangeKind {
    /// They may call the tool, and could not before.
    Gained,
    /// They may call it with more arguments.
    Unnarrowed,
    /// They may no longer call it.
    Lost,
    /// They may call it with fewer arguments.
    Narrowed,
}

/// The reason of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AccessCause {
    /// The rules allow it now.
    Allowed,
    /// The rules deny it no longer.
    NoLongerDenied,
    /// The rules deny it now.
    Denied,
    /// The rules allow it no longer.
    NoLongerAllowed,
    /// The tool is gone; the rules allowed it.
    ToolGone,
}

/// A changed hint that a rule reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MovedHint {
    /// Its name in the annotations.
    pub hint: &'static str,
    /// The old reviewed value.
    pub old: bool,
    /// The new one.
    pub new: bool,
}

/// A change of access to one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessChange {
    /// The node on which the source of the tool is mounted.
    pub source: NodePath,
    /// The path of the tool.
    pub path: String,
    /// The kind of the change.
    pub change: AccessChangeKind,
    /// The groups for which it changes.
    pub groups: Vec<String>,
    /// Whether it changes only for callers that are in all of these groups.
    pub together: bool,
    /// The reason.
    pub cause: AccessCause,
    /// The rules that decide, as pointers into the config.
    pub rules: Vec<String>,
    /// The changed hints of the tool that these rules read.
    pub hints: Vec<MovedHint>,
}

/// A tool of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTool {
    /// The node on which its source is mounted.
    pub source: NodePath,
    /// Its path without the digits of a derived alias.
    pub readable: Option<String>,
    /// Its reviewed hints.
    pub hints: Hints,
}

/// The tools of one side by path.
pub type AccessTools = BTreeMap<String, AccessTool>;

/// Every change of access between two sides. Changes that give callers more come first.
pub fn access_changes(access: &Access, old: &AccessTools, new: &AccessTools) -> Vec<AccessChange> {
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let hints = |side: &AccessTools, path: &String| side.get(path).map(|tool| tool.hints);
    let changed: Vec<&String> = paths
        .into_iter()
        .filter(|path| hints(old, path) != hints(new, path))
        .collect();
    let (before, after) = (
        Side::new(access, old, &changed),
        Side::new(access, new, &changed),
    );
    let mut found = Vec::new();
    for (at, path) in changed.iter().enumerate() {
        let Some(tool) = new.get(*path).or_else(|| old.get(*path)) else {
            continue;
        };
        let comparison = Comparison {
            access,
            at,
            before: &before,
            after: &after,
        };
        let both = hints(old, path).zip(hints(new, path));
        for (key, groups) in comparison.changes() {
            found.push(AccessChange {
                source: tool.source.clone(),
                path: (*path).clone(),
                change: key.change,
                groups: access.names(groups).map(str::to_owned).collect(),
                together: key.together,
                cause: key.cause,
                hints: moved(access, &key.rules, both),
                rules: key
                    .rules
                    .iter()
                    .map(|rule| access.rules[*rule].pointer.clone())
                    .collect(),
            });
        }
    }
    // Stable, so that the changes of one kind stay in the order of the paths.
    found.sort_by_key(|one| one.change);
    found
}

/// The changed hints that the rules read.
fn moved(access: &Access, rules: &[usize], both: Option<(Hints, Hints)>) -> Vec<MovedHint> {
    let Some((old, new)) = both else {
        return Vec::new();
    };
    let is_read = |hint: &Hint| {
        let mut read = rules.iter().flat_map(|rule| &access.rules[*rule].hints);
        read.any(|(one, _)| one == hint)
    };
    let all = Hint::ALL.into_iter();
    all.filter(|hint| old.get(*hint) != new.get(*hint) && is_read(hint))
        .map(|hint| MovedHint {
            hint: hint.key(),
            old: old.get(hint),
            new: new.get(hint),
        })
        .collect()
}

/// The rules applied to the changed tools of one side.
struct Side {
    matrix: Matrix,
    /// For each tool, the rules that match it; `None` if this side does not have it.
    matched: Vec<Option<Vec<usize>>>,
}

impl Side {
    fn new(access: &Access, tools: &AccessTools, paths: &[&String]) -> Self {
        let facts: Vec<_> = paths
            .iter()
            .map(|path| ToolFacts {
                path,
                readable: tools.get(*path).and_then(|tool| tool.readable.clone()),
                hints: tools
                    .get(*path)
                    .map_or(Hints::read(None), |tool| tool.hints),
            })
            .collect();
        let mut matrix = Matrix::new(access, &facts);
        let matched = facts.iter().enumerate().map(|(at, fact)| {
            if !tools.contains_key(fact.path) {
                matrix.rows[at] = Row::default();
                return None;
            }
            let rules = access.rules.iter().enumerate();
            let rules = rules.filter(|(_, rule)| rule.matches(fact));
            Some(rules.map(|(index, _)| index).collect())
        });
        let matched = matched.collect();
        Self { matrix, matched }
    }

    fn rules(&self, at: usize) -> &[usize] {
        self.matched[at].as_deref().unwrap_or_default()
    }
}

/// The right of callers in a set of groups to call a tool, and the rules that give it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Right {
    Nothing,
    Narrowed(Vec<usize>),
    Everything(Vec<usize>),
}

impl Right {
    fn rules(&self) -> &[usize] {
        match self {
            Self::Nothing => &[],
            Self::Narrowed(rules) | Self::Everything(rules) => rules,
        }
    }

    /// Whether it allows something that the other one does not.
    fn exceeds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Everything(_)) => false,
            (_, Self::Nothing) | (Self::Everything(_), Self::Narrowed(_)) => true,
            (Self::Narrowed(own), Self::Narrowed(other)) => {
                own.iter().any(|rule| !other.contains(rule))
            }
        }
    }
}

/// The parts of a change that several groups share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    change: AccessChangeKind,
    together: bool,
    cause: AccessCause,
    rules: Vec<usize>,
}

/// One tool on both sides.
struct Comparison<'a> {
    access: &'a Access,
    at: usize,
    before: &'a Side,
    after: &'a Side,
}

impl Comparison<'_> {
    fn changes(&self) -> BTreeMap<Key, GroupSet> {
        let mut found: BTreeMap<Key, GroupSet> = BTreeMap::new();
        let (mut gains, mut losses) = (false, false);
        for index in 0..self.access.groups.len() {
            let group = GroupSet::one(index);
            let (old, new) = (
                self.right(self.before, group),
                self.right(self.after, group),
            );
            if new.exceeds(&old) {
                gains = true;
                let all = found
                    .entry(self.gain(group, &old, &new, false))
                    .or_default();
                *all = all.union(group);
            }
            if old.exceeds(&new) {
                losses = true;
                let all = found
                    .entry(self.loss(group, &old, &new, false))
                    .or_default();
                *all = all.union(group);
            }
        }
        // A denial with exceptions can also change what only callers in several groups may do.
        let (before, after) = (&self.before.matrix, &self.after.matrix);
        let wider = (!gains)
            .then(|| after.widened_groups(self.at, before))
            .flatten();
        if let Some(groups) = wider.and_then(|all| self.smallest(all, self.before, self.after)) {
            let (old, new) = (
                self.right(self.before, groups),
                self.right(self.after, groups),
            );
            found.insert(self.gain(groups, &old, &new, true), groups);
        }
        let narrower = (!losses)
            .then(|| before.widened_groups(self.at, after))
            .flatten();
        if let Some(groups) = narrower.and_then(|all| self.smallest(all, self.after, self.before)) {
            let (old, new) = (
                self.right(self.before, groups),
                self.right(self.after, groups),
            );
            found.insert(self.loss(groups, &old, &new, true), groups);
        }
        found
    }

    /// The fewest groups of a set whose callers may do more on the side `more` than on the side `less`.
    fn smallest(&self, groups: GroupSet, less: &Side, more: &Side) -> Option<GroupSet> {
        let is_wider = |groups: GroupSet| {
            let (more, less) = (self.right(more, groups), self.right(less, groups));
            more.exceeds(&less)
        };
        let all = self.access.all();
        let mut groups = GroupSet::new(groups.bits() & all.bits());
        if !is_wider(groups) {
            return None;
        }
        for index in 0..self.access.groups.len() {
            let fewer = groups.without(GroupSet::one(index));
            if is_wider(fewer) {
                groups = fewer;
            }
        }
        Some(groups)
    }

    fn right(&self, side: &Side, groups: GroupSet) -> Right {
        let giving = |is_narrowed: bool| -> Vec<usize> {
            let rules = side.rules(self.at).iter().copied();
            rules
                .filter(|rule| {
                    let rule = &self.access.rules[*rule];
                    rule.effect == Effect::Allow
                        && rule.args.is_some() == is_narrowed
                        && rule.to.intersects(groups)
                })
                .collect()
        };
        match side.matrix.rows[self.at].as_ref().decide(groups, |_| true) {
            Decision::Absent => Right::Nothing,
            Decision::Narrowed => Right::Narrowed(giving(true)),
            Decision::Callable => Right::Everything(giving(false)),
        }
    }

    /// The rules of a side that the other one does not have, and that are `wanted`.
    fn only_on(&self, side: &Side, other: &Side, wanted: impl Fn(&Rule) -> bool) -> Vec<usize> {
        let known = other.rules(self.at);
        let rules = side.rules(self.at).iter().copied();
        rules
            .filter(|rule| !known.contains(rule) && wanted(&self.access.rules[*rule]))
            .collect()
    }

    fn denies(groups: GroupSet) -> impl Fn(&Rule) -> bool {
        move |rule| {
            rule.effect == Effect::Deny
                && rule.to.intersects(groups)
                && !rule.except.intersects(groups)
        }
    }

    fn gain(&self, groups: GroupSet, old: &Right, new: &Right, together: bool) -> Key {
        let known = self.before.rules(self.at);
        let (all, added) = without(new.rules(), known);
        let lifted = self.only_on(self.before, self.after, Self::denies(groups));
        let (cause, rules) = match (added.is_empty(), lifted.is_empty()) {
            (true, false) => (AccessCause::NoLongerDenied, lifted),
            (true, true) => (AccessCause::Allowed, all),
            (false, _) => (AccessCause::Allowed, added),
        };
        let change = match old {
            Right::Nothing => AccessChangeKind::Gained,
            _ => AccessChangeKind::Unnarrowed,
        };
        Key {
            change,
            together,
            cause,
            rules,
        }
    }

    fn loss(&self, groups: GroupSet, old: &Right, new: &Right, together: bool) -> Key {
        let change = match new {
            Right::Nothing => AccessChangeKind::Lost,
            _ => AccessChangeKind::Narrowed,
        };
        let (all, removed) = without(old.rules(), self.after.rules(self.at));
        let denying = self.only_on(self.after, self.before, Self::denies(groups));
        let (cause, rules) = if self.after.matched[self.at].is_none() {
            (AccessCause::ToolGone, all)
        } else if !denying.is_empty() {
            (AccessCause::Denied, denying)
        } else {
            (AccessCause::NoLongerAllowed, removed)
        };
        Key {
            change,
            together,
            cause,
            rules,
        }
    }
}

/// The rules, and those that are not known.
fn without(rules: &[usize], known: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let others = rules.iter().copied().filter(|rule| !known.contains(rule));
    (rules.to_vec(), others.collect())
}

impl AccessChange {
    /// Whether callers may do more than before.
    pub const fn is_wider(&self) -> bool {
        matches!(
            self.change,
            AccessChangeKind::Gained | AccessChangeKind::Unnarrowed
        )
    }

    /// The change in one line, safe to show.
    pub fn line(&self) -> String {
        let rules = shown_rules(&self.rules);
        let is_one = self.rules.len() == 1;
        let verb = |one: &'static str, many: &'static str| if is_one { one } else { many };
        let cause = match self.cause {
            AccessCause::Allowed => format!(" by {rules}"),
            AccessCause::NoLongerDenied => {
                format!(", since {rules} no longer {} it", verb("denies", "deny"))
            }
            AccessCause::Denied => format!(" by {rules}, which {} it", verb("denies", "deny")),
            AccessCause::NoLongerAllowed => {
                format!(", since {rules} no longer {} it", verb("allows", "allow"))
            }
            AccessCause::ToolGone => format!(": it is gone, and {rules} allowed it"),
        };
        let path = shown_line(&self.path, 200);
        let is_one = self.groups.len() == 1;
        let verb = match (self.change, is_one) {
            (AccessChangeKind::Gained, true) => format!("gains {path}"),
            (AccessChangeKind::Gained, false) => format!("gain {path}"),
            (AccessChangeKind::Lost, true) => format!("loses {path}"),
            (AccessChangeKind::Lost, false) => format!("lose {path}"),
            (AccessChangeKind::Unnarrowed, _) => format!("may call {path} with more arguments"),
            (AccessChangeKind::Narrowed, _) => format!("may call {path} with fewer arguments"),
        };
        let hints = self.hints.iter();
        let hints =
            hints.map(|one| format!("; `{}` went from {} to {}", one.hint, one.old, one.new));
        let groups = shown_groups(&self.groups, self.together);
        format!("{groups} {verb}{cause}{}", hints.collect::<String>())
    }
}

/// At most `max` changes, one line each, and the number of the others.
pub fn access_lines(changes: &[AccessChange], max: usize) -> Vec<String> {
    let mut lines: Vec<_> = changes.iter().take(max).map(AccessChange::line).collect();
    if let Some(more @ 1..) = changes.len().checked_sub(max) {
        lines.push(format!("… and {more} more"));
    }
    lines
}

fn shown_groups(groups: &[String], together: bool) -> String {
    let names = groups.iter().take(SHOWN_GROUPS);
    let names: Vec<_> = names
        .map(|name| format!("`{}`", shown_line(name, 80)))
        .collect();
    let names = match groups.len().saturating_sub(SHOWN_GROUPS) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    match (groups.len(), together) {
        (1, _) => format!("group {names}"),
        (_, true) => format!("callers in all of the groups {names}"),
        _ => format!("groups {names}"),
    }
}

/// `access.rules[0]` for `/access/rules/0`.
fn shown_rules(pointers: &[String]) -> String {
    let shown = pointers.iter().take(SHOWN_RULES).map(|pointer| {
        let index = pointer.rsplit('/').next().unwrap_or_default();
        format!("access.rules[{index}]")
    });
    let shown: Vec<_> = shown.collect();
    match pointers.len().saturating_sub(SHOWN_RULES) {
        0 => shown.join(" and "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
