//! Trust levels and sensitive names in a config: their defaults, what the digest covers, and a config at start
//! with another level.

use super::*;
use crate::narrow::{KnownTools, Narrowing, compare};
use broker_model::digest::Digest;
use broker_model::path::NodePath;
use broker_model::trust::{HiddenBy, TrustLevel};

/// The source of a config with one, and with these members of the top level.
fn source(members: &str, top: &str) -> Source {
    let text = format!(r#"{{"tree":[{{"path":"/a","source":{{{members}}}}}]{top}}}"#);
    parse(&text).config.sources().next().unwrap().clone()
}

fn digest(members: &str, top: &str) -> Digest {
    source(members, top).digest()
}

#[test]
fn trust_level_by_default_depends_on_the_endpoint() {
    let command = source(r#""command":"x""#, "");
    assert_eq!(command.exposure.level(), TrustLevel::Trusted);
    let url = source(r#""url":"https://h/mcp""#, "");
    assert_eq!(url.exposure.level(), TrustLevel::Untrusted);
    assert_eq!((command.trust, url.trust), (None, None));
    let lower = source(r#""command":"x","trust":"verified""#, "");
    assert_eq!(lower.exposure.level(), TrustLevel::Verified);
    assert_eq!(lower.trust, Some(TrustLevel::Verified));
}

#[test]
fn sensitive_words_of_the_top_level_apply_to_every_source() {
    let members = r#""command":"x","trust":"untrusted""#;
    let default = source(members, "");
    assert_eq!(
        default.exposure.hidden_by("delete_x"),
        Some(HiddenBy::Word("delete"))
    );
    let own = r#","trust":{"sensitive":["reboot"]}"#;
    let other = source(members, own);
    assert_eq!(other.exposure.hidden_by("delete_x"), None);
    assert_eq!(
        other.exposure.hidden_by("reboot_x"),
        Some(HiddenBy::Word("reboot"))
    );
    // Wherever the key is in the file.
    let config = parse(
        r#"{"trust":{"sensitive":["reboot"]},"tree":[{"path":"/a","children":[
            {"path":"/a/b","source":{"command":"x","trust":"untrusted"}}]}]}"#,
    );
    let deep = config.config.sources().next().unwrap();
    assert!(!deep.exposure.exposes("reboot") && deep.exposure.exposes("delete"));
}

#[test]
fn trust_with_a_wrong_value_is_refused_at_its_place() {
    let found = only(&with_source(r#""trust":"none""#));
    assert_eq!(found.code, Code::ConfigRange);
    assert_eq!(found.pointer.as_deref(), Some("/tree/0/source/trust"));
    assert_eq!(only(&with_source(r#""trust":true"#)).code, Code::ConfigType);
    for (trust, code, place) in [
        (r#""untrusted""#, Code::ConfigType, "/trust"),
        (r#"{"words":[]}"#, Code::ConfigUnknownKey, "/trust/words"),
        (r#"{"sensitive":{}}"#, Code::ConfigType, "/trust/sensitive"),
        (
            r#"{"sensitive":["ok",1]}"#,
            Code::ConfigType,
            "/trust/sensitive/1",
        ),
        (
            r#"{"sensitive":["ok","runCommand"]}"#,
            Code::ConfigRange,
            "/trust/sensitive/1",
        ),
    ] {
        let found = only(&format!(r#"{{"tree":[],"trust":{trust}}}"#));
        assert_eq!(
            (found.code, found.pointer.as_deref()),
            (code, Some(place)),
            "{trust}"
        );
    }
    let found = only(r#"{"tree":[],"trust":{"sensitive":["runCommand"]}}"#);
    assert!(found.message.ends_with("write `run_command`"), "{found}");
}

#[test]
fn trust_of_another_client_is_ignored_and_not_compiled_in() {
    let parsed = parse(r#"{"mcpServers":{"a":{"command":"x","trust":true}}}"#);
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/mcpServers/a/trust")]
    );
    let source = parsed.config.sources().next().unwrap();
    assert_eq!(source.exposure.level(), TrustLevel::Trusted);
    let (document, _) = parsed.config.compiled();
    assert_eq!(document["mcpServers"]["a"].get("trust"), None);
    let text =
        r#"{"mcpServers":{"a":{"command":"x","trust":"verified"}},"trust":{"sensitive":["a"]}}"#;
    let (document, _) = parse(text).config.compiled();
    assert_eq!(document["mcpServers"]["a"]["trust"], "verified");
    assert_eq!(document["trust"]["sensitive"][0], "a");
}

#[test]
fn digest_covers_a_level_that_is_not_the_default() {
    let (command, url) = (r#""command":"x""#, r#""url":"https://h/""#);
    let with =
        |endpoint: &str, level: &str| digest(&format!(r#"{endpoint},"trust":"{level}""#), "");
    for (endpoint, default, others) in [
        (command, "trusted", ["verified", "untrusted"]),
        (url, "untrusted", ["verified", "trusted"]),
    ] {
        let plain = digest(endpoint, "");
        assert_eq!(with(endpoint, default), plain);
        let others = others.map(|level| with(endpoint, level));
        assert!(others[0] != plain && others[1] != plain && others[0] != others[1]);
    }
}

#[test]
fn digest_covers_sensitive_words_of_untrusted_sources_only() {
    let top = r#","trust":{"sensitive":["reboot","delete"]}"#;
    let turned = r#","trust":{"sensitive":["delete","reboot"]}"#;
    let command = r#""command":"x""#;
    assert_eq!(digest(command, top), digest(command, ""));
    let verified = r#""command":"x","trust":"verified""#;
    assert_eq!(digest(verified, top), digest(verified, ""));
    let untrusted = r#""command":"x","trust":"untrusted""#;
    assert_ne!(digest(untrusted, top), digest(untrusted, ""));
    assert_eq!(digest(untrusted, top), digest(untrusted, turned));
    let words: Vec<String> = broker_model::trust::SensitiveNames::default()
        .words()
        .map(|word| format!("\"{word}\""))
        .collect();
    let default = format!(r#","trust":{{"sensitive":[{}]}}"#, words.join(","));
    assert_eq!(digest(untrusted, &default), digest(untrusted, ""));
}

/// The comparison of two configs with one source; the lock exposes `get` and `put`, and hides `delete`.
fn compared(built: (&str, &str), given: (&str, &str)) -> Result<Narrowing, Vec<Diagnostic>> {
    let known = |_: &NodePath| KnownTools {
        exposed: vec!["get".to_owned(), "put".to_owned()],
        hidden: vec!["delete".to_owned()],
    };
    let config = |(members, top): (&str, &str)| {
        let text =
            format!(r#"{{"tree":[{{"path":"/a","source":{{"command":"x"{members}}}}}]{top}}}"#);
        parse(&text).config
    };
    compare(&config(built), &config(given), &known)
}

fn hidden(narrowing: Result<Narrowing, Vec<Diagnostic>>) -> Vec<String> {
    let hidden = narrowing.unwrap().hidden;
    hidden.into_iter().map(|(_, tool)| tool).collect()
}

const UNTRUSTED: &str = r#","trust":"untrusted""#;
const VERIFIED: &str = r#","trust":"verified","tool_filter":["get","put"]"#;
const LISTED: &str = r#","tool_filter":["get","put"]"#;

#[test]
fn config_at_start_with_a_lower_level_hides_tools() {
    let put = r#","trust":{"sensitive":["delete","put"]}"#;
    let lower = format!("{LISTED}{UNTRUSTED}");
    // By the default words no tool is hidden in addition, by the given ones no literal name is.
    assert_eq!(hidden(compared((LISTED, ""), (&lower, ""))), [""; 0]);
    assert_eq!(hidden(compared((LISTED, ""), (&lower, put))), [""; 0]);
    let wide = r#","trust":"untrusted","tool_filter":["?et","?ut"]"#;
    assert_eq!(hidden(compared((VERIFIED, ""), (wide, put))), ["put"]);
    // A list that was not needed before is missing.
    let unlisted = r#","trust":"verified","tool_filter":["!delete"]"#;
    let denied = r#","tool_filter":["!delete"]"#;
    assert_eq!(
        hidden(compared((denied, ""), (unlisted, ""))),
        ["get", "put"]
    );
    assert_eq!(hidden(compared((UNTRUSTED, ""), (UNTRUSTED, put))), ["put"]);
}

#[test]
fn config_at_start_with_a_higher_level_is_refused() {
    let refused = |built: (&str, &str), given: (&str, &str)| {
        let found = compared(built, given).unwrap_err();
        assert!(found.iter().all(|one| one.position.is_some()), "{found:?}");
        let found = places(&found).into_iter();
        found
            .map(|(code, place)| (code, place.to_owned()))
            .collect::<Vec<_>>()
    };
    let widen = |place: &str| vec![(Code::LockWiden, place.to_owned())];
    let level = widen("/tree/0/source/trust");
    let trusted = r#","trust":"trusted""#;
    assert_eq!(refused((UNTRUSTED, ""), (trusted, "")), level);
    // Although it exposes no other tool.
    let higher = VERIFIED.replace("verified", "trusted");
    assert_eq!(refused((VERIFIED, ""), (&higher, "")), level);
    let lower = VERIFIED.replace("verified", "untrusted");
    assert_eq!(refused((&lower, ""), (VERIFIED, "")), level);
    // Without the key the level is the default.
    assert_eq!(refused((UNTRUSTED, ""), ("", "")), widen("/tree/0/source"));
    // A raised level does not hide that the filter is wider as well.
    let wider = r#","trust":"trusted","tool_filter":["*"]"#;
    let both = ["/tree/0/source/trust", "/tree/0/source/tool_filter"];
    let both = both.map(|place| (Code::LockWiden, place.to_owned()));
    assert_eq!(refused((VERIFIED, ""), (wider, "")), both);
}

#[test]
fn config_at_start_that_exposes_a_sensitive_name_is_refused() {
    let message = |given: (&str, &str)| {
        let found = compared((UNTRUSTED, ""), given).unwrap_err();
        let place = found[0].pointer.clone().unwrap_or_default();
        assert_eq!((found.len(), found[0].code), (1, Code::LockWiden));
        (place, found[0].message.clone())
    };
    let fewer = r#","trust":{"sensitive":["reboot"]}"#;
    assert_eq!(
        message((UNTRUSTED, fewer)),
        (
            "/trust/sensitive".to_owned(),
            "the list of sensitive words of `/a` would expose `delete`, which the lock hides"
                .to_owned()
        )
    );
    let named = r#","trust":"untrusted","tool_filter":["*","delete"]"#;
    assert_eq!(
        message((named, "")),
        (
            "/tree/0/source/tool_filter".to_owned(),
            "the filter of `/a` would expose `delete`, which the lock hides".to_owned()
        )
    );
}
