//! `status` against the broker of this package, and `doctor` on the smoke config: without problems, and
//! with no broker at the address.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;

use harness::{Broker, Output, Run, TlsFront, binary, certificate, contains, wait_until};
use serde_json::Value;

fn program() -> Run {
    Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker")))
        .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
}

fn status(address: &str, more: &[&str]) -> Output {
    program().args(["status", address]).args(more).output()
}

#[test]
fn doctor_on_the_smoke_config_finds_nothing() {
    binary("toolbox-mcp");
    for args in [&["doctor"][..], &["doctor", "smoke_config.json"]] {
        let output = program().args(args).output();
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{}",
            output.stdout
        );
        assert!(
            output.stdout.starts_with("ok: /text\n"),
            "{}",
            output.stdout
        );
        assert_eq!(
            output.stdout.lines().last(),
            Some("0 of 2 sources need attention")
        );
    }
}

#[test]
fn status_of_a_running_broker_is_a_table() {
    binary("toolbox-mcp");
    let broker = Broker::start_ready(program().args(["127.0.0.1:0", "smoke_config.json"]));
    broker.result("/util/hash_text", serde_json::json!({"text": "x"}));
    for address in [
        broker.address().to_owned(),
        format!("http://{}/", broker.address()),
    ] {
        let output = status(&address, &[]);
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{}",
            output.stdout
        );
        let lines: Vec<_> = output.stdout.lines().collect();
        assert_eq!(lines[0], format!("http://{} is ready", broker.address()));
        let columns: Vec<_> = lines[2].split_whitespace().collect();
        let expected = "PATH STATE SINCE TOOLS WITHDRAWN CALLS FAILURES RESTARTS";
        assert_eq!(columns.join(" "), expected);
        let util: Vec<_> = lines[4].split_whitespace().collect();
        assert_eq!(
            (util[0], util[1], &util[3..]),
            ("/util", "ready", &["5", "0", "1", "0", "0"][..])
        );
        assert_eq!(lines.last(), Some(&"0 of 2 sources need attention"));
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{}",
            output.stdout
        );
    }
    let output = status(broker.address(), &["--format", "json"]);
    assert_eq!((output.code, output.stdout.lines().count()), (Some(0), 1));
    let passed: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    let asked = broker.get("/sources").json();
    assert_eq!(
        passed["sources"][1]["counters"],
        asked["sources"][1]["counters"]
    );
}

#[test]
fn status_with_the_secret_shows_details_and_not_the_secret() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("secret");
    fs::write(&file, "sesame-open-up\n").expect("it can be written");
    let file = file.to_str().expect("the path is text");
    for host in ["0.0.0.0", "127.0.0.1"] {
        let bind = format!("{host}:0");
        let args = [bind.as_str(), "smoke_config.json", "--secret-file", file];
        let broker = Broker::start(program().args(args));
        let port = broker.address().rsplit(':').next().expect("a port");
        shows_more_with_the_secret(&format!("{host}:{port}"), file);
    }
}

fn shows_more_with_the_secret(address: &str, file: &str) {
    wait_until("the broker is ready", || {
        status(address, &[]).code == Some(0)
    });
    let stranger = status(address, &[]);
    assert_eq!(stranger.code, Some(0), "{}", stranger.stderr);
    assert!(
        !stranger.stdout.contains("/util") && stranger.stdout.contains("ready"),
        "{}",
        stranger.stdout
    );
    assert!(
        stranger.stdout.contains("give `--secret-file`"),
        "{}",
        stranger.stdout
    );
    assert!(
        stranger.stdout.ends_with("0 of 2 sources need attention\n"),
        "{}",
        stranger.stdout
    );
    let known = status(address, &["--secret-file", file]);
    assert!(known.stdout.contains("/util"), "{}", known.stdout);
    let by_variable = program()
        .args(["status", address])
        .env("MCP_BROKER_SECRET", "sesame-open-up")
        .output();
    assert!(
        by_variable.stdout.contains("/util"),
        "{}",
        by_variable.stdout
    );
    for output in [stranger, known, by_variable] {
        assert!(!(output.stdout + &output.stderr).contains("sesame"));
    }
}

#[test]
fn status_without_a_broker_is_an_error() {
    // Bound and dropped: nothing listens there.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = free.local_addr().expect("it has one").to_string();
    drop(free);
    let output = status(&address, &["--format", "json"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        output.stderr,
        format!("error: nothing listens at `http://{address}`\n")
    );

    for (reply, part) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "is not an mcp-broker",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "is not an mcp-broker",
        ),
        ("220 mail.example ready\r\n", "is not an mcp-broker"),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            "is not followed",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 48\r\n\r\n{\"error\":{\"message\":\"no \\u001b[31m entry here\"}}",
            "answered 403: no \\u{1b}[31m entry here",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has one").to_string();
        let server = thread::spawn(move || {
            // At most two requests; the last connection is made by this test.
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().expect("a client connects");
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or_default();
                if read > 0 {
                    stream.write_all(reply.as_bytes()).unwrap_or_default();
                }
            }
        });
        let output = status(&address, &[]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(1), ""),
            "{reply}"
        );
        assert!(output.stderr.contains(part), "{}", output.stderr);
        for _ in 0..2 {
            // It may have ended by now.
            drop(std::net::TcpStream::connect(&address));
        }
        server.join().expect("it ended");
    }
}

#[test]
fn status_with_invalid_arguments_is_a_usage_error() {
    for args in [
        &["status"][..],
        &["status", "nowhere"],
        &["status", "https://127.0.0.1:1/a?b"],
        &["status", "127.0.0.1:1", "--ca-file", "ca.pem"],
        &["status", "127.0.0.1:1", "extra"],
        &["status", "127.0.0.1:1", "--secret-file", "/no/such/file"],
        &["doctor", "--format", "yaml"],
        &["docter"],
    ] {
        let output = program().args(args).output();
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{args:?}"
        );
        assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    }
    for verb in ["doctor", "status"] {
        let output = program().args([verb, "--help"]).output();
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
        assert!(
            output.stdout.contains(&format!("\n  mcp-broker {verb} ")),
            "{}",
            output.stdout
        );
    }
}

#[test]
fn status_and_logs_behind_tls_trust_the_authority_of_a_file() {
    binary("toolbox-mcp");
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    fs::write(&secret, "sesame-open-up-0123456789\n").expect("writable");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("ours");
    let run = program().args(["127.0.0.1:0", "smoke_config.json", "--secret-file"]);
    let broker = Broker::start_ready(run.args([&secret]));
    let front = TlsFront::start("trusted", broker.address());
    let url = format!("https://{}", front.address);
    let ask = |verb: &[&str], file: &str| {
        let run = program().args(verb).args(["--ca-file"]);
        let run = run.args([certificate(file)]).args(["--secret-file"]);
        run.args([&secret]).output()
    };
    let output = ask(&["status", &url], "authority");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(0), ""),
        "{}",
        output.stdout
    );
    assert!(output.stdout.starts_with(&format!("{url} is ready\n")));
    contains(&output.stdout, &["/util", "0 of 2 sources need attention"]);
    let output = ask(&["logs", "/util", "--url", &url], "authority");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["/util: no line on stderr"]);

    let trusted = front.handshakes();
    let output = status(&url, &["--secret-file", secret.to_str().expect("UTF-8")]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    contains(
        &output.stderr,
        &["error: no connection with TLS to", &url, "`--ca-file`"],
    );
    assert_eq!(front.handshakes(), trusted, "the secret was not sent");
    let output = ask(&["status", &url], "key");
    assert_eq!(output.code, Some(1));
    contains(&output.stderr, &["it has none in PEM form"]);
    let output = ask(&["status", broker.address()], "authority");
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["`--ca-file` is for a URL with `https`"]);
}
