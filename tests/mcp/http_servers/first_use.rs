//! The first use: an `mcpServers` file with one command and one URL, two commands, and a client.

use harness::mcp_http::McpSession;
use harness::{Bench, binary, tree_paths};
use serde_json::{Value, json};

use super::servers::{self, broker_gen};

#[test]
fn file_of_a_client_with_a_command_and_a_url_is_locked_served_and_called() {
    let server = servers::rust(&[]);
    let bench = Bench::new();
    let file = json!({"mcpServers": {
        "toolbox": {"command": binary("toolbox-mcp"), "args": []},
        "remote": {"type": "http", "url": server.url("/mcp")},
    }});
    let locked = servers::lock(&bench, &file);
    // Both servers have a tool `fail`.
    let warnings = |of: &str| locked.stderr.matches(&format!("warning[{of}")).count();
    assert_eq!(warnings(""), warnings("same-name]"), "{}", locked.stderr);
    let checked = broker_gen(&bench, &["check"]).output();
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);

    let broker = servers::serve(&bench);
    let session = McpSession::begin(broker.address(), "/mcp");
    let tree = session.result("tools/call", &json!({"name": "meta_tree", "arguments": {}}));
    assert_eq!(tree_paths(&tree), ["/remote", "/toolbox"]);
    let called = |path: &str, args: Value| {
        let arguments = json!({"path": path, "args": args});
        session.result(
            "tools/call",
            &json!({"name": "meta_call", "arguments": arguments}),
        )
    };
    let hash = called(
        "/toolbox/hash_text",
        json!({"text": "hello", "algorithm": "crc32"}),
    );
    assert_eq!(hash["structuredContent"]["digest"], "3610a686");
    let sum = called("/remote/add", json!({"a": 2, "b": 40}));
    assert_eq!(sum["structuredContent"], json!({"sum": 42.0}));
}
