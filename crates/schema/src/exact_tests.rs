//! Verdicts on exact numbers, compared with the verdicts of Python's fractions; their cost.

use std::process::Command;

use broker_model::json::{exact_number, parse, to_text};
use serde_json::{Value, json};

use super::{Budget, MIN_STEPS, Verdict, compile, count_values};

const SCRIPT: &str = include_str!("exact_numbers.py");

/// Cases that are compared; `.ci/full` sets 10 000.
fn cases() -> String {
    std::env::var("MCP_BROKER_EXACT_NUMBERS").unwrap_or_else(|_| "2000".to_owned())
}

fn verdict(schema: &Value, value: &Value) -> Verdict {
    let budget = Budget::from_values(count_values(value));
    let validator = compile(schema).expect("the schema compiles");
    validator.evaluate(value, &budget).verdict
}

fn is_valid(schema: &str, value: &str) -> bool {
    let read = |text| parse(text).expect("JSON");
    verdict(&read(schema), &read(value)) == Verdict::Valid
}

#[test]
fn verdicts_on_numbers_equal_those_of_exact_fractions() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a program that does not outlive this test"
    )]
    let output = Command::new("python3")
        .args(["-c", SCRIPT, &cases(), "33"])
        .output()
        .expect("Python is there");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut count, mut valid) = (0, 0);
    for line in text.lines() {
        let case = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let expected = match case["valid"] == true {
            true => Verdict::Valid,
            false => Verdict::Invalid,
        };
        assert_eq!(verdict(&case["schema"], &case["value"]), expected, "{line}");
        count += 1;
        valid += usize::from(case["valid"] == true);
    }
    assert_eq!(count.to_string(), cases());
    assert!(
        valid > count / 10 && valid < count * 9 / 10,
        "{valid} of {count}"
    );
}

#[test]
fn exact_numbers_count_in_every_place_of_a_schema() {
    let tree = r##"{"$defs": {"n": {"maximum": 1e400}}, "type": "object", "properties": {
        "const": {"minimum": 18446744073709551616}, "list": {"items": {"$ref": "#/$defs/n"}},
        "minimum": {"enum": [1e400, "a"]}}, "patternProperties": {"^x": {"multipleOf": 1e-400}},
        "additionalProperties": {"type": "integer"}}"##;
    for (value, valid) in [
        (r#"{"const": 18446744073709551616}"#, true),
        (r#"{"const": 18446744073709551615}"#, false),
        (r#"{"list": [1, 1e400, -1e401]}"#, true),
        (r#"{"list": [1, 1e401]}"#, false),
        (r#"{"minimum": 10e399}"#, true),
        (r#"{"minimum": "1e400"}"#, false),
        (r#"{"minimum": "\ufdd01e400"}"#, false),
        (r#"{"x": 3e-400}"#, true),
        (r#"{"x": 3e-401}"#, false),
        (r#"{"other": 1e2, "more": 1.0}"#, true),
        (r#"{"other": 1e-400}"#, false),
    ] {
        assert_eq!(is_valid(tree, value), valid, "{value}");
    }
    // A number that counts characters.
    assert!(is_valid(r#"{"maxLength": 1e400}"#, r#""abc""#));
    assert!(!is_valid(r#"{"minLength": 1e400}"#, r#""abc""#));
    for invalid in [
        r#"{"maxLength": 1.00000000000000000000001}"#,
        r#"{"maxLength": -18446744073709551616}"#,
        r#"{"multipleOf": -1e-400}"#,
        r#"{"properties": {"a": 1e400}}"#,
    ] {
        assert!(compile(&parse(invalid).unwrap()).is_err(), "{invalid}");
    }
    // Draft 4.
    let four = r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer",
        "maximum": 1e400, "exclusiveMaximum": true}"#;
    assert!(!is_valid(four, "1e400"));
    assert!(is_valid(four, "100000000000000000000000"));
    assert!(!is_valid(four, "1e30"), "it is written with an exponent");
    let four = r#"{"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}"#;
    assert!(is_valid(four, "1e400"), "draft 4 has no `const`");
}

#[test]
fn error_of_an_exact_number_names_the_limit_and_no_value() {
    let schema =
        parse(r#"{"properties": {"a": {"maximum": 1e400}, "b": {"minimum": 3}}}"#).unwrap();
    let value = parse(r#"{"a": 7e400, "b": -7.00000000000000000000001}"#).unwrap();
    let errors = compile(&schema).unwrap().failures(&schema, &value, 10);
    let shown: Vec<_> = errors
        .iter()
        .map(|error| {
            (
                &*error.pointer,
                &*error.keyword,
                &*error.expected,
                &*error.got,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("/a", "maximum", "at most 1e400", "integer"),
            ("/b", "minimum", "at least 3", "number"),
        ]
    );
}

#[test]
fn forged_original_of_a_keyword_is_ignored() {
    let forged = "{\"minimum\": 5, \"\u{fdd0}minimum\": 3, \"maximum\": 1e400}";
    assert!(!is_valid(forged, "4"));
    let object = "{\"const\": {\"\u{fdd0}minimum\": 1e400}}";
    assert!(is_valid(object, "{\"\u{fdd0}minimum\": 1e400}"));
    assert!(!is_valid(object, "{\"\u{fdd0}minimum\": \"1e400\"}"));
    // A string that looks like an exact number has its own length and pattern.
    assert!(is_valid(
        r#"{"maxLength": 6, "minLength": 6}"#,
        r#""\ufdd01e400""#
    ));
    assert!(is_valid(
        r#"{"required": ["\ufdd05"]}"#,
        "{\"\u{fdd0}5\": 1}"
    ));
}

#[test]
fn costly_numbers_end_within_the_step_budget() {
    let long = |digit: &str| digit.repeat(1000);
    let many = format!("[{}]", vec![long("7"); 900].join(","));
    let items = |keyword: &str, number: &str| {
        parse(&format!(r#"{{"items":{{"{keyword}":{number}}}}}"#)).unwrap()
    };
    let distinct: Vec<_> = (0..900)
        .map(|at| format!("{}{at:03}", &long("7")[3..]))
        .collect();
    for (schema, value) in [
        (items("multipleOf", &long("3")), many.clone()),
        (items("multipleOf", "1e-10000"), many.clone()),
        (
            items("multipleOf", "1e-10000"),
            format!("[{}1e10000]", "1e10000,".repeat(50_000)),
        ),
        (items("minimum", &long("7")), many.clone()),
        (
            items("enum", &format!("[{}]", distinct.join(","))),
            many.clone(),
        ),
        (
            json!({"uniqueItems": true}),
            format!("[{}]", distinct.join(",")),
        ),
        (
            json!({"uniqueItems": true}),
            format!("[{}]", vec![many; 2].join(",")),
        ),
    ] {
        let value = parse(&value).unwrap();
        let validator = compile(&schema).unwrap();
        let budget = Budget::from_values(count_values(&value));
        let evaluation = validator.evaluate(&value, &budget);
        assert!(evaluation.steps <= MIN_STEPS.max(200 * count_values(&value)));
    }
    let far = parse("1e10000").unwrap();
    let step = parse(r#"{"multipleOf": 1e-10000}"#).unwrap();
    assert_eq!(verdict(&step, &far), Verdict::Valid);
    assert_eq!(exact_number(&far), Some("1e10000"));
    assert_eq!(to_text(&step), r#"{"multipleOf":1e-10000}"#);
}
