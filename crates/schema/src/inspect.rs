//! Inspects a schema before it is locked: size, depth, references, dialect.
//!
//! A validator has no budget, so a small schema can take it minutes or overflow its stack. The checks here are
//! linear in the schema's size and run before anything compiles it.

use serde_json::Value;

use broker_model::codes::DiagnosticCode;
use broker_model::diagnostic::Diagnostic;
use broker_model::text::shown_line;

use super::graph::Graph;
pub use super::graph::{MAX_DEPTH, MAX_EXPANDED, MAX_SUBSCHEMAS};

/// Maximum bytes of one schema, as compact JSON.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;
const DIALECTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Refuses a schema that is too large, too deep, refers to another document, or fans out too far.
/// The diagnostic's pointer is into the schema.
pub fn inspect(schema: &Value) -> Result<(), Box<Diagnostic>> {
    refuse_size(schema)?;
    if !has_known_dialect(schema) {
        let dialect = schema.get("$schema").map(Value::to_string);
        let shown = shown_line(&dialect.unwrap_or_default(), 120);
        let message = format!("the dialect {shown} is not known");
        let problem = Diagnostic::error(DiagnosticCode::SchemaDialect, message);
        return Err(Box::new(problem.at("/$schema")));
    }
    Graph::new(schema)?.refuse_fan_out()
}

/// Refuses a schema that is too large, too deep or fans out too far. It may be of any dialect, and its references may
/// have no target.
pub fn inspect_as_is(schema: &Value) -> Result<(), Box<Diagnostic>> {
    refuse_size(schema)?;
    Graph::with_open_references(schema)?.refuse_fan_out()
}

fn refuse_size(schema: &Value) -> Result<(), Box<Diagnostic>> {
    let bytes = broker_model::json::to_text(schema).len();
    if bytes <= MAX_SCHEMA_BYTES {
        return Ok(());
    }
    let message = format!("the schema has {bytes} bytes, at most {MAX_SCHEMA_BYTES} are taken");
    let problem = Diagnostic::error(DiagnosticCode::SchemaLimit, message);
    Err(Box::new(problem.at("")))
}

/// Whether a schema names no dialect, or one that is supported.
pub(super) fn has_known_dialect(schema: &Value) -> bool {
    let Some(dialect) = schema.get("$schema") else {
        return true;
    };
    dialect.as_str().is_some_and(|uri| {
        let uri = uri.trim_end_matches('#');
        let name = uri
            .strip_prefix("http://")
            .or_else(|| uri.strip_prefix("https://"));
        name.is_some_and(|name| DIALECTS.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn code(schema: Value) -> Option<&'static str> {
        inspect(&schema).err().map(|d| d.code.as_str())
    }

    #[test]
    fn schema_reference_to_another_document_is_refused() {
        for target in [
            "http://evil.example/x.json",
            "file:///etc/passwd",
            "other.json",
            "#/$defs/none",
            "#nowhere",
        ] {
            assert_eq!(
                code(json!({"properties": {"a": {"$ref": target}}})),
                Some("schema_ref"),
                "{target}"
            );
        }
        assert_eq!(
            code(
                json!({"$defs": {"a b": {}}, "properties": {"x": {"$ref": "#/$defs/a%20b"}, "y": {"$ref": "#/properties/x"}}})
            ),
            None
        );
        assert_eq!(
            code(json!({"$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"})),
            None
        );
    }

    #[test]
    fn schema_cycle_without_an_instance_step_is_refused() {
        let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}, "more": {"type": "array", "items": {"$ref": "#"}}}});
        assert_eq!(code(tree), None);
        assert_eq!(
            code(json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})),
            Some("schema_cycle")
        );
        assert_eq!(
            code(
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}}})
            ),
            Some("schema_cycle")
        );
    }

    #[test]
    fn schema_over_a_limit_is_refused() {
        let nested =
            |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"items": inner}));
        assert_eq!(code(nested(MAX_DEPTH)), None);
        assert_eq!(code(nested(MAX_DEPTH + 1)), Some("schema_limit"));
        assert_eq!(
            code(json!({"anyOf": vec![json!({}); MAX_SUBSCHEMAS]})),
            Some("schema_limit")
        );
        assert_eq!(
            code(json!({"description": "x".repeat(300 << 10)})),
            Some("schema_limit")
        );
        let levels: serde_json::Map<_, _> = (0..20)
            .map(|n| (format!("d{n}"), json!({"anyOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]})))
            .chain([("d20".to_owned(), json!({}))])
            .collect();
        assert_eq!(
            code(json!({"$ref": "#/$defs/d0", "$defs": levels})),
            Some("schema_limit")
        );
    }

    #[test]
    fn schema_of_an_unknown_dialect_is_refused() {
        for known in [
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
            "http://json-schema.org/draft-04/schema#",
        ] {
            assert_eq!(code(json!({"$schema": known})), None, "{known}");
        }
        assert_eq!(
            code(json!({"$schema": "https://example.com/my-dialect"})),
            Some("schema_dialect")
        );
        assert_eq!(code(json!({"$schema": 7})), Some("schema_dialect"));
    }
}
