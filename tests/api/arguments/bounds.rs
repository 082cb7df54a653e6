//! Checking any value against any schema takes a bounded number of steps. A verdict within them equals
//! that of the validator without a budget.

use std::sync::atomic::{AtomicU32, Ordering};

use broker_schema::{
    Budget, Evaluation, Explanation, MIN_STEPS, STEPS_PER_VALUE, Validator, Verdict, compile,
    count_values, inspect,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Places that an explanation tells.
const MAX_PLACES: usize = 20;

fn compiled(schema: &Value) -> Validator {
    inspect(schema).expect("the lock takes it");
    compile(schema).expect("it compiles")
}

/// Evaluates and explains within the whole budget, and asserts that no step beyond it was taken.
fn check(schema: &Value, value: &Value) -> (Evaluation, Explanation) {
    let validator = compiled(schema);
    let values = count_values(value);
    let budget = Budget::from_values(values);
    let bound = MIN_STEPS.max(values * STEPS_PER_VALUE);
    let evaluation = validator.evaluate(value, &budget);
    assert!(evaluation.steps <= bound, "{}", evaluation.steps);
    let explanation = validator.explain(schema, value, MAX_PLACES, &budget);
    assert!(explanation.places.len() <= MAX_PLACES);
    (evaluation, explanation)
}

/// `{"not": {"not": … innermost}}`, so deep.
fn nested(depth: usize, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| json!({"not": inner}))
}

/// A filter that refers to itself, as people write them.
fn filter() -> Value {
    json!({"type": "object", "properties": {"filter": {"$ref": "#/$defs/filter"}}, "$defs": {
    "filter": {"oneOf": [
        {"type": "object", "required": ["not"], "properties": {"not": {"$ref": "#/$defs/filter"}}},
        {"type": "object", "required": ["not", "weight"], "properties": {
            "not": {"$ref": "#/$defs/filter"}, "weight": {"type": "number"}}},
        {"type": "object", "required": ["eq"], "properties": {"eq": {"type": "string"}}}]}}})
}

/// Definitions without a cycle, each of which names the next twice through `properties`.
fn chain(length: usize) -> Value {
    let mut definitions = Map::new();
    for at in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let both = json!({"allOf": [{"properties": {"not": next}}, {"properties": {"not": next}}]});
        definitions.insert(format!("d{at}"), both);
    }
    definitions.insert(format!("d{length}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"filter": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

/// Definitions that refer to themselves twice through `properties`.
fn twice() -> Value {
    let next = json!({"$ref": "#/$defs/next"});
    json!({"type": "object", "properties": {"filter": next}, "$defs": {"next": {
        "type": ["object", "string"],
        "allOf": [{"properties": {"not": next}}, {"properties": {"not": next}}]}}})
}

#[test]
fn recursive_filter_is_refused_with_places_within_its_budget() {
    for depth in [10, 40, 120] {
        let args = json!({"filter": nested(depth, json!({"eq": 1}))});
        let (evaluation, explanation) = check(&filter(), &args);
        assert_eq!(evaluation.verdict, Verdict::Invalid, "{depth}");
        assert!(evaluation.steps < 50_000, "{}", evaluation.steps);
        assert_eq!(explanation.places[0].keyword, "oneOf");
        assert_eq!(explanation.places[0].pointer, "/filter");
        assert!(!explanation.is_cut);
    }
}

#[test]
fn chain_of_definitions_over_budget_names_a_place_below_the_top() {
    let args = json!({"filter": nested(40, json!("good"))});
    let (evaluation, explanation) = check(&chain(40), &args);
    let Verdict::OverBudget { pointer } = evaluation.verdict else {
        panic!("{evaluation:?}");
    };
    assert!(pointer.starts_with("/filter/not/not"), "{pointer}");
    assert!(explanation.more && explanation.is_cut);
    let shallow = json!({"filter": nested(8, json!(1))});
    assert_eq!(check(&chain(8), &shallow).0.verdict, Verdict::Invalid);
}

#[test]
fn explanation_ends_after_its_maximum_of_places() {
    let (evaluation, explanation) = check(&twice(), &json!({"filter": nested(20, json!(1))}));
    assert_eq!(evaluation.verdict, Verdict::Invalid);
    assert_eq!(explanation.places.len(), MAX_PLACES);
    assert!(explanation.more && !explanation.is_cut);
    let deep = format!("/filter{}", "/not".repeat(20));
    assert!(explanation.places.iter().all(|place| place.pointer == deep));
    // Valid ones are remembered where a cycle leads back.
    let (evaluation, _) = check(&twice(), &json!({"filter": nested(20, json!("good"))}));
    assert_eq!(evaluation.verdict, Verdict::Valid);
}

#[test]
fn branches_over_a_long_list_are_over_budget() {
    let branches: Vec<_> = (0..9000).map(|at| json!({"const": at})).collect();
    let schema = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"anyOf": branches}}}});
    let args = json!({"list": vec![json!("no"); 8000]});
    let (evaluation, _) = check(&schema, &args);
    assert!(matches!(
        evaluation.verdict,
        Verdict::Invalid | Verdict::OverBudget { .. }
    ));
    let late = json!({"list": vec![json!(8999); 8000]});
    let (evaluation, _) = check(&schema, &late);
    assert!(
        matches!(evaluation.verdict, Verdict::OverBudget { .. }),
        "{evaluation:?}"
    );
}

#[test]
fn subschemas_without_assertions_are_charged() {
    let silent = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"allOf": vec![json!({}); 9000]}}}});
    let (evaluation, _) = check(&silent, &json!({"list": vec![json!(0); 100_000]}));
    assert!(
        matches!(evaluation.verdict, Verdict::OverBudget { .. }),
        "{evaluation:?}"
    );
    let patterns: Map<_, _> = (0..300)
        .map(|at| (format!("^a.*{at}$"), json!({})))
        .collect();
    let patterns = json!({"patternProperties": patterns, "additionalProperties": false});
    let members: Map<_, _> = (0..20_000).map(|at| (format!("a{at}"), json!(0))).collect();
    let (evaluation, _) = check(&patterns, &members.into());
    assert!(
        matches!(evaluation.verdict, Verdict::OverBudget { .. }),
        "{evaluation:?}"
    );
}

#[test]
fn unique_items_of_one_hash_are_compared_in_linear_time() {
    // Lists of empty lists, all different: one hash in `jsonschema`.
    fn tree(bits: u32) -> Value {
        let mut open = vec![Vec::new()];
        for at in 0..17 {
            if bits >> at & 1 == 1 || open.len() == 1 {
                open.push(Vec::new());
            } else if let (Some(inner), Some(outer)) = (open.pop(), open.last_mut()) {
                outer.push(Value::Array(inner));
            }
        }
        while open.len() > 1 {
            if let (Some(inner), Some(outer)) = (open.pop(), open.last_mut()) {
                outer.push(Value::Array(inner));
            }
        }
        Value::Array(open.remove(0))
    }
    let mut lists: Vec<_> = (0..1 << 16).map(tree).collect();
    lists.sort_by_key(Value::to_string);
    lists.dedup();
    assert!(lists.len() > 10_000, "{}", lists.len());
    let schema = json!({"properties": {"list": {"uniqueItems": true}}});
    let args = json!({"list": lists});
    let (evaluation, _) = check(&schema, &args);
    assert_eq!(evaluation.verdict, Verdict::Valid);
    assert!(
        evaluation.steps <= 4 * count_values(&args),
        "{}",
        evaluation.steps
    );
}

#[test]
fn pattern_that_backtracks_on_a_long_text_is_over_budget() {
    let text = format!("{}z", "a".repeat(4 << 20));
    for (pattern, over) in [
        ("^(?:.(?=.*z))*$", true),
        ("(?=((?:a(?!b))*))q", true),
        ("(a|b)*a(a|b){900}c", true),
        ("^[a-z]*$", false),
    ] {
        let schema = json!({"properties": {"text": {"pattern": pattern}}});
        let (evaluation, _) = check(&schema, &json!({"text": text}));
        let is_over = matches!(evaluation.verdict, Verdict::OverBudget { .. });
        assert_eq!(is_over, over, "{pattern}: {evaluation:?}");
    }
}

#[test]
fn reference_chain_that_is_long_overflows_no_stack() {
    let chain = |length: usize| {
        let mut definitions: Map<_, _> = (0..length)
            .map(|at| {
                (
                    format!("d{at}"),
                    json!({"$ref": format!("#/$defs/d{}", at + 1)}),
                )
            })
            .collect();
        let back = json!({"properties": {"not": {"$ref": "#/$defs/d0"}}});
        definitions.insert(format!("d{length}"), back);
        json!({"properties": {"filter": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
    };
    let args = json!({"filter": nested(120, json!(1))});
    // The stack is as large as that of a worker of the runtime.
    let on_a_small_stack = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            for length in [10, 100, 300] {
                let schema = chain(length);
                let (evaluation, _) = check(&schema, &args);
                assert_ne!(evaluation.verdict, Verdict::Invalid, "{length}");
            }
        });
    on_a_small_stack
        .expect("a thread")
        .join()
        .expect("no panic");
    let refused = compile(&chain(1000)).expect_err("too long");
    assert_eq!(refused.code.as_str(), "schema_limit");
}

#[test]
fn evaluation_stops_within_a_few_thousand_steps() {
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 3;
    let budget = Budget::steps(u64::MAX).until(&stop);
    let args = json!({"filter": nested(40, json!("good"))});
    let evaluation = compiled(&chain(40)).evaluate(&args, &budget);
    assert!(matches!(evaluation.verdict, Verdict::OverBudget { .. }));
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    assert!(evaluation.steps <= 4 * 4096, "{}", evaluation.steps);
}

#[test]
fn explanation_covers_every_kind_of_subschema() {
    let schema = json!({
        "type": "object", "required": ["gone"], "additionalProperties": false,
        "properties": {
            "plain": {"type": "integer"}, "ref": {"$ref": "#/$defs/a%20b"},
            "list": {"items": {"type": "string"}}, "tuple": {"prefixItems": [{"const": 1}], "items": false},
            "all": {"allOf": [{}, {"minimum": 5}]}, "cond": {"if": {"type": "string"}, "then": {"minLength": 3}},
            "any": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "not": {"not": {}},
            "dep": {"dependentSchemas": {"x": {"required": ["y"]}}}, "names": {"propertyNames": {"maxLength": 1}},
            "free": {"properties": {"a": {}}, "unevaluatedProperties": false}},
        "patternProperties": {"^p-": {"type": "boolean"}},
        "$defs": {"a b": {"enum": [1, 2]}}});
    let args = json!({"plain": "x", "ref": 3, "list": ["a", 1], "tuple": [2, 3], "all": 1, "cond": "a",
        "any": 1, "not": 0, "dep": {"x": 1}, "names": {"long": 1}, "free": {"b": 1}, "p-1": 0, "other": 1});
    let (evaluation, explanation) = check(&schema, &args);
    assert_eq!(evaluation.verdict, Verdict::Invalid);
    let mut found: Vec<_> = explanation
        .places
        .iter()
        .map(|place| {
            (
                place.pointer.as_str(),
                place.keyword.as_str(),
                place.schema_pointer.as_str(),
            )
        })
        .collect();
    found.sort_unstable();
    let expected = [
        ("", "additionalProperties", "/additionalProperties"),
        ("", "required", "/required"),
        ("/all", "minimum", "/properties/all/allOf/1/minimum"),
        ("/any", "anyOf", "/properties/any/anyOf"),
        ("/cond", "minLength", "/properties/cond/then/minLength"),
        (
            "/dep",
            "required",
            "/properties/dep/dependentSchemas/x/required",
        ),
        (
            "/free",
            "unevaluatedProperties",
            "/properties/free/unevaluatedProperties",
        ),
        ("/list/1", "type", "/properties/list/items/type"),
        ("/names", "propertyNames", "/properties/names/propertyNames"),
        ("/not", "not", "/properties/not/not"),
        ("/p-1", "type", "/patternProperties/^p-/type"),
        ("/plain", "type", "/properties/plain/type"),
        ("/ref", "enum", "/$defs/a b/enum"),
        ("/tuple/0", "const", "/properties/tuple/prefixItems/0/const"),
        ("/tuple/1", "falseSchema", "/properties/tuple/items"),
    ];
    assert_eq!(found, expected);
    assert!(!explanation.more && !explanation.is_cut);
}

/// Schemas with shared definitions; references lead to later ones, or anywhere where they may recur.
fn schemas(recursive: bool) -> impl Strategy<Value = Value> {
    const DEFINITIONS: usize = 8;
    let level = move |at: usize| {
        let target = if recursive {
            0..DEFINITIONS
        } else {
            at + 1..DEFINITIONS + 1
        };
        let part = target.prop_map(|to| json!({"$ref": format!("#/$defs/d{to}")}));
        let member = (prop::sample::select(vec!["not", "a", "b"]), part.clone());
        let members = prop::collection::vec(member, 1..4).prop_map(|all| {
            json!({"properties": all.into_iter().map(|(name, part)| (name.to_owned(), part)).collect::<Map<_, _>>()})
        });
        let branch = prop_oneof![
            4 => members,
            1 => part.clone().prop_map(|part| json!({"items": part})),
            1 => part.prop_map(|part| json!({"additionalProperties": part})),
            1 => Just(json!({"type": "string"})),
            1 => Just(json!({"minimum": 3, "uniqueItems": true})),
        ];
        let keyword = prop::sample::select(vec!["allOf", "anyOf", "oneOf"]);
        (keyword, prop::collection::vec(branch, 1..4))
            .prop_map(move |(keyword, branches)| (format!("d{at}"), json!({keyword: branches})))
    };
    let levels: Vec<_> = (0..=DEFINITIONS).map(level_strategy(level)).collect();
    levels.prop_map(|definitions| {
        let definitions: Map<_, _> = definitions.into_iter().collect();
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    })
}

fn level_strategy<S>(level: impl Fn(usize) -> S) -> impl Fn(usize) -> BoxedStrategy<(String, Value)>
where
    S: Strategy<Value = (String, Value)> + 'static,
{
    move |at| {
        if at == 8 {
            return Just(("d8".to_owned(), json!({"type": ["string", "null"]}))).boxed();
        }
        level(at).boxed()
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(1)),
        Just(json!("a")),
        Just(Value::Null),
        Just(json!([[], []]))
    ];
    let small = leaf.prop_recursive(6, 60, 4, |inner| {
        let names = prop::sample::select(vec!["not", "a", "b"]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    // Values as deep as the reader allows.
    (small, prop_oneof![Just(0usize), Just(20), Just(115)])
        .prop_map(|(value, depth)| nested(depth, value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn validation_within_the_budget_equals_the_unbounded_one(
        schema in prop_oneof![schemas(true), schemas(false)],
        value in values(),
    ) {
        prop_assume!(inspect(&schema).is_ok());
        let (evaluation, explanation) = check(&schema, &value);
        let full = match evaluation.verdict {
            Verdict::Valid => true,
            Verdict::Invalid => false,
            Verdict::OverBudget { .. } => return Ok(()),
        };
        let plain = jsonschema::options().should_validate_formats(false).build(&schema).expect("it compiles");
        prop_assert_eq!(plain.is_valid(&value), full);
        if !full {
            prop_assert!(!explanation.places.is_empty() || explanation.more);
        }
        // With a smaller budget, the verdict is equal or unknown.
        let less = compiled(&schema).evaluate(&value, &Budget::steps(evaluation.steps / 2));
        prop_assert!(less.steps <= evaluation.steps / 2);
        let is_over = matches!(less.verdict, Verdict::OverBudget { .. });
        prop_assert!(is_over || less.verdict == evaluation.verdict);
    }
}
