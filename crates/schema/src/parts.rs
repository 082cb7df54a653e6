//! Validators of the parts of one schema, compiled when they are needed, under one budget.

use std::collections::HashMap;
use std::rc::Rc;

use jsonschema::Registry;
use serde_json::{Map, Value, json};

use super::budget::Budget;
use super::error::SchemaError;
use super::exact::exact_options;
use super::meter::{Form, Meter, Metered, MeteredNode};
use super::moves::encoded;
use super::options::{first_place, options};
use super::weights::Weights;

/// The URI under which parts of the schema refer to the whole schema.
const ROOT: &str = "urn:schema:root";
/// Steps for a name test, in addition to the match.
const STEPS_PER_NAME: u64 = 20;
/// Steps for compiling one value of a schema.
const STEPS_PER_COMPILED_VALUE: u64 = 20;

type Compiled = Rc<jsonschema::Validator<Metered>>;

/// The parts of a schema.
pub(super) struct Parts<'a> {
    root: &'a Value,
    registry: Option<&'a Registry<'a>>,
    /// Steps for compiling a part that refers to others.
    cost: u64,
    dialect: Option<&'a Value>,
    budget: &'a Budget<'a>,
    weights: &'a Weights,
    form: Form,
    left: u64,
    spent: bool,
    compiled: HashMap<String, Compiled>,
}

impl<'a> Parts<'a> {
    /// The registry with which parts of the schema that refer to other parts are compiled.
    pub(super) fn registry(root: &'a Value) -> Option<Registry<'a>> {
        if !refers(root) {
            return None;
        }
        let dialect = jsonschema::Draft::default().detect(root);
        let resource = dialect.create_resource_ref(root);
        let registry = Registry::new().draft(dialect).add(ROOT, resource).ok()?;
        registry.prepare().ok()
    }

    pub(super) fn new(
        root: &'a Value,
        registry: Option<&'a Registry<'a>>,
        budget: &'a Budget<'a>,
        weights: &'a Weights,
        form: Form,
    ) -> Self {
        Self {
            root,
            registry,
            cost: count(root) * STEPS_PER_COMPILED_VALUE,
            dialect: root.get("$schema"),
            budget,
            weights,
            form,
            left: budget.total(),
            spent: false,
            compiled: HashMap::new(),
        }
    }

    pub(super) const fn root(&self) -> &'a Value {
        self.root
    }

    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    pub(super) const fn is_spent(&self) -> bool {
        self.spent
    }

    /// Whether members next to `$ref` are ignored.
    pub(super) fn ref_stands_alone(&self) -> bool {
        let dialect = self.dialect.and_then(Value::as_str).unwrap_or_default();
        ["draft-04", "draft-06", "draft-07"]
            .iter()
            .any(|old| dialect.contains(old))
    }

    /// Takes steps for work other than evaluation; `None` if they are used up.
    pub(super) fn take(&mut self, steps: u64) -> Option<()> {
        if steps > self.left || self.spent {
            self.spent = true;
            return None;
        }
        self.left -= steps;
        Some(())
    }

    /// Whether a value matches the subschema at `pointer`.
    pub(super) fn matches(&mut self, pointer: &str, schema: &Value, value: &Value) -> Option<bool> {
        if let Value::Bool(any) = schema {
            return Some(*any);
        }
        let compiled = match self.compiled.get(pointer) {
            Some(compiled) => Rc::clone(compiled),
            None => {
                let linked = self.linked(pointer, schema);
                let compiled = self.compile(&linked)?;
                self.compiled
                    .insert(pointer.to_owned(), Rc::clone(&compiled));
                compiled
            }
        };
        self.run(|meter| compiled.is_valid(MeteredNode::new(value, meter)))
    }

    /// Whether a value matches one keyword of the subschema at `pointer`.
    pub(super) fn keyword_matches(
        &mut self,
        pointer: &str,
        keywords: &Map<String, Value>,
        keyword: &str,
        value: &Value,
    ) -> Option<bool> {
        let key = format!("{pointer} {keyword}");
        let compiled = match self.compiled.get(&key) {
            Some(compiled) => Rc::clone(compiled),
            None => {
                let part = self.keyword_alone(pointer, keywords, keyword);
                let compiled = self.compile(&part)?;
                self.compiled.insert(key, Rc::clone(&compiled));
                compiled
            }
        };
        self.run(|meter| compiled.is_valid(MeteredNode::new(value, meter)))
    }

    /// Whether the name of a member matches a pattern.
    pub(super) fn name_matches(&mut self, pattern: &str, name: &str) -> Option<bool> {
        self.take(STEPS_PER_NAME)?;
        let key = format!("{pattern} pattern");
        let compiled = match self.compiled.get(&key) {
            Some(compiled) => Rc::clone(compiled),
            None => {
                let compiled = self.compile(&json!({"pattern": pattern}))?;
                self.compiled.insert(key, Rc::clone(&compiled));
                compiled
            }
        };
        let name = broker_model::json::string_value(name);
        self.run(|meter| compiled.is_valid(MeteredNode::new(&name, meter)))
    }

    /// The failures of keywords without subschemas.
    pub(super) fn failure(
        &mut self,
        keywords: Map<String, Value>,
        value: &Value,
    ) -> Option<Option<SchemaError>> {
        let compiled = self.compile(&Value::Object(keywords))?;
        self.run(|meter| first_place(&compiled, value, meter))
    }

    fn run<T>(&mut self, evaluate: impl FnOnce(&Meter<'_>) -> T) -> Option<T> {
        let meter = Meter::new(self.budget, self.left, self.weights, self.form);
        let result = evaluate(&meter);
        self.left = meter.left();
        if meter.is_spent() {
            self.spent = true;
            return None;
        }
        Some(result)
    }

    fn compile(&mut self, schema: &Value) -> Option<Compiled> {
        let linked = refers(schema);
        self.take(if linked {
            self.cost
        } else {
            count(schema) * STEPS_PER_COMPILED_VALUE
        })?;
        let mut schema = schema.clone();
        if let (Value::Object(members), Some(dialect)) = (&mut schema, self.dialect) {
            members.insert("$schema".to_owned(), dialect.clone());
        }
        let mut options = match self.form {
            Form::Plain => options(),
            Form::Exact => exact_options(),
        };
        if let (true, Some(registry)) = (linked, self.registry) {
            options = options.with_registry(registry);
        }
        let compiled = options.build(&schema).ok()?;
        Some(Rc::new(compiled))
    }

    /// The subschema itself, or a reference to it if it contains references.
    fn linked(&self, pointer: &str, schema: &Value) -> Value {
        if refers(schema) {
            json!({"$ref": format!("{ROOT}#{}", encoded(pointer))})
        } else {
            schema.clone()
        }
    }

    fn keyword_alone(&self, pointer: &str, keywords: &Map<String, Value>, keyword: &str) -> Value {
        let at = broker_model::json::child_pointer(pointer, keyword);
        let value = match &keywords[keyword] {
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(index, schema)| self.linked(&format!("{at}/{index}"), schema))
                .collect(),
            Value::Object(_) => self.linked(&at, &keywords[keyword]),
            // A reference, or `true` and `false`.
            other => other.clone(),
        };
        let mut part = json!({keyword: value});
        match keyword {
            "contains" => {
                for bound in ["minContains", "maxContains"] {
                    if let Some(bound_value) = keywords.get(bound) {
                        part[bound] = bound_value.clone();
                    }
                }
            }
            // These keywords depend on sibling keywords.
            "unevaluatedProperties"
            | "unevaluatedItems"
            | "$ref"
            | "$dynamicRef"
            | "$recursiveRef" => {
                part = json!({"$ref": format!("{ROOT}#{}", encoded(pointer))});
            }
            _ => {}
        }
        part
    }
}

/// Whether a schema refers to another place, or has a name for references.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (value.is_string()
                && matches!(
                    name.as_str(),
                    "$ref" | "$dynamicRef" | "$recursiveRef" | "$id"
                ))
                || refers(value)
        }),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

fn count(schema: &Value) -> u64 {
    super::budget::count_values(schema)
}

/// The pointer in the fragment of a reference.
pub(super) fn decoded_pointer(fragment: &str) -> String {
    super::graph::percent_decoded(fragment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each compilation of a part with a reference may read the whole schema.
    #[test]
    fn part_with_a_reference_costs_the_steps_of_the_whole_schema() {
        let root = json!({
            "properties": {"link": {"$ref": "#/$defs/text"}, "plain": {"type": "string"}},
            "$defs": {"text": {"type": "string"}, "other": {"enum": [1, 2, 3, 4, 5, 6, 7, 8]}},
        });
        let (registry, budget) = (
            Parts::registry(&root),
            Budget::steps(super::super::MIN_STEPS),
        );
        let weights = Weights::new(&root).expect("the schema has weights");
        let steps = |name: &str| {
            let mut parts = Parts::new(&root, registry.as_ref(), &budget, &weights, Form::Plain);
            let pointer = format!("/properties/{name}");
            let schema = root.pointer(&pointer).expect("it has the property");
            assert_eq!(parts.matches(&pointer, schema, &json!("a")), Some(true));
            budget.total() - parts.left()
        };
        let whole = count(&root) * STEPS_PER_COMPILED_VALUE;
        assert!(steps("link") >= whole, "{} {whole}", steps("link"));
        assert!(steps("plain") < whole, "{} {whole}", steps("plain"));
    }
}
