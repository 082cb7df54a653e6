//! Makes a copy of a schema from the few forms that types can represent without loss: keywords that no type expresses
//! are left out, and a part that a type would lose or reject becomes any JSON value. The original schema is not
//! changed: it validates values.
//!
//! Every object with members, every union and every list of names gets its name here, so that typify does not generate
//! a name.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::outline::{Outline, Shape};
use super::{Reason, SchemaOf, names};

mod exact_numbers;
mod objects;
mod unions;
mod values;

pub(super) use exact_numbers::without_exact_numbers;
pub(super) use objects::EXTRA;

/// Maximum levels of nesting; a deeper place has the type of any value. References count as levels too,
/// since they can nest deeper than the text.
const MAX_NESTING: usize = 256;
/// Maximum rounds of naming; each renames the places whose names collided in the previous one.
const MAX_ROUNDS: usize = 4;

/// The copy of `schema`, or the reason why its type is a map. `plain` omits named values and unions.
pub(super) fn simplify(schema: &Value, of: SchemaOf, plain: bool) -> Result<Outline, Reason> {
    let mut contested = BTreeSet::new();
    let mut round = 0;
    loop {
        let mut simplifier = Simplifier::new(schema, of, plain, &contested);
        simplifier.root()?;
        let clashes: Vec<_> = simplifier
            .claims
            .iter()
            .filter(|(_, places)| places.len() > 1)
            .map(|(name, _)| name.clone())
            .collect();
        round += 1;
        if clashes.is_empty() || round == MAX_ROUNDS {
            return Ok(simplifier.finish());
        }
        contested.extend(clashes);
    }
}

struct Simplifier<'a> {
    root: &'a Value,
    of: SchemaOf,
    plain: bool,
    /// Names that several places claim; no place gets them.
    contested: &'a BTreeSet<String>,
    /// A schema with identifiers inside resolves its references differently.
    has_inner_ids: bool,
    outline: Outline,
    definitions: Map<String, Value>,
    /// The name of every named place.
    named: BTreeMap<String, String>,
    /// The places that claim each name.
    claims: BTreeMap<String, BTreeSet<String>>,
    /// Places in progress, each with the name that it would have.
    active: BTreeMap<String, String>,
    done: BTreeMap<String, Shape>,
    /// Reasons that are in the outline.
    noted: BTreeSet<(String, String)>,
}

impl<'a> Simplifier<'a> {
    fn new(root: &'a Value, of: SchemaOf, plain: bool, contested: &'a BTreeSet<String>) -> Self {
        Self {
            root,
            of,
            plain,
            contested,
            has_inner_ids: has_inner_ids(root, true),
            outline: Outline::default(),
            definitions: Map::new(),
            named: BTreeMap::new(),
            claims: BTreeMap::new(),
            active: BTreeMap::new(),
            done: BTreeMap::new(),
            noted: BTreeSet::new(),
        }
    }

    /// Arguments and structured results are objects, even if the root schema does not say so.
    fn root(&mut self) -> Result<(), Reason> {
        let name = self.of.type_name();
        let shape = self.place("", name);
        let Shape::Typed { schema, .. } = &shape else {
            return Err(self.outline.reasons.pop().unwrap_or_else(|| Reason {
                pointer: String::new(),
                text: "the schema accepts any value".to_owned(),
            }));
        };
        let is_named = Shape::named(name) == Shape::typed(schema.clone());
        if !is_named {
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                return Err(Reason {
                    pointer: String::new(),
                    text: "the schema does not require an object".to_owned(),
                });
            }
            self.claim(name, "");
            self.definitions.insert(name.to_owned(), schema.clone());
        }
        Ok(())
    }

    fn finish(mut self) -> Outline {
        self.drop_unreached();
        self.outline.types = self.definitions.keys().cloned().collect();
        let root = Map::from_iter([("definitions".to_owned(), Value::Object(self.definitions))]);
        self.outline.schema = Value::Object(root);
        self.outline
    }

    /// Removes the types that the root does not refer to, such as the types of an abandoned union.
    fn drop_unreached(&mut self) {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![self.of.type_name().to_owned()];
        while let Some(name) = waiting.pop() {
            if let Some(schema) = self.definitions.get(&name)
                && reached.insert(name)
            {
                references(schema, &mut waiting);
            }
        }
        self.definitions.retain(|name, _| reached.contains(name));
        let is_reached = |owner: &String| reached.contains(owner);
        self.outline
            .renamed
            .retain(|(owner, _), _| is_reached(owner));
        self.outline
            .absent_or_null
            .retain(|(owner, _)| is_reached(owner));
    }

    /// The type of the place at a JSON pointer into the root. `name` is its name, if it needs one.
    fn place(&mut self, at: &str, name: &str) -> Shape {
        if let Some(shape) = self.done.get(at) {
            return shape.clone();
        }
        if let Some(name) = self.active.get(at).cloned() {
            // It contains itself: only a named type can do this.
            let null = self.takes_null(at);
            return Shape::named(&self.name(at, &name)).or_null(null);
        }
        let Some(schema) = self.root.pointer(at) else {
            return self.any(at, "a reference has no target");
        };
        if self.active.len() >= MAX_NESTING {
            return self.any(at, "nested deeper than 256 levels");
        }
        self.active.insert(at.to_owned(), name.to_owned());
        let mut shape = self.shape(schema, at, name);
        self.active.remove(at);
        if let Some(name) = self.named.get(at).cloned()
            && !self.definitions.contains_key(&name)
        {
            let itself = Shape::named(&name);
            let null = shape.takes_null();
            let schema = match shape {
                Shape::Typed { schema, .. } if itself != Shape::typed(schema.clone()) => schema,
                _ => self
                    .any(at, "the schema only refers to itself")
                    .into_schema(),
            };
            self.definitions.insert(name, schema);
            shape = itself.or_null(null);
        }
        self.done.insert(at.to_owned(), shape.clone());
        shape
    }

    fn shape(&mut self, schema: &Value, at: &str, name: &str) -> Shape {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(true) => return Shape::Any,
            _ => return self.any(at, "the schema accepts nothing"),
        };
        if let Some(reference) = members.get("$ref") {
            return self.reference(reference, at, name);
        }
        if members.contains_key("$dynamicRef") || members.contains_key("$recursiveRef") {
            return self.any(at, "a dynamic reference");
        }
        if let Some(shape) = self.values(members, at, name) {
            return shape;
        }
        match members.get("type") {
            Some(Value::String(kind)) => self.typed(members, kind, at, name),
            Some(Value::Array(kinds)) => self.several(members, kinds, at, name),
            _ if at.is_empty() && !is_alternatives(members) => {
                if members.contains_key("properties") {
                    self.typed(members, "object", at, name)
                } else {
                    Shape::typed(objects::open_map())
                }
            }
            _ => self.untyped(members, at, name),
        }
    }

    fn typed(&mut self, members: &Map<String, Value>, kind: &str, at: &str, name: &str) -> Shape {
        match kind {
            "string" | "boolean" => Shape::typed(values::simple(kind)),
            "integer" => Shape::typed(values::integer(members)),
            "number" => Shape::typed(values::number()),
            "array" => self.array(members, at, name),
            "object" => self.object(members, at, name),
            "null" => Shape::Any,
            _ => self.any(at, "an unknown `type`"),
        }
    }

    /// A place without `type`: alternatives, one part of `allOf`, or any value.
    fn untyped(&mut self, members: &Map<String, Value>, at: &str, name: &str) -> Shape {
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(list)) = members.get(keyword) {
                let places: Vec<_> = (0..list.len())
                    .map(|index| format!("{at}/{keyword}/{index}"))
                    .collect();
                return self.alternatives(&places, at, name);
            }
        }
        match members.get("allOf") {
            Some(Value::Array(parts)) if parts.len() == 1 => {
                self.place(&format!("{at}/allOf/0"), name)
            }
            Some(_) => self.any(at, "parts of `allOf` are not merged"),
            None if values::constrains(members) => self.any(at, "the schema has no `type`"),
            None => Shape::Any,
        }
    }

    fn array(&mut self, members: &Map<String, Value>, at: &str, name: &str) -> Shape {
        let items = match members.get("items") {
            _ if members.contains_key("prefixItems") => {
                self.any(at, "items by position have no type")
            }
            Some(Value::Array(_)) => self.any(at, "items by position have no type"),
            Some(_) => self.place(&format!("{at}/items"), &names::below(name, "item")),
            None => Shape::Any,
        };
        Shape::typed(serde_json::json!({ "type": "array", "items": items.into_schema() }))
    }

    fn reference(&mut self, reference: &Value, at: &str, name: &str) -> Shape {
        let target = reference
            .as_str()
            .filter(|_| !self.has_inner_ids)
            .and_then(|text| text.strip_prefix('#'))
            .and_then(decoded)
            .filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let Some(target) = target else {
            return self.any(at, "a reference that is not a pointer into the schema");
        };
        // A target is named after itself, independent of its first use.
        let definition = target
            .strip_prefix("/$defs/")
            .or_else(|| target.strip_prefix("/definitions/"));
        let root = self.of.type_name();
        let name = match definition {
            _ if target.is_empty() => root.to_owned(),
            Some(word) if names::is_plain(word) => names::below(root, word),
            Some(_) => names::with_digest(root, "definition", &target),
            None => name.to_owned(),
        };
        self.place(&target, &name)
    }

    /// Returns the name of a place. If several places have the same name, only the root may get it; the others get a
    /// digest in their names.
    fn name(&mut self, at: &str, wanted: &str) -> String {
        if let Some(name) = self.named.get(at) {
            return name.clone();
        }
        let is_root = at.is_empty();
        let name = if self.contested.contains(wanted) && !is_root {
            names::with_digest(wanted, "place", at)
        } else {
            wanted.to_owned()
        };
        self.claim(&name, at);
        self.named.insert(at.to_owned(), name.clone());
        name
    }

    fn claim(&mut self, name: &str, at: &str) {
        let places = self.claims.entry(name.to_owned()).or_default();
        places.insert(at.to_owned());
    }

    /// Any value, with the reason.
    fn any(&mut self, at: &str, reason: &str) -> Shape {
        self.note(at, reason);
        Shape::Any
    }

    fn note(&mut self, at: &str, reason: &str) {
        let reason = Reason {
            pointer: at.to_owned(),
            text: reason.to_owned(),
        };
        let key = (reason.pointer.clone(), reason.text.clone());
        if self.noted.insert(key) {
            self.outline.reasons.push(reason);
        }
    }

    /// Whether null is valid at a place that is not finished yet.
    fn takes_null(&self, at: &str) -> bool {
        self.root
            .pointer(at)
            .is_none_or(|schema| values::takes_null(schema, self.root, 0))
    }
}

/// Adds the names of the types that a simplified schema refers to. Members may have names of keywords.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let target = members.get("$ref").and_then(Value::as_str);
            names.extend(
                target
                    .and_then(|target| target.strip_prefix("#/definitions/"))
                    .map(str::to_owned),
            );
            members.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

fn is_alternatives(members: &Map<String, Value>) -> bool {
    let has = |key: &str| members.contains_key(key);
    !has("properties") && (has("anyOf") || has("oneOf") || has("allOf"))
}

fn has_inner_ids(schema: &Value, is_root: bool) -> bool {
    match schema {
        Value::Object(members) => {
            (!is_root
                && ["$id", "id", "$anchor"]
                    .iter()
                    .any(|key| members.get(*key).is_some_and(Value::is_string)))
                || members.values().any(|value| has_inner_ids(value, false))
        }
        Value::Array(items) => items.iter().any(|item| has_inner_ids(item, false)),
        _ => false,
    }
}

/// A URI fragment, percent-decoded.
fn decoded(fragment: &str) -> Option<String> {
    let decoded = percent_decode_str(fragment).decode_utf8().ok()?;
    Some(decoded.into_owned())
}
