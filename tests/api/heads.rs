//! Invalid heads of HTTP requests: hosts, origins, types, methods, secrets.

use harness::{Broker, Chaos, Response, raw, refusal, request};

pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");
const ROUTES: [&str; 3] = ["/meta_tree", "/meta_desc", "/meta_call"];
pub(crate) const HEALTH: [&str; 3] = ["/healthz", "/readyz", "/sources"];

/// A broker that answers from its catalog, with its folder.
fn listening(more: &[&str]) -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let broker = Broker::start(chaos.run("chaos-broker", &[&["127.0.0.1:0"], more].concat()));
    (chaos, broker)
}

/// Valid requests to every route, except for these headers.
fn with_head(broker: &Broker, lines: &str) -> Vec<Response> {
    let get =
        HEALTH.map(|route| format!("GET {route} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"));
    let post = ROUTES.map(|route| {
        format!("POST {route} HTTP/1.1\r\n{lines}Content-Type: application/json\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{{\"path\":\"/\"}}")
    });
    let requests = get.iter().chain(&post);
    requests
        .map(|request| raw(broker.address(), request.as_bytes()))
        .collect()
}

pub(crate) fn post(
    broker: &Broker,
    route: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    request(broker.address(), "POST", route, headers, body)
}

#[test]
fn host_that_is_foreign_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for host in [
        "evil.com",
        "evil.com:80",
        "0.0.0.0",
        "[::]:8100",
        "broker.example.evil.com",
    ] {
        for response in with_head(&broker, &format!("Host: {host}\r\n")) {
            refusal(&response, 403, "host_forbidden");
            assert!(!response.text().contains(host), "nothing is echoed");
        }
    }
}

#[test]
fn host_that_is_missing_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for response in with_head(&broker, "") {
        refusal(&response, 400, "header_invalid");
    }
}

#[test]
fn host_given_twice_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for response in with_head(&broker, "Host: localhost\r\nHost: localhost\r\n") {
        refusal(&response, 400, "header_invalid");
    }
}

#[test]
fn origin_that_is_foreign_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for origin in [
        "http://evil",
        "https://evil.com",
        "http://app.example",
        "https://app.example:444",
        "http://localhost:3000",
        "http://127.0.0.1:5173",
        "file://",
    ] {
        for response in with_head(&broker, &format!("Host: localhost\r\nOrigin: {origin}\r\n")) {
            refusal(&response, 403, "origin_forbidden");
        }
    }
    let two = "Host: localhost\r\nOrigin: https://app.example\r\nOrigin: https://app.example\r\n";
    for response in with_head(&broker, two) {
        refusal(&response, 403, "origin_forbidden");
    }
}

#[test]
fn origin_null_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for response in with_head(&broker, "Host: localhost\r\nOrigin: null\r\n") {
        refusal(&response, 403, "origin_forbidden");
    }
}

#[test]
fn host_that_only_looks_local_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for host in ["localhost.evil.com", "127.0.0.1.evil.com", "evil-localhost"] {
        for response in with_head(&broker, &format!("Host: {host}\r\n")) {
            refusal(&response, 403, "host_forbidden");
        }
    }
}

#[test]
fn host_and_origin_that_are_allowed_are_accepted() {
    let (_chaos, broker) = listening(&["--allow-host", "extra.example"]);
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "[::1]:8100",
        "192.168.1.7",
        "broker.example",
        "Extra.example:90",
    ] {
        let response = raw(
            broker.address(),
            format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        );
        assert_eq!(response.status, 200, "{host}: {}", response.text());
    }
    for origin in ["https://app.example", "http://broker.example:81"] {
        let head = format!(
            "GET /healthz HTTP/1.1\r\nHost: broker.example:81\r\nOrigin: {origin}\r\nConnection: close\r\n\r\n"
        );
        let response = raw(broker.address(), head.as_bytes());
        assert_eq!(response.status, 200, "{origin}: {}", response.text());
    }
}

#[test]
fn content_type_other_than_json_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for route in ROUTES {
        let body = br#"{"path":"/"}"#;
        refusal(&post(&broker, route, &[], body), 415, "content_type");
        for wrong in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "application/json; charset=utf-16",
            "",
        ] {
            let response = post(&broker, route, &[("Content-Type", wrong)], body);
            refusal(&response, 415, "content_type");
        }
        refusal(
            &post(
                &broker,
                route,
                &[JSON, ("Content-Type", "text/plain")],
                body,
            ),
            415,
            "content_type",
        );
    }
    let right = [("Content-Type", "Application/JSON; charset=UTF-8")];
    assert_eq!(post(&broker, "/meta_tree", &right, b"{}").status, 200);
}

#[test]
fn method_or_route_that_is_unknown_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for route in ROUTES {
        for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let response = request(broker.address(), method, route, &[], b"");
            refusal(&response, 405, "method_not_allowed");
            assert_eq!(response.header("allow"), Some("POST"));
        }
    }
    for route in HEALTH {
        let response = post(&broker, route, &[JSON], b"{}");
        refusal(&response, 405, "method_not_allowed");
        assert_eq!(response.header("allow"), Some("GET, HEAD"));
    }
    // The root leads to the web page, which is not posted to.
    let response = post(&broker, "/", &[JSON], b"{}");
    refusal(&response, 405, "method_not_allowed");
    for route in [
        "/meta_tree//",
        "/META_TREE",
        "/meta%5ftree",
        "/metric",
        "/mcp/none",
        "/../meta_tree",
    ] {
        let error = refusal(
            &post(&broker, route, &[JSON], b"{}"),
            404,
            "route_not_found",
        );
        for known in ROUTES {
            assert!(
                error["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(known)),
                "{error}"
            );
        }
    }
}

#[test]
fn content_encoding_is_refused() {
    let (_chaos, broker) = listening(&[]);
    for encoding in ["gzip", "deflate", "br", "zstd", "identity, gzip"] {
        let headers = [JSON, ("Content-Encoding", encoding)];
        refusal(
            &post(&broker, "/meta_tree", &headers, b"{}"),
            415,
            "content_type",
        );
    }
}
