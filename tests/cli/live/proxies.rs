//! Proxies of the environment: which servers are asked through them.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use harness::{Bench, Chaos, ChaosServer, Output, contains, http_script};
use serde_json::{Value, json};

/// A proxy that refuses every request; returns its URL and the request lines that it gets.
fn proxy() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut line = String::new();
            let mut reader = BufReader::new(&client);
            if reader.read_line(&mut line).is_err() || sender.send(line).is_err() {
                return;
            }
            // The client may have closed the connection.
            let refusal =
                "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = (&client).write_all(refusal.as_bytes());
        }
    });
    (format!("http://{address}"), lines)
}

/// The request lines that a proxy gets when this URL is locked.
fn asked(url: &str) -> Vec<String> {
    let bench = Bench::new();
    let source = json!({"url": url, "startup_timeout": 10});
    let config = json!({"tree": [{"path": "/a", "type": "node", "source": source}]});
    bench.write("c.json", &config.to_string());
    let (proxy, lines) = proxy();
    let variables = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    let variables = variables.map(|name| (name, proxy.as_str()));
    let locked = bench.run_with_env(&["lock", "--config", "c.json"], &variables);
    assert_ne!(locked.code, Some(0), "{}", locked.stderr);
    lines.try_iter().collect()
}

#[test]
fn server_on_another_machine_is_asked_through_the_proxy() {
    let plain = asked("http://server.example/mcp");
    assert!(
        plain[0].starts_with("POST http://server.example/mcp HTTP/1.1"),
        "{plain:?}"
    );
    let tls = asked("https://server.example/mcp");
    assert!(
        tls[0].starts_with("CONNECT server.example:443 HTTP/1.1"),
        "{tls:?}"
    );
}

#[test]
fn server_on_this_machine_is_asked_without_a_proxy() {
    // A port at which nothing listens.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it has an address").port();
    drop(listener);
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let lines = asked(&format!("http://{host}:{port}/mcp"));
        assert_eq!(lines, [] as [String; 0], "{host}");
    }
}

/// Locks a source with these members, in this environment.
fn locked(source: &Value, variables: &[(&str, &str)]) -> Output {
    let bench = Bench::new();
    let mut source = source.clone();
    source["startup_timeout"] = json!(10);
    let config = json!({"tree": [{"path": "/a", "type": "node", "source": source}]});
    bench.write("c.json", &config.to_string());
    bench.run_with_env(&["lock", "--once", "--config", "c.json"], variables)
}

#[test]
fn server_that_no_proxy_names_with_a_pattern_a_port_or_a_network_gets_no_proxy() {
    for (host, exception) in [
        ("mcp.corp.invalid", "*.corp.invalid"),
        ("mcp.corp.invalid", "mcp.corp.invalid:80"),
        ("mcp.corp.invalid", "other.invalid, .corp.invalid"),
        ("127.1.2.3:1", "127.0.0.0/8"),
    ] {
        let (proxy, lines) = proxy();
        let source = json!({"url": format!("http://{host}/mcp")});
        let variables = [("HTTP_PROXY", proxy.as_str()), ("NO_PROXY", exception)];
        let locked = locked(&source, &variables);
        assert_ne!(locked.code, Some(0), "{}", locked.stderr);
        let lines: Vec<_> = lines.try_iter().collect();
        assert_eq!(lines, [] as [String; 0], "{exception}");
    }
}

/// A SOCKS5 proxy that connects every client to the server at `to`; returns its address and the names that it is asked
/// for.
fn socks_proxy(to: &str) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    let (sender, names) = mpsc::channel();
    let to = to.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (sender, to) = (sender.clone(), to.clone());
            thread::spawn(move || serve_socks(client, &to, &sender));
        }
    });
    (address.to_string(), names)
}

fn serve_socks(mut client: TcpStream, to: &str, names: &mpsc::Sender<String>) -> io::Result<()> {
    let mut greeting = [0; 2];
    client.read_exact(&mut greeting)?;
    client.read_exact(&mut vec![0; greeting[1].into()])?;
    client.write_all(&[5, 0])?;
    let mut head = [0; 5];
    client.read_exact(&mut head)?;
    // Anything but a name is an address of four bytes, whose first one was read.
    let length = if head[3] == 3 { head[4].into() } else { 3 };
    let mut rest = vec![0; length + 2];
    client.read_exact(&mut rest)?;
    let port = u16::from_be_bytes([rest[length], rest[length + 1]]);
    let name = String::from_utf8_lossy(&rest[..length]).into_owned();
    // The test may have ended.
    let _ = names.send(format!("{name}:{port}"));
    let server = TcpStream::connect(to)?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from_client, &mut to_server));
    io::copy(&mut &server, &mut client)?;
    Ok(())
}

/// A server of MCP with one tool that takes every `Host`; returns its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // A client that leaves needs no answer.
            let _ = answer(&client);
        }
    });
    address.to_string()
}

/// Answers one request.
fn answer(client: &TcpStream) -> io::Result<()> {
    let (mut reader, mut head, mut length) = (BufReader::new(client), String::new(), 0);
    while reader.read_line(&mut head)? > 2 {
        let line = head.lines().last().unwrap_or_default().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"result": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }}),
        Some("tools/list") => json!({"result": {"tools": [
            {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}},
        ]}}),
        _ => json!({"error": {"code": -32601, "message": "no such method"}}),
    };
    let mut reply = json!({"jsonrpc": "2.0", "id": message["id"]});
    for (name, value) in result.as_object().expect("an object") {
        reply[name] = value.clone();
    }
    let (status, body) = match (head.starts_with("POST "), message.get("id")) {
        (false, _) => (405, String::new()),
        (true, None) => (202, String::new()),
        (true, Some(_)) => (200, reply.to_string()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (&mut &*client).write_all((head + &body).as_bytes())
}

#[test]
fn server_that_only_a_socks_proxy_can_look_up_is_locked_through_it() {
    let (proxy, names) = socks_proxy(&server());
    let source = json!({"url": "http://mcp.corp.invalid/mcp"});
    let by_name = format!("socks5h://{proxy}");
    let fine = locked(&source, &[("ALL_PROXY", &by_name)]);
    assert_eq!(fine.code, Some(0), "{}", fine.stderr);
    let names: Vec<_> = names.try_iter().collect();
    assert!(!names.is_empty());
    assert!(
        names.iter().all(|name| name == "mcp.corp.invalid:80"),
        "{names:?}"
    );

    let by_address = format!("socks5://{proxy}");
    let unknown = locked(&source, &[("ALL_PROXY", &by_address)]);
    assert_ne!(unknown.code, Some(0));
    let parts = [
        "the proxy of `ALL_PROXY` failed",
        "with `socks5h://` the proxy looks it up",
    ];
    contains(&words(&unknown.stderr), &parts);
}

/// The words of a text without its layout.
fn words(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| *word != "|");
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn source_whose_proxy_cannot_be_used_fails_and_names_the_variable() {
    // A server on this machine: only the token endpoint would use the proxy.
    let chaos = Chaos::new();
    chaos.script("s", &http_script("both", &json!({})));
    let server = ChaosServer::start(&chaos, "s");
    let grant = json!({
        "token_url": "https://login.invalid/token", "client_id": "a", "client_secret": "b",
    });
    let far = json!({"url": "http://mcp.corp.invalid/mcp"});
    let with_token = json!({"url": server.url, "auth": {"client_credentials": grant}});
    for (source, variable, value) in [
        (&far, "ALL_PROXY", "socks://canary@127.0.0.1:1"),
        (&far, "http_proxy", "ftp://canary@127.0.0.1:1"),
        (&far, "HTTP_PROXY", "http://127.0.0.1:canary"),
        (&with_token, "HTTPS_PROXY", "socks://127.0.0.1:1"),
    ] {
        let refused = locked(source, &[(variable, value)]);
        assert_ne!(refused.code, Some(0));
        let named = format!("`{variable}` does not name a proxy that can be used");
        let text = words(&refused.stderr);
        contains(
            &text,
            &["proxy_invalid", &named, "`socks5h` in place of `http`"],
        );
        assert!(!text.contains("canary"), "{text}");
    }
    assert_eq!(chaos.requests("s", &json!({})), [] as [Value; 0]);
    // No source would use it.
    let near = json!({"url": server.url});
    let fine = locked(&near, &[("ALL_PROXY", "socks://127.0.0.1:1")]);
    assert_eq!(fine.code, Some(0), "{}", fine.stderr);
}

#[test]
fn endpoint_of_embeddings_whose_proxy_cannot_be_used_is_not_asked_and_names_the_variable() {
    let chaos = Chaos::new();
    chaos.script("s", &http_script("both", &json!({})));
    let server = ChaosServer::start(&chaos, "s");
    let bench = Bench::new();
    let config = json!({
        "search": {"embedder": "OPENAI", "openai_model": "m"},
        "tree": [{"path": "/a", "type": "node", "source": {"url": server.url}}],
    });
    bench.write("c.json", &config.to_string());
    let variables = [
        ("OPENAI_BASE_URL", "https://embed.invalid/v1"),
        ("OPENAI_API_KEY", "sk-canary"),
        ("HTTPS_PROXY", "socks://canary@127.0.0.1:1"),
    ];
    let refused = bench.run_with_env(&["lock", "--once", "--config", "c.json"], &variables);
    assert_ne!(refused.code, Some(0));
    let text = words(&refused.stderr);
    contains(
        &text,
        &["`HTTPS_PROXY` does not name a proxy that can be used"],
    );
    assert!(!text.contains("canary"), "{text}");
}
