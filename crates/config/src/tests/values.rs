//! Nothing that is handed in makes the parser panic, and its own reader agrees with serde_json.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::findings::Findings;
use crate::reader;

/// Text made of what configs are made of.
fn jsonish() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("\"tree\":"),
        Just("\"mcpServers\":"),
        Just("\"path\":\"/a\""),
        Just("\"source\":{"),
        Just("\"command\":\"a | ${B}\""),
        Just("\"env\":{\"K\":"),
        Just("\"x\""),
        Just("1e999"),
        Just("-0"),
        Just("null"),
        Just("true"),
        Just("\\"),
        Just("\""),
        Just("ä"),
        Just("\u{feff}"),
        Just("\0"),
        Just("\n"),
        Just("\"\\ud800\""),
        Just("'"),
    ];
    proptest::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e300f64..1e300).prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map("[a-z~/\"ä]{0,4}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn config_of_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _outcome = Config::parse("c.json", &bytes);
    }

    #[test]
    fn config_of_arbitrary_json_like_text_does_not_panic(text in jsonish()) {
        let outcome = Config::parse("c.json", text.as_bytes());
        if let Err(found) = outcome {
            prop_assert!(found.iter().any(Diagnostic::is_error));
        }
    }

    #[test]
    fn config_with_any_value_anywhere_does_not_panic(value in value()) {
        for text in [
            value.to_string(),
            format!(r#"{{"tree":[{{"path":"/a","source":{value}}}]}}"#),
            format!(r#"{{"tree":{value},"limits":{value}}}"#),
            format!(r#"{{"mcpServers":{{"a":{value}}}}}"#),
            with_source(&format!(r#""env":{value},"tool_overrides":{{"t":{value}}},"path_aliases":{value}"#)),
        ] {
            let _outcome = Config::parse("c.json", text.as_bytes());
        }
    }

    #[test]
    fn config_reader_agrees_with_serde_json(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let mut findings = Findings::new("c.json", &text);
        let spanned = reader::read(&text, &text, &mut findings).unwrap();
        prop_assert_eq!(spanned.to_value(), serde_json::from_str::<Value>(&text).unwrap());
        prop_assert_eq!(findings.finish(), vec![]);
    }
}
