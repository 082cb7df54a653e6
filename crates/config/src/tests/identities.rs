//! `identities`, `public_url` and `trusted_proxies`: what is accepted, what is refused, and that neither a message
//! nor a digest has them.

use std::time::Duration;

use super::*;
use crate::identities::{
    GroupUse, KeyDigest, KeySetPlace, OnRevoke, SignatureAlgorithm, groups_of_keys, parse_file,
};
use broker_model::model_vendor::ModelVendor;
use broker_model::utc::UtcTime;

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const ACCESS: &str = r#"{"groups":["deployer","reader","a","b","x","y"],"rules":[]}"#;
/// A key in its full form, which no message may show.
const RAW_KEY: &str = "mbk_abcdefghijklmnopqrstuvwxyz234567";

/// A config with the groups of these tests, and this section.
fn with(identities: &str) -> String {
    format!(r#"{{"tree":[],"identities":{identities},"access":{ACCESS}}}"#)
}

fn with_key(members: &str) -> String {
    with(&format!(r#"{{"keys":[{{{members}}}]}}"#))
}

fn with_issuer(members: &str) -> String {
    let needed = r#""issuer":"https://idp.example","audience":["a"],"algorithms":["RS256"]"#;
    with(&format!(r#"{{"issuers":[{{{needed}{members}}}]}}"#))
}

#[test]
fn identities_are_read_with_their_defaults() {
    let text = with(&format!(
        r#"{{"keys":[{{"name":"ci","sha256":"{DIGEST}","groups":["deployer","reader"],"not_after":"2027-01-01T00:00:00Z","client":"gemini"}},
            {{"name":"b","sha256":"{OTHER}"}}],
            "keys_file":"${{BROKER_KEYS:-}}","on_revoke":"cancel",
            "issuers":[{{"issuer":"https://idp.example","audience":["https://broker.example"],"algorithms":["RS256"]}},
            {{"issuer":"http://127.0.0.1:8080/a","audience":["x","y"],"jwks":"https://keys.example/k?v=1",
              "algorithms":["ES384","EdDSA"],"subject":"email","groups_claim":"roles",
              "map":{{"eng/platform":["deployer"],"all":[]}},"claims":["org"],"leeway_s":0,"require_typ":"at+jwt"}}]}}"#
    ));
    let identities = parse(&text).config.identities;
    let [ci, other] = &identities.keys[..] else {
        panic!("{identities:?}");
    };
    assert_eq!(
        (ci.name.as_str(), ci.sha256),
        ("ci", KeyDigest::parse(DIGEST).unwrap())
    );
    assert_eq!(ci.sha256.to_string(), DIGEST);
    assert_eq!(ci.not_after, UtcTime::parse("2027-01-01T00:00:00Z"));
    assert!(other.groups.is_empty() && other.not_after.is_none());
    assert_eq!(ci.client, Some(ModelVendor::Gemini));
    assert_eq!(other.client, None);
    assert_eq!(
        identities.keys_file.as_ref().unwrap().raw(),
        "${BROKER_KEYS:-}"
    );
    assert_eq!(identities.on_revoke, OnRevoke::Cancel);
    let [plain, full] = &identities.issuers[..] else {
        panic!("{identities:?}");
    };
    assert_eq!(
        (plain.issuer.as_str(), plain.subject.as_str()),
        ("https://idp.example", "sub")
    );
    assert_eq!(
        (plain.leeway, &plain.jwks),
        (Duration::from_secs(60), &KeySetPlace::Discover)
    );
    assert!(plain.groups_claim.is_none() && plain.map.is_empty() && plain.claims.is_empty());
    assert!(!plain.requires_access_token_type && full.requires_access_token_type);
    assert_eq!(
        full.algorithms,
        [SignatureAlgorithm::ES384, SignatureAlgorithm::EdDSA]
    );
    assert_eq!((full.leeway, full.claims.len()), (Duration::ZERO, 1));
    assert!(
        matches!(&full.jwks, KeySetPlace::Url(url) if url.expose() == "https://keys.example/k?v=1")
    );
    let groups: Vec<_> = identities
        .groups()
        .map(|GroupUse { group, pointer }| format!("{group} {pointer}"))
        .collect();
    assert_eq!(
        groups,
        [
            "deployer /identities/keys/0/groups/0",
            "reader /identities/keys/0/groups/1",
            "deployer /identities/issuers/1/map/eng~1platform/0",
        ]
    );
}

#[test]
fn identities_that_are_absent_or_empty_identify_no_caller() {
    for text in [
        r#"{"tree":[]}"#.to_owned(),
        with("{}"),
        with(r#"{"keys_file":""}"#),
    ] {
        let identities = parse(&text).config.identities;
        assert!(identities.is_empty(), "{text}");
        assert_eq!(identities.on_revoke, OnRevoke::Discard);
    }
    assert!(
        !parse(&with(r#"{"keys_file":"k.json"}"#))
            .config
            .identities
            .is_empty()
    );
}

#[test]
fn identities_are_in_no_digest_and_may_differ_at_the_start() {
    let source = r#""tree":[{"path":"/a","source":{"command":["x"]}}]"#;
    let without = parse(&format!("{{{source}}}")).config;
    let with = parse(&format!(
        r#"{{{source},"identities":{{"keys":[{{"name":"ci","sha256":"{DIGEST}"}}]}},"public_url":"https://b.example","trusted_proxies":["::1"]}}"#
    ))
    .config;
    assert_eq!(without.digest(), with.digest());
    let known = |_: &broker_model::NodePath| crate::KnownTools::default();
    assert!(crate::narrow::compare(&without, &with, &known).is_ok());
    assert!(crate::narrow::compare(&with, &without, &known).is_ok());
}

#[test]
fn api_key_with_an_invalid_member_is_refused_at_its_place() {
    let digest = format!(r#""sha256":"{DIGEST}""#);
    for (members, code, place) in [
        (digest.clone(), Code::ConfigShape, "/0"),
        (r#""name":"a""#.to_owned(), Code::ConfigShape, "/0"),
        (
            format!(r#""name":"anonymous",{digest}"#),
            Code::ConfigRange,
            "/0/name",
        ),
        (
            format!(r#""name":"",{digest}"#),
            Code::ConfigRange,
            "/0/name",
        ),
        (
            format!(r#""name":"a b",{digest}"#),
            Code::ConfigRange,
            "/0/name",
        ),
        (
            format!(r#""name":"{}",{digest}"#, "a".repeat(65)),
            Code::ConfigRange,
            "/0/name",
        ),
        (
            format!(r#""name":"a","sha256":"{}""#, &DIGEST[1..]),
            Code::ConfigRange,
            "/0/sha256",
        ),
        (
            r#""name":"a","sha256":1"#.to_owned(),
            Code::ConfigType,
            "/0/sha256",
        ),
        (
            format!(r#""name":"a",{digest},"groups":["a/b"]"#),
            Code::ConfigRange,
            "/0/groups/0",
        ),
        (
            format!(r#""name":"a",{digest},"groups":["x","x"]"#),
            Code::ConfigRange,
            "/0/groups/1",
        ),
        (
            format!(r#""name":"a",{digest},"not_after":"2027-01-01"#) + "\"",
            Code::ConfigRange,
            "/0/not_after",
        ),
        (
            format!(r#""name":"a",{digest},"client":"OpenAI""#),
            Code::ConfigRange,
            "/0/client",
        ),
        (
            format!(r#""name":"a",{digest},"group":[]"#),
            Code::ConfigUnknownKey,
            "/0/group",
        ),
    ] {
        let found = only(&with_key(&members));
        let place = format!("/identities/keys{place}");
        assert_eq!(
            (found.code, found.pointer.as_deref()),
            (code, Some(place.as_str())),
            "{members}"
        );
    }
    let upper = only(&with_key(&format!(
        r#""name":"a","sha256":"{}""#,
        DIGEST.to_uppercase()
    )));
    assert!(upper.remedy().contains("lower case"), "{upper}");
    let near = only(&with_key(&format!(r#""name":"a",{digest},"group":[]"#)));
    assert!(near.remedy().contains("`groups`"), "{near}");
}

#[test]
fn api_keys_with_one_name_or_one_digest_are_refused() {
    let key = |name: &str, digest: &str| format!(r#"{{"name":"{name}","sha256":"{digest}"}}"#);
    for (one, two) in [
        (key("a", DIGEST), key("a", OTHER)),
        (key("a", DIGEST), key("b", DIGEST)),
    ] {
        let found = only(&with(&format!(r#"{{"keys":[{one},{two}]}}"#)));
        assert_eq!(found.pointer.as_deref(), Some("/identities/keys/1"));
        assert!(found.message.contains("first at c.json:1:"), "{found}");
    }
}

#[test]
fn api_keys_are_at_most_4096() {
    let keys = |count: usize| {
        let keys = (0..count).map(|n| format!(r#"{{"name":"k{n}","sha256":"{n:064x}"}}"#));
        with(&format!(
            r#"{{"keys":[{}]}}"#,
            keys.collect::<Vec<_>>().join(",")
        ))
    };
    assert_eq!(parse(&keys(4096)).config.identities.keys.len(), 4096);
    let found = only(&keys(4097));
    assert_eq!(
        (found.code, found.pointer.as_deref()),
        (Code::ConfigRange, Some("/identities/keys"))
    );
}

#[test]
fn api_key_itself_is_refused_and_never_shown() {
    for (identities, place) in [
        (
            format!(r#"{{"keys":[{{"name":"a","sha256":"{RAW_KEY}"}}]}}"#),
            "/keys/0/sha256",
        ),
        (
            format!(r#"{{"keys":[{{"name":"{RAW_KEY}","sha256":"{DIGEST}"}}]}}"#),
            "/keys/0/name",
        ),
        (format!(r#"{{"keys":["{RAW_KEY}"]}}"#), "/keys/0"),
        (format!(r#"{{"keys":{{"{RAW_KEY}":1}}}}"#), "/keys"),
        (format!(r#"{{"{RAW_KEY}":[]}}"#), ""),
        (
            format!(r#"{{"keys_file":"x{}"}}"#, &RAW_KEY[..20]),
            "/keys_file",
        ),
        (
            format!(r#"{{"on_revoke":"{}"}}"#, RAW_KEY.to_uppercase()),
            "/on_revoke",
        ),
    ] {
        let found = refused(&with(&identities));
        assert_eq!(found.len(), 1, "{}", shown(&found));
        assert_eq!(found[0].code, Code::LiteralSecret);
        assert_eq!(
            found[0].pointer.as_deref(),
            Some(format!("/identities{place}").as_str())
        );
        let all = format!("{} {:?} {}", found[0], found[0], found[0].remedy()).to_lowercase();
        assert!(!all.contains("abcdefgh"), "{all}");
        assert!(all.contains("mcp-broker key new"), "{all}");
    }
    let usual = with_key(&format!(r#""name":"mbk_ci","sha256":"{DIGEST}""#));
    assert_eq!(parse(&usual).config.identities.keys.len(), 1);
}

#[test]
fn file_of_keys_is_read_like_the_config() {
    let text = format!(r#"{{"keys":[{{"name":"ci","sha256":"{DIGEST}","groups":["a"]}}]}}"#);
    let keys = parse_file("k.json", text.as_bytes()).unwrap();
    assert_eq!(keys[0].name, "ci");
    assert_eq!(
        groups_of_keys(&keys, "").next().unwrap().pointer,
        "/keys/0/groups/0"
    );
    assert_eq!(parse_file("k.json", br#"{"keys":[]}"#).unwrap(), []);
    for (text, code) in [
        ("", Code::ConfigShape),
        ("{}", Code::ConfigShape),
        ("[]", Code::ConfigType),
        ("{", Code::ConfigSyntax),
        (r#"{"keys":[],"issuers":[]}"#, Code::ConfigUnknownKey),
        (r#"{"keys":[{"name":"ci"}]}"#, Code::ConfigShape),
    ] {
        let found = parse_file("k.json", text.as_bytes()).unwrap_err();
        assert_eq!((found.len(), found[0].code), (1, code), "{text}");
        assert_eq!(found[0].file.as_deref(), Some("k.json"));
    }
    let raw = format!(r#"{{"keys":["{RAW_KEY}"]}}"#);
    let found = parse_file("k.json", raw.as_bytes()).unwrap_err();
    assert!(!shown(&found).contains(RAW_KEY) && found[0].code == Code::LiteralSecret);
}

#[test]
fn issuer_with_an_invalid_member_is_refused_at_its_place() {
    for (members, code, place) in [
        (r#","issuer":"idp""#, Code::UrlInvalid, "/issuer"),
        (r#","jwks":"find""#, Code::ConfigRange, "/jwks"),
        (
            r#","jwks":"http://idp.example/k""#,
            Code::UrlInvalid,
            "/jwks",
        ),
        (r#","subject":"""#, Code::ConfigRange, "/subject"),
        (
            r#","groups_claim":"g","map":{"a":["x y"]}"#,
            Code::ConfigRange,
            "/map/a/0",
        ),
        (r#","map":{"a":["x"]}"#, Code::ConfigShape, "/map"),
        (r#","claims":["a","a"]"#, Code::ConfigRange, "/claims/1"),
        (r#","leeway_s":301"#, Code::ConfigRange, "/leeway_s"),
        (r#","leeway_s":1.5"#, Code::ConfigRange, "/leeway_s"),
        (r#","require_typ":"JWT""#, Code::ConfigRange, "/require_typ"),
        (r#","issuers":[]"#, Code::ConfigUnknownKey, "/issuers"),
    ] {
        let found = refused(&with_issuer(members));
        let found: Vec<_> = found
            .iter()
            .filter(|d| d.code != Code::ConfigDupKey)
            .collect();
        let place = format!("/identities/issuers/0{place}");
        assert_eq!(found.len(), 1, "{members}");
        assert_eq!(
            (found[0].code, found[0].pointer.as_deref()),
            (code, Some(place.as_str())),
            "{members}"
        );
    }
    for (issuer, place) in [
        (
            r#"{"issuer":"https://i.example","audience":[],"algorithms":["RS256"]}"#,
            "/audience",
        ),
        (
            r#"{"issuer":"https://i.example","audience":["a"],"algorithms":[]}"#,
            "/algorithms",
        ),
        (r#"{"issuer":"https://i.example","audience":["a"]}"#, ""),
        (
            r#"{"issuer":"http://i.example","audience":["a"],"algorithms":["RS256"]}"#,
            "/issuer",
        ),
        (
            r#"{"issuer":"https://i.example?a","audience":["a"],"algorithms":["RS256"]}"#,
            "/issuer",
        ),
    ] {
        let found = only(&with(&format!(r#"{{"issuers":[{issuer}]}}"#)));
        assert_eq!(
            found.pointer,
            Some(format!("/identities/issuers/0{place}")),
            "{issuer}"
        );
    }
    let one = r#"{"issuer":"https://i.example","audience":["a"],"algorithms":["RS256"]}"#;
    let found = only(&with(&format!(r#"{{"issuers":[{one},{one}]}}"#)));
    assert_eq!(found.pointer.as_deref(), Some("/identities/issuers/1"));
}

#[test]
fn issuer_algorithms_are_those_with_a_public_key() {
    for (name, help) in [
        ("none", "without a signature"),
        ("HS256", "shared secret"),
        ("hs512", "shared secret"),
        ("RS255", "did you mean `RS256`?"),
        ("rs256", "did you mean `RS256`?"),
        ("XYZ", "known here: RS256"),
    ] {
        let issuer =
            format!(r#"{{"issuer":"https://i.example","audience":["a"],"algorithms":["{name}"]}}"#);
        let found = only(&with(&format!(r#"{{"issuers":[{issuer}]}}"#)));
        assert_eq!(found.code, Code::ConfigRange);
        assert!(found.remedy().contains(help), "{name}: {}", found.remedy());
    }
}

#[test]
fn public_url_is_an_identifier_that_is_kept_as_written() {
    let of = |url: &str| format!(r#"{{"tree":[],"public_url":"{url}"}}"#);
    for url in [
        "https://broker.example",
        "https://Broker.example/x/",
        "http://127.0.0.1:8100",
    ] {
        assert_eq!(parse(&of(url)).config.public_url.unwrap().as_str(), url);
    }
    for url in [
        "broker.example",
        "http://broker.example",
        "https://u@broker.example",
        "https://broker.example?a",
        "https://broker.example#a",
        "https://${HOST}",
    ] {
        let found = only(&of(url));
        assert_eq!(
            (found.code, found.pointer.as_deref()),
            (Code::UrlInvalid, Some("/public_url")),
            "{url}"
        );
    }
}

#[test]
fn trusted_proxies_are_addresses_and_networks() {
    let of = |proxy: &str| format!(r#"{{"tree":[],"trusted_proxies":["10.0.0.1","{proxy}"]}}"#);
    let proxies = parse(&of("192.0.2.0/24")).config.trusted_proxies;
    assert!(proxies[1].contains("192.0.2.9".parse().unwrap()));
    for (proxy, help) in [
        ("proxy", ""),
        ("10.0.0.1/8", "`10.0.0.0/8`"),
        ("::/0", "any address"),
    ] {
        let found = only(&of(proxy));
        assert_eq!(
            (found.code, found.pointer.as_deref()),
            (Code::ConfigRange, Some("/trusted_proxies/1"))
        );
        assert!(found.remedy().contains(help), "{found}");
    }
}

#[test]
fn base_path_of_the_public_url_is_without_the_route_of_clients() {
    for (url, expected) in [
        ("https://b.example", ""),
        ("https://b.example/", ""),
        ("https://b.example/mcp", ""),
        ("https://b.example/gateway/", "/gateway"),
        ("https://b.example/gateway/mcp", "/gateway"),
        ("https://b.example/a/b/mcp/direct/openai", "/a/b"),
        ("https://b.example/gateway/v1/mcp", "/gateway"),
        ("https://b.example/gateway/v1/ws/mcp", "/gateway"),
        ("https://b.example/gateway/sse", "/gateway"),
        ("https://b.example/gatewaymcp", "/gatewaymcp"),
    ] {
        let text = format!(r#"{{"tree":[],"public_url":"{url}"}}"#);
        let found = parse(&text).config.public_url;
        assert_eq!(found.unwrap().base_path(), expected, "{url}");
    }
}
