//! A proxy that passes its own path on: every route is served below the path of `public_url`, and below `--base-path`.

use std::fs;
use std::path::Path;

use harness::faults::{FaultFixture, source};
use harness::mcp_http::{EventReader, McpSession, send_modern};
use harness::websocket::WebSocketClient;
use harness::{Proxy, Run, access, binary, get, post, send};
use serde_json::{Value, json};

/// The blocks of a page in this language, for the broker at this address.
fn blocks(page: &str, language: &str, address: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let page = fs::read_to_string(page).expect("the page is there");
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    blocks
        .map(|block| block.replace("127.0.0.1:8100", address))
        .collect()
}

/// The two blocks of `docs/deploy.md` in this language: the proxy passes the path on, or removes it.
fn both_ways(language: &str, address: &str) -> [String; 2] {
    let blocks = blocks("docs/deploy.md", language, address).try_into();
    blocks.expect("the page has a block for each way")
}

/// Each proxy with the directives of the page: first those that pass the path on, then those that remove it.
fn proxies(address: &str) -> [Vec<Proxy>; 2] {
    let nginx = both_ways("nginx", address).map(|locations| {
        let [http, server] = blocks("docs/proxies.md", "nginx", address)
            .try_into()
            .expect("the page has a block for `http` and one for `server`");
        let (server, _) = server.split_once("location").expect("it has locations");
        Proxy::nginx(&http, &format!("{server}{locations}"))
    });
    let caddy = both_ways("caddyfile", address).map(|site| Proxy::caddy(&site));
    let haproxy = both_ways("haproxy", address).map(|rules| Proxy::haproxy(&rules));
    let (mut passing, mut removing) = (Vec::new(), Vec::new());
    for [first, second] in [nginx, caddy, haproxy] {
        passing.push(first);
        removing.push(second);
    }
    [passing, removing]
}

/// A broker whose config has this URL, with `/sse`.
fn with_public_url(url: &str, start: impl FnOnce(Run) -> Run) -> FaultFixture {
    let change = |config: &mut Value| {
        config["public_url"] = json!(url);
        config["surfaces"] = json!({"sse": true});
        source(config, 0)["timeout"] = json!(30);
    };
    FaultFixture::begin(&json!({}), change, start)
}

/// Asserts that every kind of route answers below this path.
fn is_served(front: &str, base: &str) {
    for route in ["/healthz", "/readyz", "/sources", "/metrics"] {
        let reply = get(front, &format!("{base}{route}"));
        assert_eq!(reply.status, 200, "{base}{route}: {}", reply.text());
    }
    let call = json!({"path": "/a/add", "args": {"a": 1, "b": 2}});
    let reply = post(front, &format!("{base}/meta_call"), &call);
    assert_eq!(reply.status, 200, "{base}: {}", reply.text());
    for mode in ["/mcp", "/mcp/direct", "/mcp/direct/openai", "/v1/mcp"] {
        let session = McpSession::begin(front, &format!("{base}{mode}"));
        let listed = session.result("tools/list", &json!({}));
        assert!(!listed["tools"].as_array().expect("tools").is_empty());
    }
    let mut socket = WebSocketClient::connect(front, &format!("{base}/ws/mcp"));
    assert!(socket.result("ping", &json!({})).is_object());
}

#[test]
fn every_route_is_served_below_the_path_of_the_public_url() {
    let stage = with_public_url("https://tools.example/gateway/mcp", |run| run);
    let address = stage.broker.address();
    for base in ["", "/gateway"] {
        is_served(address, base);
    }
    for document in [
        "/.well-known/oauth-protected-resource/gateway",
        "/.well-known/oauth-protected-resource/gateway/mcp",
        "/gateway/.well-known/oauth-protected-resource",
        "/gateway/.well-known/oauth-protected-resource/mcp",
    ] {
        let reply = get(address, document);
        assert_eq!(reply.status, 200, "{document}: {}", reply.text());
        assert_eq!(
            reply.json()["resource"],
            "https://tools.example/gateway/mcp"
        );
    }
    let request = format!(
        "GET /gateway/sse HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n"
    );
    let mut stream = EventReader::open(send(address, request.as_bytes()));
    let endpoint = stream.next_data().expect("the event `endpoint`");
    assert!(endpoint.starts_with("/gateway/sse/message?"), "{endpoint}");
    for unknown in [
        "/other/healthz",
        "/gateway/gateway/healthz",
        "/gatewayx/healthz",
    ] {
        let reply = get(address, unknown);
        assert_eq!(
            (reply.status, &*reply.code()),
            (404, "route_not_found"),
            "{unknown}"
        );
        assert!(reply.text().contains("--base-path"), "{}", reply.text());
    }
    assert!(!get(address, "/nowhere").text().contains("--base-path"));
}

#[test]
fn base_path_of_the_command_line_is_served_beside_the_public_url() {
    let stage = with_public_url("https://tools.example/outside", |run| {
        run.args(["--base-path", "/inside/"])
    });
    let address = stage.broker.address();
    for base in ["", "/outside", "/inside"] {
        is_served(address, base);
    }
}

#[test]
fn proxies_serve_a_broker_below_a_path_in_both_ways_of_the_page() {
    let with_path = with_public_url("https://tools.example/gateway", |run| run);
    let [passing, removing] = proxies(with_path.broker.address());
    for proxy in passing.iter().chain(&removing) {
        let front = proxy.address();
        access::listens(front);
        is_served(front, "/gateway");
        let document = get(front, "/.well-known/oauth-protected-resource/gateway");
        assert_eq!(document.status, 200, "{}", document.text());
        let params = json!({"name": "a-echo", "arguments": {"text": "x"}});
        let call = send_modern(
            front,
            "/gateway/mcp/direct",
            &json!(1),
            "tools/call",
            &params,
        );
        let answer = harness::read(call);
        assert_eq!(answer.status, 200, "{}", answer.text());
        // Other paths are not the broker's.
        assert!(get(front, "/healthz").header("x-catalog-digest").is_none());
    }
}

#[test]
fn status_asks_a_broker_behind_a_path() {
    let stage = with_public_url("https://tools.example/gateway", |run| run);
    let [passing, _] = proxies(stage.broker.address());
    let front = passing[0].address();
    access::listens(front);
    let program = binary("chaos-broker");
    for (base, code) in [("/gateway", 0), ("/gateway/mcp", 0), ("/other", 1)] {
        let url = format!("http://{front}{base}");
        let output = Run::new(&program).args(["status", &url]).output();
        assert_eq!(
            output.code,
            Some(code),
            "{url}: {}{}",
            output.stdout,
            output.stderr
        );
        if code == 0 {
            let title = format!("http://{front}/gateway is ready");
            assert!(output.stdout.starts_with(&title), "{}", output.stdout);
        }
    }
}

#[test]
fn base_path_is_refused_for_stdio_and_if_it_is_no_path() {
    let program = binary("chaos-broker");
    for (args, message) in [
        (["stdio", "--base-path", "/gateway"], "remove `--base-path`"),
        (["0", "--base-path", "gateway"], "such as `/gateway`"),
    ] {
        let output = Run::new(&program).args(args).output();
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(output.stderr.contains(message), "{}", output.stderr);
    }
}

#[test]
fn path_of_a_proxy_is_unknown_without_a_setting() {
    let stage = FaultFixture::new(&json!({}));
    let reply = stage.broker.get("/gateway/healthz");
    assert_eq!((reply.status, &*reply.code()), (404, "route_not_found"));
    assert!(reply.text().contains("public_url"), "{}", reply.text());
}
