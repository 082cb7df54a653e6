//! `mcpServers` files as other clients write them.

use super::*;
use crate::Backend;

#[test]
fn mcp_servers_file_is_accepted_as_a_config() {
    let parsed = parse(
        r#"{"globalShortcut":"x","mcpServers":{
             "my server":{"type":"stdio","command":"npx -y","args":["a b","$HOME","${DIR}"],"env":{"K":"v"},
               "autoApprove":[],"disabled":false,"description":"d","tool_filter":["get_*"],"timeout":30},
             "off":{"url":"http://x","disabled":true},
             "off2":{"url":"http://x","enabled":false}}}"#,
    );
    let config = parsed.config;
    let sources: Vec<_> = config.sources().collect();
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].path.as_str(), "/my-server");
    // The program itself: neither split nor run by a shell.
    assert_eq!(
        words(&sources[0].process().unwrap().command),
        ["npx -y", "a b", "$HOME", "${DIR}"]
    );
    assert!(!sources[0].exposure.exposes("put"));
    assert_eq!(sources[0].timeout.as_secs(), 30);
    assert!(parsed.warnings.iter().all(|w| w.code == Code::KeyIgnored));
    let keys: Vec<_> = parsed
        .warnings
        .iter()
        .map(|w| w.pointer.as_deref().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "/mcpServers/my server/autoApprove",
            "/mcpServers/my server/description",
            "/mcpServers/off",
            "/mcpServers/off2",
        ]
    );
}

/// The paths of servers, in the order of the file, and the warnings.
fn paths(names: &[&str]) -> (Vec<String>, Vec<Diagnostic>) {
    let entries: Vec<String> = names
        .iter()
        .map(|name| format!(r#"{}:{{"command":"x"}}"#, serde_json::json!(name)))
        .collect();
    let parsed = parse(&format!(r#"{{"mcpServers":{{{}}}}}"#, entries.join(",")));
    let sources = parsed.config.sources();
    let paths = sources.map(|source| source.path.as_str().to_owned());
    (paths.collect(), parsed.warnings)
}

#[test]
fn server_names_with_one_path_get_paths_with_a_hash() {
    let (found, warnings) = paths(&["a b", "a/b", "c d"]);
    // printf 'a b' | sha256sum
    assert_eq!(found, ["/a_b-c8687a08", "/a_b-c14cddc0", "/c-d"]);
    assert_eq!(places(&warnings), [(Code::NameClash, "/mcpServers/a~1b")]);
    assert!(!warnings[0].is_error());
    assert!(
        warnings[0]
            .message
            .contains("`a b` and `a/b` would both have the path `/a-b`"),
        "{}",
        warnings[0].message
    );
    // A path that is derived from one name and is another name belongs to neither.
    let (found, _) = paths(&["a b", "a-b"]);
    assert!(found.iter().all(|path| path != "/a-b"), "{found:?}");
}

#[test]
fn server_name_outside_the_grammar_has_a_path() {
    let long = "n".repeat(129);
    for (name, path) in [
        ("", "/-e3b0c442"),
        (".", "/.-"),
        ("..", "/..-"),
        (&long, "/nnnn"),
        ("Büro 2", "/B-ro-2"),
        ("@a/b", "/-a-b"),
    ] {
        let (found, warnings) = paths(&[name]);
        assert!(found[0].starts_with(path), "{name}: {found:?}");
        assert_eq!(warnings, [], "{name}");
    }
}

#[test]
fn server_key_similar_to_a_known_one_is_refused() {
    let found = refused(
        r#"{"mcpServers":{"a":{"command":"x","argz":[],"toolFilter":["x"],"whatever":1}}}"#,
    );
    assert_eq!(
        places(&found),
        [
            (Code::ConfigUnknownKey, "/mcpServers/a/argz"),
            (Code::ConfigUnknownKey, "/mcpServers/a/toolFilter"),
            (Code::KeyIgnored, "/mcpServers/a/whatever"),
        ]
    );
    assert_eq!(
        found[1].help.as_deref(),
        Some("did you mean `tool_filter`?")
    );
}

#[test]
fn server_key_of_another_client_is_ignored_with_a_warning() {
    for key in crate::keys::FOREIGN {
        let text = format!(r#"{{"mcpServers":{{"a":{{"command":"x","{key}":{{"b":"c"}}}}}}}}"#);
        let place = format!("/mcpServers/a/{key}");
        let warnings = parse(&text).warnings;
        assert_eq!(places(&warnings), [(Code::KeyIgnored, place.as_str())]);
    }
    // The keys that the import of such files knows.
    for key in [
        "alwaysAllow",
        "args",
        "auth",
        "authProviderType",
        "autoApprove",
        "bearer_token",
        "bearer_token_env_var",
        "chatEnabled",
        "cwd",
        "default_tools_approval_mode",
        "dev",
        "disabled",
        "enabled",
        "env",
        "envFile",
        "env_file",
        "env_http_headers",
        "env_vars",
        "headers",
        "headersHelper",
        "httpUrl",
        "http_headers",
        "inherit_env",
        "oauth",
        "oauth_resource",
        "scopes",
        "serverUrl",
        "source",
        "transport",
        "transportType",
        "trust",
        "type",
        "watchPaths",
    ] {
        for endpoint in ["command", "url"] {
            let text = format!(r#"{{"mcpServers":{{"a":{{"{endpoint}":"x","{key}":null}}}}}}"#);
            let found = Config::parse("c.json", text.as_bytes());
            let found = found.map_or_else(|found| found, |parsed| parsed.warnings);
            assert!(
                found.iter().all(|one| one.code != Code::ConfigUnknownKey),
                "{key}: {}",
                shown(&found)
            );
        }
    }
    for key in ["headersHelper", "requestInit", "authorization_token"] {
        let text = format!(r#"{{"mcpServers":{{"a":{{"url":"https://h","{key}":"b"}}}}}}"#);
        let warning = &parse(&text).warnings[0];
        assert!(warning.remedy().contains("`auth`"), "{warning}");
    }
}

#[test]
fn server_with_an_empty_list_for_the_other_kind_is_accepted() {
    for (entry, backend) in [
        (
            r#"{"type":"sse","url":"https://h/sse","env":{},"args":[]}"#,
            Backend::Http,
        ),
        (r#"{"command":"x","headers":{}}"#, Backend::Stdio),
    ] {
        for key in ["mcpServers", "servers"] {
            let parsed = parse(&format!(r#"{{"{key}":{{"a":{entry}}}}}"#));
            assert_eq!(parsed.warnings, [], "{entry}");
            let source = parsed.config.sources().next().unwrap();
            assert_eq!(source.backend(), backend, "{entry}");
            let compiled = parse(&parsed.config.compiled_text()).config;
            assert_eq!(compiled.digest(), parsed.config.digest());
        }
    }
    for (entry, key) in [
        (r#"{"url":"https://h","env":{"A":"b"}}"#, "env"),
        (r#"{"url":"https://h","args":["b"]}"#, "args"),
        (r#"{"command":"x","headers":{"A":"b"}}"#, "headers"),
    ] {
        let found = only(&format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#));
        let place = format!("/mcpServers/a/{key}");
        assert_eq!(places(&[found]), [(Code::ConfigSourceKind, place.as_str())]);
    }
    // In a tree the keys are the broker's.
    let found = only(r#"{"tree":[{"path":"/a","source":{"url":"https://h","args":[]}}]}"#);
    assert_eq!(found.code, Code::ConfigSourceKind);
}

#[test]
fn server_with_several_urls_has_the_first_as_in_gemini_cli() {
    for (entry, url, ignored) in [
        (
            r#"{"url":"https://b/","httpUrl":"https://a/"}"#,
            "https://a/",
            &["url"][..],
        ),
        (
            r#"{"serverUrl":"https://b/","url":"https://a/"}"#,
            "https://a/",
            &["serverUrl"],
        ),
        (
            r#"{"serverUrl":"https://c/","url":"https://b/","httpUrl":"https://a/"}"#,
            "https://a/",
            &["serverUrl", "url"],
        ),
    ] {
        let parsed = parse(&format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#));
        let place = |key: &&str| (Code::KeyIgnored, format!("/mcpServers/a/{key}"));
        let expected: Vec<_> = ignored.iter().map(place).collect();
        let found = places(&parsed.warnings).into_iter();
        let found: Vec<_> = found.map(|(code, at)| (code, at.to_owned())).collect();
        assert_eq!(found, expected, "{entry}");
        let compiled = parse(&parsed.config.compiled_text());
        assert_eq!(compiled.warnings, []);
        for config in [&parsed.config, &compiled.config] {
            let source = config.sources().next().unwrap();
            assert_eq!(source.endpoint.http().unwrap().url.raw(), url, "{entry}");
        }
    }
}

#[test]
fn server_variables_of_editors_are_rewritten() {
    let parsed = parse(
        r#"{"mcpServers":{
            "a":{"command":"${userHome}/x","args":["${env:A}${/}b","${workspaceFolder}"],"env":{"K":"${env:K}"},"envFile":".env"},
            "b":{"serverUrl":"https://h/","headers":{"Authorization":"Bearer ${env:TOKEN}"}}}}"#,
    );
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/mcpServers/a/envFile")]
    );
    let sources: Vec<_> = parsed.config.sources().collect();
    let process = sources[0].process().unwrap();
    assert_eq!(
        words(&process.command),
        ["${HOME}/x", "${A}/b", "${workspaceFolder}"]
    );
    assert_eq!(process.env["K"].raw(), "${K}");
    let http = sources[1].endpoint.http().unwrap();
    assert_eq!(http.headers["Authorization"].raw(), "Bearer ${TOKEN}");
    let compiled = parse(&parsed.config.compiled_text()).config;
    assert_eq!(compiled.digest(), parsed.config.digest());
    let found = refused(
        r#"{"mcpServers":{"a":{"command":"x","args":["${input:api-key}","${config:a.b}","${X:3}"]}}}"#,
    );
    assert_eq!(
        places(&found),
        [
            (Code::EnvSyntax, "/mcpServers/a/args/0"),
            (Code::EnvSyntax, "/mcpServers/a/args/1"),
            (Code::EnvSyntax, "/mcpServers/a/args/2"),
        ]
    );
    assert!(found[0].remedy().contains("${API_KEY}"), "{}", found[0]);
    // A config of the broker has only its own variables.
    let found = only(&with_source(r#""env":{"K":"${env:K}"}"#));
    assert_eq!(found.code, Code::EnvSyntax);
}

#[test]
fn server_type_is_read_as_the_backend() {
    for entry in [
        r#"{"type":"http","url":"http://x"}"#,
        r#"{"type":"sse","url":"http://x"}"#,
        r#"{"type":"streamable-http","url":"http://x"}"#,
        r#"{"url":"http://x"}"#,
    ] {
        let config = parse(&format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#)).config;
        let source = config.sources().next().unwrap();
        assert_eq!(source.backend(), Backend::Http, "{entry}");
    }
    for entry in [
        r#"{"type":"http","command":"x"}"#,
        r#"{"type":"stdio","backend":"http","command":"x"}"#,
        "{}",
    ] {
        let found = only(&format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#));
        assert_eq!(found.code, Code::ConfigSourceKind, "{entry}");
    }
}

#[test]
fn server_timeout_above_an_hour_is_used_with_a_warning() {
    let parsed = parse(
        r#"{"mcpServers":{"a":{"command":"x","timeout":60000},"b":{"command":"x","timeout":3600}}}"#,
    );
    assert_eq!(
        places(&parsed.warnings),
        [(Code::TimeoutUnit, "/mcpServers/a/timeout")]
    );
    let warning = &parsed.warnings[0];
    assert_eq!(
        warning.message,
        "`timeout` is in seconds: 60000 seconds are 16 h 40 min"
    );
    assert!(warning.remedy().contains("write `60`"), "{warning}");
    let sources: Vec<_> = parsed
        .config
        .sources()
        .map(|one| one.timeout.as_secs())
        .collect();
    assert_eq!(sources, [60_000, 3_600]);
    // The broker's config form counts seconds, which its operator knows.
    assert_eq!(parse(&with_source(r#""timeout":60000"#)).warnings, []);
}

#[test]
fn server_url_of_another_client_is_read_and_compiled_in_as_url() {
    for key in ["url", "serverUrl", "httpUrl"] {
        let text =
            format!(r#"{{"mcpServers":{{"a":{{"{key}":"https://h/mcp","auth":"oauth"}}}}}}"#);
        let parsed = parse(&text);
        assert_eq!(
            places(&parsed.warnings),
            [(Code::KeyIgnored, "/mcpServers/a/auth")]
        );
        let url = |config: &Config| {
            let source = config.sources().next().unwrap();
            source.endpoint.http().unwrap().url.raw().to_owned()
        };
        assert_eq!(url(&parsed.config), "https://h/mcp", "{key}");
        let compiled = parsed.config.compiled_text();
        assert!(!compiled.contains("oauth"), "{compiled}");
        let again = parse(&compiled).config;
        assert_eq!(url(&again), "https://h/mcp");
        assert_eq!(again.digest(), parsed.config.digest());
    }
    let parsed = parse(r#"{"mcpServers":{"a":{"command":"x","serverUrl":"https://h"}}}"#);
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/mcpServers/a/serverUrl")]
    );
}

#[test]
fn server_timeout_in_milliseconds_is_ignored_with_a_warning() {
    let parsed = parse(r#"{"mcpServers":{"a":{"command":"x","timeout":300000}}}"#);
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/mcpServers/a/timeout")]
    );
    assert_eq!(
        parsed.config.sources().next().unwrap().timeout.as_secs(),
        60
    );
    let found = only(r#"{"mcpServers":{"a":{"command":"x","timeout":-1}}}"#);
    assert_eq!(found.code, Code::ConfigRange);
}

/// The forms of a key with one mistake of a finger: a character left out or written twice, and two exchanged.
fn typos(key: &str) -> Vec<String> {
    let letters: Vec<char> = key.chars().collect();
    let mut found = Vec::new();
    for at in 0..letters.len() {
        let (before, after) = (&letters[..at], &letters[at + 1..]);
        let parts = |middle: &[char]| [before, middle, after].concat();
        found.push(parts(&[]));
        found.push(parts(&[letters[at], letters[at]]));
        if let Some((next, rest)) = after.split_first() {
            found.push([before, &[*next, letters[at]], rest].concat());
        }
    }
    let texts = found.into_iter().map(String::from_iter);
    texts.filter(|typo| typo != key).collect()
}

#[test]
fn server_key_with_one_mistake_is_refused() {
    let level = crate::keys::Level::Source;
    let mut accepted = Vec::new();
    for typo in level.keys().iter().flat_map(|key| typos(key)) {
        // `type` is a key of other clients.
        let is_known = level.keys().contains(&typo.as_str()) || typo == "type";
        if !is_known && crate::keys::nearest(&typo, level).is_none() {
            accepted.push(typo);
        }
    }
    assert_eq!(accepted, [""; 0]);
    let found = refused(r#"{"mcpServers":{"a":{"command":"x","evn":{"A":"b"},"cdw":"/"}}}"#);
    assert_eq!(
        places(&found),
        [
            (Code::ConfigUnknownKey, "/mcpServers/a/evn"),
            (Code::ConfigUnknownKey, "/mcpServers/a/cdw"),
        ]
    );
}
