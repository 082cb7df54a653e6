//! Proxies of the environment: which servers are asked through them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use harness::Bench;
use serde_json::json;

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
