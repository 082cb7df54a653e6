//! The findings on two schemas of one tool: every change gets its rule and its class.

use broker_schema::{Change, Direction, Incomparable, Relation, Side, compare};
use serde_json::Value;

use super::class::{Class, FindingSeverity};
use super::rules;

/// One finding on a schema. Pointers are into the schema.
#[derive(Debug)]
pub(super) struct SchemaFinding {
    pub(super) rule: &'static rules::Rule,
    pub(super) class: Class,
    pub(super) severity: FindingSeverity,
    pub(super) pointer: String,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
    pub(super) witness: Option<Value>,
    pub(super) message: String,
}

/// Every difference between two schemas of one tool, classified.
pub(super) fn findings(side: Side, old: &Value, new: &Value) -> Vec<SchemaFinding> {
    let refused = |whose: &str, message: &str| {
        let change = whole("unproven", old, new, format!("{whose}: {message}"));
        vec![SchemaFinding::new(side, change, Class::Unknown, None)]
    };
    match compare(side, old, new) {
        Ok(comparison) => assign(side, comparison.changes, &comparison.relation, [old, new]),
        Err(Incomparable::New(message)) => refused("the live schema", &message),
        Err(Incomparable::Old(message)) => refused("the reviewed schema", &message),
    }
}

/// Gives every change its class, and adds findings on the schema as a whole.
fn assign(
    side: Side,
    changes: Vec<Change>,
    relation: &Relation,
    [old, new]: [&Value; 2],
) -> Vec<SchemaFinding> {
    let bad = |change: &Change| match change.direction {
        Direction::Changed => true,
        Direction::Narrowed => side == Side::Input,
        Direction::Widened => side == Side::Output,
        Direction::RuleDefined => false,
    };
    let whole = |rule: &str, message: &str| whole(rule, old, new, message.to_owned());
    let mut out = Vec::new();
    let mut respelled = None;
    let (mut witness, shown_by) = match relation {
        Relation::NotCovered(witness, why) => {
            let bad_ones = changes.iter().enumerate().filter(|(_, change)| bad(change));
            // The first of the best, since the walk goes from the outside in.
            let best = bad_ones
                .rev()
                .max_by_key(|(_, change)| change.explains(why));
            (Some(witness.clone()), best.map(|(at, _)| at))
        }
        _ => (None, None),
    };
    for (at, change) in changes.into_iter().enumerate() {
        if change.direction == Direction::RuleDefined {
            let proven = matches!(relation, Relation::Equal | Relation::Covered(_));
            let usual = rules::find(side.as_str(), &change.rule).class;
            let class = match proven {
                true => usual.if_proven(),
                false => usual,
            };
            out.push(SchemaFinding::new(side, change, class, None));
            continue;
        }
        let bad = bad(&change);
        let class = match relation {
            Relation::Equal => {
                respelled.get_or_insert(change);
                continue;
            }
            Relation::NotCovered(..) if bad => Class::Breaking,
            Relation::Unknown(_) if bad => Class::Unknown,
            Relation::Covered(_)
            | Relation::LosesMembers(_)
            | Relation::NotCovered(..)
            | Relation::Unknown(_) => Class::Compatible,
        };
        let shown = witness.take_if(|_| shown_by == Some(at));
        out.push(SchemaFinding::new(side, change, class, shown));
    }
    let of_class = |out: &[SchemaFinding], class| out.iter().any(|one| one.class == class);
    match relation {
        Relation::Equal => {
            if let Some(mut change) = respelled {
                change.rule = "rearranged".to_owned();
                change.message = "has another form and accepts the same values".to_owned();
                out.push(SchemaFinding::new(side, change, Class::Equivalent, None));
            } else if out.is_empty() && same_dialect(old, new) {
                let change = whole("rearranged", "has another form and accepts the same values");
                out.push(SchemaFinding::new(side, change, Class::Equivalent, None));
            }
        }
        Relation::Covered(strict) => {
            if let Some(value) = strict {
                let rule = if side == Side::Input {
                    "strictly-narrowed"
                } else {
                    "strictly-widened"
                };
                let change = whole(
                    rule,
                    "the schemas differ on this value, which real calls do not send",
                );
                out.push(SchemaFinding::new(
                    side,
                    change,
                    Class::Compatible,
                    Some(value.clone()),
                ));
            } else if !of_class(&out, Class::Compatible) {
                let change = whole(
                    "widened",
                    "the schema changed, and every reviewed value is proven valid",
                );
                out.push(SchemaFinding::new(side, change, Class::Compatible, None));
            }
        }
        Relation::LosesMembers(example) => {
            if !of_class(&out, Class::Breaking) {
                let change = whole("member-lost", "a declared member is no longer declared");
                out.push(SchemaFinding::new(side, change, Class::Breaking, None));
            }
            if let Some(example) = example {
                show_lost_member(&mut out, example);
            }
        }
        Relation::NotCovered(..) => {
            let emptied = out
                .iter_mut()
                .find(|one| one.rule.id == "output-schema-emptied");
            match (witness, emptied) {
                (None, _) => {}
                // An emptied schema does not show whether real results will differ.
                (Some(value), Some(emptied)) => emptied.witness = Some(value),
                (Some(value), None) => {
                    let change = whole("unsafe", "the schemas differ on this value");
                    out.push(SchemaFinding::new(
                        side,
                        change,
                        Class::Breaking,
                        Some(value),
                    ));
                }
            }
        }
        Relation::Unknown(why) => {
            if !of_class(&out, Class::Unknown) {
                out.push(SchemaFinding::new(
                    side,
                    whole("unproven", why),
                    Class::Unknown,
                    None,
                ));
            }
        }
    }
    if !same_dialect(old, new) && !matches!(relation, Relation::Unknown(_)) {
        let at = |schema: &Value| schema.get("$schema").cloned();
        let change = Change {
            pointer: "/$schema".to_owned(),
            old: at(old),
            new: at(new),
            ..whole(
                "dialect-changed",
                "the dialect changed; each side was read in its own dialect",
            )
        };
        out.push(SchemaFinding::new(side, change, Class::Equivalent, None));
    }
    out
}

/// Adds an example with a lost member to the finding on that member, else to the first one that breaks.
fn show_lost_member(findings: &mut [SchemaFinding], example: &Value) {
    let text = example.to_string();
    let names_it = |one: &SchemaFinding| {
        let name = one.pointer.rsplit('/').next().unwrap_or_default();
        text.contains(&format!("{}:", Value::from(name)))
    };
    let breaks = |one: &SchemaFinding| one.class == Class::Breaking;
    let named = findings.iter().position(|one| breaks(one) && names_it(one));
    let at = named.or_else(|| findings.iter().position(breaks));
    if let Some(at) = at {
        findings[at].witness = Some(example.clone());
    }
}

fn same_dialect(old: &Value, new: &Value) -> bool {
    old.get("$schema") == new.get("$schema")
}

/// A change of the schema as a whole.
fn whole(rule: &str, old: &Value, new: &Value, message: String) -> Change {
    Change {
        rule: rule.to_owned(),
        direction: Direction::RuleDefined,
        pointer: String::new(),
        new_pointer: None,
        old: Some(old.clone()),
        new: Some(new.clone()),
        message,
    }
}

impl SchemaFinding {
    pub(super) fn new(side: Side, change: Change, class: Class, witness: Option<Value>) -> Self {
        let rule = rules::find(side.as_str(), &change.rule);
        let severity = if class == rule.class {
            rule.severity
        } else if class > Class::Compatible {
            FindingSeverity::Error
        } else {
            FindingSeverity::Warning
        };
        let mut message = change.message;
        if let Some(at) = &change.new_pointer {
            message.push_str(&format!("; it is at `{at}` now"));
        }
        Self {
            rule,
            class,
            severity,
            pointer: change.pointer,
            old: change.old,
            new: change.new,
            witness,
            message,
        }
    }
}
