//! Finds properties that a schema has under another name: one removed and one added at the same object, with the
//! same schema except texts, and with a similar name or text.

use std::collections::BTreeSet;

use broker_model::json::child_pointer;
use broker_schema::{Change, Direction, Side};
use serde_json::{Map, Value, json};

use super::schema::SchemaFinding;
use super::words::{shared, words};

/// Maximum number of removed and of added properties that are compared.
const MAX_PROPERTIES: usize = 50;
/// Keywords that a person reads; a value is valid whatever they say.
const TEXTS: [&str; 5] = ["title", "description", "examples", "default", "$comment"];

/// One property that was removed or added.
#[derive(Clone)]
struct Property {
    /// The pointer of the object's `properties`.
    parent: String,
    name: String,
    schema: Value,
}

/// Replaces the findings on a removed property and on the added one that it probably became by one finding with both.
pub(super) fn join(side: Side, mut findings: Vec<SchemaFinding>) -> Vec<SchemaFinding> {
    for [old, new] in renames(side, &findings) {
        let [from, to] = [&old, &new].map(Property::pointer);
        let is_part = |one: &SchemaFinding| {
            let rule = suffix(side, one);
            match (&one.old, &one.new) {
                (Some(_), None) => {
                    one.pointer == from && ["property-removed", "required-removed"].contains(&rule)
                }
                // A property that asks for context keeps its own finding.
                (None, Some(_)) => {
                    one.pointer == to && ["property-added", "required-added"].contains(&rule)
                }
                _ => false,
            }
        };
        let Some(at) = findings.iter().position(is_part) else {
            continue;
        };
        let (mut parts, mut rest) = (Vec::new(), Vec::new());
        for one in findings {
            match is_part(&one) {
                true => parts.push(one),
                false => rest.push(one),
            }
        }
        rest.insert(at.min(rest.len()), joined(side, &old, &new, parts));
        findings = rest;
    }
    findings
}

/// The finding on a rename, with the worst class of its parts and their example.
fn joined(side: Side, old: &Property, new: &Property, parts: Vec<SchemaFinding>) -> SchemaFinding {
    let required = parts
        .iter()
        .any(|one| one.old.is_none() && suffix(side, one) == "required-added");
    let change = Change {
        rule: "property-renamed".to_owned(),
        direction: Direction::RuleDefined,
        pointer: old.pointer(),
        new_pointer: Some(new.pointer()),
        old: Some(json!({ &old.name: old.schema })),
        new: Some(json!({ &new.name: new.schema })),
        message: format!(
            "the property `{}` seems to be `{}` now{}",
            old.name,
            new.name,
            if required && side == Side::Input {
                ", which is required"
            } else {
                ""
            }
        ),
    };
    let worst = parts.iter().map(|one| one.class).max();
    let class = worst.unwrap_or(super::Class::Breaking);
    let witness = parts.into_iter().find_map(|one| one.witness);
    SchemaFinding::new(side, change, class, witness)
}

/// The pairs of a removed and an added property, the most similar first, each property once.
fn renames(side: Side, findings: &[SchemaFinding]) -> Vec<[Property; 2]> {
    let of = |rules: &[&str], value: fn(&SchemaFinding) -> [&Option<Value>; 2]| {
        let mut seen = BTreeSet::new();
        let found = findings.iter().filter_map(|one| {
            let [there, absent] = value(one);
            let is_one = absent.is_none() && rules.contains(&suffix(side, one));
            let schema = there.as_ref().filter(|_| is_one)?;
            let property = Property::at(&one.pointer, schema)?;
            seen.insert(one.pointer.clone()).then_some(property)
        });
        found.take(MAX_PROPERTIES).collect::<Vec<_>>()
    };
    let removed = of(&["property-removed"], |one| [&one.old, &one.new]);
    let added = of(
        &["property-added", "channel-added", "required-added"],
        |one| [&one.new, &one.old],
    );
    let mut pairs = Vec::new();
    for (from, old) in removed.iter().enumerate() {
        for (to, new) in added.iter().enumerate() {
            if let Some(score) = likeness(old, new) {
                pairs.push((score, from, to));
            }
        }
    }
    pairs.sort_by_key(|(score, from, to)| (std::cmp::Reverse(*score), *from, *to));
    let [mut used_old, mut used_new] = [BTreeSet::new(), BTreeSet::new()];
    pairs.retain(|(_, from, to)| {
        let free = !used_old.contains(from) && !used_new.contains(to);
        free && used_old.insert(*from) && used_new.insert(*to)
    });
    let pairs = pairs.into_iter();
    pairs
        .map(|(_, from, to)| [removed[from].clone(), added[to].clone()])
        .collect()
}

/// The similarity of two properties in percent of name and text; `None` if they are not similar.
fn likeness(old: &Property, new: &Property) -> Option<u32> {
    if old.parent != new.parent || without_texts(&old.schema) != without_texts(&new.schema) {
        return None;
    }
    let letters = |name: &str| -> String {
        let letters = name.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let name = match letters(&old.name) == letters(&new.name) {
        true => 100,
        false => shared(&words(&old.name), &words(&new.name)),
    };
    let [before, after] = [old, new].map(|one| {
        let text = one.schema.get("description").and_then(Value::as_str);
        words(text.unwrap_or_default())
    });
    let text = shared(&before, &after);
    // Without texts only the name tells.
    let is_silent = before.is_empty() && after.is_empty();
    let alike = name == 100 || (name >= 33 && (is_silent || text >= 25)) || text >= 60;
    alike.then_some(name + text)
}

/// A schema without the texts of its top level.
fn without_texts(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let kept = members
        .iter()
        .filter(|(name, _)| !TEXTS.contains(&name.as_str()));
    let kept: Map<String, Value> = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    kept.into()
}

/// The id of a rule without the side.
fn suffix(side: Side, finding: &SchemaFinding) -> &'static str {
    let id = finding.rule.id;
    let rest = id.strip_prefix(side.as_str());
    rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or(id)
}

impl Property {
    fn at(pointer: &str, schema: &Value) -> Option<Self> {
        let (parent, name) = pointer.rsplit_once('/')?;
        if !parent.ends_with("/properties") {
            return None;
        }
        Some(Self {
            parent: parent.to_owned(),
            name: name.replace("~1", "/").replace("~0", "~"),
            schema: schema.clone(),
        })
    }

    fn pointer(&self) -> String {
        child_pointer(&self.parent, &self.name)
    }
}
