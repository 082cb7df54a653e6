//! Resources that are listed while the broker runs.

use harness::{Broker, wait_until};
use serde_json::{Value, json};

use super::{Items, each, error, session, tree};

fn members() -> Value {
    let filter = ["x://*", "!x://private*", "!x://docs/secret*"];
    json!({"resources": "live", "resource_filter": filter})
}

fn resource(uri: &str) -> Value {
    json!({"uri": uri, "name": uri})
}

fn uris(broker: &Broker) -> Vec<String> {
    let list = session(broker).result("resources/list", &json!({}));
    each(&list["resources"], "uri")
}

#[test]
fn resource_that_comes_or_goes_is_no_drift() {
    let lists = |uris: &[&str]| {
        json!({
            "resources": uris.iter().map(|uri| resource(uri)).collect::<Vec<_>>(),
            "templates": [{"uriTemplate": "x://docs/{name}", "name": "doc"}],
        })
    };
    let items = Items::new(&lists(&["x://a", "x://private", "y://b"]), &members());
    let broker = items.serve();
    assert_eq!(
        tree(&broker, "/a"),
        [
            ("doc", "template"),
            ("noop", "tool"),
            ("resources", "resource")
        ]
        .map(|(leaf, kind)| (format!("/a/{leaf}"), kind.to_owned()))
    );
    assert_eq!(uris(&broker), ["x://a"]);
    items.set(&lists(&["x://b", "x://c"]));
    wait_until("the new list", || uris(&broker) == ["x://b", "x://c"]);
    let session = session(&broker);
    for uri in ["x://b", "x://docs/1"] {
        let content = json!({"contents": [{"uri": uri, "text": format!("content of {uri}")}]});
        assert_eq!(broker.result("/a/resources", json!({"uri": uri})), content);
        assert_eq!(
            session.result("resources/read", &json!({"uri": uri})),
            content
        );
    }
    let asked = items.requests().len();
    for uri in [
        "x://a",
        "x://private",
        "y://b",
        "x://docs/../a",
        "x://docs/%2e%2e",
        // A template of the server covers it, so that the filter alone refuses it.
        "x://docs/secret1",
        "file:///etc/passwd",
    ] {
        assert_eq!(
            error(&session, "resources/read", &json!({"uri": uri}))["code"],
            -32002
        );
        let refused = broker.call("/a/resources", json!({"uri": uri}));
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].as_str()),
            (422, Some("args_invalid"))
        );
    }
    assert_eq!(items.requests().len(), asked);
    assert_eq!(broker.source("/a")["state"], "ready");
    assert_eq!(items.0.check().0, Some(0));
}

#[test]
fn live_resources_are_bounded_marked_and_without_hidden_characters() {
    let mut resources: Vec<Value> = (0..250)
        .map(|at| resource(&format!("x://{at:03}")))
        .collect();
    resources[0]["description"] = json!("Hidden: \u{e0041}\u{200b}");
    resources[1]["description"] = json!("d".repeat(500));
    resources.push(resource("x://\u{202e}a"));
    let items = Items::new(&json!({"resources": resources}), &members());
    let broker = items.serve();
    let described = broker
        .post("/meta_desc", &json!({"path": "/a/resources"}))
        .json();
    let shown = described["resources"].as_array().expect("a list");
    assert_eq!((shown.len(), &described["more"]), (200, &json!(50)));
    assert_eq!(
        (&described["type"], &described["reviewed"]),
        (&json!("resource"), &json!(false))
    );
    assert_eq!(shown[0], resource("x://000"));
    assert_eq!(shown[1]["description"], "d".repeat(200));
    let list = session(&broker).result("resources/list", &json!({}));
    let listed = list["resources"].as_array().expect("a list");
    assert_eq!(listed.len(), 250);
    for resource in listed {
        assert_eq!(resource["_meta"]["dev.mcp-broker/reviewed"], false);
    }
    assert_eq!(
        listed[0]["_meta"]["dev.mcp-broker/left_out"],
        "hidden characters"
    );
    assert!(listed[0].get("description").is_none());
}

#[test]
fn pages_of_a_list_have_each_resource_once_while_resources_come_and_go() {
    let of = |numbers: &mut dyn Iterator<Item = usize>| -> Value {
        let resources = numbers.map(|at| resource(&format!("x://{at:04}")));
        json!({"resources": resources.collect::<Vec<_>>()})
    };
    let items = Items::new(&of(&mut (0..2500)), &members());
    let broker = items.serve();
    let session = session(&broker);
    let page = |params: Value| session.result("resources/list", &params);
    let first = page(json!({}));
    assert_eq!(each(&first["resources"], "uri").len(), 1000);
    // The last resource of the page and the one after it are gone.
    items.set(&of(&mut (0..2500).filter(|at| ![999, 1000].contains(at))));
    wait_until("the list is read again", || {
        let read = session.ask(&json!(1), "resources/read", &json!({"uri": "x://1000"}));
        read.json()["error"]["code"] == -32002
    });
    let second = page(json!({"cursor": first["nextCursor"]}));
    let third = page(json!({"cursor": second["nextCursor"]}));
    let numbers = |page: &Value| each(&page["resources"], "uri");
    let expected = |numbers: std::ops::Range<usize>| -> Vec<String> {
        numbers.map(|at| format!("x://{at:04}")).collect()
    };
    assert_eq!(numbers(&second), expected(1001..2001));
    assert_eq!(numbers(&third), expected(2001..2500));
    assert!(third.get("nextCursor").is_none());
    for cursor in [json!("/z"), json!("/a/resources z"), json!(7)] {
        let refused = error(&session, "resources/list", &json!({"cursor": cursor}));
        assert_eq!(refused["code"], -32602, "{cursor}");
    }
}

#[test]
fn entry_of_live_resources_has_the_leaf_of_its_alias_and_its_own_access() {
    let mut members = members();
    members["resource_aliases"] = json!({"*": "files"});
    let items = Items::new(&json!({"resources": [resource("x://a")]}), &members);
    let mut config: Value = serde_json::from_str(&items.0.read("c.json")).expect("JSON");
    config["access"] = json!({
        "groups": ["some"],
        "anonymous": ["some"],
        "rules": [{"to": ["some"], "allow": ["/a/noop"]}],
    });
    let open = items.serve();
    assert_eq!(
        open.result("/a/files", json!({"uri": "x://a"}))["contents"][0]["uri"],
        "x://a"
    );
    drop(open);
    items.0.write("c.json", &config.to_string());
    let broker = items.serve();
    assert_eq!(tree(&broker, "/a"), [("/a/noop".into(), "tool".into())]);
    let session = session(&broker);
    assert_eq!(
        session.result("resources/list", &json!({}))["resources"],
        json!([])
    );
    assert_eq!(
        error(&session, "resources/read", &json!({"uri": "x://a"}))["code"],
        -32002
    );
    assert_eq!(items.requests().len(), 1);
}

#[test]
fn rule_about_arguments_decides_for_live_resources_and_templates() {
    let lists = json!({
        "resources": [resource("x://a"), resource("x://b")],
        "templates": [{"uriTemplate": "x://docs/{name}", "name": "doc"}],
    });
    let items = Items::new(&lists, &members());
    let mut config: Value = serde_json::from_str(&items.0.read("c.json")).expect("JSON");
    let only = |member: &str, value: &str| json!({"properties": {member: {"const": value}}});
    config["access"] = json!({
        "groups": ["some"],
        "anonymous": ["some"],
        "rules": [
            {"to": ["some"], "allow": ["/a/resources"], "args": only("uri", "x://a")},
            {"to": ["some"], "allow": ["/a/doc"], "args": only("name", "one")},
        ],
    });
    items.0.write("c.json", &config.to_string());
    let broker = items.serve();
    let session = session(&broker);
    session.result("resources/read", &json!({"uri": "x://a"}));
    broker.result("/a/doc", json!({"name": "one"}));
    let asked = items.requests().len();
    assert_eq!(asked, 2);
    // A URI of the template could have any name.
    for uri in ["x://b", "x://docs/one", "x://docs/two"] {
        error(&session, "resources/read", &json!({"uri": uri}));
    }
    assert_eq!(
        broker.call("/a/resources", json!({"uri": "x://b"})).status,
        403
    );
    assert_eq!(broker.call("/a/doc", json!({"name": "two"})).status, 403);
    let reference = json!({"type": "ref/resource", "uri": "x://docs/{name}"});
    let params = json!({"ref": reference, "argument": {"name": "name", "value": "o"}});
    error(&session, "completion/complete", &params);
    assert_eq!(items.requests().len(), asked);
}
