//! Checks the pointers of `audit` in overrides: each names an argument that the schema of its tool declares and that may be
//! a scalar. Only such values can be in lines of the audit log.

use broker_config::{Source, ToolOverride};
use broker_model::item::ItemKind;
use broker_model::json::escape_token;
use broker_model::lock::LockedTool;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use serde_json::{Map, Value};

/// The maximum number of references and nested schemas on the way to an argument.
const MAX_STEPS: usize = 64;
/// The maximum number of schemas that are read for one pointer: a hostile schema may have very many alternatives.
const MAX_SCHEMAS: usize = 10_000;

/// What a schema says about an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It declares the argument, which may be a scalar.
    Scalar,
    /// It declares the argument, which is always an object or a list.
    NotScalar,
    /// It says nothing about the argument.
    Silent,
    /// Arguments that have it are not valid.
    Impossible,
}

/// Returns a problem for each pointer of an override that names no scalar argument of the tool.
pub(super) fn check(
    source: &Source,
    tool: &LockedTool,
    path: &NodePath,
    said: &ToolOverride,
) -> Vec<Diagnostic> {
    let name = escape_token(&tool.upstream_name);
    let place = format!("{}/tool_overrides/{name}/audit", source.pointer);
    let schema = match tool.kind() {
        ItemKind::Tool => tool.raw.get("inputSchema").unwrap_or(&Value::Null),
        ItemKind::Prompt | ItemKind::Template | ItemKind::Resource => &Value::Null,
    };
    let pointers = said.audit.iter().enumerate();
    let problems = pointers.filter_map(|(at, pointer)| {
        let reason = match find(schema, pointer) {
            Place::Scalar => return None,
            Place::NotScalar => "is an object or a list, and only scalars are shown",
            Place::Silent => "is not an argument that its schema declares",
            Place::Impossible => "cannot be an argument: its schema excludes it",
        };
        let message = format!(
            "`{}`, which lines of the audit log of `{path}` would show, {reason}",
            shown_line(pointer, 80)
        );
        let help = match declared(schema) {
            names if names.is_empty() => "Remove it: the tool has no argument to show.".to_owned(),
            names => format!("Remove it, or name a scalar argument; the tool has {names}."),
        };
        let problem = Diagnostic::error(DiagnosticCode::AuditPointer, message);
        Some(problem.at(format!("{place}/{at}")).help(help))
    });
    problems.collect()
}

/// The pointers of the arguments that a schema declares at its top, at most eight.
fn declared(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(Map::keys).take(8);
    let names = names.map(|name| format!("`/{}`", shown_line(&escape_token(name), 60)));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns what a schema says about the argument at a JSON pointer.
fn find(schema: &Value, pointer: &str) -> Place {
    let tokens: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect();
    let mut walk = Walk {
        root: schema,
        left: MAX_SCHEMAS,
    };
    walk.place(schema, &tokens, 0)
}

struct Walk<'s> {
    root: &'s Value,
    /// The number of schemas that may still be read.
    left: usize,
}

impl<'s> Walk<'s> {
    fn place(&mut self, schema: &'s Value, tokens: &[String], steps: usize) -> Place {
        let Some(left) = self.left.checked_sub(1) else {
            return Place::Silent;
        };
        self.left = left;
        if steps > MAX_STEPS {
            return Place::Silent;
        }
        let members = match schema {
            Value::Bool(false) => return Place::Impossible,
            Value::Object(members) => members,
            _ => return silent(tokens),
        };
        let own = match tokens {
            [] => scalar(members),
            [token, rest @ ..] => self.below(members, token, rest, steps),
        };
        let mut all = vec![own];
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let target = reference
                .strip_prefix('#')
                .and_then(|at| self.root.pointer(at));
            all.push(match target {
                Some(target) => self.place(target, tokens, steps + 1),
                None => Place::Silent,
            });
        }
        let list = |key: &str| members.get(key).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            all.push(self.place(part, tokens, steps + 1));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(parts) = list(key) {
                let parts = parts.iter().map(|part| self.place(part, tokens, steps + 1));
                all.push(either(parts.collect::<Vec<_>>()));
            }
        }
        for key in ["then", "else"] {
            // Only one of them applies, so that it adds what it declares and excludes nothing.
            if let Some(part) = members.get(key)
                && self.place(part, tokens, steps + 1) == Place::Scalar
            {
                all.push(Place::Scalar);
            }
        }
        both(all)
    }

    /// Returns what a schema itself says about a member or an item.
    fn below(
        &mut self,
        members: &'s Map<String, Value>,
        token: &str,
        rest: &[String],
        steps: usize,
    ) -> Place {
        let index = match token {
            "0" => Some(0),
            _ if token.starts_with('0') => None,
            _ => token
                .parse::<usize>()
                .ok()
                .filter(|_| token.as_bytes()[0] != b'+'),
        };
        let mut found = Vec::new();
        if may_be(members, "object") {
            let of_object = |key: &str| members.get(key).and_then(Value::as_object);
            let declared = of_object("properties").and_then(|all| all.get(token));
            let has_patterns = of_object("patternProperties").is_some_and(|all| !all.is_empty());
            found.push(match (declared, members.get("additionalProperties")) {
                (Some(schema), _) => self.place(schema, rest, steps + 1),
                // Whether a pattern matches is for the validator.
                (None, _) if has_patterns => Place::Scalar,
                (None, Some(schema @ (Value::Object(_) | Value::Bool(false)))) => {
                    self.place(schema, rest, steps + 1)
                }
                (None, _) => Place::Silent,
            });
        }
        if let Some(index) = index.filter(|_| may_be(members, "array")) {
            let listed = |key: &str| members.get(key)?.as_array()?.get(index);
            let item = listed("prefixItems").or_else(|| listed("items"));
            let item = item.or_else(|| members.get("items").filter(|items| !items.is_array()));
            found.push(match item {
                Some(schema) => self.place(schema, rest, steps + 1),
                None => Place::Silent,
            });
        }
        match found.is_empty() {
            true => Place::Impossible,
            false => either(found),
        }
    }
}

/// The place below a schema that accepts everything; at its end, it is a value of any type.
const fn silent(tokens: &[String]) -> Place {
    match tokens {
        [] => Place::Scalar,
        _ => Place::Silent,
    }
}

/// Whether a value of a schema may have a type.
fn may_be(members: &Map<String, Value>, name: &str) -> bool {
    match members.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(all)) => all.iter().any(|one| one == name),
        _ => true,
    }
}

/// Returns whether the values of a schema may be scalars.
fn scalar(members: &Map<String, Value>) -> Place {
    let types = ["string", "number", "integer", "boolean", "null"];
    let is_scalar = |value: &Value| !(value.is_object() || value.is_array());
    let by_type = types.into_iter().any(|name| may_be(members, name));
    let by_const = members.get("const").is_none_or(is_scalar);
    let values = members.get("enum").and_then(Value::as_array);
    let by_enum = values.is_none_or(|values| values.iter().any(is_scalar));
    match by_type && by_const && by_enum {
        true => Place::Scalar,
        false => Place::NotScalar,
    }
}

/// Returns what schemas say of which one applies.
fn either(places: Vec<Place>) -> Place {
    let has = |place| places.contains(&place);
    let order = [Place::Scalar, Place::NotScalar, Place::Silent];
    order
        .into_iter()
        .find(|place| has(*place))
        .unwrap_or(Place::Impossible)
}

/// Returns what schemas say that all apply: each of them must allow a scalar.
fn both(places: Vec<Place>) -> Place {
    let has = |place| places.contains(&place);
    let order = [Place::Impossible, Place::NotScalar, Place::Scalar];
    order
        .into_iter()
        .find(|place| has(*place))
        .unwrap_or(Place::Silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointer_names_a_declared_scalar_or_is_refused() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["org"],
            "properties": {
                "org": {"type": "string"},
                "a/b~c": {"type": "integer"},
                "any": {},
                "none": false,
                "list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}},
                "pair": {"type": "array", "prefixItems": [{"type": "object"}, {"type": "number"}]},
                "object": {"type": "object", "properties": {"x": {"enum": [{"y": 1}]}, "open": {"type": "object"}}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "either": {"anyOf": [{"type": "object"}, {"type": "string"}]},
                "both": {"allOf": [{"type": ["object", "string"]}, {"type": "object"}]},
                "reference": {"$ref": "#/$defs/deep"},
                "circle": {"$ref": "#/properties/circle"},
            },
            "$defs": {"deep": {"properties": {"leaf": {"const": 3}}}},
        });
        for (pointer, expected) in [
            ("/org", Place::Scalar),
            ("/a~1b~0c", Place::Scalar),
            ("/any", Place::Scalar),
            ("/list/0/id", Place::Scalar),
            ("/pair/1", Place::Scalar),
            ("/map/key", Place::Scalar),
            ("/either", Place::Scalar),
            ("/reference/leaf", Place::Scalar),
            ("/list", Place::NotScalar),
            ("/list/0", Place::NotScalar),
            ("/pair/0", Place::NotScalar),
            ("/object", Place::NotScalar),
            ("/object/x", Place::NotScalar),
            ("/map", Place::NotScalar),
            ("/both", Place::NotScalar),
            ("/object/open/x", Place::Silent),
            ("/object/y", Place::Silent),
            ("/any/x", Place::Silent),
            ("/reference/stem", Place::Silent),
            ("/circle/x", Place::Silent),
            ("/orgg", Place::Impossible),
            ("/none", Place::Impossible),
            ("/org/x", Place::Impossible),
            ("/list/x", Place::Impossible),
            ("/list/01/id", Place::Impossible),
        ] {
            assert_eq!(find(&schema, pointer), expected, "{pointer}");
        }
    }

    #[test]
    fn hostile_schema_is_read_with_a_bound() {
        // Each level doubles the number of ways.
        let mut schema = json!({"type": "object"});
        for _ in 0..60 {
            schema = json!({"anyOf": [schema.clone(), {"$ref": "#"}]});
        }
        let all = vec![json!({"$ref": "#"}); 100];
        for schema in [
            json!({"anyOf": all}),
            json!({"allOf": all, "anyOf": all}),
            schema,
        ] {
            assert_eq!(find(&schema, "/x"), Place::Silent);
        }
    }
}
