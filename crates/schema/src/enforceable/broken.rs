//! Finds the invalid keywords of one subschema.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use broker_model::json::string_text;

use crate::exact::with_stand_ins;
use crate::graph::{Graph, LIST, MAP, ONE, Subschema};
use crate::options::options;

/// The invalid parts of one subschema, without the parts of the subschemas in it.
#[derive(Debug, Default)]
pub(super) struct Broken {
    pub(super) keywords: BTreeSet<String>,
    /// Elements of lists and maps of schemas that are not schemas, by keyword and name or index.
    pub(super) members: BTreeSet<(String, String)>,
    /// Patterns of `patternProperties` that do not compile.
    pub(super) patterns: BTreeSet<String>,
    /// References without a target.
    pub(super) references: BTreeSet<&'static str>,
}

impl Broken {
    pub(super) fn is_empty(&self) -> bool {
        self.keywords.is_empty()
            && self.members.is_empty()
            && self.patterns.is_empty()
            && self.references.is_empty()
    }

    pub(super) fn find(root: &Value, node: &Subschema, graph: &Graph) -> Self {
        let mut broken = Self::default();
        let Some(Value::Object(keywords)) = root.pointer(&node.pointer) else {
            return broken;
        };
        for reference in &node.references {
            let target = reference.node.map(|node| &graph.nodes[node].pointer);
            let target = target.and_then(|pointer| root.pointer(pointer));
            if !target.is_some_and(|target| target.is_object() || target.is_boolean()) {
                broken.references.insert(reference.keyword);
            }
        }
        // A part of another dialect has keywords with other meanings.
        let is_of_another = |of: &Value| Some(of) != root.get("$schema");
        if !node.pointer.is_empty() && keywords.get("$schema").is_some_and(is_of_another) {
            broken.keywords = keywords.keys().cloned().collect();
            return broken;
        }
        if is_draft4(root) {
            for (flag, limit) in [
                ("exclusiveMinimum", "minimum"),
                ("exclusiveMaximum", "maximum"),
            ] {
                if keywords.contains_key(flag) && !keywords.contains_key(limit) {
                    broken.keywords.insert(flag.to_owned());
                }
            }
        }
        let mut alone = shallow(keywords);
        alone.retain(|name, _| !broken.keywords.contains(name));
        let alone = Value::Object(alone);
        let alone = with_stand_ins(&alone);
        for error in meta_validator(root).iter_errors(&alone) {
            let place = error.instance_path().to_string();
            broken.add(&place, keywords);
        }
        broken.check_patterns(keywords);
        broken
    }

    fn add(&mut self, place: &str, keywords: &Map<String, Value>) {
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
        let mut tokens = place.split('/').skip(1).map(unescaped);
        let Some(keyword) = tokens.next() else {
            // The relation of several keywords is invalid.
            self.keywords.extend(keywords.keys().cloned());
            return;
        };
        let holds_schemas = MAP.iter().chain(&LIST).any(|(name, _)| *name == keyword);
        match tokens.next() {
            Some(member) if holds_schemas => {
                self.members.insert((keyword, member));
            }
            _ => {
                self.keywords.insert(keyword);
            }
        }
    }

    fn check_patterns(&mut self, keywords: &Map<String, Value>) {
        let compiles = |pattern: &str| options().build(&json!({"pattern": pattern})).is_ok();
        if let Some(pattern) = keywords.get("pattern").and_then(string_text)
            && !compiles(pattern)
        {
            self.keywords.insert("pattern".to_owned());
        }
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        let patterns = patterns.into_iter().flat_map(Map::keys);
        let failing: Vec<&String> = patterns.filter(|pattern| !compiles(pattern)).collect();
        if !failing.is_empty() {
            // The error of the names is the error of the keyword.
            self.keywords.remove("patternProperties");
            self.patterns = failing.into_iter().cloned().collect();
        }
    }
}

/// The keywords of a subschema with `{}` for each subschema in it.
fn shallow(keywords: &Map<String, Value>) -> Map<String, Value> {
    let emptied = |value: &Value| match value {
        Value::Object(_) => json!({}),
        other => other.clone(),
    };
    let is_in = |list: &[(&str, bool)], name: &str| list.iter().any(|(one, _)| *one == name);
    let keyword = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::Object(_) if is_in(&ONE, name) => json!({}),
            Value::Array(list) if is_in(&LIST, name) => list.iter().map(emptied).collect(),
            Value::Object(members) if is_in(&MAP, name) => {
                let members = members
                    .iter()
                    .map(|(name, value)| (name.clone(), emptied(value)));
                Value::Object(members.collect())
            }
            other => other.clone(),
        };
        (name.clone(), value)
    };
    keywords.iter().map(keyword).collect()
}

fn is_draft4(root: &Value) -> bool {
    dialect(root).contains("draft-04")
}

fn dialect(root: &Value) -> &str {
    root.get("$schema")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The validator of schemas of the dialect.
fn meta_validator(root: &Value) -> jsonschema::meta::MetaValidator<'static> {
    let dialect = dialect(root);
    if dialect.contains("draft-04") {
        jsonschema::draft4::meta::validator()
    } else if dialect.contains("draft-06") {
        jsonschema::draft6::meta::validator()
    } else if dialect.contains("draft-07") {
        jsonschema::draft7::meta::validator()
    } else if dialect.contains("2019-09") {
        jsonschema::draft201909::meta::validator()
    } else {
        jsonschema::draft202012::meta::validator()
    }
}
