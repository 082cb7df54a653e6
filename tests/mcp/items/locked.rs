//! Locked prompts, templates and resources.

use harness::contains;
use serde_json::json;

use super::{Items, each, error, session, tree};

fn lists() -> serde_json::Value {
    json!({
        "prompts": [
            {"name": "ask me", "description": "Asks.", "arguments": [{"name": "who", "required": true}, {"name": "how"}]},
            {"name": "secret"},
        ],
        "templates": [
            {"uriTemplate": "x://docs/{name}", "name": "doc", "description": "One document."},
            {"uriTemplate": "x://files/{+path}", "name": "file"},
        ],
        "resources": [
            {"uri": "x://list", "name": "the list", "description": "A list."},
            {"uri": "y://other", "name": "other"},
        ],
    })
}

fn members() -> serde_json::Value {
    json!({
        "resources": "locked",
        "resource_filter": ["x://*", "!x://docs/private*"],
        "prompt_filter": ["*", "!secret"],
        "resource_aliases": {"x://list": "all", "x://docs/{name}": "one"},
        "prompt_aliases": {"ask me": "ask"},
    })
}

#[test]
fn nothing_but_tools_is_exposed_without_positive_patterns() {
    for members in [
        json!({}),
        json!({"resources": "locked"}),
        json!({"resources": "live", "resource_filter": ["!x*"], "prompt_filter": ["!x*"]}),
    ] {
        let items = Items::new(&lists(), &members);
        let broker = items.serve();
        assert_eq!(
            tree(&broker, "/a"),
            [("/a/noop".into(), "tool".into())],
            "{members}"
        );
        let session = session(&broker);
        for (method, member) in [
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            assert_eq!(session.result(method, &json!({}))[member], json!([]));
        }
        assert_eq!(
            error(&session, "resources/read", &json!({"uri": "x://list"}))["code"],
            -32002
        );
        assert_eq!(
            error(&session, "prompts/get", &json!({"name": "secret"}))["code"],
            -32602
        );
        assert!(items.requests().is_empty());
    }
}

#[test]
fn filter_of_resources_alone_exposes_templates() {
    let items = Items::new(
        &lists(),
        &json!({"resource_filter": ["x://*", "!x://docs/private*"]}),
    );
    let broker = items.serve();
    let kinds = tree(&broker, "/a").into_iter().map(|(_, kind)| kind);
    assert_eq!(kinds.collect::<Vec<_>>(), ["template", "template", "tool"]);
    let session = session(&broker);
    assert_eq!(
        session.result("resources/list", &json!({}))["resources"],
        json!([])
    );
    let read = |uri: &str| session.ask(&json!("r"), "resources/read", &json!({"uri": uri}));
    let content = &read("x://docs/a").json()["result"]["contents"][0]["text"];
    assert_eq!(content, "content of x://docs/a");
    for uri in ["x://list", "x://docs/private", "y://other"] {
        assert_eq!(read(uri).json()["error"]["code"], -32002, "{uri}");
    }
    assert_eq!(items.requests().len(), 1);
}

#[test]
fn entries_have_a_type_and_a_path_by_alias_or_name() {
    let items = Items::new(&lists(), &members());
    let broker = items.serve();
    let expected = [
        ("all", "resource"),
        ("ask", "prompt"),
        ("file", "template"),
        ("noop", "tool"),
        ("one", "template"),
    ];
    assert_eq!(
        tree(&broker, "/a"),
        expected.map(|(leaf, kind)| (format!("/a/{leaf}"), kind.to_owned()))
    );
    let prompt = broker.post("/meta_desc", &json!({"path": "/a/ask"})).json();
    assert_eq!(
        (&prompt["type"], &prompt["description"]),
        (&json!("prompt"), &json!("Asks."))
    );
    assert_eq!(prompt["args_schema"]["required"], json!(["who"]));
    let template = broker.post("/meta_desc", &json!({"path": "/a/one"})).json();
    assert_eq!(template["args_schema"]["required"], json!(["name"]));
    let session = session(&broker);
    let listed = session.result("prompts/list", &json!({}));
    assert_eq!(listed["prompts"], json!([lists()["prompts"][0]]));
    let listed = session.result("resources/list", &json!({}));
    assert_eq!(listed["resources"], json!([lists()["resources"][0]]));
    let listed = session.result("resources/templates/list", &json!({}));
    assert_eq!(each(&listed["resourceTemplates"], "name"), ["file", "doc"]);
}

#[test]
fn entries_are_called_by_path_and_by_the_methods_of_the_protocol() {
    let items = Items::new(&lists(), &members());
    let broker = items.serve();
    let session = session(&broker);
    let list = json!({"contents": [{"uri": "x://list", "text": "content of x://list"}]});
    assert_eq!(broker.result("/a/all", json!({})), list);
    assert_eq!(
        session.result("resources/read", &json!({"uri": "x://list"})),
        list
    );
    let path = json!({"path": "é/\u{202e}b c"});
    assert_eq!(
        broker.result("/a/file", path)["contents"][0]["uri"],
        "x://files/%C3%A9/%E2%80%AEb%20c"
    );
    let doc = json!({"contents": [{"uri": "x://docs/a%2Fb%20c", "text": "content of x://docs/a%2Fb%20c"}]});
    assert_eq!(broker.result("/a/one", json!({"name": "a/b c"})), doc);
    assert_eq!(
        session.result("resources/read", &json!({"uri": "x://docs/a%2Fb%20c"})),
        doc
    );
    let prompt = broker.result("/a/ask", json!({"who": "Ada"}));
    assert_eq!(
        prompt["messages"][0]["content"]["text"],
        r#"["ask me", {"who": "Ada"}]"#
    );
    let params = json!({"name": "ask me", "arguments": {"who": "Ada"}});
    assert_eq!(session.result("prompts/get", &params), prompt);
    let call =
        json!({"name": "meta_call", "arguments": {"path": "/a/ask", "args": {"who": "Ada"}}});
    assert_eq!(
        session.result("tools/call", &call)["structuredContent"],
        prompt
    );
    for reference in [
        json!({"type": "ref/prompt", "name": "ask me"}),
        json!({"type": "ref/resource", "uri": "x://docs/{name}"}),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "who", "value": "A"}, "context": {"arguments": {}}});
        let values = session.result("completion/complete", &params)["completion"]["values"].clone();
        assert_eq!(values, json!(["A!"]));
        let received = items.requests().pop().expect("a request");
        assert_eq!(received, json!(["completion/complete", params]));
    }
}

#[test]
fn completion_whose_params_two_readers_read_differently_is_never_sent() {
    let items = Items::new(&lists(), &members());
    let broker = items.serve();
    let session = session(&broker);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let long = "x".repeat(64 << 10);
    for (reference, context) in [
        // A server that takes the first name completes a prompt that was not checked.
        (r#""name":"secret","name":"ask me""#, "{}"),
        (r#""name":"ask me""#, r#"{"arguments":{"a":"1","a":"2"}}"#),
        (r#""name":"ask me""#, r#"{"arguments":{"a":"\ud800"}}"#),
        (r#""name":"ask me""#, &deep),
        (
            r#""name":"ask me""#,
            &format!(r#"{{"arguments":{{"a":"{long}"}}}}"#),
        ),
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{{"type":"ref/prompt",{reference}}},"argument":{{"name":"who","value":"A"}},"context":{context}}}}}"#
        );
        let accept = "application/json, text/event-stream";
        let answer = harness::read(session.post(&body, accept)).json();
        let shown = &body[..body.len().min(200)];
        assert_eq!(answer["error"]["code"], -32602, "{shown}: {answer}");
    }
    assert_eq!(items.requests(), Vec::<serde_json::Value>::new());
}

#[test]
fn hidden_characters_in_the_text_of_a_prompt_are_a_warning() {
    let items = Items::new(&lists(), &members());
    let broker = items.serve();
    let who = "A\u{e0041}\u{200b}";
    let params = json!({"name": "ask me", "arguments": {"who": who}});
    let prompt = session(&broker).result("prompts/get", &params);
    let warnings = &prompt["_meta"]["dev.mcp-broker/warnings"];
    contains(&warnings.to_string(), &["not visible"]);
    let reply = broker.call("/a/ask", json!({"who": who})).json();
    contains(&reply["warnings"].to_string(), &["not visible"]);
}

#[test]
fn no_server_is_asked_for_what_no_entry_covers() {
    let items = Items::new(&lists(), &members());
    let broker = items.serve();
    let session = session(&broker);
    for uri in [
        "x://lists",
        "x://LIST",
        "y://other",
        "file:///etc/passwd",
        "http://127.0.0.1/x://list",
        "x://docs/private",
        "x://docs/private%2F1",
        "x://docs/%70rivate",
        "x://docs/%25%37%30rivate",
        "x://docs/Private",
        "x://files/..%25%32%66list",
        "x://docs/a/b",
        "x://docs/..",
        "x://docs/%2e%2E",
        "x://docs/.",
        "x://files/../list",
        "x://files/a/%2e%2e/%2E%2e/list",
        "x://files/..%2flist",
        "x://files/a\\..\\list",
        "x://files/./a",
        "resource:x://list",
        "*",
        "",
    ] {
        let refused = error(&session, "resources/read", &json!({"uri": uri}));
        assert_eq!(
            (&refused["code"], &refused["data"]["uri"]),
            (&json!(-32002), &json!(uri))
        );
    }
    for (path, args, part) in [
        (
            "/a/one",
            json!({"name": "private"}),
            "the filter of the source does not admit",
        ),
        ("/a/one", json!({"name": ".."}), "leaves the template"),
        ("/a/file", json!({"path": "../list"}), "leaves the template"),
        (
            "/a/file",
            json!({"path": "a/../../list"}),
            "leaves the template",
        ),
        (
            "/a/file",
            json!({"path": "x".repeat(9000)}),
            "more than 8192 bytes",
        ),
        ("/a/one", json!({}), "do not match"),
        ("/a/one", json!({"name": 1}), "do not match"),
        ("/a/all", json!({"uri": "x://docs/1"}), "do not match"),
        ("/a/ask", json!({"how": "x"}), "do not match"),
        ("/a/ask", json!({"who": "x", "other": "y"}), "do not match"),
    ] {
        let refused = broker.call(path, args);
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].as_str()),
            (422, Some("args_invalid"))
        );
        contains(&refused.text(), &[part]);
    }
    for (name, arguments) in [
        ("secret", json!({})),
        ("ask", json!({"who": "x"})),
        ("prompt:ask me", json!({})),
    ] {
        let refused = error(
            &session,
            "prompts/get",
            &json!({"name": name, "arguments": arguments}),
        );
        assert_eq!(refused["code"], -32602, "{refused}");
    }
    let other = json!({"ref": {"type": "ref/prompt", "name": "secret"}, "argument": {"name": "a", "value": ""}});
    assert_eq!(
        error(&session, "completion/complete", &other)["code"],
        -32602
    );
    assert_eq!(
        error(&session, "resources/subscribe", &json!({"uri": "x://list"}))["code"],
        -32601
    );
    assert_eq!(items.requests(), Vec::<serde_json::Value>::new());
}

#[test]
fn two_sources_cannot_have_a_uri_a_prompt_or_a_template_in_common() {
    let both = json!({"resources": "locked", "resource_filter": ["*"], "prompt_filter": ["*"]});
    for (one, other, part) in [
        (
            json!({"prompts": [{"name": "p"}]}),
            json!({"prompts": [{"name": "p"}]}),
            "the prompt `p`",
        ),
        (
            json!({"resources": [{"uri": "x://a", "name": "r"}]}),
            json!({"resources": [{"uri": "x://a", "name": "s"}]}),
            "the resource `x://a`",
        ),
        (
            json!({"templates": [{"uriTemplate": "x://a/{id}", "name": "r"}]}),
            json!({"templates": [{"uriTemplate": "x://{rest}", "name": "s"}]}),
            "both templates `x://a/{id}` and `x://{rest}`",
        ),
    ] {
        let items = Items::new(&one, &both);
        items.0.write("b.items", &other.to_string());
        items.configure(&[("a", &both), ("b", &both)]);
        contains(
            &items.0.lock_fails(2),
            &["item_clash", "`/a` and `/b` both have", part],
        );
    }
}

#[test]
fn entries_of_any_kind_on_one_path_are_refused() {
    let lists = json!({"prompts": [{"name": "noop"}]});
    let items = Items::new(&lists, &json!({"prompt_filter": ["*"]}));
    contains(
        &items.0.lock_fails(2),
        &["leaf_clash", "`/a/noop`", "prompt_aliases"],
    );
    let lists =
        json!({"resources": [{"uri": "x://a", "name": "same"}], "prompts": [{"name": "same"}]});
    let members = json!({"prompt_filter": ["*"], "resources": "locked", "resource_filter": ["*"]});
    let items = Items::new(&lists, &members);
    contains(&items.0.lock_fails(2), &["leaf_clash", "`/a/same`"]);
}

#[test]
fn rules_of_access_decide_for_prompts_and_resources_by_their_paths() {
    let items = Items::new(&lists(), &members());
    let mut config: serde_json::Value =
        serde_json::from_str(&items.0.read("c.json")).expect("JSON");
    config["access"] = json!({
        "groups": ["readers"],
        "anonymous": ["readers"],
        "rules": [{"to": ["readers"], "allow": ["/a/one", "/a/noop"]}],
    });
    items.0.write("c.json", &config.to_string());
    let broker = items.serve();
    assert_eq!(
        tree(&broker, "/a"),
        [
            ("/a/noop".into(), "tool".into()),
            ("/a/one".into(), "template".into())
        ]
    );
    let session = session(&broker);
    assert_eq!(
        session.result("prompts/list", &json!({}))["prompts"],
        json!([])
    );
    assert_eq!(
        session.result("resources/list", &json!({}))["resources"],
        json!([])
    );
    session.result("resources/read", &json!({"uri": "x://docs/1"}));
    for uri in ["x://list", "x://files/a"] {
        assert_eq!(
            error(&session, "resources/read", &json!({"uri": uri}))["code"],
            -32002
        );
    }
    assert_eq!(
        error(
            &session,
            "prompts/get",
            &json!({"name": "ask me", "arguments": {"who": "x"}})
        )["code"],
        -32602
    );
    assert_eq!(broker.call("/a/all", json!({})).status, 404);
    assert_eq!(items.requests().len(), 1);
}

#[test]
fn filters_without_effect_are_warnings() {
    let prompts = json!({"prompts": [{"name": "ask"}]});
    for (members, part) in [
        (
            json!({"resource_filter": ["*"]}),
            "`resource_filter` of `/a` matches no template, and without `resources` nothing else",
        ),
        (
            json!({"resources": "live"}),
            "`resources` of `/a` exposes nothing, since `resource_filter` has no positive pattern",
        ),
        (
            json!({"prompt_filter": ["ask", "aks"]}),
            "the pattern `aks` of `/a` matches nothing",
        ),
    ] {
        let locked = Items::new(&prompts, &members).lock();
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
        contains(&locked.stderr, &["warning[filter_empty]", part]);
    }
}
