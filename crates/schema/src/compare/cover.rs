//! Proofs of inclusion: whether every value of one schema is a value of another, by rules that are
//! certain. `false` means that no rule applied, never that a counterexample exists.
//!
//! Recursive schemas are compared by assuming the statement that is being proven: a pair can only recur for a
//! part of the value, since `inspect` refuses schemas that apply themselves to the same value.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use super::admit::{admits, disjoint};
use super::alike::{has_opaque, same_text};
use super::limits::{SAFE_INTEGER, compare, counts_within};
use super::node::{Conjunction, Group, Node};
use super::steps::Steps;
use super::types::Type;
use super::view::{Side, View, speaks_of_members};

/// Maximum nesting of pairs.
const MAX_DEPTH: usize = 48;

/// One proof.
#[derive(Debug)]
pub(super) struct Proof {
    side: Side,
    view: View,
    steps: Steps,
    assumed: RefCell<BTreeSet<(String, String)>>,
}

impl Proof {
    pub(super) fn new(side: Side, view: View) -> Self {
        Self {
            side,
            view,
            steps: Steps::default(),
            assumed: RefCell::default(),
        }
    }

    /// Whether every value of `writer` is certainly a value of `reader`.
    pub(super) fn covers(&self, writer: &Conjunction<'_>, reader: &Conjunction<'_>) -> bool {
        if reader.is_anything() || writer.is_nothing() {
            return true;
        }
        let pair = (writer.key(), reader.key());
        let left = self.steps.take(1);
        if self.assumed.borrow().contains(&pair) {
            return true;
        }
        if !left || self.assumed.borrow().len() >= MAX_DEPTH {
            return false;
        }
        self.assumed.borrow_mut().insert(pair.clone());
        let proven = self.holds(writer, reader);
        self.assumed.borrow_mut().remove(&pair);
        proven
    }

    fn holds(&self, writer: &Conjunction<'_>, reader: &Conjunction<'_>) -> bool {
        if !self.steps.take_text(writer, reader) {
            return false;
        }
        if same_text(writer, reader) {
            return true;
        }
        let (from, to) = (writer.read(), reader.read());
        if !self.steps.take(from.size() + to.size()) {
            return false;
        }
        if from.never {
            return true;
        }
        if to.never || from.unsupported || to.unsupported {
            return false;
        }
        if let Some(values) = &from.values {
            return values
                .iter()
                .all(|value| admits(reader, value, 0, &self.steps) == Some(true));
        }
        let types: Vec<Type> = from.types.each().collect();
        if types.len() > 1 {
            return types
                .into_iter()
                .all(|one| self.covers(&writer.narrowed(one), reader));
        }
        let Some(one) = types.first().copied() else {
            return true;
        };
        // The writer's own alternatives are opened last, since the reader may have the same alternatives as a
        // whole; but exclusive alternatives of the reader need them open.
        self.atom(one, writer, &from, reader, &to)
            || from.groups.first().is_some_and(|group| {
                (0..group.branches.len())
                    .all(|branch| self.covers(&writer.choosing(group, branch), reader))
            })
    }

    /// The writer's values have one type and are not listed.
    fn atom(
        &self,
        one: Type,
        writer: &Conjunction<'_>,
        from: &Node<'_>,
        reader: &Conjunction<'_>,
        to: &Node<'_>,
    ) -> bool {
        if !self.steps.take(from.opaque.len() * to.opaque.len())
            || !to.types.has(one)
            || !to.opaque.iter().all(|wanted| has_opaque(from, wanted))
        {
            return false;
        }
        let listed = |values: &Vec<&Value>| match one {
            Type::Null => values.iter().any(|value| value.is_null()),
            Type::Boolean => {
                let has = |flag| values.iter().any(|value| **value == Value::Bool(flag));
                has(true) && has(false)
            }
            _ => false,
        };
        if !to.values.as_ref().is_none_or(listed) {
            return false;
        }
        let own = match one {
            Type::Null | Type::Boolean => true,
            Type::Integer | Type::Fraction => self.numbers(one, from, to),
            Type::String => {
                counts_within(from.limits.counts[0], to.limits.counts[0])
                    && to.patterns.is_subset(&from.patterns)
            }
            Type::Array => self.arrays(from, to),
            Type::Object => self.objects(from, to),
        };
        own && to
            .groups
            .iter()
            .all(|group| self.one_of(writer, from, reader, group))
    }

    fn one_of(
        &self,
        writer: &Conjunction<'_>,
        from: &Node<'_>,
        reader: &Conjunction<'_>,
        group: &Group<'_>,
    ) -> bool {
        let same_group = |own: &Group<'_>| {
            own.exclusive == group.exclusive
                && own.branches.len() == group.branches.len()
                && own
                    .branches
                    .iter()
                    .zip(&group.branches)
                    .all(|(one, other)| {
                        same_text(
                            &Conjunction::new(one.clone()),
                            &Conjunction::new(other.clone()),
                        )
                    })
        };
        if !self.steps.take(from.groups.len() * group.branches.len()) {
            return false;
        }
        if from.groups.iter().any(same_group) {
            return true;
        }
        let branch = |index: usize| Conjunction::new(group.branches[index].clone());
        // The whole reader with the chosen branch, so that `properties` next to it are included.
        (0..group.branches.len()).any(|index| {
            self.covers(writer, &reader.choosing(group, index))
                && (!group.exclusive
                    || (0..group.branches.len())
                        .filter(|other| *other != index)
                        .all(|other| disjoint(writer, &branch(other), 0, &self.steps)))
        })
    }

    fn numbers(&self, one: Type, from: &Node<'_>, to: &Node<'_>) -> bool {
        let steps = to.multiples.iter().all(|step| {
            let whole = step.as_u64() == Some(1) && one == Type::Integer;
            whole
                || from
                    .multiples
                    .iter()
                    .any(|own| compare(own, step) == Some(std::cmp::Ordering::Equal))
        });
        if !steps {
            return false;
        }
        if from.limits.range_within(&to.limits) {
            return true;
        }
        if one == Type::Fraction {
            return false;
        }
        let (Some(mut own), Some(wanted)) = (from.limits.integers(), to.limits.integers()) else {
            return false;
        };
        if self.view.safe_integers() {
            own.0 = Some(own.0.unwrap_or(-SAFE_INTEGER).max(-SAFE_INTEGER));
            own.1 = Some(own.1.unwrap_or(SAFE_INTEGER).min(SAFE_INTEGER));
        }
        let lower = wanted
            .0
            .is_none_or(|wanted| own.0.is_some_and(|own| own >= wanted));
        let upper = wanted
            .1
            .is_none_or(|wanted| own.1.is_some_and(|own| own <= wanted));
        lower && upper
    }

    fn arrays(&self, from: &Node<'_>, to: &Node<'_>) -> bool {
        let mut own = from.limits.counts[1];
        if from.rest.is_nothing() {
            let most = from.prefix.len() as u64;
            own.1 = Some(own.1.map_or(most, |held| held.min(most)));
        }
        let single = own.1.is_some_and(|most| most <= 1);
        if !counts_within(own, to.limits.counts[1]) || (to.unique && !from.unique && !single) {
            return false;
        }
        let places = from.prefix.len().max(to.prefix.len());
        let within = |index: usize| own.1.is_none_or(|most| (index as u64) < most);
        (0..places).filter(|index| within(*index)).all(|index| {
            let mine = from.prefix.get(index).unwrap_or(&from.rest);
            let theirs = to.prefix.get(index).unwrap_or(&to.rest);
            self.covers(mine, theirs)
        }) && (!within(places) || self.covers(&from.rest, &to.rest))
    }

    fn objects(&self, from: &Node<'_>, to: &Node<'_>) -> bool {
        let undeclared = self.view.writes_undeclared(from);
        let mut own = from.limits.counts[2];
        own.0 = own.0.max(from.required.len() as u64);
        if from.additional.is_nothing() || (self.side == Side::Input && !undeclared) {
            let most = from.properties.len() as u64;
            own.1 = Some(own.1.map_or(most, |held| held.min(most)));
        }
        if !to.required.is_subset(&from.required)
            || !counts_within(own, to.limits.counts[2])
            || !self.names(from, to, undeclared)
        {
            return false;
        }
        // An emptied schema accepts everything and declares nothing, which proves nothing about real values.
        if self.view != View::Strict && speaks_of_members(from) && !speaks_of_members(to) {
            let emptied = !from.properties.is_empty();
            if emptied && (self.side == Side::Input && self.view == View::Practical) {
                return false;
            }
        }
        let declared = from.properties.iter().all(|(name, mine)| {
            if mine.is_nothing() {
                return true;
            }
            match to.properties.get(name) {
                Some(theirs) => self.covers(mine, theirs),
                None if self.loses_member(to) => false,
                None => self.covers(mine, &to.additional),
            }
        });
        declared
            && to
                .properties
                .iter()
                // A server that no longer declares a member does not send it.
                .filter(|(name, _)| undeclared && !from.properties.contains_key(*name))
                .all(|(_, theirs)| self.covers(&from.additional, theirs))
            && self.additional(from, to, undeclared)
    }

    /// In use, an argument that the live schema no longer declares has lost its meaning, unless the
    /// object is a map.
    fn loses_member(&self, to: &Node<'_>) -> bool {
        self.side == Side::Input
            && self.view == View::Practical
            && to.additional.is_anything()
            && !(to.properties.is_empty() && to.says_additional)
    }

    fn additional(&self, from: &Node<'_>, to: &Node<'_>, undeclared: bool) -> bool {
        // Results are compared as written: an opened object allows any member.
        (self.side == Side::Input && !undeclared) || self.covers(&from.additional, &to.additional)
    }

    fn names(&self, from: &Node<'_>, to: &Node<'_>, undeclared: bool) -> bool {
        if to.names.is_anything() {
            return true;
        }
        let declared = from
            .properties
            .iter()
            .filter(|(_, schema)| !schema.is_nothing())
            .all(|(name, _)| {
                admits(
                    &to.names,
                    &Value::String((*name).to_owned()),
                    0,
                    &self.steps,
                ) == Some(true)
            });
        let others = from.additional.is_nothing()
            || (self.side == Side::Input && !undeclared)
            || self.covers(&from.names.narrowed(Type::String), &to.names);
        declared && others
    }
}
