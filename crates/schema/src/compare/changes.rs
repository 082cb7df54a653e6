//! Reports the places where two schemas differ, and the direction of each change. The proof and the
//! counterexample decide the class of a change.

use serde_json::Value;

use super::alternatives;
use super::node::{Conjunction, Node, same_value};
use super::text;
use super::types::Type;
use super::view::{Side, speaks_of_members};
use super::walk::{Direction, Origin, Walk};
use broker_model::json::child_pointer;

/// Maximum number of read subschemas, counted at each read.
const MAX_STEPS: usize = 100_000;
/// Maximum nesting of places, since references can make chains of any length.
const MAX_DEPTH: usize = 64;

impl Walk {
    pub(super) fn compare(&mut self, old: &Conjunction<'_>, new: &Conjunction<'_>) {
        if self.steps > MAX_STEPS
            || self.depth >= MAX_DEPTH
            || !self.seen.insert((old.key(), new.key()))
        {
            return;
        }
        self.depth += 1;
        self.compare_level(old, new);
        self.depth -= 1;
    }

    fn compare_level(&mut self, old: &Conjunction<'_>, new: &Conjunction<'_>) {
        let (old, old_null) = folded(old);
        let (new, new_null) = folded(new);
        let (mut from, mut to) = (old.read(), new.read());
        self.steps += from.size() + to.size();
        for (node, null) in [(&mut from, old_null), (&mut to, new_null)] {
            if null {
                node.types = node.types.with(Type::Null);
            }
            gather_constants(node);
        }
        text::compare(self, &from, &to);
        if alternatives::one_side_has_a_like(&from, &to) {
            // A single schema became one of several alternatives, or the reverse: it is compared with that one.
            self.groups(&old, &from, &new, &to);
            self.opaque(&from, &to);
            return;
        }
        self.types(&from, &to);
        self.values(&from, &to);
        self.limits(&from, &to);
        if from.types.has(Type::Object) && to.types.has(Type::Object) {
            self.objects(&from, &to);
        }
        if from.types.has(Type::Array) && to.types.has(Type::Array) {
            self.arrays(&from, &to);
        }
        self.groups(&old, &from, &new, &to);
        self.opaque(&from, &to);
    }

    fn types(&mut self, from: &Node<'_>, to: &Node<'_>) {
        // Listed values imply their types.
        if from.values.is_some() || to.values.is_some() {
            return;
        }
        let at = [type_origin(from), type_origin(to)];
        self.directed(
            "type",
            to.types.within(from.types),
            from.types.within(to.types),
            at,
            "the type",
        );
    }

    fn values(&mut self, from: &Node<'_>, to: &Node<'_>) {
        let within = |one: &Option<Vec<&Value>>, other: &Option<Vec<&Value>>| match (one, other) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(one), Some(other)) => one.iter().all(|x| other.iter().any(|y| same_value(x, y))),
        };
        let at = [value_origin(from), value_origin(to)];
        self.directed(
            "enum",
            within(&to.values, &from.values),
            within(&from.values, &to.values),
            at,
            "the list of values",
        );
    }

    fn objects(&mut self, from: &Node<'_>, to: &Node<'_>) {
        let emptied = !from.properties.is_empty() && !speaks_of_members(to) && to.groups.is_empty();
        if emptied {
            let at = [from.origin("properties"), to.origin("properties")];
            self.add(
                "schema-emptied",
                Direction::RuleDefined,
                at,
                "every declared property was removed, and any value is accepted".to_owned(),
            );
        } else {
            self.properties(from, to);
        }
        self.required(from, to);
        if !emptied {
            self.additional(from, to);
        }
        self.compare(&from.names, &to.names);
    }

    fn properties(&mut self, from: &Node<'_>, to: &Node<'_>) {
        for (name, old) in &from.properties {
            if let Some(new) = to.properties.get(name) {
                self.compare(old, new);
                continue;
            }
            let open =
                to.additional.is_anything() && !(to.properties.is_empty() && to.says_additional);
            let direction = if self.side == Side::Output || open {
                Direction::RuleDefined
            } else {
                Direction::Narrowed
            };
            let message = format!("the declared property `{name}` was removed");
            self.add(
                "property-removed",
                direction,
                [declaration(from, name), None],
                message,
            );
        }
        for name in to
            .properties
            .keys()
            .filter(|name| !from.properties.contains_key(*name))
        {
            let at = [None, declaration(to, name)];
            if self.side == Side::Output {
                let message = format!("the property `{name}` was added");
                self.add("property-added", Direction::Widened, at, message);
            } else if !to.required.contains(name) {
                let asks = text::asks_for_more(
                    name,
                    to.properties[name]
                        .locations
                        .first()
                        .map(|location| location.value),
                );
                let (rule, what) = if asks {
                    (
                        "channel-added",
                        ", which asks for context, credentials or addresses",
                    )
                } else {
                    ("property-added", "")
                };
                let message =
                    format!("the optional property `{name}` was added: a new input channel{what}");
                self.add(rule, Direction::RuleDefined, at, message);
            }
        }
    }

    fn required(&mut self, from: &Node<'_>, to: &Node<'_>) {
        let has_default = |name: &str| {
            let locations = to
                .properties
                .get(name)
                .map(|schema| schema.read().locations);
            locations.is_some_and(|locations| {
                locations
                    .iter()
                    .any(|location| location.value.get("default").is_some())
            })
        };
        for name in to.required.difference(&from.required) {
            let note = if has_default(name) {
                "; it has a default, so the server may still fill it in"
            } else {
                ""
            };
            self.add(
                "required-added",
                Direction::Narrowed,
                [None, declaration(to, name).or(to.origin("required"))],
                format!("`{name}` is now required{note}"),
            );
        }
        for name in from.required.difference(&to.required) {
            if self.side == Side::Input && !to.properties.contains_key(name) {
                continue;
            }
            self.add(
                "required-removed",
                Direction::Widened,
                [declaration(from, name).or(from.origin("required")), None],
                format!("`{name}` is no longer required"),
            );
        }
    }

    fn additional(&mut self, from: &Node<'_>, to: &Node<'_>) {
        let (old, new) = (&from.additional, &to.additional);
        let at = [
            from.origin("additionalProperties"),
            to.origin("additionalProperties"),
        ];
        let at = if at[0].is_none() && at[1].is_none() {
            [
                from.origin("unevaluatedProperties"),
                to.origin("unevaluatedProperties"),
            ]
        } else {
            at
        };
        let rank = |one: &Conjunction<'_>| {
            if one.is_nothing() {
                0
            } else {
                1 + u8::from(one.is_anything())
            }
        };
        match rank(new).cmp(&rank(old)) {
            std::cmp::Ordering::Less => {
                self.add(
                    "object-closed",
                    Direction::Narrowed,
                    at,
                    "the open object was closed".to_owned(),
                );
            }
            std::cmp::Ordering::Greater => {
                self.add(
                    "object-opened",
                    Direction::Widened,
                    at,
                    "the closed object was opened".to_owned(),
                );
            }
            std::cmp::Ordering::Equal => self.compare(old, new),
        }
    }

    fn arrays(&mut self, from: &Node<'_>, to: &Node<'_>) {
        for (old, new) in from.prefix.iter().zip(&to.prefix) {
            self.compare(old, new);
        }
        if from.prefix.len() != to.prefix.len() {
            let at = [tuple_origin(from), tuple_origin(to)];
            let message = "the items of the tuple changed".to_owned();
            self.add("alternatives-changed", Direction::Changed, at, message);
        }
        self.compare(&from.rest, &to.rest);
    }

    fn opaque(&mut self, from: &Node<'_>, to: &Node<'_>) {
        const KEYWORDS: [&str; 16] = [
            "not",
            "if",
            "then",
            "else",
            "contains",
            "minContains",
            "maxContains",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "patternProperties",
            "unevaluatedProperties",
            "unevaluatedItems",
            "$dynamicRef",
            "extends",
            "disallow",
        ];
        for keyword in KEYWORDS {
            let at = [from.origin(keyword), to.origin(keyword)];
            let [old, new] = [&at[0], &at[1]].map(|one| one.as_ref().map(|(_, value)| *value));
            if old != new {
                self.add(
                    "condition-changed",
                    Direction::Changed,
                    at,
                    format!("`{keyword}` changed"),
                );
            }
        }
    }
}

/// The place that determines the type of a node: `type`, else the keyword that implies it.
fn type_origin<'a>(node: &Node<'a>) -> Origin<'a> {
    ["type", "anyOf", "oneOf", "const", "enum"]
        .into_iter()
        .find_map(|keyword| node.origin(keyword))
}

fn value_origin<'a>(node: &Node<'a>) -> Origin<'a> {
    ["enum", "const", "anyOf", "oneOf"]
        .into_iter()
        .find_map(|keyword| node.origin(keyword))
}

fn tuple_origin<'a>(node: &Node<'a>) -> Origin<'a> {
    ["prefixItems", "items"]
        .into_iter()
        .find_map(|keyword| node.origin(keyword))
}

fn declaration<'a>(node: &Node<'a>, name: &str) -> Origin<'a> {
    node.locations.iter().find_map(|location| {
        let value = location.members()?.get("properties")?.get(name)?;
        let pointer = child_pointer(&child_pointer(&location.pointer, "properties"), name);
        Some((pointer, value))
    })
}

/// `anyOf [T, null]` as T, and whether null was among the alternatives.
pub(super) fn folded<'a>(schema: &Conjunction<'a>) -> (Conjunction<'a>, bool) {
    let node = schema.read();
    let [group] = node.groups.as_slice() else {
        return (schema.clone(), false);
    };
    let is_null = |index: &usize| {
        let branch = Conjunction::new(group.branches[*index].clone()).read();
        !branch.never && branch.types.each().eq([Type::Null])
    };
    let (nulls, others): (Vec<usize>, Vec<usize>) = (0..group.branches.len()).partition(is_null);
    match others.as_slice() {
        [one] => (
            schema.choosing(group, *one),
            !nulls.is_empty() && node.types.has(Type::Null),
        ),
        _ => (schema.clone(), false),
    }
}

/// Alternatives that are all constants are one list of values.
fn gather_constants(node: &mut Node<'_>) {
    let [group] = node.groups.as_slice() else {
        return;
    };
    let values: Option<Vec<Vec<&Value>>> = group
        .branches
        .iter()
        .map(|branch| Conjunction::new(branch.clone()).read().values)
        .collect();
    if let (Some(values), None) = (values, &node.values) {
        node.values = Some(values.concat());
        node.groups.clear();
    }
}
