//! A server over HTTP gets its own credentials, and nothing of a caller's headers.

use harness::mcp_http::{McpSession, modern};
use harness::{HttpSources, HttpStage, Output, access, http_script, on_echo, request, wait_until};
use serde_json::{Value, json};

use super::rules;

const KEY: &str = "canary-key-5f0e\"quoted";
const QUERY: &str = "canary-query-91c2";
const TOKEN: &str = "canary-token-77ab";
const LITERAL: &str = "canary-literal-3d4e";

#[test]
fn headers_of_callers_reach_no_server() {
    for era in ["legacy", "modern"] {
        let stage = HttpStage::new(&http_script(era, &json!({})));
        let address = stage.broker.address();
        // Under rules of access, the caller has a credential that is valid, and only one.
        let key = format!("Bearer {}", access::KEY);
        let [authorization, api_key] = match access::is_on() {
            true => [key.as_str(); 2],
            false => ["Bearer canary-authorization", "canary-key"],
        };
        let canaries = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Cookie", "canary-cookie"),
            ("Authorization", authorization),
            ("Proxy-Authorization", "Basic canary-proxy"),
            ("X-Api-Key", api_key.trim_start_matches("Bearer ")),
            ("X-Forwarded-For", "canary-forwarded"),
            ("Traceparent", "canary-trace"),
            ("X-Request-Id", "canary-request"),
            ("Baggage", "canary-baggage"),
            ("Mcp-Param-X", "canary-param"),
            ("Last-Event-ID", "canary-event"),
        ];
        let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
        let called = request(address, "POST", "/meta_call", &canaries, body.as_bytes());
        assert_eq!(called.status, 200, "{}", called.text());
        let session = McpSession::begin(address, "/mcp");
        let params =
            json!({"name": "meta_call", "arguments": {"path": "/a/echo", "args": {"text": "y"}}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let mut headers = canaries.to_vec();
        headers.push(("Mcp-Session-Id", &session.id));
        let called = request(
            address,
            "POST",
            "/mcp",
            &headers,
            body.to_string().as_bytes(),
        );
        assert_eq!(called.status, 200, "{}", called.text());
        modern(address, "/mcp", &json!(2), "tools/call", &params);
        let journal = stage.chaos().raw_journal("a");
        assert_eq!(stage.chaos().executions("a", "y"), 2);
        for word in ["canary", access::KEY] {
            assert!(!journal.contains(word), "{journal}");
        }
        assert!(!journal.contains(&session.id), "the session of the caller");
    }
}

/// Servers whose source has a secret in a header, in the query of its URL, and as a token.
fn with_secrets(script: &Value) -> HttpSources {
    let sources = HttpSources::with(script, |config| {
        let source = &mut config["tree"][0]["source"];
        let url = source["url"].as_str().expect("a URL").to_owned();
        source["url"] = json!(format!("{url}?api_key=${{QUERY}}"));
        source["headers"] = json!({"X-Api-Key": "${KEY}", "X-Secret": LITERAL});
        source["auth"] = json!({"token_file": "token"});
    });
    sources.chaos.file("token", TOKEN);
    sources.variable("KEY", KEY).variable("QUERY", QUERY)
}

fn is_clean(what: &str, text: &str) {
    let escaped = json!(KEY).to_string();
    for canary in [
        KEY,
        escaped.trim_matches('"'),
        "canary-key",
        QUERY,
        TOKEN,
        LITERAL,
    ] {
        assert!(!text.contains(canary), "{what} has {canary}:\n{text}");
    }
}

fn all_clean(what: &str, output: &Output) {
    is_clean(what, &output.stdout);
    is_clean(what, &output.stderr);
}

/// Each text that a server can repeat, with all the secrets.
fn echoes() -> Vec<Value> {
    let say = format!("you sent {KEY} {QUERY} {TOKEN} {LITERAL} {}", json!(KEY));
    let error = json!({"code": -32050, "message": say, "data": {"say": say}});
    let in_header = format!("Bearer realm=\"{QUERY} {TOKEN} {LITERAL}\"");
    vec![
        json!({"status": 500, "body": say}),
        json!({"status": 400, "body": error}),
        json!({"body": error}),
        json!({"status": 302, "headers": {"Location": format!("https://{TOKEN}.{LITERAL}.example/{QUERY}")}}),
        json!({"status": 307, "headers": {"Location": format!("/{QUERY}?{TOKEN}#{LITERAL}")}}),
        json!({"headers": {"Content-Encoding": TOKEN}}),
        json!({"headers": {"Mcp-Session-Id": TOKEN}}),
        json!({"reply": "sse", "raw_before": format!("data: {TOKEN} {LITERAL}\n\n"), "cut": "event"}),
        json!({"execute": true, "body": say}),
        json!({"status": 429, "headers": {"Retry-After": TOKEN}, "body": say}),
        json!({"status": 404, "body": say}),
        json!({"status": 401, "headers": {"WWW-Authenticate": in_header}, "body": say}),
    ]
}

#[test]
fn secrets_of_a_source_over_http_are_in_no_reply_log_lock_or_catalog() {
    for era in ["legacy", "modern"] {
        let required = json!({"require_headers": {
            "X-Api-Key": KEY, "X-Secret": LITERAL, "Authorization": format!("Bearer {TOKEN}"),
        }});
        let script = http_script(era, &required);
        let sources = with_secrets(&script);
        all_clean("lock", &sources.lock());
        let lock = std::fs::read_to_string(sources.chaos.path().join("c.lock.json"));
        is_clean("the lock", &lock.expect("it was written"));
        all_clean("doctor", &sources.verb("doctor", &[]).output());
        all_clean("check", &sources.verb("check", &[]).output());
        let generated = sources.verb("generate", &["--out", "generated"]).output();
        assert_eq!(generated.code, Some(0), "{}", generated.stderr);
        let folder = std::fs::read_dir(sources.chaos.path().join("generated"));
        for file in folder.expect("the folder was written").flatten() {
            let bytes = std::fs::read(file.path()).unwrap_or_default();
            is_clean("the generated catalog", &String::from_utf8_lossy(&bytes));
        }
        let args = ["--log-level", "trace", "--log-format", "json"];
        let stage = sources.serve(&script, &args);
        assert_eq!(stage.echo("x").status, 200);
        let sent = stage.chaos().requests("a", &json!({"tool": "echo"}));
        assert_eq!(
            sent[0]["path"],
            format!("/mcp?api_key={QUERY}"),
            "the server gets it"
        );
        for fault in echoes() {
            stage.script(&rules(era, &[on_echo(&fault)]));
            is_clean(&fault.to_string(), &stage.echo("x").text());
            is_clean("sources", &stage.broker.get("/sources").text());
            is_clean("readyz", &stage.broker.get("/readyz").text());
            wait_until("the next fault can be sent", || {
                stage.state()["instances"][0]["next_attempt"].is_null()
            });
        }
        wait_until("the source has failed", || {
            stage.state()["state"] == "failed"
        });
        all_clean("doctor", &stage.sources.verb("doctor", &[]).output());
        let (_, log) = stage.broker.terminate();
        is_clean("the log", &log);
        assert!(log.contains("401"), "the log names the failure: {log}");
    }
}

#[test]
fn secrets_are_masked_in_what_lock_and_doctor_quote_of_a_server() {
    for fault in echoes() {
        let script = rules(
            "both",
            &[json!({"on": {"http_method": "POST"}, "do": fault})],
        );
        let sources = with_secrets(&script);
        let locked = sources.verb("lock", &[]).output();
        // A modern server has no sessions, so that the id has no effect.
        let is_ignored = fault["headers"]["Mcp-Session-Id"].is_string();
        assert_eq!(locked.code == Some(0), is_ignored, "{fault}");
        all_clean("lock", &locked);
    }
}

#[test]
fn values_with_line_ends_in_headers_or_urls_are_refused_before_any_request() {
    for (name, value) in [
        ("KEY", "a\r\nX-Injected: 1"),
        ("KEY", "a\nb"),
        ("KEY", "a\rb"),
        ("QUERY", "a\r\nX-Injected: 1"),
        ("QUERY", "a b"),
        ("QUERY", "a#b"),
    ] {
        let sources = with_secrets(&json!({})).variable(name, value);
        for verb in ["lock", "serve"] {
            let args: &[&str] = if verb == "serve" {
                &["127.0.0.1:0"]
            } else {
                &["--all-or-nothing"]
            };
            if verb == "serve" {
                let fine = with_secrets(&json!({}));
                fine.lock();
                let lock = std::fs::read(fine.chaos.path().join("c.lock.json"));
                std::fs::write(
                    sources.chaos.path().join("c.lock.json"),
                    lock.expect("a lock"),
                )
                .expect("it is written");
            }
            let refused = sources.verb(verb, args).output();
            assert_eq!(refused.code, Some(2), "{verb} {name}: {}", refused.stderr);
            assert!(!refused.stderr.contains("X-Injected"), "{}", refused.stderr);
        }
        let requests = sources.chaos.requests("a", &json!({}));
        assert_eq!(requests, [] as [Value; 0], "{name}");
    }
}
