//! Changes of exact numbers.

use super::check;
use crate::class::Class;

#[test]
fn another_exact_number_is_drift_and_another_form_is_none() {
    let tool = |keyword: &str, number: &str| {
        let schema = format!(r#"{{"properties":{{"n":{{"{keyword}":{number}}}}}}}"#);
        let tools = format!(r#"[{{"name":"a","inputSchema":{schema}}}]"#);
        broker_model::json::parse(&tools).unwrap()
    };
    assert!(!check(tool("maximum", "1e400"), tool("maximum", "10.0e399")).has_drift());
    let changes = [
        ("maximum", "1e400", "1e401"),
        ("maximum", "1e401", "1e400"),
        ("minimum", "1", "1.00000000000000000001"),
        ("const", "1e400", r#""1e400""#),
        ("enum", "[1e400]", "[1e400,1e401]"),
        ("multipleOf", "1e-400", "2e-400"),
    ];
    let class = |(keyword, old, new)| check(tool(keyword, old), tool(keyword, new)).tools[0].class;
    assert_eq!(
        changes.map(class),
        [
            Class::Unknown,
            Class::Unknown,
            Class::Breaking,
            Class::Breaking,
            Class::Unknown,
            Class::Unknown,
        ]
    );
    let other = check(tool("default", "1e400"), tool("default", "1e401"));
    assert!(other.has_drift());
}
