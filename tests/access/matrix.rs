//! Thirty callers and the recorded tools of 55 servers, with rules at random: every surface gives the answer of
//! the reference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use harness::faults::scaled;
use harness::{Bench, Broker, Response};
use serde_json::{Value, json};

use crate::caller::{Caller, Key, listed};
use crate::reference::{Expected, Random, Rules, Tool};
use crate::stage::serve;

const TOOLS: usize = 1455;
const KEYS: usize = 27;
const GROUPS: usize = 12;
const RULES: usize = 60;
const SECRET: &str = "s3cret-for-tests";
/// The group that sees everything.
const ALL: &str = "g0";

/// The recorded tools below areas: `/x/SERVER/TOOL` for a server whose name begins with `x`.
struct Corpus {
    tools: Vec<Tool>,
    tree: Value,
}

fn corpus() -> Corpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus-broker/servers");
    let files = fs::read_dir(&folder).expect("recordings").flatten();
    let mut files: Vec<_> = files.map(|file| file.path()).collect();
    files.sort();
    let (mut tools, mut areas) = (Vec::new(), BTreeMap::<String, Vec<Value>>::new());
    for file in files {
        let server = file.file_stem().expect("a name").to_string_lossy();
        let area = format!("/{}", &server[..1]);
        let node = format!("{area}/{server}");
        let text = fs::read_to_string(&file).expect("it is readable");
        let recorded: Value = serde_json::from_str(&text).expect("it is JSON");
        for tool in recorded["tools"].as_array().expect("a list") {
            let name = tool["name"].as_str().expect("a name");
            let path = format!("{node}/{name}");
            tools.push(Tool::new(path, &tool["annotations"]));
        }
        let command = json!(["chaos-mcp", "--replay", file]);
        let node = json!({"path": node, "type": "node", "source": {"command": command}});
        areas.entry(area).or_default().push(node);
    }
    let areas = areas.into_iter();
    let areas =
        areas.map(|(path, children)| json!({"path": path, "type": "node", "children": children}));
    tools.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(tools.len(), TOOLS);
    Corpus {
        tools,
        tree: areas.collect(),
    }
}

/// A caller and what it may see.
struct Identity {
    name: String,
    caller: Caller,
    /// By path.
    rights: BTreeMap<String, Expected>,
    /// The paths of the nodes above the tools that it sees, and the root.
    nodes: BTreeSet<String>,
}

impl Identity {
    fn new(
        name: &str,
        caller: Caller,
        groups: &BTreeSet<String>,
        (rules, tools): (&Rules, &[Tool]),
    ) -> Self {
        let rights = tools
            .iter()
            .map(|tool| (tool.path.clone(), rules.decide(groups, tool)));
        let rights: BTreeMap<_, _> = rights.collect();
        let mut nodes = BTreeSet::from(["/".to_owned()]);
        for (path, right) in &rights {
            if *right != Expected::Absent {
                nodes.extend(
                    path.match_indices('/')
                        .skip(1)
                        .map(|(at, _)| path[..at].into()),
                );
            }
        }
        Self {
            name: name.to_owned(),
            caller,
            rights,
            nodes,
        }
    }

    fn sees(&self, path: &str) -> bool {
        let right = self.rights.get(path);
        right.is_some_and(|right| *right != Expected::Absent) || self.nodes.contains(path)
    }

    /// The entries directly below a node, in order.
    fn children(&self, node: &str) -> Vec<&str> {
        let below = if node == "/" {
            "/".to_owned()
        } else {
            format!("{node}/")
        };
        let is_child = |path: &&str| {
            let rest = path.strip_prefix(&below);
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/')) && self.sees(path)
        };
        let all = self.nodes.iter().chain(self.rights.keys());
        let mut found: Vec<&str> = all.map(String::as_str).filter(is_child).collect();
        found.sort_unstable();
        found
    }

    /// Asserts that a refusal is that of a path at which nothing is, and names only what the caller sees.
    fn assert_not_found(&self, path: &str, error: &Value) {
        let name = &self.name;
        assert_eq!(error["code"], "path_not_found", "{name} {path}: {error}");
        let suggested = error["did_you_mean"].as_array().into_iter().flatten();
        let beside = error["details"]["children"]
            .as_array()
            .into_iter()
            .flatten();
        let node = error["details"].get("node");
        for shown in suggested.chain(beside).chain(node) {
            let shown = shown.as_str().expect("a path");
            assert!(self.sees(shown), "{name} is shown {shown} for {path}");
        }
    }

    fn check_tree(&self) {
        let reply = self.caller.tree("/", 16);
        assert_eq!(reply.status, 200, "{}: {}", self.name, reply.text());
        let mut open = vec![reply.json()];
        let mut found = BTreeMap::new();
        while let Some(entry) = open.pop() {
            let path = entry["path"].as_str().expect("a path").to_owned();
            let is_node = entry["type"] == "node";
            assert!(
                found.insert(path.clone(), is_node).is_none(),
                "{path} twice"
            );
            open.extend(entry["children"].as_array().into_iter().flatten().cloned());
        }
        let tools = self.rights.keys().filter(|path| self.sees(path));
        let tools = tools.map(|path| (path.clone(), false));
        let nodes = self.nodes.iter().map(|path| (path.clone(), true));
        let expected: BTreeMap<_, _> = tools.chain(nodes).collect();
        assert!(found == expected, "the tree of {}", self.name);
    }

    /// Describes entries: those that the caller sees are cheap, the others are answered with suggestions.
    fn check_descriptions(&self, paths: &[String]) {
        for batch in paths.chunks(50) {
            let reply = self.caller.post("/meta_desc", &json!({"paths": batch}));
            let reply = reply.json();
            let entries = reply["entries"].as_array().expect("a list");
            assert_eq!(entries.len(), batch.len());
            for (path, entry) in batch.iter().zip(entries) {
                assert_eq!(entry["path"], **path);
                let right = self.rights.get(path);
                if !self.sees(path) {
                    self.assert_not_found(path, &entry["error"]);
                    let members = entry.as_object().expect("an object").len();
                    assert_eq!(members, 2, "{entry}");
                } else if let Some(right) = right {
                    assert!(!entry["args_schema"].is_null(), "{}: {entry}", self.name);
                    let is_narrowed = entry["args_schema_narrowed"] == true;
                    assert_eq!(is_narrowed, *right == Expected::Narrowed, "{path}");
                } else {
                    let children = entry["children"].as_array().expect("a node has them");
                    let children = children.iter().map(|child| &child["path"]);
                    let children: Vec<_> = children.filter_map(Value::as_str).collect();
                    assert_eq!(children, self.children(path), "{} {path}", self.name);
                }
            }
        }
    }

    fn check_calls(&self, tools: &[Tool]) {
        for tool in tools {
            let path = &tool.path;
            let reply = self.caller.call(path, &json!({}));
            match self.sees(path) {
                true => assert!(
                    matches!(reply.status, 200 | 422),
                    "{} {path}: {}",
                    self.name,
                    reply.text()
                ),
                false => {
                    assert_eq!(reply.status, 404, "{} {path}: {}", self.name, reply.text());
                    self.assert_not_found(path, &reply.json()["error"]);
                }
            }
        }
    }

    /// Paths with a character too few: suggestions are of what the caller sees.
    fn check_suggestions(&self, tools: &[Tool]) {
        for tool in tools {
            let typo = &tool.path[..tool.path.len() - 1];
            let reply = self.caller.describe(typo).json();
            if !self.sees(typo) {
                self.assert_not_found(typo, &reply["error"]);
            }
        }
    }

    /// `flat` has the name of each tool of the catalog.
    fn check_mcp(&self, flat: &BTreeMap<String, String>, tools: &[Tool]) {
        let session = self.caller.session("/mcp/direct");
        let legacy = listed(|params| session.ask("tools/list", params));
        let modern = listed(|params| self.caller.modern("/mcp/direct", "tools/list", params));
        let visible = flat.iter().filter(|(path, _)| self.sees(path));
        let visible: Vec<_> = visible.map(|(_, name)| name.clone()).collect();
        let sorted = |mut names: Vec<String>| {
            names.sort_unstable();
            names
        };
        let visible = sorted(visible);
        assert!(sorted(legacy) == visible, "the list of {}", self.name);
        assert!(
            sorted(modern) == visible,
            "the modern list of {}",
            self.name
        );
        for tool in tools {
            let params = json!({"name": flat[&tool.path], "arguments": {}});
            let unknown = json!({"name": "no-such-tool", "arguments": {}});
            let ask = |params: &Value| -> [Response; 2] {
                [
                    session.ask("tools/call", params),
                    self.caller.modern("/mcp/direct", "tools/call", params),
                ]
            };
            for (reply, unknown) in ask(&params).into_iter().zip(ask(&unknown)) {
                let words = |reply: &Response, name: &Value| {
                    let name = name.as_str().expect("a name");
                    reply.json()["error"].to_string().replace(name, "NAME")
                };
                let is_unknown =
                    words(&reply, &params["name"]) == words(&unknown, &json!("no-such-tool"));
                assert_eq!(is_unknown, !self.sees(&tool.path), "{}", reply.text());
            }
        }
        let said = session.caller.try_session("/mcp").expect("a session").1;
        let said = said.json()["result"]["instructions"].clone();
        let said = said.as_str().expect("a text");
        let areas = said.split_once("Areas: ").expect("areas").1;
        let areas = areas.split_whitespace();
        let areas: Vec<_> = areas
            .map(|area| area.strip_suffix('/').unwrap_or(area))
            .collect();
        assert_eq!(areas, self.children("/"), "the areas of {}", self.name);
    }
}

/// The names of the tools for MCP clients, by path, from the list of a caller that sees all.
fn flat_names(caller: &Caller, tools: &[Tool]) -> BTreeMap<String, String> {
    let names = listed(|params| caller.modern("/mcp/direct", "tools/list", params));
    assert_eq!(names.len(), tools.len(), "it sees every tool");
    // Both are in the order of the paths; a name that is too long or taken is another one than the plain one.
    let plain = |tool: &Tool| tool.path[1..].replace('/', "-");
    let pairs = tools.iter().zip(names);
    let is_plain = pairs.clone().filter(|(tool, name)| plain(tool) == *name);
    assert!(is_plain.count() > TOOLS * 9 / 10, "most names are plain");
    pairs
        .map(|(tool, name)| (tool.path.clone(), name))
        .collect()
}

#[test]
fn every_surface_gives_each_caller_what_the_rules_say() {
    let Corpus { tools, tree } = corpus();
    let mut random = Random::new(16);
    let names: Vec<String> = (0..GROUPS).map(|at| format!("g{at}")).collect();
    // No rule drawn is about the first group, which sees everything.
    let drawn = &names[1..];
    let rules = Rules::random(&mut random, &tools, drawn, RULES, ALL);
    let keys: Vec<(Key, BTreeSet<String>)> = (0..KEYS)
        .map(|at| {
            let groups = match at {
                0 => vec![ALL.to_owned()],
                1 => Vec::new(),
                2 => drawn.to_vec(),
                _ => {
                    let count = 1 + random.below(4);
                    random.several(drawn, count)
                }
            };
            let given: Vec<_> = groups.iter().map(String::as_str).collect();
            let key = Key::new(&format!("k{at}"), &given);
            (key, groups.into_iter().collect())
        })
        .collect();
    let anonymous = random.several(drawn, 2);
    let secret = random.several(drawn, 3);
    let config = json!({
        "types": false,
        "tree": tree,
        "access": {"groups": names, "rules": rules.to_json(), "anonymous": anonymous, "secret": secret},
        "identities": {"keys": keys.iter().map(|(key, _)| &key.entry).collect::<Vec<_>>()},
    });
    let bench = Bench::new();
    bench.write("c.json", &config.to_string());
    bench.lock();
    let broker = Broker::start_ready(serve(&bench).env("MCP_BROKER_SECRET", SECRET));

    let address = broker.address();
    let set = |groups: &[String]| -> BTreeSet<String> { groups.iter().cloned().collect() };
    let bearer = format!("Bearer {SECRET}");
    let by_secret = Caller::with(address, &[("Authorization", &bearer)]);
    let given = (&rules, tools.as_slice());
    let of_keys = keys.iter().map(|(key, groups)| {
        let name = key.entry["name"].as_str().expect("a name");
        Identity::new(name, key.at(address), groups, given)
    });
    let mut identities: Vec<_> = of_keys.collect();
    identities.push(Identity::new("secret", by_secret, &set(&secret), given));
    let without = Caller::with(address, &[]);
    identities.push(Identity::new("anonymous", without, &set(&anonymous), given));
    let wrong = Key::new("not-in-the-config", &[ALL]).at(address);
    assert_eq!(wrong.tree("/", 1).status, 401);
    // The same key in another header.
    let (_, key) = &keys[0].0.at(address).credential[0];
    let key = key.trim_start_matches("Bearer ").to_owned();
    let other = Caller::with(address, &[("X-API-Key", &key)]);
    identities.push(Identity::new(
        "header",
        other,
        &set(&[ALL.to_owned()]),
        given,
    ));
    assert_eq!(identities.len(), 30);

    let flat = flat_names(&identities[0].caller, &tools);
    let mut paths: Vec<String> = tools.iter().map(|tool| tool.path.clone()).collect();
    paths.extend(identities[0].nodes.iter().cloned());
    // With 1455, every entry is asked for by every caller on every surface.
    let (calls, mut seen) = (scaled("MCP_BROKER_ACCESS_CALLS", 24), 0);
    for identity in &identities {
        identity.check_tree();
        let (mut described, absent): (Vec<_>, Vec<_>) =
            paths.iter().cloned().partition(|path| identity.sees(path));
        described.extend(random.several(&absent, 3 * calls));
        identity.check_descriptions(&described);
        identity.check_calls(&random.several(&tools, calls));
        identity.check_suggestions(&random.several(&tools, calls / 4));
        identity.check_mcp(&flat, &random.several(&tools, calls / 8));
        seen += tools
            .iter()
            .filter(|tool| identity.sees(&tool.path))
            .count();
    }
    assert!((TOOLS * 5..TOOLS * 25).contains(&seen), "{seen} rights");
}
