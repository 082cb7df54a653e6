//! The compiled-in config: it has no literal secret, and the digest of the original.

use super::*;

#[test]
fn compiled_config_replaces_literal_secrets_by_variables() {
    let text = with_source(
        r#""env":{"API_TOKEN":"canary1","PLAIN":"p","DB_PASSWORD":"${PW:-canary2}","MY_KEY":"${K}","A_SECRET":"","x-api-key":"canary3","9_KEY":"canary4"}"#,
    );
    let config = parse(&text).config;
    let (document, warnings) = config.compiled();
    let env = &document["tree"][0]["source"]["env"];
    assert_eq!(env["API_TOKEN"], "${API_TOKEN}");
    assert_eq!(env["PLAIN"], "p");
    assert_eq!(env["DB_PASSWORD"], "${PW}");
    assert_eq!(env["MY_KEY"], "${K}");
    assert_eq!(env["A_SECRET"], "");
    assert_eq!(env["x-api-key"], "${x_api_key}");
    assert_eq!(env["9_KEY"], "${_9_KEY}");
    assert_eq!(warnings.len(), 4);
    assert!(
        warnings
            .iter()
            .all(|w| w.code == Code::LiteralSecret && w.position.is_some())
    );
    assert!(!shown(&warnings).contains("canary") && !document.to_string().contains("canary"));
    let again = parse(&document.to_string());
    assert_eq!(again.config.digest(), config.digest());
    assert_eq!(again.config.compiled().1, []);
}

#[test]
fn compiled_config_omits_foreign_keys_and_disabled_entries() {
    let config = parse(
        r#"{"preferences":{"k":"canary"},"mcpServers":{
            "a":{"type":"stdio","command":"x","oauth":{"s":"canary"},"timeout":300000,"env":{"TOKEN":"canary"}},
            "b":{"disabled":true,"url":"http://canary"},"c":{"enabled":false,"command":"canary"}}}"#,
    )
    .config;
    let (document, warnings) = config.compiled();
    assert!(!document.to_string().contains("canary"), "{document}");
    assert_eq!(
        places(&warnings),
        [(Code::LiteralSecret, "/mcpServers/a/env/TOKEN")]
    );
    let again = parse(&document.to_string());
    assert_eq!(again.warnings, []);
    assert_eq!(again.config.digest(), config.digest());
}

#[test]
fn compiled_config_keeps_the_order_without_secrets() {
    let text = r#"{"types":false,"mcpServers":{
        "zeta":{"env":{"TOKEN":"canary"},"command":"x"},
        "off":{"disabled":true,"command":"x"},
        "al\"pha":{"command":"x","args":["a"]},
        "mid":{"command":"x"}}}"#;
    let config = parse(text).config;
    let compiled = config.compiled_text();
    assert_eq!(
        compiled,
        r#"{"mcpServers":{"zeta":{"command":"x","env":{"TOKEN":"${TOKEN}"}},"al\"pha":{"args":["a"],"command":"x"},"mid":{"command":"x"}},"types":false}"#
    );
    let again = parse(&compiled).config;
    let paths = |config: &Config| -> Vec<String> {
        let children = config.root.children.iter();
        children.map(|node| node.path.to_string()).collect()
    };
    assert_eq!(paths(&again), ["/zeta", "/al-pha", "/mid"]);
    assert_eq!(paths(&again), paths(&config));
    assert_eq!(again.digest(), config.digest());
}

#[test]
fn compiled_config_omits_secrets_of_nested_nodes() {
    let config = parse(
        r#"{"tree":{"path":"/","children":[{"path":"/a","children":[{"path":"/a/b","source":{"command":"x","env":{"TOKEN":"canary"}}}]}]}}"#,
    )
    .config;
    let (document, warnings) = config.compiled();
    assert!(!document.to_string().contains("canary"), "{document}");
    assert_eq!(
        warnings[0].pointer.as_deref(),
        Some("/tree/children/0/children/0/source/env/TOKEN")
    );
}
