//! A source over HTTP whose server stops to accept the token: the state of the source, and who reads what the server
//! says about the credentials.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use harness::mcp_http::McpSession;
use harness::{Broker, Chaos, Output, contains, request, wait_until, wait_within};
use serde_json::{Value, json};

const TOKEN: &str = "t0ken-of-the-file";
/// Text of the server about the credentials that it wants.
const REALM: &str = "c4nary-realm";
const ISSUER: &str = "https://c4nary-issuer.example/\u{1b}[31m";

/// An MCP server of an older revision with one tool. It accepts one token.
struct TokenServer {
    port: u16,
    accepted: Arc<Mutex<String>>,
}

impl TokenServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let accepted = Arc::new(Mutex::new(TOKEN.to_owned()));
        let of_server = accepted.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let accepted = of_server.clone();
                thread::spawn(move || serve(stream, &accepted));
            }
        });
        Self { port, accepted }
    }

    /// Accepts this token from now on, and no other.
    fn accept(&self, token: &str) {
        token.clone_into(&mut self.accepted.lock().expect("not poisoned"));
    }
}

/// Answers one request.
fn serve(stream: TcpStream, accepted: &Mutex<String>) {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while stream.read_line(&mut head).is_ok_and(|read| read > 2) {
        let line = head.lines().last().unwrap_or_default().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    let accepted = accepted.lock().expect("not poisoned").clone();
    let is_accepted = head.contains(&format!("Bearer {accepted}\r\n"));
    let challenge = format!("WWW-Authenticate: Bearer realm=\"{REALM}\"\r\n");
    let (status, header, body) = if head.starts_with("GET /.well-known/oauth-protected-resource ") {
        let document = json!({"authorization_servers": [ISSUER]});
        (200, "", document.to_string())
    } else if !is_accepted {
        (401, challenge.as_str(), String::new())
    } else if !head.starts_with("POST ") {
        (405, "", String::new())
    } else {
        match reply(&serde_json::from_slice(&body).expect("a message")) {
            Some(reply) => (200, "Content-Type: application/json\r\n", reply.to_string()),
            None => (202, "", String::new()),
        }
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} x\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // The broker may have left.
    let _ = stream.get_mut().write_all(answer.as_bytes());
}

/// The reply to a request; `None` for a notification.
fn reply(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tokens", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "look", "description": "Looks.", "inputSchema": {"type": "object"},
        }]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "seen"}]}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn verb(chaos: &Chaos, verb: &str, args: &[&str]) -> Output {
    let config = chaos.path().join("c.json");
    let config = config.to_str().expect("a path");
    let args = [&[verb, "--config", config], args].concat();
    chaos.run("broker-gen", &args).output()
}

#[test]
fn source_whose_token_is_revoked_fails_and_callers_read_no_word_of_the_server() {
    let (chaos, server) = (Chaos::new(), TokenServer::start());
    chaos.file("token", TOKEN);
    let source = json!({
        "url": format!("http://127.0.0.1:{}/mcp", server.port),
        "auth": {"token_file": "token"},
    });
    let config = json!({"tree": [{"path": "/a", "type": "node", "source": source}]});
    chaos.file("c.json", &config.to_string());
    let locked = verb(&chaos, "lock", &[]);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    let config = chaos.path().join("c.json");
    let args = ["serve", "--config", config.to_str().expect("a path"), "0"];
    let broker = Broker::start_ready(chaos.run("broker-gen", &args));
    let mut session = vec![McpSession::begin(broker.address(), "/mcp/direct")];
    assert_eq!(broker.call("/a/look", json!({})).status, 200);

    server.accept("another-token");
    let mut replies = vec![broker.call("/a/look", json!({})).text()];
    wait_until("the source has failed", || {
        broker.source("/a")["state"] == "failed"
    });
    assert_eq!(broker.source("/a")["cause"], "needs_auth");
    let refused = broker.call("/a/look", json!({}));
    assert_eq!(refused.json()["error"]["details"]["cause"], "needs_auth");
    replies.push(refused.text());
    for route in ["/sources", "/readyz"] {
        replies.push(broker.get(route).text());
    }
    session.push(McpSession::begin(broker.address(), "/mcp/meta"));
    let calls = [
        ("a-look", json!({})),
        ("meta_call", json!({"path": "/a/look", "args": {}})),
    ];
    for (session, (tool, arguments)) in session.iter().zip(calls) {
        let params = json!({"name": tool, "arguments": arguments});
        replies.push(session.ask(&json!(1), "tools/call", &params).text());
    }
    let status = chaos
        .run("mcp-broker", &["status", broker.address()])
        .output();
    contains(&status.stdout, &["needs_auth"]);
    replies.push(status.stdout);
    for reply in &replies {
        assert!(!reply.contains("c4nary"), "{reply}");
    }

    let challenge = "it asks for `Bearer realm=\"c4nary-realm\"` and names the authorization server `https://c4nary-issuer.example/\\u{1b}[31m`";
    // Without the layout for a terminal.
    let words_of = |text: &str| {
        let words = text.split_whitespace().filter(|word| *word != "|");
        words.collect::<Vec<_>>().join(" ")
    };
    wait_until("the log has the words of the server", || {
        broker.stderr().contains("c4nary-issuer")
    });
    let (doctor, lock) = (
        verb(&chaos, "doctor", &[]),
        verb(&chaos, "lock", &["--all-or-nothing"]),
    );
    assert_ne!((doctor.code, lock.code), (Some(0), Some(0)));
    contains(&words_of(&doctor.stdout), &["error[needs_auth]", challenge]);
    contains(&words_of(&lock.stderr), &["needs_auth", challenge]);
    let check = verb(&chaos, "check", &["--format", "json"]);
    contains(&check.stdout, &["needs_auth"]);
    assert!(!check.stdout.contains("c4nary"), "{}", check.stdout);
    let (_, log) = broker.terminate();
    for text in [&log, &doctor.stdout, &lock.stderr, &check.stderr] {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

#[test]
fn lock_without_a_token_names_the_file_and_needs_auth() {
    let (chaos, server) = (Chaos::new(), TokenServer::start());
    let source = json!({
        "url": format!("http://127.0.0.1:{}/mcp", server.port),
        "auth": {"token_file": "absent"},
    });
    let config = json!({"tree": [{"path": "/a", "type": "node", "source": source}]});
    chaos.file("c.json", &config.to_string());
    let locked = verb(&chaos, "lock", &[]);
    assert_ne!(locked.code, Some(0));
    contains(&locked.stderr, &["needs_auth: `token_file` `", "/absent`"]);
}

/// The server replaces its token. The broker gets the new one only after a call has shown that the old one is refused.
#[test]
fn source_starts_again_as_soon_as_there_is_another_token() {
    // At most one call in 60 s causes an attempt with the same token.
    const SOONER: Duration = Duration::from_secs(30);
    for auth in [
        json!({"token_file": "token"}),
        json!({"token_command": ["cat", "token"]}),
    ] {
        let (chaos, server) = (Chaos::new(), TokenServer::start());
        chaos.file("token", TOKEN);
        let url = format!("http://127.0.0.1:{}/mcp", server.port);
        let source = json!({"url": url, "auth": auth});
        let config = json!({"tree": [{"path": "/a", "type": "node", "source": source}]});
        chaos.file("c.json", &config.to_string());
        let locked = verb(&chaos, "lock", &[]);
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
        let config = chaos.path().join("c.json");
        let args = ["serve", "--config", config.to_str().expect("a path"), "0"];
        let broker = Broker::start_ready(chaos.run("broker-gen", &args));
        for token in ["second-token", "third-token"] {
            assert_eq!(broker.call("/a/look", json!({})).status, 200, "{auth}");
            server.accept(token);
            broker.call("/a/look", json!({}));
            wait_until("the source has failed", || {
                broker.source("/a")["state"] == "failed"
            });
            assert_eq!(broker.source("/a")["cause"], "needs_auth", "{auth}");
            chaos.file("token", token);
            wait_within(SOONER, "the source starts without a call", || {
                broker.source("/a")["state"] == "ready"
            });
        }
        broker.terminate();
    }
}

/// A reload that changes the headers is a new connection: it does not wait for the next attempt with the refused one.
#[test]
fn source_starts_again_after_a_reload_with_other_headers() {
    const SOONER: Duration = Duration::from_secs(30);
    let (chaos, server) = (Chaos::new(), TokenServer::start());
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let configure = |token: &str| {
        let headers = json!({"Authorization": format!("Bearer {token}")});
        let source = json!({"url": url, "headers": headers});
        let config = json!({"tree": [{"path": "/a", "type": "node", "source": source}]});
        chaos.file("c.json", &config.to_string());
    };
    configure(TOKEN);
    let locked = verb(&chaos, "lock", &[]);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    let config = chaos.path().join("c.json");
    let args = ["serve", "--config", config.to_str().expect("a path"), "0"];
    let broker = Broker::start_ready(chaos.run("broker-gen", &args));
    server.accept("second-token");
    broker.call("/a/look", json!({}));
    wait_until("the source has failed", || {
        broker.source("/a")["state"] == "failed"
    });
    assert_eq!(broker.source("/a")["cause"], "needs_auth");
    configure("second-token");
    broker.signal("HUP");
    wait_within(SOONER, "the source starts without a call", || {
        broker.source("/a")["state"] == "ready"
    });
    assert_eq!(broker.call("/a/look", json!({})).status, 200);
}

/// A token of `https://idp.invalid` for the audience `a`, which does not expire soon; its signature is zeros.
const CALLER_TOKEN: &str = "eyJhbGciOiAiRVMyNTYiLCAidHlwIjogImF0K2p3dCIsICJraWQiOiAiayJ9.eyJpc3MiOiAiaHR0cHM6Ly9pZHAuaW52YWxpZCIsICJhdWQiOiAiYSIsICJzdWIiOiAicyIsICJleHAiOiA0MDAwMDAwMDAwfQ.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

#[test]
fn key_set_whose_proxy_cannot_be_used_is_not_fetched_and_names_the_variable() {
    let (chaos, server) = (Chaos::new(), TokenServer::start());
    chaos.file("token", TOKEN);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let source = json!({"url": url, "auth": {"token_file": "token"}});
    let issuer =
        json!({"issuer": "https://idp.invalid", "audience": ["a"], "algorithms": ["ES256"]});
    let config = json!({
        "tree": [{"path": "/a", "type": "node", "source": source}],
        "identities": {"issuers": [issuer]},
    });
    chaos.file("c.json", &config.to_string());
    let locked = verb(&chaos, "lock", &[]);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    let config = chaos.path().join("c.json");
    let args = ["serve", "--config", config.to_str().expect("a path"), "0"];
    let run = chaos.run("broker-gen", &args);
    let broker = Broker::start_ready(run.env("HTTPS_PROXY", "socks4://127.0.0.1:1"));
    let bearer = format!("Bearer {CALLER_TOKEN}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", &bearer),
    ];
    let reply = request(
        broker.address(),
        "POST",
        "/meta_tree",
        &headers,
        br#"{"path":"/"}"#,
    );
    assert_eq!(reply.status, 503, "{}", reply.text());
    contains(
        &broker.stderr(),
        &["`HTTPS_PROXY` does not name a proxy that can be used"],
    );
}
