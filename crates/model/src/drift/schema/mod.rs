//! Two schemas, compared with each other: proven safe, shown unsafe by a witness, or `unknown`.
//!
//! Three parts that know nothing of each other are put together here: a proof of inclusion
//! ([`cover`]), a search for a witness ([`witness`]), and a walk that names the places ([`changes`]).

mod admit;
mod alike;
mod alternatives;
mod candidates;
mod changes;
mod cover;
mod document;
mod facets;
mod limits;
mod node;
mod read;
mod samples;
mod steps;
mod text;
mod types;
mod view;
mod witness;

use serde_json::Value;

use self::changes::{Change, Walk, Way};
use self::cover::Proof;
use self::document::{Dialect, Document};
use self::node::Conjunction;
use self::types::Type;
pub(super) use self::view::Side;
use self::view::View;
use self::witness::Search;
use super::report::{Class, FindingSeverity};
use super::rules;
use crate::schema::{SchemaError, inspect};

/// One finding on a schema. Pointers are into the schema.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) rule: &'static rules::Rule,
    pub(super) class: Class,
    pub(super) severity: FindingSeverity,
    pub(super) pointer: String,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
    pub(super) witness: Option<Value>,
    pub(super) message: String,
}

/// What is known of a change as a whole.
#[derive(Debug)]
enum Outcome {
    /// Both schemas take the same values.
    Equal,
    /// Every value of the writer is taken by the reader; as written, or in use alone with the value
    /// that the schemas as written part on, where one was found.
    Safe(Option<Value>),
    /// In use, nothing is lost but members that are no longer declared.
    LosesMembers,
    /// A value that the reader does not take, and why not.
    Unsafe(Value, Vec<SchemaError>),
    /// Neither was found.
    Unknown(&'static str),
}

/// Everything that differs between two schemas of one tool, with what it means.
pub(super) fn judge(side: Side, old: &Value, new: &Value) -> Vec<Judged> {
    let outside = |why: &str, message: String| {
        let change = Change::whole("unproven", old, new, format!("{why}: {message}"));
        vec![Judged::of(side, change, Class::Unknown, None)]
    };
    for (schema, whose) in [(new, "the live schema"), (old, "the reviewed schema")] {
        if let Err(problem) = inspect(schema) {
            return outside(whose, problem.message);
        }
    }
    let (old_document, new_document) = (Document::new(old.clone()), Document::new(new.clone()));
    let root = |document| {
        let spot = Document::root_spot(document);
        // Arguments and structured answers are objects, whatever the root says.
        Conjunction {
            arguments: side == Side::Input,
            ..Conjunction::of(spot).narrowed(Type::Object)
        }
    };
    let (before, after) = (root(&old_document), root(&new_document));
    let mut walk = Walk::new(side);
    walk.compare(&before, &after);
    text::compare_whole(&mut walk, old, new);
    let outcome = settle(side, &before, &after);
    assign(side, walk.changes, &outcome, [&old_document, &new_document])
}

fn settle(side: Side, old: &Conjunction<'_>, new: &Conjunction<'_>) -> Outcome {
    let (writer, reader) = match side {
        Side::Input => (old, new),
        Side::Output => (new, old),
    };
    let search = match Search::new(side, writer, reader) {
        Ok(search) => search,
        Err(why) => return Outcome::Unknown(why),
    };
    let comparable = search.numbers_mean_the_same();
    let prove = |view| comparable && Proof::new(side, view).covers(writer, reader);
    if prove(View::Practical) {
        let strictly = prove(View::Strict);
        if strictly && Proof::new(side, View::Strict).covers(reader, writer) {
            return Outcome::Equal;
        }
        let witness = (!strictly).then(|| search.witness(View::Strict)).flatten();
        return Outcome::Safe(witness);
    }
    if let Some(witness) = search.witness(View::Practical) {
        let why = search.why_not(&witness);
        return Outcome::Unsafe(witness, why);
    }
    if side == Side::Input && prove(View::Lenient) {
        return Outcome::LosesMembers;
    }
    Outcome::Unknown(if search.is_cut() {
        "values take too many steps to be checked against the schemas"
    } else {
        "neither a proof nor a counterexample was found"
    })
}

/// Gives every change its class, and adds what no single place says.
fn assign(
    side: Side,
    changes: Vec<Change>,
    outcome: &Outcome,
    [old, new]: [&Document; 2],
) -> Vec<Judged> {
    let bad = |change: &Change| match change.way {
        Way::Changed => true,
        Way::Narrowed => side == Side::Input,
        Way::Widened => side == Side::Output,
        Way::Fixed => false,
    };
    let whole =
        |rule: &str, message: &str| Change::whole(rule, old.root(), new.root(), message.to_owned());
    let mut out = Vec::new();
    let mut respelled = None;
    let (mut witness, shown_by) = match outcome {
        Outcome::Unsafe(witness, why) => {
            let bad_ones = changes.iter().enumerate().filter(|(_, change)| bad(change));
            // The first of the best, since the walk goes from the outside in.
            let best = bad_ones
                .rev()
                .max_by_key(|(_, change)| witness::fits(change, why));
            (Some(witness.clone()), best.map(|(at, _)| at))
        }
        _ => (None, None),
    };
    for (at, change) in changes.into_iter().enumerate() {
        if change.way == Way::Fixed {
            let proven = matches!(outcome, Outcome::Equal | Outcome::Safe(_));
            let usual = match rules::of(side.as_str(), &change.rule).class {
                // The walk paired places that the proof did not need.
                Class::Breaking | Class::Unknown if proven => Class::Compatible,
                usual => usual,
            };
            out.push(Judged::of(side, change, usual, None));
            continue;
        }
        let bad = bad(&change);
        let class = match outcome {
            Outcome::Equal => {
                respelled.get_or_insert(change);
                continue;
            }
            Outcome::Unsafe(..) if bad => Class::Breaking,
            Outcome::Unknown(_) if bad => Class::Unknown,
            _ => Class::Compatible,
        };
        let shown = witness.take_if(|_| shown_by == Some(at));
        out.push(Judged::of(side, change, class, shown));
    }
    let of_class = |out: &[Judged], class| out.iter().any(|one| one.class == class);
    match outcome {
        Outcome::Equal => {
            if let Some(mut change) = respelled {
                change.rule = "rearranged".to_owned();
                change.message = "written otherwise, and takes the same".to_owned();
                out.push(Judged::of(side, change, Class::Equivalent, None));
            } else if out.is_empty() && same_dialect(old, new) {
                let change = whole("rearranged", "written otherwise, and takes the same");
                out.push(Judged::of(side, change, Class::Equivalent, None));
            }
        }
        Outcome::Safe(strict) => {
            if let Some(value) = strict {
                let rule = if side == Side::Input {
                    "strictly-narrowed"
                } else {
                    "strictly-widened"
                };
                let change = whole(
                    rule,
                    "as written the schemas part on this value, which nobody sends in use",
                );
                out.push(Judged::of(
                    side,
                    change,
                    Class::Compatible,
                    Some(value.clone()),
                ));
            } else if !of_class(&out, Class::Compatible) {
                let change = whole(
                    "widened",
                    "the schema changed, and everything reviewed is proven good",
                );
                out.push(Judged::of(side, change, Class::Compatible, None));
            }
        }
        Outcome::LosesMembers => {
            if !of_class(&out, Class::Breaking) {
                let change = whole("member-lost", "a declared member is no longer declared");
                out.push(Judged::of(side, change, Class::Breaking, None));
            }
        }
        Outcome::Unsafe(..) => {
            let emptied = out
                .iter_mut()
                .find(|one| one.rule.id == "output-schema-emptied");
            match (witness, emptied) {
                (None, _) => {}
                // Whether anything will come of it, an emptied schema does not say.
                (Some(value), Some(emptied)) => emptied.witness = Some(value),
                (Some(value), None) => {
                    let change = whole("unsafe", "the schemas part on this value");
                    out.push(Judged::of(side, change, Class::Breaking, Some(value)));
                }
            }
        }
        Outcome::Unknown(why) => {
            if !of_class(&out, Class::Unknown) {
                out.push(Judged::of(
                    side,
                    whole("unproven", why),
                    Class::Unknown,
                    None,
                ));
            }
        }
    }
    if !same_dialect(old, new) && !matches!(outcome, Outcome::Unknown(_)) {
        let at = |document: &Document| document.root().get("$schema").cloned();
        let change = Change {
            pointer: "/$schema".to_owned(),
            old: at(old),
            new: at(new),
            ..whole(
                "dialect-changed",
                "the dialect changed; both sides were read under their own",
            )
        };
        out.push(Judged::of(side, change, Class::Equivalent, None));
    }
    out
}

fn same_dialect(old: &Document, new: &Document) -> bool {
    old.root().get("$schema") == new.root().get("$schema")
}

impl Side {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

impl Change {
    fn whole(rule: &str, old: &Value, new: &Value, message: String) -> Self {
        Self {
            rule: rule.to_owned(),
            way: Way::Fixed,
            pointer: String::new(),
            now_at: None,
            old: Some(old.clone()),
            new: Some(new.clone()),
            message,
        }
    }
}

impl Judged {
    fn of(side: Side, change: Change, class: Class, witness: Option<Value>) -> Self {
        let rule = rules::of(side.as_str(), &change.rule);
        let severity = if class == rule.class {
            rule.severity
        } else if class > Class::Compatible {
            FindingSeverity::Error
        } else {
            FindingSeverity::Warning
        };
        let mut message = change.message;
        if let Some(at) = &change.now_at {
            message.push_str(&format!("; it stands at `{at}` now"));
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

/// Dialects in which `integer` does not take `1.0`, or a keyword is spelled otherwise, are compared
/// by witness alone with others.
fn numbers_mean_the_same(one: &Document, other: &Document) -> bool {
    let four = |document: &Document| document.dialect == Dialect::Draft4;
    let says_integer = |document: &Document| document.root().to_string().contains("\"integer\"");
    four(one) == four(other) || !(says_integer(one) || says_integer(other))
}
