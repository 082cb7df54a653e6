//! The list of attacks by malformed or ambiguous requests. It does not depend on what is in front of the broker.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use harness::callers::garbage;
use harness::statuses;
use serde_json::json;

/// The secret of the broker under attack.
pub(crate) const SECRET: &str = "a secret of sixteen or more";
/// The text that a request hidden in another one would make the server see.
pub(crate) const HIDDEN: &str = "hidden";
/// The text of the call of an attack.
pub(crate) const WHOLE: &str = "whole";
/// How long an answer may take. Machines are shared.
const LIMIT: Duration = Duration::from_secs(60);

/// One request, or what looks like one.
pub(crate) struct Attack {
    /// What it is, as a page shows it.
    pub(crate) name: &'static str,
    bytes: Vec<u8>,
    /// Whether the attacker closes its side after it.
    ends: bool,
}

/// A request to the broker behind `host`.
struct Maker<'a> {
    host: &'a str,
}

impl Maker<'_> {
    fn auth(&self) -> String {
        format!("Host: {}\r\nAuthorization: Bearer {SECRET}\r\n", self.host)
    }

    /// The head of a call up to its length, and a whole call that must not be read.
    fn call(&self) -> String {
        format!(
            "POST /meta_call HTTP/1.1\r\n{}{JSON}Connection: close\r\n",
            self.auth()
        )
    }

    fn hidden(&self) -> String {
        let body = echo(HIDDEN);
        format!(
            "{}Content-Length: {}\r\n\r\n{body}",
            self.call(),
            body.len()
        )
    }

    /// A call with these headers for its length, and these bytes after its head.
    fn with(&self, headers: &str, body: &str) -> Vec<u8> {
        format!("{}{headers}\r\n{body}", self.call()).into_bytes()
    }

    /// A sound request for this line, with these headers.
    fn line(&self, line: &str, headers: &str) -> Vec<u8> {
        let body = r#"{"path":"/"}"#;
        let length = body.len();
        format!(
            "{line}\r\n{headers}{JSON}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// A sound request for the target.
    fn target(&self, target: &str) -> Vec<u8> {
        self.line(&format!("POST {target} HTTP/1.1"), &self.auth())
    }

    /// A sound request with these lines in its head.
    fn head(&self, lines: &str) -> Vec<u8> {
        self.line(
            "POST /meta_tree HTTP/1.1",
            &format!("{}{lines}", self.auth()),
        )
    }

    /// A sound request with this host.
    fn host(&self, lines: &str) -> Vec<u8> {
        let auth = format!("{lines}Authorization: Bearer {SECRET}\r\n");
        self.line("POST /meta_tree HTTP/1.1", &auth)
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

/// The body of a call with this text.
pub(crate) fn echo(text: &str) -> String {
    json!({"path": harness::faults::ECHO, "args": {"text": text}}).to_string()
}

/// Every attack, for the address to which it is sent.
pub(crate) fn attacks(host: &str) -> Vec<Attack> {
    let make = Maker { host };
    let attack = |name, bytes| Attack {
        name,
        bytes,
        ends: false,
    };
    let (hidden, whole) = (make.hidden(), echo(WHOLE));
    let length = whole.len();
    let chunked = format!("{length:x}\r\n{whole}\r\n0\r\n\r\n");
    let sized = |headers: &str| make.with(headers, &chunked);
    let plain = |headers: &str| make.with(headers, &whole);
    let hides = |headers: &str| make.with(headers, &format!("0\r\n\r\n{hidden}"));
    let mut all = vec![
        attack("a sound call", plain(&format!("Content-Length: {length}\r\n"))),
        attack("a sound call in chunks", sized("Transfer-Encoding: chunked\r\n")),
        attack("length, then chunks that hide a call", hides(&format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", hidden.len() + 5))),
        attack("chunks that hide a call, then length", hides(&format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n", hidden.len() + 5))),
        attack("two lengths", plain(&format!("Content-Length: 0\r\nContent-Length: {length}\r\n"))),
        attack("the same length twice", plain(&format!("Content-Length: {length}\r\nContent-Length: {length}\r\n"))),
        attack("a list of lengths", plain(&format!("Content-Length: {length}, {length}\r\n"))),
        attack("length with a sign", plain(&format!("Content-Length: +{length}\r\n"))),
        attack("length in hexadecimal", plain(&format!("Content-Length: 0x{length:x}\r\n"))),
        attack("negative length", plain("Content-Length: -1\r\n")),
        attack("length with a space", plain("Content-Length: 1 2\r\n")),
        attack("length beyond every number", plain("Content-Length: 99999999999999999999\r\n")),
        attack("length with a space before its colon", plain(&format!("Content-Length : {length}\r\n"))),
        attack("more bytes than the length", make.with(&format!("Content-Length: {length}\r\n"), &format!("{whole}{}", "x".repeat(64)))),
        attack("coding `xchunked`", hides("Transfer-Encoding: xchunked\r\n")),
        attack("coding with a space before its colon", hides("Transfer-Encoding : chunked\r\n")),
        attack("coding behind a vertical tab", hides("Transfer-Encoding: \x0bchunked\r\n")),
        attack("coding `chunked, identity`", hides("Transfer-Encoding: chunked, identity\r\n")),
        attack("coding `identity, chunked`", hides("Transfer-Encoding: identity, chunked\r\n")),
        attack("coding twice", hides("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
        attack("coding `chunked` and `identity`", hides("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n")),
        attack("coding in capitals", sized("Transfer-Encoding: CHUNKED\r\n")),
        attack("chunk size in the form `0x`", make.with("Transfer-Encoding: chunked\r\n", &format!("0x{chunked}"))),
        attack("chunk size beyond every number", make.with("Transfer-Encoding: chunked\r\n", &format!("ffffffffffffffff1\r\n{whole}"))),
        attack("chunk with an extension", make.with("Transfer-Encoding: chunked\r\n", &format!("{length:x};a=b\r\n{whole}\r\n0\r\n\r\n"))),
        attack("chunk extension with a bare newline", make.with("Transfer-Encoding: chunked\r\n", &format!("{length:x};a\nb\r\n{whole}\r\n0\r\n\r\n"))),
        attack("chunks that end with bare newlines", make.with("Transfer-Encoding: chunked\r\n", &chunked.replace("\r\n", "\n"))),
        attack("trailer with a length", make.with("Transfer-Encoding: chunked\r\n", &format!("{length:x}\r\n{whole}\r\n0\r\nContent-Length: 5\r\n\r\n"))),
        attack("bare newlines in the head", String::from_utf8_lossy(&make.head("")).replace("\r\n", "\n").into_bytes()),
        attack("carriage return in a header", make.head("X-A: a\rX-B: b\r\n")),
        attack("NUL in a header", make.head("X-A: a\0b\r\n")),
        attack("folded header", make.head("X-A: a\r\n b\r\n")),
        attack("header without a colon", make.head("X-A\r\n")),
        attack("header with a space in its name", make.head("X A: b\r\n")),
        attack("header without a name", make.head(": b\r\n")),
        attack("length with an underscore", make.head("Content_Length: 1\r\n")),
        attack("header of 40 KiB", make.head(&format!("X-A: {}\r\n", "a".repeat(40 << 10)))),
        attack("1 000 headers", make.head(&"X-A: b\r\n".repeat(1000))),
        attack("absolute target", make.target(&format!("http://{host}/meta_tree"))),
        attack("absolute target of another host", make.target("http://other.example/meta_tree")),
        attack("two slashes in front", make.target("//meta_tree")),
        attack("segment `.`", make.target("/./meta_tree")),
        attack("segment `..`", make.target("/x/../meta_tree")),
        attack("encoded segment `..`", make.target("/x/%2e%2e/meta_tree")),
        attack("encoded letter", make.target("/%6deta_tree")),
        attack("encoded slash", make.target("/x%2f../meta_tree")),
        attack("backslash", make.target("/x\\..\\meta_tree")),
        attack("`..;/`", make.target("/x/..;/meta_tree")),
        attack("parameter of a segment", make.target("/meta_tree;a")),
        attack("fragment", make.target("/meta_tree#a")),
        attack("space in the target", make.target("/meta tree")),
        attack("target in capitals", make.target("/META_TREE")),
        attack("target without a slash", make.target("meta_tree")),
        attack("encoded newline", make.target("/meta_tree%0d%0aX-A:%20b")),
        attack("method in small letters", make.line("post /meta_tree HTTP/1.1", &make.auth())),
        attack("method `TRACE`", make.line("TRACE /meta_tree HTTP/1.1", &make.auth())),
        attack("method `CONNECT`", make.line(&format!("CONNECT {host} HTTP/1.1"), &make.auth())),
        attack("method `OPTIONS *`", make.line("OPTIONS * HTTP/1.1", &make.auth())),
        attack("version 1.0", make.line("POST /meta_tree HTTP/1.0", &make.auth())),
        attack("version 1.0 with chunks", in_version_1_0(&make.with("Transfer-Encoding: chunked\r\n", &chunked))),
        attack("version 2.0", make.line("POST /meta_tree HTTP/2.0", &make.auth())),
        attack("version 9.9", make.line("POST /meta_tree HTTP/9.9", &make.auth())),
        attack("no version", make.line("POST /meta_tree", &make.auth())),
        attack("preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        attack("upgrade to HTTP/2", make.head("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n")),
        attack("foreign host", make.host("Host: other.example\r\n")),
        attack("two hosts", make.host(&format!("Host: {host}\r\nHost: other.example\r\n"))),
        attack("the same host twice", make.host(&format!("Host: {host}\r\nHost: {host}\r\n"))),
        attack("no host", make.host("")),
        attack("empty host", make.host("Host: \r\n")),
        attack("host with a user", make.host(&format!("Host: a@{host}\r\n"))),
        attack("host with a path", make.host(&format!("Host: {host}/a\r\n"))),
        attack("host `X-Forwarded-Host`", make.host(&format!("Host: other.example\r\nX-Forwarded-Host: {host}\r\n"))),
        attack("credential named in `Connection`", make.head("Connection: Authorization\r\n")),
        attack("type named in `Connection`", make.head("Connection: Content-Type\r\n")),
        attack("host named in `Connection`", make.head("Connection: Host\r\n")),
        attack("no credential", make.line("POST /meta_call HTTP/1.1", &format!("Host: {host}\r\n"))),
        attack("other method in a header", make.line("GET /healthz HTTP/1.1", &format!("{}X-HTTP-Method-Override: POST\r\nX-Original-URL: /meta_call\r\n", make.auth()))),
        attack("unknown expectation", make.head("Expect: the-unexpected\r\n")),
        attack("body in gzip that is none", make.head("Content-Encoding: gzip\r\n")),
        attack("body of `GET` that hides a call", format!("GET /healthz HTTP/1.1\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{hidden}", make.auth(), hidden.len()).into_bytes()),
        attack("bytes of no protocol", [garbage(1, 200), b"\r\n\r\n".to_vec()].concat()),
        attack("bytes of TLS", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n".to_vec()),
    ];
    all.push(Attack {
        name: "fewer bytes than the length",
        bytes: make.with(&format!("Content-Length: {}\r\n", length + 9), &whole),
        ends: true,
    });
    all.push(Attack {
        name: "chunks without an end",
        bytes: make.with(
            "Transfer-Encoding: chunked\r\n",
            &format!("{length:x}\r\n{whole}\r\n"),
        ),
        ends: true,
    });
    all
}

/// The same request in version 1.0.
fn in_version_1_0(request: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    text.replacen("HTTP/1.1", "HTTP/1.0", 1).into_bytes()
}

impl Attack {
    /// Sends it; returns the statuses of the answers, or `closed` if there is none.
    pub(crate) fn send(&self, address: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("something listens");
        stream
            .set_read_timeout(Some(LIMIT))
            .expect("a timeout can be set");
        // A server may refuse before it has read everything.
        let _ = stream.write_all(&self.bytes);
        if self.ends {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    panic!("{}: the connection stays open", self.name)
                }
                Err(_) => break,
            }
        }
        let statuses = statuses(&answer);
        match statuses.is_empty() {
            true => "closed".to_owned(),
            false => statuses.join(" "),
        }
    }
}
