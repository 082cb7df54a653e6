//! Two schemas compared: a proof that one covers the other, a counterexample, or neither.
//!
//! Three independent parts are put together here: a proof of inclusion ([`cover`]), a search for a
//! counterexample ([`counterexample`]), and a walk that names the places that changed ([`changes`]).

mod admit;
mod alike;
mod alternatives;
mod candidates;
mod changes;
mod counterexample;
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
mod walk;

use serde_json::Value;

use self::counterexample::Search;
use self::cover::Proof;
use self::document::{Dialect, Document};
use self::node::Conjunction;
use self::types::Type;
pub use self::view::Side;
use self::view::View;
use self::walk::Walk;
pub use self::walk::{Change, Direction};
use crate::{SchemaError, inspect, readable};

/// The changes between two schemas of a tool, and the relation of their values.
#[derive(Debug)]
pub struct Comparison {
    /// The places that changed, from the outside in. At most 1 000.
    pub changes: Vec<Change>,
    /// The relation of their values.
    pub relation: Relation,
}

/// The relation of the values of two schemas. The writer's schema is the old one for arguments
/// ([`Side::Input`]), and the new one for results ([`Side::Output`]).
#[derive(Debug)]
pub enum Relation {
    /// Both schemas accept the same values.
    Equal,
    /// The reader accepts every value of the writer. The value, if there is one, is an exception that
    /// the schemas allow as written and that does not occur in practice.
    Covered(Option<Value>),
    /// In practice only members that the new schema no longer declares are lost. The value, if one was found, has such a
    /// member: the old schema accepts it, and the new one does not declare all of it.
    LosesMembers(Option<Value>),
    /// The writer's schema accepts this value and the reader's does not, for these reasons.
    NotCovered(Value, Vec<SchemaError>),
    /// Neither a proof nor a counterexample was found, for this reason.
    Unknown(&'static str),
}

/// A schema that cannot be compared: [`inspect`] refuses it, with this message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// The old schema.
    Old(String),
    /// The new schema.
    New(String),
}

/// Whether one schema covers another.
#[derive(Clone, Debug, PartialEq)]
pub enum Coverage {
    /// Proven: every value that is valid under the first schema is valid under the second.
    Covered,
    /// Validated: this value is valid under the first schema and not under the second.
    Counterexample {
        /// The value.
        value: Value,
        /// Why the second schema does not accept it; at most five reasons.
        reasons: Vec<SchemaError>,
    },
    /// Neither, for this reason.
    Unknown(String),
}

/// Whether every value that is valid under `from` is valid under `to`, both in the form that is read.
pub fn covers(from: &Value, to: &Value) -> Coverage {
    for schema in [from, to] {
        if let Err(problem) = inspect(schema) {
            return Coverage::Unknown(problem.message);
        }
    }
    let documents = [from, to].map(|schema| Document::new(readable(schema).into_owned()));
    let [writer, reader] =
        [&documents[0], &documents[1]].map(|one| Conjunction::new(Document::root_location(one)));
    let search = match Search::new(Side::Input, &writer, &reader) {
        Ok(search) => search.with_any_type(),
        Err(why) => return Coverage::Unknown(why.to_owned()),
    };
    if search.is_comparable() && Proof::new(Side::Input, View::Strict).covers(&writer, &reader) {
        return Coverage::Covered;
    }
    match search.counterexample(View::Strict) {
        Some(value) => Coverage::Counterexample {
            reasons: search.reasons(&value),
            value,
        },
        None => Coverage::Unknown(search.why_unknown().to_owned()),
    }
}

/// Everything that differs between two schemas of one tool.
///
/// # Errors
///
/// [`inspect`] refuses one of the schemas.
pub fn compare(side: Side, old: &Value, new: &Value) -> Result<Comparison, Incomparable> {
    inspect(new).map_err(|problem| Incomparable::New(problem.message))?;
    inspect(old).map_err(|problem| Incomparable::Old(problem.message))?;
    let [old_document, new_document] =
        [old, new].map(|schema| Document::new(readable(schema).into_owned()));
    let root = |document| {
        let location = Document::root_location(document);
        // Arguments and structured results are objects, regardless of the root's type.
        Conjunction {
            arguments: side == Side::Input,
            ..Conjunction::new(location).narrowed(Type::Object)
        }
    };
    let (before, after) = (root(&old_document), root(&new_document));
    let mut walk = Walk::new(side);
    walk.compare(&before, &after);
    text::compare_whole(&mut walk, old, new);
    Ok(Comparison {
        changes: walk.changes,
        relation: relation(side, &before, &after),
    })
}

fn relation(side: Side, old: &Conjunction<'_>, new: &Conjunction<'_>) -> Relation {
    let (writer, reader) = match side {
        Side::Input => (old, new),
        Side::Output => (new, old),
    };
    let search = match Search::new(side, writer, reader) {
        Ok(search) => search,
        Err(why) => return Relation::Unknown(why),
    };
    let prove = |view| search.is_comparable() && Proof::new(side, view).covers(writer, reader);
    if prove(View::Practical) {
        let strictly = prove(View::Strict);
        if strictly && Proof::new(side, View::Strict).covers(reader, writer) {
            return Relation::Equal;
        }
        let exception = (!strictly).then(|| search.counterexample(View::Strict));
        return Relation::Covered(exception.flatten());
    }
    if let Some(value) = search.counterexample(View::Practical) {
        let reasons = search.reasons(&value);
        return Relation::NotCovered(value, reasons);
    }
    if side == Side::Input && prove(View::Lenient) {
        return Relation::LosesMembers(search.value_with_a_lost_member());
    }
    Relation::Unknown(search.why_unknown())
}

/// Whether numbers have one meaning in both documents. Dialects in which `integer` does not accept
/// `1.0`, or in which a keyword has another name, are compared with others by counterexample alone.
fn numbers_mean_the_same(one: &Document, other: &Document) -> bool {
    let draft4 = |document: &Document| document.dialect == Dialect::Draft4;
    let names_integer = |document: &Document| document.root().to_string().contains("\"integer\"");
    draft4(one) == draft4(other) || !(names_integer(one) || names_integer(other))
}

#[cfg(test)]
mod tests;
