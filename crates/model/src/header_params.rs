//! The arguments that a client repeats as HTTP headers: properties with `x-mcp-header` in the schema of the
//! arguments.

use serde_json::{Map, Value};

const KEYWORD: &str = "x-mcp-header";

/// An argument that a client repeats as a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParam {
    /// The end of the name of the header.
    pub name: String,
    /// The names of the properties from the root of the arguments to it.
    pub pointer: Vec<String>,
    /// Its type.
    pub kind: HeaderParamKind,
}

/// The type of such an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderParamKind {
    /// A string.
    Text,
    /// An integer.
    Integer,
    /// A boolean.
    Boolean,
}

/// The arguments of a tool that a client repeats as headers. `None` if its schema breaks a rule, so that a client
/// over HTTP must not use the tool (revision 2026-07-28, Streamable HTTP).
pub fn read_params(raw: &Map<String, Value>) -> Option<Vec<HeaderParam>> {
    let mut found = Vec::new();
    let Some(Value::Object(schema)) = raw.get("inputSchema") else {
        return Some(found);
    };
    let obeys_rules = !schema.contains_key(KEYWORD)
        && collect(schema, &mut Vec::new(), &mut found).is_some()
        && has_unique_names(&found);
    obeys_rules.then_some(found)
}

/// Collects the annotated properties below an object schema. `None` if a rule is broken.
fn collect(
    schema: &Map<String, Value>,
    above: &mut Vec<String>,
    found: &mut Vec<HeaderParam>,
) -> Option<()> {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let Value::Object(property) = property else {
                        continue;
                    };
                    above.push(name.clone());
                    if let Some(header) = property.get(KEYWORD) {
                        found.push(HeaderParam {
                            name: token(header)?,
                            pointer: above.clone(),
                            kind: kind(property)?,
                        });
                    }
                    collect(property, above, found)?;
                    above.pop();
                }
            }
            // Values, not schemas.
            ("const" | "default" | "enum" | "examples" | "example", _) => {}
            (_, value) => {
                if is_annotated(value) {
                    return None;
                }
            }
        }
    }
    Some(())
}

/// Whether a schema is annotated that `properties` alone do not reach.
fn is_annotated(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            // A property or a definition of this name has a schema, not a text.
            members.get(KEYWORD).is_some_and(Value::is_string) || members.values().any(is_annotated)
        }
        Value::Array(items) => items.iter().any(is_annotated),
        _ => false,
    }
}

/// A token of HTTP (RFC 9110), not empty.
fn token(header: &Value) -> Option<String> {
    let text = header.as_str().filter(|text| !text.is_empty())?;
    let allowed = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    text.bytes().all(allowed).then(|| text.to_owned())
}

fn kind(property: &Map<String, Value>) -> Option<HeaderParamKind> {
    match property.get("type")?.as_str()? {
        "string" => Some(HeaderParamKind::Text),
        "integer" => Some(HeaderParamKind::Integer),
        "boolean" => Some(HeaderParamKind::Boolean),
        _ => None,
    }
}

fn has_unique_names(found: &[HeaderParam]) -> bool {
    let names = found.iter().map(|param| param.name.to_ascii_lowercase());
    let names: std::collections::BTreeSet<_> = names.collect();
    names.len() == found.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(schema: Value) -> Option<Vec<HeaderParam>> {
        let tool = json!({"name": "t", "inputSchema": schema});
        read_params(tool.as_object().unwrap())
    }

    fn annotated(kind: &str, name: &str) -> Value {
        json!({"type": kind, "x-mcp-header": name})
    }

    #[test]
    fn header_params_are_found_below_properties() {
        let found = params(json!({"type": "object", "properties": {
            "region": annotated("string", "Region"),
            "at": {"type": "object", "properties": {"n": annotated("integer", "N")}},
            "x-mcp-header": annotated("boolean", "Flag"),
            "free": {"type": "string", "default": {"x-mcp-header": "value"}},
        }}));
        let param = |name: &str, pointer: &[&str], kind| HeaderParam {
            name: name.to_owned(),
            pointer: pointer.iter().map(|name| (*name).to_owned()).collect(),
            kind,
        };
        assert_eq!(
            found.unwrap(),
            [
                param("N", &["at", "n"], HeaderParamKind::Integer),
                param("Region", &["region"], HeaderParamKind::Text),
                param("Flag", &["x-mcp-header"], HeaderParamKind::Boolean),
            ]
        );
    }

    #[test]
    fn tool_that_breaks_a_rule_of_header_params_is_refused() {
        let good = annotated("string", "Good");
        for bad in [
            annotated("number", "N"),
            annotated("object", "N"),
            annotated("string", ""),
            annotated("string", "a b"),
            annotated("string", "GOOD"),
            json!({"type": ["string"], "x-mcp-header": "N"}),
            json!({"x-mcp-header": "N"}),
            json!({"type": "string", "x-mcp-header": 1}),
            json!({"type": "array", "items": annotated("string", "N")}),
            json!({"anyOf": [annotated("string", "N")]}),
        ] {
            let schema = json!({"properties": {"good": good, "bad": bad}});
            assert_eq!(params(schema.clone()), None, "{schema}");
        }
        let defined =
            json!({"properties": {"good": good}, "$defs": {"d": annotated("string", "N")}});
        assert_eq!(params(defined), None);
        assert_eq!(params(annotated("string", "Root")), None);
        assert_eq!(params(json!(true)), Some(Vec::new()));
    }
}
