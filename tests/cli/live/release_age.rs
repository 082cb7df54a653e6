//! The age of a Python release, from the index that the machine is configured for.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use harness::contains;
use serde_json::json;

use super::provenance::Runners;

#[test]
fn lint_online_says_the_age_of_a_python_release_and_no_credential() {
    let runners = Runners::new(&json!("uvx my-server==1.0"));
    runners.dist(
        "home/.cache/uv/environments-v2/i/r",
        "my-server",
        "1.0",
        "AAA",
    );
    runners.lock();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answered = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("a request") == 1 {
            head.push(byte[0]);
        }
        let time = "2020-01-01T00:00:00.000Z";
        let body = json!({"files": [
            {"filename": "my_server-1.0.1.tar.gz", "upload-time": "2099-01-01T00:00:00Z"},
            {"filename": "my_server-1.0-py3-none-any.whl", "upload-time": time},
        ]})
        .to_string();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("the answer is taken");
        String::from_utf8(head).expect("text")
    });
    let index = format!("http://user:s3cret@{address}/simple");
    let variables = [
        ("UV_DEFAULT_INDEX", index.as_str()),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let output = runners.run_with(&["lint", "--online"], &variables);
    contains(
        &output.stderr,
        &["`my-server@1.0` was released", "days ago"],
    );
    let head = answered.join().expect("it answered");
    // `user:s3cret` in base64.
    contains(
        &head,
        &["GET /simple/my-server/ ", "Basic dXNlcjpzM2NyZXQ="],
    );

    // An index that refuses the connection: the reason has neither its address nor the credential.
    let output = runners.run_with(&["lint", "--online"], &variables);
    contains(
        &output.stderr,
        &["`my-server@1.0`: its age is not known: python3 ended with"],
    );
    assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
}
