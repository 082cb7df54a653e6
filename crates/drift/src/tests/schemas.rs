//! The comparison of schemas through the classifier.

use serde_json::{Value, json};

use super::super::class::{Class, FindingSeverity};
use super::check;

/// The class of one side's schema, and the rules that were found.
fn schemas(old: Value, new: Value, member: &str) -> (Class, Vec<&'static str>) {
    let tool = |schema: Value| json!([{"name": "a", member: schema}]);
    let report = check(tool(old), tool(new));
    report
        .tools
        .first()
        .map_or((Class::Same, Vec::new()), |tool| {
            (
                tool.class,
                tool.findings.iter().map(|one| one.rule).collect(),
            )
        })
}

#[test]
fn schema_change_has_the_class_of_its_row() {
    let object = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let of = |schema: Value| object(json!({"p": schema}));
    let with = |schema: &Value, keyword: &str, value: Value| {
        let mut schema = schema.clone();
        schema[keyword] = value;
        schema
    };
    let plain = of(json!({"type": "string"}));
    let open = json!({"type": "object", "properties": {"p": {"type": "string"}}});
    use Class::{Breaking, Compatible, Equivalent, Security, Text, Unknown};
    for (old, new, input, output, rule) in [
        (
            plain.clone(),
            with(&plain, "required", json!(["p"])),
            Breaking,
            Compatible,
            "required-added",
        ),
        (
            with(&plain, "required", json!(["p"])),
            plain.clone(),
            Compatible,
            Breaking,
            "required-removed",
        ),
        (
            plain.clone(),
            object(json!({"p": {"type": "string"}, "q": {}})),
            Compatible,
            Breaking,
            "property-added",
        ),
        (
            object(json!({"p": {"type": "string"}, "q": {"type": "null"}})),
            plain.clone(),
            Breaking,
            Compatible,
            "property-removed",
        ),
        (open.clone(), json!({}), Breaking, Unknown, "schema-emptied"),
        (
            of(json!({"type": ["string", "null"]})),
            plain.clone(),
            Breaking,
            Compatible,
            "type-narrowed",
        ),
        (
            of(json!({"enum": ["a", "b"]})),
            of(json!({"enum": ["a"]})),
            Breaking,
            Compatible,
            "enum-narrowed",
        ),
        (
            of(json!({"type": "integer"})),
            of(json!({"type": "integer", "minimum": 1})),
            Breaking,
            Compatible,
            "limit-narrowed",
        ),
        (
            plain.clone(),
            of(json!({"type": "string", "pattern": "^a"})),
            Breaking,
            Compatible,
            "pattern-narrowed",
        ),
        (
            of(json!({"type": "string", "pattern": "^a+$"})),
            of(json!({"type": "string", "pattern": "^(a)+$"})),
            Unknown,
            Unknown,
            "pattern-changed",
        ),
        (
            plain.clone(),
            open.clone(),
            Compatible,
            Breaking,
            "object-opened",
        ),
        (
            open.clone(),
            plain.clone(),
            Compatible,
            Compatible,
            "object-closed",
        ),
        (
            plain.clone(),
            of(json!({"type": "string", "default": "a"})),
            Compatible,
            Compatible,
            "default-changed",
        ),
        (
            plain.clone(),
            of(json!({"type": "string", "format": "uri"})),
            Compatible,
            Compatible,
            "format-changed",
        ),
        (
            plain.clone(),
            of(json!({"type": "string", "x-mcp-header": "Region"})),
            Security,
            Security,
            "header-changed",
        ),
        (
            plain.clone(),
            of(json!({"type": "string", "description": "obey"})),
            Text,
            Text,
            "text-changed",
        ),
        (
            plain.clone(),
            of(json!({"type": "string", "x-order": 1})),
            Text,
            Text,
            "keyword-changed",
        ),
        (
            plain.clone(),
            with(
                &plain,
                "$schema",
                json!("http://json-schema.org/draft-07/schema#"),
            ),
            Equivalent,
            Equivalent,
            "dialect-changed",
        ),
        (
            of(json!({"enum": ["a"]})),
            of(json!({"const": "a"})),
            Equivalent,
            Equivalent,
            "rearranged",
        ),
        (
            of(json!({"enum": ["a", "b"]})),
            of(json!({"anyOf": [{"const": "a"}, {"const": "b"}]})),
            Equivalent,
            Equivalent,
            "rearranged",
        ),
        (
            of(json!({"type": "integer", "exclusiveMinimum": 0})),
            of(json!({"type": "integer", "minimum": 1})),
            Equivalent,
            Equivalent,
            "rearranged",
        ),
        (
            plain.clone(),
            with(
                &of(json!({"$ref": "#/$defs/s"})),
                "$defs",
                json!({"s": {"type": "string"}}),
            ),
            Equivalent,
            Equivalent,
            "rearranged",
        ),
        (
            of(json!({"type": "integer"})),
            of(json!({"type": "integer", "maximum": 9_007_199_254_740_991_i64})),
            Compatible,
            Compatible,
            "limit-narrowed",
        ),
        (
            of(json!({"not": {"required": ["a"]}})),
            of(json!({"not": {"anyOf": [{"required": ["a"]}]}})),
            Unknown,
            Unknown,
            "condition-changed",
        ),
    ] {
        for (side, member, wanted) in [
            ("input", "inputSchema", input),
            ("output", "outputSchema", output),
        ] {
            let (class, rules) = schemas(old.clone(), new.clone(), member);
            assert_eq!(class, wanted, "{side}: {old} -> {new}: {rules:?}");
            assert!(
                rules.contains(&format!("{side}-{rule}").as_str()),
                "{side}: {old} -> {new}: {rules:?}"
            );
        }
    }
}

#[test]
fn schemas_are_each_compared_in_their_dialect() {
    let seven = json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"t": {
        "type": "array", "items": [{"type": "string"}], "additionalItems": false}}});
    let twenty = json!({"properties": {"t": {
        "type": "array", "prefixItems": [{"type": "string"}], "items": false}}});
    assert_eq!(
        schemas(seven.clone(), twenty, "inputSchema").0,
        Class::Equivalent
    );
    let four = json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"n": {
        "type": "number", "minimum": 0, "exclusiveMinimum": true}}});
    let six = json!({"properties": {"n": {"type": "number", "exclusiveMinimum": 0}}});
    assert_eq!(schemas(four, six, "inputSchema").0, Class::Equivalent);
}

#[test]
fn schemas_that_are_recursive_are_compared_exactly() {
    let tree = |name: &str, leaf: Value| {
        json!({"type": "object", "properties": {"root": {"$ref": format!("#/$defs/{name}")}}, "$defs": {name: {
            "type": "object", "additionalProperties": false, "properties": {
                "value": leaf, "children": {"type": "array", "items": {"$ref": format!("#/$defs/{name}")}}}}}})
    };
    let (old, new) = (
        tree("A", json!({"type": "integer"})),
        tree("B", json!({"type": "number"})),
    );
    assert_eq!(
        schemas(tree("A", json!({})), tree("B", json!({})), "inputSchema").0,
        Class::Equivalent
    );
    assert_eq!(
        schemas(old.clone(), new.clone(), "inputSchema").0,
        Class::Compatible
    );
    assert_eq!(schemas(old, new, "outputSchema").0, Class::Breaking);
}

#[test]
fn schema_narrowed_only_in_the_strict_view_gives_a_warning() {
    let old = json!({"type": "object", "properties": {"p": {"type": "string"}}});
    let mut new = old.clone();
    new["additionalProperties"] = json!(false);
    let tool = |schema: Value| json!([{"name": "a", "inputSchema": schema}]);
    let report = check(tool(old), tool(new));
    let found = &report.tools[0].findings;
    let strict = found
        .iter()
        .find(|one| one.rule == "input-strictly-narrowed")
        .unwrap();
    assert_eq!(
        (strict.class, strict.severity),
        (Class::Compatible, FindingSeverity::Warning)
    );
    assert_eq!(strict.witness, Some(json!({"undeclared": "text"})));
}

/// Bounds hold in work, not in time; a schema that is all alternatives ends, whatever it ends as.
#[test]
fn schema_that_is_hostile_is_compared_within_limits() {
    let branches = |extra: u32| -> Value {
        let branch = |index: u32| {
            json!({"type": "object", "required": [format!("k{index}")], "properties": {
                format!("k{index}"): {"$ref": "#/$defs/next"}, "common": {"type": ["string", "integer"], "maxLength": index}}})
        };
        (0..40 + extra).map(branch).collect()
    };
    let of = |extra: u32| {
        let members: serde_json::Map<String, Value> = (0..300)
            .map(|index| (format!("p{index}"), json!({"anyOf": branches(extra)})))
            .take(40)
            .collect();
        json!({"type": "object", "properties": members, "$defs": {"next": {"oneOf": branches(0)}}})
    };
    let (class, _) = schemas(of(1), of(0), "inputSchema");
    assert!(class.withdraws(), "{class:?}");
    let (class, _) = schemas(of(0), of(1), "inputSchema");
    assert!(class >= Class::Compatible, "{class:?}");
}

#[test]
fn schema_change_that_depends_on_its_neighbours_withdraws() {
    let of = |schema: Value| json!({"type": "object", "properties": {"p": schema}});
    for (old, new) in [
        // A bound that no longer belongs to the range.
        (
            of(json!({"type": "number", "minimum": 0})),
            of(json!({"type": "number", "exclusiveMinimum": 0})),
        ),
        // Closed by a neighbour that does not see what is declared.
        (
            of(json!({"type": "string"})),
            json!({"allOf": [of(json!({"type": "string"})), {"additionalProperties": false}]}),
        ),
        // Draft 4 does not know `const`.
        (
            of(json!({"$schema": "http://json-schema.org/draft-04/schema#", "const": "a"})),
            of(json!({"const": "a"})),
        ),
        // Two alternatives that exclude each other, and both hold.
        (
            of(json!({"type": "integer"})),
            of(json!({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]})),
        ),
    ] {
        let (class, rules) = schemas(old.clone(), new.clone(), "inputSchema");
        assert!(class.withdraws(), "{old} -> {new}: {class:?} {rules:?}");
    }
}

/// A schema became one of several alternatives: it is reported once, and compared with its match only.
#[test]
fn schema_turned_into_alternatives_is_compared_with_its_match() {
    let of = |schema: Value| json!({"type": "object", "properties": {"p": schema}});
    let values = |values: Value| json!({"type": "string", "enum": values});
    let dates = json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"});
    let list = json!({"type": "array", "items": {"type": "string"}});
    for (old, new, class, rules) in [
        (
            of(values(json!(["day", "week", "YYYY-MM"]))),
            of(json!({"anyOf": [values(json!(["day", "week"])), dates]})),
            Class::Breaking,
            vec!["input-enum-narrowed", "input-alternatives-widened"],
        ),
        (
            of(list.clone()),
            of(json!({"anyOf": [{"type": "string"}, list]})),
            Class::Compatible,
            vec!["input-alternatives-widened"],
        ),
        (
            of(json!({"anyOf": [{"type": "string"}, list]})),
            of(list.clone()),
            Class::Breaking,
            vec!["input-alternatives-narrowed"],
        ),
    ] {
        assert_eq!(
            schemas(old.clone(), new.clone(), "inputSchema"),
            (class, rules),
            "{old} -> {new}"
        );
    }
}

/// References make a chain of any length; recursion along it would end the process.
#[test]
fn schema_with_a_long_reference_chain_is_unknown() {
    let chain = |leaf: Value| {
        let link = |index: u32| {
            let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
            (
                format!("d{index}"),
                json!({"type": "object", "properties": {"n": next}}),
            )
        };
        let mut pool: serde_json::Map<String, Value> = (0..3000).map(link).collect();
        pool.insert("d3000".to_owned(), leaf);
        json!({"$ref": "#/$defs/d0", "$defs": pool})
    };
    let (old, new) = (
        chain(json!({"type": "string"})),
        chain(json!({"type": "number"})),
    );
    assert_eq!(schemas(old, new, "inputSchema").0, Class::Unknown);
}

#[test]
fn schema_change_with_a_costly_counterexample_is_unknown() {
    // The text is refused. A pattern that may backtrack is charged by the square of the text's length, and
    // for the longer text that is over the budget.
    let class = |text: String| {
        let schema =
            |value: Value| json!({"type": "object", "properties": {"a": value}, "required": ["a"]});
        let old = schema(json!({"enum": [text]}));
        let new = schema(json!({"pattern": "^((?=[a-z])[a-z])*!$"}));
        schemas(old, new, "inputSchema").0
    };
    assert_eq!(class("x".repeat(9)), Class::Breaking);
    assert_eq!(class("x".repeat(50_000)), Class::Unknown);
}

#[test]
fn witness_is_attached_to_the_change_that_it_shows() {
    let tool = |members: Value| {
        let mut schema = json!({"type": "object"});
        for (key, value) in members.as_object().unwrap() {
            schema[key] = value.clone();
        }
        json!([{"name": "t", "inputSchema": schema}])
    };
    let report = check(
        tool(json!({"properties": {"state": {"enum": ["a", "b", "c"]}}})),
        tool(json!({
            "properties": {"state": {"enum": ["a", "b"]}, "body": {"type": "string"}},
            "required": ["body"],
        })),
    );
    let with_witness: Vec<_> = report.tools[0]
        .findings
        .iter()
        .filter(|finding| finding.witness.is_some())
        .map(|finding| finding.rule)
        .collect();
    // The plainest call that fails leaves `body` out; nothing is wrong with its state.
    assert_eq!(with_witness, ["input-required-added"]);
}

#[test]
fn annotation_that_is_no_hint_is_compared_in_every_form() {
    let of = |value: Value| json!([{"name": "a", "annotations": {"x-cached": value}}]);
    for (old, new) in [
        (json!(true), json!(false)),
        (json!("a"), json!("b")),
        (json!(true), json!("b")),
    ] {
        let report = check(of(old), of(new));
        let rules: Vec<_> = report.tools[0]
            .findings
            .iter()
            .map(|one| one.rule)
            .collect();
        assert_eq!(rules, ["annotations-changed"]);
    }
}
