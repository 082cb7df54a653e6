//! For each caller, a second broker whose lock has only what this caller may see: it gives the same bytes.

use std::path::Path;

use harness::{Bench, Broker, Response};
use serde_json::{Value, json};

use crate::caller::{Caller, Key, Session};
use crate::stage::{Comparable, comparable, serve};

/// Nodes of the tree and the recordings of the servers on them.
const SERVERS: [(&str, &str); 7] = [
    ("/dev/git", "git"),
    ("/dev/hub", "github-archived"),
    ("/files", "filesystem"),
    ("/talk/slack", "slack-archived"),
    ("/talk/old/memory", "memory"),
    ("/time", "time"),
    ("/zoo", "everything"),
];
/// Searches: words that few tools have, mistyped words, words of denied tools alone, other languages, and none.
const QUERIES: [&str; 8] = [
    "create issue comment",
    "delete entity",
    "git rebsae brnach",
    "read a file",
    "who am I",
    "what time is it in Tokyo",
    "数据 löschen",
    "--- 1 ---",
];
const GROUPS: [&str; 4] = ["dev", "ops", "reader", "admin"];

/// The nodes of the tree, with the members that `source` gives each source; a node without one, and nodes
/// without any below, are left out.
fn tree(source: impl Fn(&str) -> Option<Value>) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus-broker/servers");
    let mut nodes: Vec<Value> = Vec::new();
    for (path, server) in SERVERS {
        let Some(members) = source(path) else {
            continue;
        };
        let file = folder.join(format!("{server}.json"));
        let mut own = json!({"command": ["chaos-mcp", "--replay", file, "--page-size", "7"]});
        for (name, value) in members.as_object().expect("members") {
            own[name] = value.clone();
        }
        // The node with its source, and the nodes above it, from the inside out.
        let mut node = json!({"path": path, "type": "node", "source": own});
        // A source without a summary gets one from the names of its tools, those that the caller may see.
        if path.starts_with("/talk") {
            node["summary"] = format!("at {path}").into();
        }
        let mut above = path;
        while let Some((parent, _)) = above
            .rsplit_once('/')
            .filter(|(above, _)| !above.is_empty())
        {
            above = parent;
            node = json!({"path": above, "type": "node", "children": [node]});
        }
        add(&mut nodes, node);
    }
    json!(nodes)
}

/// Adds a node to its siblings, or its children to the one that is there.
fn add(siblings: &mut Vec<Value>, node: Value) {
    match siblings
        .iter_mut()
        .find(|known| known["path"] == node["path"])
    {
        None => siblings.push(node),
        Some(known) => {
            let Value::Array(children) = &mut known["children"] else {
                panic!("{known} has no children");
            };
            for child in node["children"].as_array().expect("children") {
                add(children, child.clone());
            }
        }
    }
}

/// The rules of the broker with everything.
fn rules() -> Value {
    json!([
        {"allow": ["/dev/**"], "to": ["dev"]},
        {"allow": ["/**"], "to": ["reader"], "where": {"readOnlyHint": true}},
        {"allow": ["/talk/**", "/files/*", "/zoo/get-*"], "to": ["ops"]},
        {"allow": ["/time/*"], "to": ["ops"], "args": {"maxProperties": 2}},
        {"allow": ["/**"], "to": ["admin"]},
        {"deny": ["/**/*create_*", "/talk/old/memory/delete_*"], "to": ["*"], "except": ["admin"]},
        {"deny": ["/dev/git/git_re*", "/zoo/get-env"], "to": ["dev", "ops"]},
    ])
}

/// A broker in a separate folder.
struct Served {
    _bench: Bench,
    broker: Broker,
}

impl Served {
    fn new(tree: &Value, rules: &Value, keys: &[&Key]) -> Self {
        let bench = Bench::new();
        let keys: Vec<_> = keys.iter().map(|key| &key.entry).collect();
        let config = json!({
            "types": false,
            "tree": tree,
            "access": {"groups": GROUPS, "rules": rules},
            "identities": {"keys": keys},
            "public_url": "https://broker.example",
        });
        bench.write("c.json", &config.to_string());
        bench.lock();
        let broker = Broker::start_ready(serve(&bench));
        Self {
            _bench: bench,
            broker,
        }
    }
}

/// All tools in a tree as a caller sees it, or all nodes.
fn paths(caller: &Caller, kind: &str) -> Vec<String> {
    let mut open = vec![caller.tree("/", 16).json()];
    let mut found = Vec::new();
    while let Some(entry) = open.pop() {
        if entry["type"] == kind {
            found.push(entry["path"].as_str().expect("a path").to_owned());
        }
        open.extend(entry["children"].as_array().into_iter().flatten().cloned());
    }
    found.sort_unstable();
    found
}

/// The broker that has only what the caller of the other one sees.
fn only_for(caller: &Caller, key: &Key) -> Served {
    let tools = paths(caller, "tool");
    let names = |node: &str| -> Vec<&str> {
        let below = tools.iter().filter_map(|path| path.rsplit_once('/'));
        let own = below.filter(|(parent, _)| *parent == node);
        own.map(|(_, name)| name).collect()
    };
    let tree = tree(|node| {
        let names = names(node);
        (!names.is_empty()).then(|| json!({"tool_filter": names}))
    });
    let is_narrowed = |path: &&String| caller.describe(path).json()["args_schema_narrowed"] == true;
    let (narrowed, whole): (Vec<_>, Vec<_>) = tools.iter().partition(is_narrowed);
    let mut rules = Vec::new();
    if !whole.is_empty() {
        rules.push(json!({"allow": whole, "to": ["*"]}));
    }
    if !narrowed.is_empty() {
        rules.push(json!({"allow": narrowed, "to": ["*"], "args": {"maxProperties": 2}}));
    }
    Served::new(&tree, &json!(rules), &[key])
}

/// Requests and their replies, one after the other.
struct Transcript<'a> {
    caller: &'a Caller,
    all: Vec<(String, Comparable)>,
}

impl Transcript<'_> {
    fn note(&mut self, asked: String, reply: &Response) {
        self.all.push((asked, comparable(reply)));
    }

    fn post(&mut self, route: &str, body: Value) {
        let reply = self.caller.post(route, &body);
        self.note(format!("{route} {body}"), &reply);
    }

    fn get(&mut self, route: &str) {
        let mut reply = self.caller.get(route);
        if route == "/healthz" {
            // It has the digests of catalog, config and lock.
            reply.body = without_digests(&reply.text()).into_bytes();
        }
        self.note(format!("GET {route}"), &reply);
    }

    /// A request of both eras on a route. The session is one of the caller on that route.
    fn mcp(&mut self, session: &Session, method: &str, params: &Value) {
        let asked = format!("{} {method} {params}", session.route);
        let reply = session.ask(method, params);
        self.note(format!("legacy {asked}"), &reply);
        let reply = self.caller.modern(&session.route, method, params);
        self.note(format!("modern {asked}"), &reply);
    }

    /// `initialize`; the session if it was begun.
    fn initialize(&mut self, route: &str) -> Option<Session> {
        let begun = self.caller.try_session(route);
        let reply = match &begun {
            Ok((_, reply)) | Err(reply) => reply,
        };
        self.note(format!("initialize {route}"), reply);
        begun.ok().map(|(session, _)| session)
    }
}

fn without_digests(text: &str) -> String {
    const DIGITS: usize = 64;
    let mut parts = text.split("sha256/1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + "DIGEST" + &part[DIGITS..])
}

/// Everything that one may ask who knows the whole tree: `tools` with their flat names, and `nodes`.
fn transcript(
    caller: &Caller,
    tools: &[(String, String)],
    nodes: &[String],
) -> Vec<(String, Comparable)> {
    let mut script = Transcript {
        caller,
        all: Vec::new(),
    };
    let all = || nodes.iter().chain(tools.iter().map(|(path, _)| path));
    for depth in [1, 2, 16] {
        for path in nodes {
            script.post("/meta_tree", json!({"path": path, "depth": depth}));
        }
    }
    script.post("/meta_tree", json!({}));
    for query in QUERIES {
        script.post("/meta_tree", json!({"query": query, "limit": 50}));
        script.post("/meta_tree", json!({"query": query, "path": "/dev"}));
    }
    for path in all() {
        script.post("/meta_desc", json!({"path": path}));
        let (above, leaf) = path.rsplit_once('/').expect("a path");
        for wrong in [
            path[..path.len() - 1].to_owned(),
            format!("{above}/x{leaf}"),
            format!("/{leaf}"),
            format!("{path}/more"),
            path[1..].to_uppercase(),
        ] {
            script.post("/meta_desc", json!({"path": wrong}));
        }
    }
    let mixed: Vec<_> = all()
        .flat_map(|path| [path.clone(), format!("{path}s")])
        .collect();
    for batch in mixed.chunks(50) {
        script.post("/meta_desc", json!({"paths": batch}));
    }
    for (path, _) in tools {
        script.post("/meta_tree", json!({"path": path}));
        for args in [json!({}), json!({"a": 1, "b": 2, "c": 3}), json!([])] {
            script.post("/meta_call", json!({"path": path, "args": args}));
        }
    }
    let args = json!({"timezone": "UTC"});
    script.post(
        "/meta_call",
        json!({"path": "/time/get_current_time", "args": args}),
    );
    for path in [
        "",
        "/",
        "/dev",
        "/dev/git",
        "/nope/nope",
        "files/read_file",
        "/a b",
    ] {
        script.post("/meta_call", json!({"path": path}));
    }
    script.post("/meta_call", json!({"path": "/dev/git/git_log", "more": 1}));
    for route in [
        "/readyz",
        "/healthz",
        "/sources",
        "/nope",
        "/.well-known/oauth-protected-resource",
    ] {
        script.get(route);
    }
    for route in ["/mcp", "/mcp/direct"] {
        mcp(&mut script, route, tools, nodes);
    }
    script.all
}

fn mcp(script: &mut Transcript<'_>, route: &str, tools: &[(String, String)], nodes: &[String]) {
    let session = script.initialize(route).expect("a session");
    let discover = script.caller.modern(route, "server/discover", &json!({}));
    script.note(format!("{route} server/discover"), &discover);
    script.mcp(&session, "tools/list", &json!({}));
    for (path, flat) in tools {
        // A cursor is the name of a tool.
        script.mcp(&session, "tools/list", &json!({"cursor": flat}));
        let (name, arguments) = match route {
            "/mcp" => ("meta_call", json!({"path": path, "args": {}})),
            _ => (flat.as_str(), json!({})),
        };
        script.mcp(
            &session,
            "tools/call",
            &json!({"name": name, "arguments": arguments}),
        );
        let named = json!({"name": format!("{flat}s"), "arguments": {}});
        script.mcp(&session, "tools/call", &named);
    }
    for path in nodes
        .iter()
        .chain(tools.iter().map(|(path, _)| path).step_by(5))
    {
        let under = format!("{route}?under={path}");
        if let Some(session) = script.initialize(&under) {
            script.mcp(&session, "tools/list", &json!({}));
        }
    }
    for (name, arguments) in [
        ("meta_tree", json!({"depth": 3})),
        ("meta_tree", json!({"query": "create branch"})),
        ("meta_desc", json!({"path": "/files"})),
        (
            "meta_desc",
            json!({"path": "/talk/old/memory/delete_entities"}),
        ),
    ] {
        script.mcp(
            &session,
            "tools/call",
            &json!({"name": name, "arguments": arguments}),
        );
    }
}

/// Compares the replies to a caller in these groups with those of a broker that has nothing else.
fn compare(name: &str, groups: &[&str], at_least: usize) {
    let (key, admin) = (Key::new(name, groups), Key::new("admin", &["admin"]));
    let whole = Served::new(&tree(|_| Some(json!({}))), &rules(), &[&key, &admin]);
    let (caller, admin) = (
        key.at(whole.broker.address()),
        admin.at(whole.broker.address()),
    );
    let tools = paths(&admin, "tool");
    let flat = crate::caller::listed(|params| admin.modern("/mcp/direct", "tools/list", params));
    let tools: Vec<_> = tools.into_iter().zip(flat).collect();
    let nodes = paths(&admin, "node");
    let seen = paths(&caller, "tool").len();
    assert!((at_least..tools.len()).contains(&seen), "{seen} tools");

    let only = only_for(&caller, &key);
    let expected = transcript(&key.at(only.broker.address()), &tools, &nodes);
    let found = transcript(&caller, &tools, &nodes);
    // Addresses are in no reply, so that they need not be replaced.
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(&found) {
        assert!(
            expected == found,
            "{name}\nwithout the others: {expected:?}\nwith them: {found:?}"
        );
    }
}

#[test]
fn caller_of_one_group_gets_the_bytes_of_a_broker_with_its_tools_only() {
    compare("dev", &["dev"], 20);
}

#[test]
fn caller_of_safe_tools_gets_the_bytes_of_a_broker_with_its_tools_only() {
    compare("reader", &["reader"], 20);
}

#[test]
fn caller_of_narrowed_tools_gets_the_bytes_of_a_broker_with_its_tools_only() {
    compare("ops", &["ops"], 20);
}

#[test]
fn caller_of_several_groups_gets_the_bytes_of_a_broker_with_its_tools_only() {
    compare("both", &["dev", "reader"], 40);
}

#[test]
fn caller_without_groups_gets_the_bytes_of_a_broker_without_tools() {
    compare("none", &[], 0);
}
