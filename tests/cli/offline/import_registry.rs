//! `import` of the entry of a registry, from a file, standard input and a local stand-in for a registry.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use harness::{Bench, Output, assert_inert, contains, on_terminal};
use serde_json::{Value, json};

/// A registry that answers one request; the receiver gets its first line.
fn registry(status: &'static str, body: String) -> (String, Receiver<String>) {
    slow_registry(status, body, Duration::ZERO)
}

/// A registry that answers after a time.
fn slow_registry(
    status: &'static str,
    body: String,
    delay: Duration,
) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request comes");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let line = head.lines().next().unwrap_or_default().to_owned();
        let length = body.len();
        // The time itself is what the client has to wait for.
        thread::sleep(delay);
        // The client may close before it has read a body that is too long.
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let _ = sender.send(line);
    });
    (format!("http://{address}"), receiver)
}

fn entry(name: &str, version: &str) -> Value {
    json!({
        "$schema": "https://example.org/server.schema.json",
        "name": name, "description": "Tools\u{202e}.", "version": version,
        "packages": [{
            "registryType": "npm", "identifier": "@x/tools", "version": version, "transport": {"type": "stdio"},
            "environmentVariables": [{"name": "API_TOKEN", "isRequired": true, "isSecret": true}],
        }],
        "remotes": [{"type": "streamable-http", "url": "https://example.org/mcp"}],
    })
}

fn import(bench: &Bench, args: &[&str], input: &str) -> Output {
    let output = bench.run_with_input(&[&["import"][..], args].concat(), input);
    assert_inert("stdout", &output.stdout);
    assert_inert("stderr", &output.stderr);
    output
}

#[test]
fn entry_of_a_registry_becomes_a_config_with_the_exact_version() {
    let bench = Bench::new();
    let text = entry("io.example/tools", "1.2.3").to_string();
    bench.write("server.json", &text);
    let answer = json!({"server": entry("io.example/tools", "1.2.3"), "_meta": {}}).to_string();
    let (url, asked) = registry("200 OK", answer);
    let of_registry = [
        "registry:io.example/tools@1.2.3",
        "--registry",
        url.as_str(),
    ];
    for (args, input) in [
        (&["server.json"][..], ""),
        (&["-"], text.as_str()),
        (&of_registry, ""),
    ] {
        let output = import(&bench, args, input);
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
        let config: Value = serde_json::from_str(&output.stdout).expect("a config");
        let node = &config["tree"][0];
        assert_eq!(node["path"], "/tools");
        assert_eq!(
            node["source"],
            json!({"command": "npx", "args": ["-y", "@x/tools@1.2.3"], "env": {"API_TOKEN": "${API_TOKEN}"}})
        );
        contains(
            &output.stderr,
            &[
                "an entry of a registry of MCP",
                "left out: remote `https://example.org/mcp`",
                "  API_TOKEN  the file names it",
            ],
        );
    }
    assert_eq!(
        asked.recv().expect("it was asked"),
        "GET /v0/servers/io%2Eexample%2Ftools/versions/1%2E2%2E3 HTTP/1.1"
    );
}

#[test]
fn answer_of_a_registry_that_is_not_the_entry_is_refused() {
    let bench = Bench::new();
    let other = entry("io.example/other", "1.2.3").to_string();
    let newer = entry("io.example/tools", "1.2.4").to_string();
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(2 << 20));
    for (status, body, part) in [
        ("200 OK", other, "another server or version"),
        ("200 OK", newer, "another server or version"),
        ("200 OK", "[]".to_owned(), "not the entry of a server"),
        ("200 OK", long, "more than 1048576 bytes"),
        (
            "404 Not Found",
            "{}".to_owned(),
            "does not know this server",
        ),
        ("302 Found", "{}".to_owned(), "redirects are not followed"),
        ("500 x", "\u{1b}[2J".to_owned(), "answered 500"),
    ] {
        let (url, _asked) = registry(status, body);
        let args = [
            "registry:io.example/tools@1.2.3",
            "--registry",
            &url,
            "-o",
            "c.json",
        ];
        let output = import(&bench, &args, "");
        assert_eq!(output.code, Some(2), "{part}: {}", output.stderr);
        contains(&output.stderr, &[part]);
        assert!(!bench.path("c.json").exists());
    }
    // No registry has a default.
    for (args, part) in [
        (
            &["registry:io.example/tools"][..],
            "needs the URL of a registry",
        ),
        (
            &["registry:a", "--registry", "http://192.0.2.1"],
            "`https` URL",
        ),
        (
            &["registry:a", "--registry", "http://127.0.0.1:9"],
            "cannot be asked",
        ),
    ] {
        let output = import(&bench, args, "");
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        contains(&output.stderr, &[part]);
    }
}

#[test]
fn large_or_odd_input_is_refused() {
    let bench = Bench::new();
    let file = std::fs::File::create(bench.path("large.mcpb")).expect("a file");
    file.set_len((64 << 20) + 1).expect("a hole");
    bench.write("text.json", &" ".repeat((4 << 20) + 1));
    bench.write(
        "mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
    );
    for (args, code, part) in [
        (&["large.mcpb"][..], 2, "67108864 bytes"),
        (&["text.json"], 2, "4194304 bytes"),
        (
            &["mcp.json", "--unpack", "d"],
            2,
            "`--unpack` is for a bundle",
        ),
        (&["-"], 2, "standard input"),
    ] {
        let output = import(&bench, args, "");
        assert_eq!(output.code, Some(code), "{args:?}: {}", output.stderr);
        contains(&output.stderr, &[part]);
    }
    assert!(!bench.path("d").exists());
}

#[test]
fn step_that_takes_longer_than_two_seconds_is_shown() {
    let bench = Bench::new();
    let answer = entry("io.example/tools", "1.2.3").to_string();
    let args =
        |url: &str| ["import", "registry:io.example/tools", "--registry", url].map(str::to_owned);
    let delay = Duration::from_millis(2_600);
    let (url, _asked) = slow_registry("200 OK", answer.clone(), delay);
    let mut command = bench.command();
    command.args(args(&url)).env("TERM", "xterm");
    let (code, screen) = on_terminal(command, "");
    assert_eq!(code, Some(0), "{screen}");
    contains(&screen, &["asking the registry (2 s)", "\u{1b}["]);
    // Without a terminal it is a plain line, and a step that is fast has none.
    let (url, _asked) = slow_registry("200 OK", answer.clone(), delay);
    let output = import(
        &bench,
        &["registry:io.example/tools", "--registry", &url],
        "",
    );
    contains(&output.stderr, &["asking the registry (2 s)\n"]);
    let (url, _asked) = registry("200 OK", answer);
    let output = import(
        &bench,
        &["registry:io.example/tools", "--registry", &url],
        "",
    );
    assert!(
        !output.stderr.contains("asking the registry"),
        "{}",
        output.stderr
    );
}
