//! The form of a schema of arguments that the API of a vendor of models accepts.
//!
//! Only the root is changed, since the vendors' rules are about it. What the form leaves out is returned, so that a
//! description can say it. The form is for a model that reads it: the broker checks arguments with the server's schema.

use std::borrow::Cow;

use broker_model::json::{self, each_member};
use broker_model::model_vendor::ModelVendor;
use serde_json::{Map, Value, json};

/// A changed schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorForm {
    /// The schema.
    pub schema: String,
    /// The members that its root may not have, as the text of a schema; `None` if only a member was added.
    pub left_out: Option<String>,
}

/// The first property whose name the vendor refuses, so that the schema has no form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedProperty(pub String);

/// Returns the form of a schema for a vendor; `None` if the vendor accepts the schema itself.
///
/// `schema` is the text of an object whose `type` is `"object"`, as lists have it.
///
/// # Errors
///
/// The name of a property that the vendor refuses: a model could not send it under another name.
pub fn vendor_form(
    schema: &str,
    vendor: ModelVendor,
) -> Result<Option<VendorForm>, RefusedProperty> {
    let (mut is_refused, mut properties) = (false, None);
    let walked = each_member(schema.as_bytes(), |name, value| {
        is_refused |= vendor.refused_at_root().contains(&&*name);
        if name == "properties" {
            properties = Some(value.get());
        }
    });
    let misses_properties = vendor.needs_properties() && properties.is_none();
    if walked.is_err() || !(is_refused || misses_properties) {
        // Most schemas end here. They are not parsed, since a list has thousands of them.
        return check_properties(properties, vendor).map(|()| None);
    }
    let Ok(Value::Object(mut root)) = json::parse(schema) else {
        return Ok(None);
    };
    let mut left_out = Map::new();
    if is_refused {
        for name in vendor.refused_at_root() {
            if let Some(value) = root.remove(*name) {
                left_out.insert((*name).to_owned(), value);
            }
        }
        add_properties_of(&mut root, &left_out);
    }
    if vendor.needs_properties() {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    let properties = root.get("properties").map(json::to_text);
    check_properties(properties.as_deref(), vendor)?;
    Ok(Some(VendorForm {
        schema: json::to_text(&root),
        left_out: (!left_out.is_empty()).then(|| json::to_text(&left_out)),
    }))
}

/// Refuses `properties`, the text of an object, if one has a name that the vendor refuses.
fn check_properties(properties: Option<&str>, vendor: ModelVendor) -> Result<(), RefusedProperty> {
    let Some(properties) = properties.filter(|_| !vendor.allows_property("")) else {
        return Ok(());
    };
    let mut refused = None;
    let walked = each_member(properties.as_bytes(), |name, _| {
        if refused.is_none() && !vendor.allows_property(&name) {
            refused = Some(RefusedProperty(name.into_owned()));
        }
    });
    match (walked, refused) {
        (Ok(()), Some(refused)) => Err(refused),
        _ => Ok(()),
    }
}

/// Adds the properties that only the left out branches have, so that a model sees them. A property with several
/// schemas accepts what any of them accepts.
fn add_properties_of(root: &mut Map<String, Value>, left_out: &Map<String, Value>) {
    // Branches cannot add a property to a root that is closed.
    if root.get("additionalProperties") == Some(&Value::Bool(false)) {
        return;
    }
    let mut found: Map<String, Value> = Map::new();
    for branch in ["allOf", "anyOf", "oneOf"]
        .iter()
        .filter_map(|name| left_out.get(*name)?.as_array())
        .flatten()
    {
        let branch = resolved(root, branch);
        let own = branch.get("properties").and_then(Value::as_object);
        for (name, schema) in own.into_iter().flatten() {
            let known = found.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(schemas) = known
                && !schemas.contains(schema)
            {
                schemas.push(schema.clone());
            }
        }
    }
    if found.is_empty() {
        return;
    }
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else {
        return;
    };
    for (name, schemas) in found {
        let schema = match schemas {
            Value::Array(mut one) if one.len() == 1 => one.remove(0),
            several => json!({ "anyOf": several }),
        };
        properties.entry(name).or_insert(schema);
    }
}

/// Follows one reference into the definitions of the root.
fn resolved<'v>(root: &'v Map<String, Value>, branch: &'v Value) -> Cow<'v, Value> {
    let target = branch.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|reference| {
        let path = reference.strip_prefix("#/")?;
        let (definitions, name) = path.split_once('/')?;
        match definitions {
            "$defs" | "definitions" => root.get(definitions)?.get(name),
            _ => None,
        }
    });
    Cow::Borrowed(target.unwrap_or(branch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(schema: &Value, vendor: ModelVendor) -> Option<(Value, Option<Value>)> {
        let form = vendor_form(&schema.to_string(), vendor).unwrap()?;
        let read = |text: &str| serde_json::from_str(text).unwrap();
        Some((read(&form.schema), form.left_out.as_deref().map(read)))
    }

    #[test]
    fn schema_that_the_vendor_accepts_stays_as_it_is() {
        let nested =
            json!({"type": "object", "properties": {"a": {"anyOf": [{}, {"type": "object"}]}}});
        for vendor in ModelVendor::ALL {
            assert_eq!(form(&nested, vendor), None);
        }
        let bare = json!({"type": "object", "anyOf": [{"required": ["a"]}]});
        assert_eq!(form(&bare, ModelVendor::Gemini), None);
        let with_not = json!({"type": "object", "properties": {}, "not": {"required": ["a"]}});
        assert_eq!(form(&with_not, ModelVendor::Anthropic), None);
        assert!(form(&with_not, ModelVendor::OpenAi).is_some());
    }

    #[test]
    fn root_gets_the_properties_that_openai_needs() {
        let expected = json!({"type": "object", "properties": {}});
        let found = form(&json!({"type": "object"}), ModelVendor::OpenAi);
        assert_eq!(found, Some((expected, None)));
    }

    #[test]
    fn branches_of_the_root_are_returned_and_their_properties_kept() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "anyOf": [
                {"required": ["a"]},
                {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
                {"$ref": "#/$defs/C"},
            ],
            "$defs": {"C": {"properties": {"b": {"type": "number"}, "c": {"enum": [1]}}}},
        });
        for vendor in [ModelVendor::OpenAi, ModelVendor::Anthropic] {
            let (found, left_out) = form(&schema, vendor).unwrap();
            let mut expected = schema.clone();
            expected.as_object_mut().unwrap().remove("anyOf");
            expected["properties"] = json!({
                "a": {"type": "string"},
                "b": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                "c": {"enum": [1]},
            });
            assert_eq!(found, expected);
            assert_eq!(left_out, Some(json!({"anyOf": schema["anyOf"]})));
        }
        let closed = json!({
            "type": "object", "additionalProperties": false,
            "oneOf": [{"properties": {"b": {}}}],
        });
        let (found, _) = form(&closed, ModelVendor::OpenAi).unwrap();
        assert_eq!(found["properties"], json!({}));
    }

    #[test]
    fn numbers_of_a_changed_schema_stay_exact() {
        let schema = r#"{"type":"object","oneOf":[{}],"properties":{"a":{"maximum":0.10000000000000000001}}}"#;
        let form = vendor_form(schema, ModelVendor::OpenAi).unwrap().unwrap();
        assert!(
            form.schema.contains("0.10000000000000000001"),
            "{}",
            form.schema
        );
    }

    #[test]
    fn property_whose_name_is_refused_leaves_no_form() {
        let own = json!({"type": "object", "properties": {"ok": {}, "filter[id]": {}}});
        let in_branch = json!({"type": "object", "anyOf": [{"properties": {"filter[id]": {}}}]});
        for schema in [own, in_branch] {
            let refused = vendor_form(&schema.to_string(), ModelVendor::Anthropic);
            assert_eq!(refused, Err(RefusedProperty("filter[id]".to_owned())));
        }
    }
}
