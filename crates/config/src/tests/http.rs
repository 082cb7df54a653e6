//! Sources with a URL: their keys, secrets that are written out, and what digests cover.

use serde_json::{Value, json};

use super::*;
use crate::{Auth, TextDrift};

fn source(members: &Value) -> String {
    json!({"tree": [{"path": "/a", "source": members}]}).to_string()
}

fn config(members: &Value) -> Config {
    parse(&source(members)).config
}

#[track_caller]
fn code(members: &Value) -> (Code, String) {
    let found = only(&source(members));
    (found.code, found.pointer.unwrap())
}

#[test]
fn http_source_has_url_headers_and_auth() {
    let config = config(&json!({
        "url": "https://${HOST}/mcp", "headers": {"X-Team": "${TEAM}"}, "ca_file": "ca.pem",
        "auth": {"client_credentials": {"token_url": "https://id/token", "client_id": "c",
            "client_secret": "${SECRET}", "scope": "a b"}},
    }));
    let source = config.sources().next().unwrap();
    let http = source.endpoint.http().unwrap();
    assert_eq!(http.headers["X-Team"].raw(), "${TEAM}");
    assert!(
        matches!(&http.auth, Some(Auth::ClientCredentials(grant)) if grant.client_id.raw() == "c")
    );
    assert_eq!(
        config.variables().into_iter().collect::<Vec<_>>(),
        ["HOST", "SECRET", "TEAM"]
    );
    assert_eq!(config.text_drift(source), TextDrift::Withdraw);
}

#[test]
fn client_certificate_is_not_in_the_digest() {
    let plain = json!({"url": "https://h/"});
    let with_files = json!({"url": "https://h/", "client_cert": "${CERT}", "client_key": "c.key"});
    let configured = config(&with_files);
    let http = configured.sources().next().unwrap().endpoint.http();
    let files = http.unwrap().client_certificate.as_ref().unwrap();
    assert_eq!(
        [files.certificate.raw(), files.key.raw()],
        ["${CERT}", "c.key"]
    );
    assert_eq!(
        configured.variables().into_iter().collect::<Vec<_>>(),
        ["CERT"]
    );
    assert_eq!(configured.digest(), config(&plain).digest());
}

#[test]
fn http_source_with_a_wrong_key_is_refused_at_its_place() {
    for (members, code_, place) in [
        (json!({"url": "ftp://h/"}), Code::UrlInvalid, "/url"),
        (json!({"url": "https://u:p@h/"}), Code::UrlInvalid, "/url"),
        (json!({"url": "https://h/#x"}), Code::UrlInvalid, "/url"),
        (
            json!({"url": "https://h/", "headers": {"Host": "x"}}),
            Code::ConfigRange,
            "/headers/Host",
        ),
        (
            json!({"url": "https://h/", "headers": {"mcp-name": "x"}}),
            Code::ConfigRange,
            "/headers/mcp-name",
        ),
        (
            json!({"url": "https://h/", "headers": {"A": "x", "a": "y"}}),
            Code::ConfigRange,
            "/headers/a",
        ),
        (
            json!({"url": "https://h/", "headers": {"A b": "x"}}),
            Code::EnvSyntax,
            "/headers/A b",
        ),
        (
            json!({"url": "https://h/", "auth": {}}),
            Code::ConfigSourceKind,
            "/auth",
        ),
        (
            json!({"url": "https://h/", "auth": {"token_file": "a", "token_command": "b"}}),
            Code::ConfigSourceKind,
            "/auth",
        ),
        (
            json!({"url": "https://h/", "auth": {"token_file": "a"}, "headers": {"authorization": "b"}}),
            Code::ConfigSourceKind,
            "/headers/authorization",
        ),
        (
            json!({"url": "https://h/", "env": {"A": "b"}}),
            Code::ConfigSourceKind,
            "/env",
        ),
        (
            json!({"url": "https://h/", "args": ["b"]}),
            Code::ConfigSourceKind,
            "/args",
        ),
        (
            json!({"command": "x", "headers": {"A": "b"}}),
            Code::ConfigSourceKind,
            "/headers",
        ),
        (
            json!({"url": "https://h/", "client_cert": "c.pem"}),
            Code::ConfigSourceKind,
            "/client_cert",
        ),
        (
            json!({"url": "https://h/", "client_key": "c.key"}),
            Code::ConfigSourceKind,
            "/client_key",
        ),
        (
            json!({"command": "x", "allow_plain_http": true}),
            Code::ConfigSourceKind,
            "/allow_plain_http",
        ),
        (
            json!({"url": "http://h/", "headers": {"X-Api-Key": "abcd"}}),
            Code::PlainHttp,
            "/url",
        ),
        (
            json!({"url": "http://h/", "headers": {"X-Team": "${TEAM}"}}),
            Code::PlainHttp,
            "/url",
        ),
        (
            json!({"url": "http://h/", "auth": {"token_file": "a"}}),
            Code::PlainHttp,
            "/url",
        ),
        (
            json!({"url": "http://h/", "headers": {"privateKey": "abcd"}}),
            Code::PlainHttp,
            "/url",
        ),
        (
            json!({"url": "http://h/", "headers": {"X-Ctx": "sk-ant-0123456789abcdef"}}),
            Code::PlainHttp,
            "/url",
        ),
        (
            json!({"url": "http://h/?accessKey=abcd"}),
            Code::PlainHttp,
            "/url",
        ),
        (
            json!({"url": "https://h/", "auth": {"client_credentials": {
                "token_url": "http://id/", "client_id": "c", "client_secret": "${S}"}}}),
            Code::PlainHttp,
            "/auth/client_credentials/token_url",
        ),
    ] {
        let place = format!("/tree/0/source{place}");
        assert_eq!(code(&members), (code_, place), "{members}");
    }
}

#[test]
fn http_source_may_send_a_secret_to_this_machine_or_if_it_is_allowed() {
    for members in [
        json!({"url": "http://127.0.0.1:1/", "headers": {"X-Api-Key": "abcd"}}),
        json!({"url": "http://h/", "headers": {"X-Api-Key": "abcd"}, "allow_plain_http": true}),
        json!({"url": "http://h/?accessKey=abcd", "allow_plain_http": true}),
        json!({"url": "http://h/", "headers": {"X-Team": "blue"}}),
        json!({"url": "http://h/?team=blue&key="}),
        json!({"url": "https://h/", "auth": {"client_credentials": {
            "token_url": "http://localhost/", "client_id": "c", "client_secret": "${S}"}}}),
        json!({"url": "https://h/", "allow_plain_http": true, "auth": {"client_credentials": {
            "token_url": "http://id/", "client_id": "c", "client_secret": "${S}"}}}),
        json!({"url": "https://h/", "auth": {"token_command": "print-token"}, "env": {"A": "b"}}),
    ] {
        config(&members);
    }
}

/// A source with a literal secret at every place where one is recognised.
fn with_literals(secret: &str) -> Value {
    json!({
        "url": format!("https://h/mcp?api_key={secret}1&team=blue&accessKey={secret}2&privateKey={secret}3"),
        "headers": {
            "X-Api-Key": format!("{secret}4"), "authKey": format!("{secret}5"),
            "X-Ctx": format!("sk-ant-{secret}-6"), "X-Both": format!("${{PART}} sk-ant-{secret}-7"),
            "X-Default": format!("${{TEXT:-sk-ant-{secret}-8}}"), "X-Team": "blue",
        },
        "auth": {"client_credentials": {
            "token_url": format!("https://id/?tenant=t&apiKey={secret}9"), "client_id": "c",
            "client_secret": format!("{secret}0"),
        }},
    })
}

/// The URL in the lock, and what a `Debug` of the lock's fields and of the source shows.
fn lock_url(config: &Config) -> (Value, String) {
    let source = config.sources().next().unwrap();
    let settings = config.lock_settings(source);
    let broker_model::lock::EndpointSettings::Http(http) = &settings.endpoint else {
        panic!("a source with a URL");
    };
    (json!(http.url), format!("{settings:?} {source:?}"))
}

#[test]
fn http_secret_that_is_written_out_is_neither_compiled_in_nor_in_digest_and_lock() {
    let written = with_literals("canary-0123456789");
    let parsed = parse(&source(&written));
    let compiled = parsed.config.compiled_text();
    assert!(!compiled.contains("canary"), "{compiled}");
    for part in [
        "api_key=${API_KEY}&team=blue&accessKey=${ACCESSKEY}&privateKey=${PRIVATEKEY}",
        "tenant=t&apiKey=${APIKEY}",
        r#""X-Both":"${X_BOTH}""#,
        r#""X-Ctx":"${X_CTX}""#,
        r#""X-Default":"${TEXT}""#,
        r#""X-Team":"blue""#,
    ] {
        assert!(compiled.contains(part), "{part}: {compiled}");
    }
    let (_, warnings) = parsed.config.compiled();
    let found = places(&warnings);
    assert_eq!(found.len(), 10, "{warnings:?}");
    let token_url = "/tree/0/source/auth/client_credentials/token_url";
    assert!(found.contains(&(Code::LiteralSecret, token_url)));
    let again = parse(&compiled);
    assert_eq!(again.config.compiled().1, []);
    assert_eq!(again.config.digest(), parsed.config.digest());
    let (_, shown) = lock_url(&parsed.config);
    assert!(!shown.contains("canary"), "{shown}");
    for (old, new) in [("blue&", "red&"), ("tenant=t", "tenant=u")] {
        let other = written.to_string().replace(old, new);
        let other = config(&serde_json::from_str(&other).unwrap());
        assert_ne!(other.digest(), parsed.config.digest(), "{old}");
    }
}

#[test]
fn http_secret_of_another_value_changes_neither_digest_nor_lock() {
    let (one, other) = (config(&with_literals("one")), config(&with_literals("two")));
    assert_eq!(one.digest(), other.digest());
    assert_eq!(lock_url(&one), lock_url(&other));
    assert_eq!(
        lock_url(&one).0,
        json!("https://h/mcp?api_key=&team=blue&accessKey=&privateKey=")
    );
}

#[test]
fn http_secrets_in_the_queries_of_both_urls_are_masked() {
    let config = config(&with_literals("canary"));
    let source = config.sources().next().unwrap();
    assert_eq!(
        source.endpoint.http().unwrap().literal_query_secrets(),
        ["canary1", "canary2", "canary3", "canary9"]
    );
}
