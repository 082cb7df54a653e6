//! Proofs and counterexamples of pairs of schemas.

use serde_json::{Value, json};

use super::*;

#[test]
fn covers_proves_refutes_or_reports_unknown() {
    let any_text = json!({"type": "string"});
    let short_text = json!({"type": "string", "maxLength": 3});
    assert_eq!(covers(&short_text, &any_text), Coverage::Covered);
    let Coverage::Counterexample { value, reasons } = covers(&any_text, &short_text) else {
        panic!("longer texts are not covered");
    };
    assert!(value.as_str().is_some_and(|text| text.chars().count() > 3));
    assert_eq!(reasons[0].keyword, "maxLength");
    let object = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let strict =
        json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    assert_eq!(
        covers(&strict, &json!({"type": "object"})),
        Coverage::Covered
    );
    let refuted = covers(&object, &strict);
    assert!(
        matches!(refuted, Coverage::Counterexample { .. }),
        "{refuted:?}"
    );
    let other_document = json!({"$ref": "https://example.com/schema.json"});
    let unknown = covers(&other_document, &any_text);
    assert!(matches!(unknown, Coverage::Unknown(_)), "{unknown:?}");
}

#[test]
fn text_of_the_only_length_refutes_a_shorter_one() {
    let exact = json!({"type": "string", "minLength": 7, "maxLength": 7});
    let coverage = covers(&exact, &json!({"type": "string", "maxLength": 6}));
    let Coverage::Counterexample { value, .. } = coverage else {
        panic!("{coverage:?}");
    };
    assert_eq!(value.as_str().map(|text| text.chars().count()), Some(7));
}

/// The encoded name and the plain one are two definitions.
#[test]
fn reference_with_a_percent_sign_is_not_read_as_written() {
    let definitions = json!({"a%20b": {"type": "string"}, "a b": {"type": "integer"}});
    let encoded = json!({"$ref": "#/$defs/a%20b", "$defs": definitions});
    let coverage = covers(&encoded, &json!({"type": "string"}));
    assert!(!matches!(coverage, Coverage::Covered), "{coverage:?}");
}

/// An object that requires the member `k`, of this schema.
fn with_k(schema: Value) -> Value {
    json!({"type": "object", "properties": {"k": schema}, "required": ["k"]})
}

/// Branches that a required member tells apart are disjoint; branches that share a value refuse it.
#[test]
fn one_of_covers_a_branch_only_if_the_others_are_disjoint() {
    let a = with_k(json!({"const": "a"}));
    for (other, is_disjoint) in [
        (json!({"const": "b"}), true),
        (json!({"enum": ["b", "c"]}), true),
        (json!({"enum": ["a", "b"]}), false),
        (json!({"type": "integer"}), true),
        (json!({"type": "string", "minLength": 2}), true),
        (json!({"type": "string", "minLength": 1}), false),
        (json!({"type": "string", "pattern": "^b"}), true),
        (json!({"type": "string", "pattern": "^a"}), false),
        (json!({"type": ["string", "null"]}), false),
        (json!({"anyOf": [{"const": "b"}, {"const": "c"}]}), true),
        (json!({"anyOf": [{"const": "b"}, {"const": "a"}]}), false),
        (json!({"type": "object"}), true),
        // A member of the member tells the branches apart.
        (json!({}), false),
    ] {
        let other = with_k(other);
        for branches in [json!([a, other]), json!([other, a])] {
            let union = json!({"oneOf": branches});
            let coverage = covers(&a, &union);
            match coverage {
                Coverage::Covered => assert!(is_disjoint, "{union}"),
                Coverage::Counterexample { value, reasons } => {
                    assert!(!is_disjoint, "{union}: {value}: {reasons:?}");
                }
                Coverage::Unknown(why) => panic!("{union}: {why}"),
            }
        }
    }
}

/// A value of a list that both have, or a list against another form of the same list, does not make branches disjoint.
#[test]
fn one_of_with_a_nested_or_absent_member_is_compared_exactly() {
    let nested = |value: &str| with_k(with_k(json!({"const": value})));
    let closed =
        json!({"type": "object", "properties": {"other": {}}, "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"other": {}}});
    let optional = json!({"type": "object", "properties": {"k": {"const": "b"}}});
    let a = with_k(json!({"const": "a"}));
    let tried = [
        (nested("a"), nested("b"), true),
        (nested("a"), nested("a"), false),
        (a.clone(), closed, true),
        (a.clone(), open, false),
        // The member is required on one side only: the value of the writer has it, and the branch refuses it, which
        // this form does not prove.
        (a, optional, false),
    ];
    for (writer, other, is_disjoint) in tried {
        let union = json!({"oneOf": [writer, other]});
        let coverage = covers(&writer, &union);
        assert_eq!(
            coverage == Coverage::Covered,
            is_disjoint,
            "{union}: {coverage:?}"
        );
    }
}

#[test]
fn listed_number_is_covered_by_a_step_only_if_it_is_a_multiple() {
    let even = json!({"type": "integer", "multipleOf": 2, "minimum": 0});
    let odd_step = json!({"type": "number", "multipleOf": 1.5});
    let below = |schema: &Value| json!({"anyOf": [{"type": "string"}, schema]});
    for (from, to, is_refuted) in [
        (json!({"enum": [3]}), even.clone(), true),
        (json!({"const": 3}), even.clone(), true),
        (json!({"enum": [2, 3]}), even.clone(), true),
        (json!({"enum": [3]}), below(&even), true),
        (below(&json!({"const": 3})), below(&even), true),
        (json!({"enum": [4]}), odd_step.clone(), true),
        (json!({"enum": [2, 4]}), even.clone(), false),
        (json!({"enum": [3, 1.5]}), odd_step, false),
        (
            json!({"enum": [2, 3]}),
            json!({"enum": [2, 3], "multipleOf": 2}),
            true,
        ),
        (
            json!({"enum": [2, 3], "multipleOf": 2}),
            json!({"enum": [3, 4]}),
            true,
        ),
    ] {
        let coverage = covers(&from, &to);
        // No rule proves a multiple; without a counterexample the answer is unknown.
        let expected = match coverage {
            Coverage::Covered => panic!("{from} -> {to}"),
            Coverage::Counterexample { .. } => is_refuted,
            Coverage::Unknown(_) => !is_refuted,
        };
        assert!(expected, "{from} -> {to}: {coverage:?}");
    }
}

#[test]
fn reference_to_another_place_is_not_the_same_text() {
    let at = |target: Value, pointer: &str| {
        json!({"properties": {"p": {"not": {"$ref": pointer}}}, "x-types": {"t": target},
            "$defs": {"t": {"$ref": "#/x-types/t"}}})
    };
    let (text, number) = (
        json!({"type": "string", "minLength": 1}),
        json!({"type": "integer"}),
    );
    for pointer in ["#/x-types/t", "#/$defs/t"] {
        let coverage = covers(&at(text.clone(), pointer), &at(number.clone(), pointer));
        assert!(
            matches!(coverage, Coverage::Counterexample { .. }),
            "{pointer}: {coverage:?}"
        );
        let same = covers(&at(text.clone(), pointer), &at(text.clone(), pointer));
        assert_eq!(same, Coverage::Covered, "{pointer}");
    }
}

#[test]
fn exclusive_bound_excludes_its_number_alone() {
    let above = |bound: i32| json!({"type": "integer", "exclusiveMinimum": bound});
    assert_eq!(covers(&json!({"enum": [5]}), &above(4)), Coverage::Covered);
    let refuted = covers(&json!({"enum": [5]}), &above(5));
    assert!(
        matches!(refuted, Coverage::Counterexample { .. }),
        "{refuted:?}"
    );
}

/// An object without declared members may have any member, unless it is the arguments of a call as a whole.
#[test]
fn object_without_declarations_does_not_cover_a_closed_one() {
    let with_o = |o: Value| json!({"type": "object", "properties": {"o": o}});
    let open = json!({"type": "object", "properties": {}});
    let closed = json!({"type": "object", "additionalProperties": false});
    let compared = compare(Side::Input, &with_o(open.clone()), &with_o(closed.clone())).unwrap();
    let Relation::NotCovered(value, _) = compared.relation else {
        panic!("{:?}", compared.relation);
    };
    assert!(!value["o"].as_object().unwrap().is_empty(), "{value}");
    let compared = compare(Side::Input, &open, &closed).unwrap();
    assert!(
        matches!(compared.relation, Relation::Covered(_)),
        "{:?}",
        compared.relation
    );
}

#[test]
fn change_has_a_second_pointer_only_if_its_keyword_moved() {
    let old = json!({"properties": {"a": {"type": "string"}}});
    let new = json!({"properties": {"a": {"type": "integer"}}});
    let moved =
        json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "integer"}}});
    for (new, pointer) in [(new, None), (moved, Some("/$defs/a/type"))] {
        let compared = compare(Side::Input, &old, &new).unwrap();
        let changes = compared.changes.iter();
        let of_type = changes.filter(|change| change.pointer == "/properties/a/type");
        let pointers: Vec<_> = of_type
            .map(|change| change.new_pointer.as_deref())
            .collect();
        assert_eq!(pointers, [pointer], "{:?}", compared.changes);
    }
}
