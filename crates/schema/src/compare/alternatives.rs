//! Reports the changes of alternatives: pairs corresponding branches and reports added and removed ones.

use super::node::{Conjunction, Group, Node};
use super::types::Type;
use super::walk::{Direction, Walk};

impl Walk {
    pub(super) fn groups(
        &mut self,
        old: &Conjunction<'_>,
        from: &Node<'_>,
        new: &Conjunction<'_>,
        to: &Node<'_>,
    ) {
        match (from.groups.as_slice(), to.groups.as_slice()) {
            ([], []) => {}
            ([one], [other]) => self.pair(old, from, one, new, to, other),
            ([one], []) => {
                self.moved("alternatives-narrowed", Direction::Narrowed, from, to);
                if let Some(branch) = alike(one, to) {
                    self.compare(&old.choosing(one, branch), new);
                }
            }
            ([], [other]) => {
                self.moved("alternatives-widened", Direction::Widened, from, to);
                if let Some(branch) = alike(other, from) {
                    self.compare(old, &new.choosing(other, branch));
                }
            }
            (many, others) if many.len() == others.len() => {
                for (one, other) in many.iter().zip(others) {
                    self.pair(old, from, one, new, to, other);
                }
            }
            _ => self.moved("alternatives-changed", Direction::Changed, from, to),
        }
    }

    fn pair(
        &mut self,
        old: &Conjunction<'_>,
        from: &Node<'_>,
        one: &Group<'_>,
        new: &Conjunction<'_>,
        to: &Node<'_>,
        other: &Group<'_>,
    ) {
        let mut left: Vec<usize> = (0..other.branches.len()).collect();
        let mut alone = Vec::new();
        for (index, branch) in one.branches.iter().enumerate() {
            let equal = left
                .iter()
                .position(|at| other.branches[*at].value == branch.value);
            match equal {
                Some(at) => {
                    left.remove(at);
                }
                None => alone.push(index),
            }
        }
        // The rest is paired in order, by type if the types differ.
        let types_of = |group: &Group<'_>, at: usize| {
            Conjunction::new(group.branches[at].clone()).read().types
        };
        let mut left: Vec<_> = left
            .into_iter()
            .map(|at| (at, types_of(other, at)))
            .collect();
        let mut gone = 0;
        for index in alone {
            let types = types_of(one, index);
            let partner = left.iter().position(|(_, other)| *other == types);
            match partner {
                Some(at) => {
                    let (at, _) = left.remove(at);
                    self.compare(&old.choosing(one, index), &new.choosing(other, at));
                }
                None => gone += 1,
            }
        }
        match (gone, left.len()) {
            (0, 0) => {}
            (_, 0) => self.moved("alternatives-narrowed", Direction::Narrowed, from, to),
            (0, _) => self.moved("alternatives-widened", Direction::Widened, from, to),
            _ => self.moved("alternatives-changed", Direction::Changed, from, to),
        }
    }

    fn moved(&mut self, rule: &str, direction: Direction, from: &Node<'_>, to: &Node<'_>) {
        let at = [from, to].map(|node| {
            ["anyOf", "oneOf", "type"]
                .into_iter()
                .find_map(|keyword| node.origin(keyword))
        });
        self.add(rule, direction, at, "the alternatives changed".to_owned());
    }
}

/// Whether one side has alternatives, and the other, which has none, is similar to one of them. Not for
/// objects, whose declared members are compared on both sides.
pub(super) fn one_side_has_a_like(from: &Node<'_>, to: &Node<'_>) -> bool {
    let (group, plain) = match (from.groups.as_slice(), to.groups.as_slice()) {
        ([one], []) => (one, to),
        ([], [other]) => (other, from),
        _ => return false,
    };
    !plain.types.has(Type::Object) && alike(group, plain).is_some()
}

/// The first branch of the same type.
fn alike(group: &Group<'_>, node: &Node<'_>) -> Option<usize> {
    group.branches.iter().position(|branch| {
        let branch = Conjunction::new(branch.clone()).read();
        !branch.never && !branch.types.and(node.types).is_empty()
    })
}
