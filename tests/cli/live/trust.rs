//! `lock` and `check` of sources with trust levels.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use broker_mcp::{TrustLevel, TrustPolicy};
use harness::{Bench, Run, binary, contains};
use serde_json::{Value, json};

use super::bench::{names, tool};

/// A source `/a` with these members and these tools.
fn bench(members: Value, tools: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.configure([("a", members)]);
    let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
    bench.script("a", &json!({ "tools": tools }));
    bench
}

/// The exposed tools of the lock, and the hidden ones.
fn locked(bench: &Bench) -> [Vec<String>; 2] {
    let lock = bench.lock_json();
    let source = &lock["sources"][0];
    [
        names(&source["exposed"], "upstream_name"),
        names(&source["hidden"], "name"),
    ]
    .map(|names| names.into_iter().map(str::to_owned).collect())
}

const TOOLS: [&str; 5] = ["get", "put", "deletePage", "run-command", "notes.secret"];

#[test]
fn lock_of_an_untrusted_source_names_each_hidden_tool_with_its_word() {
    let bench = bench(
        json!({"trust": "untrusted", "tool_filter": ["!put"]}),
        &TOOLS,
    );
    let output = bench.lock();
    contains(
        &output.stderr,
        &[
            "/a: 1 tool exposed, 4 hidden",
            "/a: `deletePage` is hidden by the trust level `untrusted`: its name has the word `delete`\n",
            "/a: `notes.secret` is hidden by the trust level `untrusted`: its name has the word `secret`\n",
            "/a: `run-command` is hidden by the trust level `untrusted`: its name has the word `run_command`\n",
            "/a: to expose such a tool, write its name in `tool_filter`, beside `*` for the other tools\n",
        ],
    );
    assert!(
        !output.stderr.contains("`put` is hidden"),
        "{}",
        output.stderr
    );
    let hidden = ["deletePage", "notes.secret", "put", "run-command"];
    assert_eq!(
        locked(&bench),
        [vec!["get".to_owned()], hidden.map(str::to_owned).to_vec()]
    );
    assert_eq!(bench.lock_json()["sources"][0]["trust"], "untrusted");

    // By its literal name one of them is exposed; a wildcard is not enough.
    bench.configure([(
        "a",
        json!({"trust": "untrusted", "tool_filter": ["*", "run-*", "deletePage"]}),
    )]);
    let output = bench.lock();
    let [exposed, _] = locked(&bench);
    assert_eq!(exposed, ["deletePage", "get", "put"]);
    contains(
        &output.stderr,
        &["/a: to expose such a tool, write its name in `tool_filter`\n"],
    );
}

#[test]
fn filter_of_a_config_applies_at_every_level_and_a_curated_list_to_verified_servers() {
    const URL: &str = "https://tools.example/mcp";
    const FILTER: [&str; 3] = ["get", "deletePage", "!put"];
    for (level, of_policy) in [
        (TrustLevel::Trusted, &TOOLS as &[_]),
        (TrustLevel::Verified, &["get", "deletePage"]),
        (TrustLevel::Untrusted, &["get", "put"]),
    ] {
        let bench = bench(json!({"trust": level, "tool_filter": FILTER}), &TOOLS);
        bench.lock();
        assert_eq!(locked(&bench)[0], ["deletePage", "get"], "{level}");

        let mut policy = TrustPolicy::new();
        policy.set_curated(URL, &FILTER).expect("valid patterns");
        policy.set_trust(URL, level).expect("a URL");
        let exposed = policy.filter_tools(TOOLS, URL);
        assert_eq!(exposed.as_deref(), Ok(of_policy), "{level}");
    }
}

#[test]
fn lock_with_many_sensitive_names_reports_a_limited_number() {
    let tools: Vec<String> = (0..250).map(|at| format!("delete_{at:03}")).collect();
    let mut tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    tools.push("get");
    let output = bench(json!({"trust": "untrusted"}), &tools).lock();
    assert_eq!(output.stderr.matches("its name has the word").count(), 200);
    contains(
        &output.stderr,
        &["`delete_199` is", "/a: and 50 more tools for such a word"],
    );
}

#[test]
fn lock_of_a_verified_source_needs_a_list_and_prints_one_to_copy() {
    let bench = bench(
        json!({"trust": "verified", "tool_filter": ["!put"]}),
        &TOOLS,
    );
    let stderr = bench.lock_fails(2);
    let list = r#""tool_filter": ["deletePage", "get", "notes.secret", "run-command"]"#;
    contains(
        &stderr,
        &[
            "error[trust_empty]: `/a` has the trust level `verified`, and its `tool_filter` has no positive pattern, so no tool is exposed",
            list,
            "c.json:1:",
            " at /tree/0/source/trust",
        ],
    );
    // The printed line is a part of a config.
    let members: Value = serde_json::from_str(&format!("{{{list}}}")).expect("JSON");
    let filter = members["tool_filter"].clone();
    bench.configure([("a", json!({"trust": "verified", "tool_filter": filter}))]);
    bench.lock();
    let [exposed, hidden] = locked(&bench);
    assert_eq!(
        exposed,
        ["deletePage", "get", "notes.secret", "run-command"]
    );
    assert_eq!(hidden, ["put"]);
}

#[test]
fn lock_list_to_copy_has_patterns_that_match_only_their_tool() {
    let tools = ["a*", "ab", "c[1]", "!d", "e\u{202e}"];
    let bench = bench(json!({"trust": "verified"}), &tools);
    let stderr = bench.lock_fails(2);
    let list = stderr
        .lines()
        .find(|line| line.contains("\"tool_filter\": ["));
    let members: Value =
        serde_json::from_str(&format!("{{{}}}", list.expect("a list"))).expect("JSON");
    let patterns = members["tool_filter"].as_array().expect("a list");
    assert_eq!(patterns.len(), tools.len());
    for pattern in patterns {
        let text = pattern.as_str().expect("a text");
        let filter = broker_model::filter::ToolFilter::compile(&[text]).expect("a glob");
        let matched = tools.iter().filter(|name| filter.admits(name));
        assert_eq!(matched.count(), 1, "{text}");
    }
}

#[test]
fn lock_of_an_untrusted_source_with_sensitive_names_only_warns_or_is_refused() {
    let tools = ["delete", "purge"];
    let output = bench(json!({"trust": "untrusted"}), &tools).lock();
    contains(
        &output.stderr,
        &[
            "warning[trust_empty]: the trust level `untrusted` of `/a` hides each of its 2 tools that the filter admits",
            r#""tool_filter": ["delete", "purge"]"#,
        ],
    );
    // The config asks for tools, and gets none.
    let asked = bench(
        json!({"trust": "untrusted", "tool_filter": ["de*"]}),
        &tools,
    );
    contains(
        &asked.lock_fails(2),
        &["error[trust_empty]", r#""tool_filter": ["delete"]"#],
    );
    let other = bench(json!({"trust": "untrusted", "tool_filter": ["x*"]}), &tools);
    contains(&other.lock_fails(2), &["error[filter_empty]"]);
}

#[test]
fn check_of_a_raised_level_reports_it_and_the_stale_lock() {
    let bench = bench(json!({"trust": "untrusted"}), &TOOLS);
    bench.lock();
    let before = bench.lock_state();
    bench.configure([("a", json!({"trust": "verified", "tool_filter": ["get"]}))]);
    let (code, report) = bench.check();
    assert_eq!(code, Some(5), "the lock is stale");
    let source = &report["sources"][0];
    assert_eq!([&source["source"], &source["class"]], ["/a", "security"]);
    let found = &source["findings"][0];
    assert_eq!(
        [&found["rule"], &found["old"], &found["new"]],
        ["trust-raised", "untrusted", "verified"]
    );
    contains(
        found["remedy"].as_str().expect("a text"),
        &["`broker-gen lock --config c.json --source /a`"],
    );
    let output = bench.verb(&["check"]);
    contains(
        &output.stderr,
        &[
            "error[lock_stale]: the config of the source `/a` has changed since it was locked: the trust level was raised from `untrusted` to `verified`; `tool_filter` has the new pattern `get`",
        ],
    );
    contains(
        &output.stdout,
        &["security: source /a\n  error[trust-raised] the trust level was raised"],
    );
    assert_eq!(bench.lock_state(), before);

    // A lowered level makes the lock stale, like a changed filter.
    bench.configure([("a", json!({"trust": "verified", "tool_filter": ["get"]}))]);
    bench.lock();
    bench.configure([("a", json!({"trust": "untrusted", "tool_filter": ["get"]}))]);
    let output = bench.verb(&["check"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stdout,
        &["unknown: source /a\n  error[source-config-changed]"],
    );
    contains(
        &output.stderr,
        &[
            "error[lock_stale]",
            "the trust level was lowered from `verified` to `untrusted`",
        ],
    );
}

#[test]
fn check_reports_no_new_tool_that_the_level_hides() {
    let bench = bench(json!({"trust": "untrusted"}), &["get"]);
    bench.lock();
    let tools = ["get", "put", "delete"].map(tool);
    bench.script("a", &json!({ "tools": tools }));
    let (code, report) = bench.check();
    assert_eq!(code, Some(0), "{report:#}");
    let added = report["tools"].as_array().expect("a list").iter();
    assert_eq!(added.map(|tool| &tool["tool"]).collect::<Vec<_>>(), ["put"]);
}

#[test]
fn lock_stays_fresh_with_a_level_that_is_its_default() {
    let bench = bench(json!({}), &TOOLS);
    bench.lock();
    bench.configure([("a", json!({"trust": "trusted"}))]);
    let output = bench.verb(&["check"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

/// A server over HTTP with the tools of a script, ended when dropped; its URL.
struct HttpServer(Child, String);

impl HttpServer {
    fn start(bench: &Bench, script: &str) -> Self {
        let script = bench.path(script);
        let args = ["--http", "0", "--script", script.to_str().expect("a text")];
        let run = Run::new(&binary("chaos-mcp")).args(args);
        let mut server = run.spawn_with_outputs(Stdio::piped(), Stdio::null());
        let mut url = String::new();
        let output = server.stdout.take().expect("it is piped");
        let read = BufReader::new(output).read_line(&mut url);
        assert!(read.is_ok_and(|length| length > 0), "it prints its URL");
        Self(server, url.trim().to_owned())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It ends with its input; an error means that it has ended already.
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

#[test]
fn lock_of_a_url_hides_sensitive_names_unless_it_is_trusted() {
    let bench = bench(json!({}), &TOOLS);
    let server = HttpServer::start(&bench, "a.json");
    let configure = |members: Value| {
        let mut entry = json!({"url": server.1, "relist_interval": 0});
        for (key, value) in members.as_object().expect("an object") {
            entry[key] = value.clone();
        }
        bench.write("c.json", &json!({"mcpServers": {"a": entry}}).to_string());
    };
    configure(json!({}));
    let output = bench.lock();
    contains(
        &output.stderr,
        &[
            "/a: `deletePage` is hidden by the trust level `untrusted`: its name has the word `delete`",
        ],
    );
    assert_eq!(locked(&bench)[0], ["get", "put"]);
    assert_eq!(bench.lock_json()["sources"][0].get("trust"), None);
    let tree = bench.fine(&["tree", "--config", "c.json", "--hidden"]);
    contains(&tree, &["its name has the word `secret`"]);

    configure(json!({"trust": "trusted"}));
    let (code, report) = bench.check();
    assert_eq!(code, Some(5));
    assert_eq!(report["sources"][0]["findings"][0]["rule"], "trust-raised");
    bench.lock();
    assert_eq!(locked(&bench)[0].len(), TOOLS.len());
    // The `trust` of another client is not a level.
    configure(json!({"trust": true}));
    let output = bench.verb(&["check"]);
    contains(
        &output.stderr,
        &[
            "warning[key_ignored]: a `trust` that is a boolean",
            "lowered from `trusted` to `untrusted`",
        ],
    );
}

#[test]
fn lock_of_a_url_without_a_path_says_that_mcp_answered() {
    let bench = bench(json!({}), &["get"]);
    let mut script = json!({"tools": [tool("get")]});
    script["http"] = json!({"rules": [{"on": {"path": "/"}, "do": {"status": 404}}]});
    bench.script("a", &script);
    let server = HttpServer::start(&bench, "a.json");
    let url = server
        .1
        .strip_suffix("/mcp")
        .expect("the path of the server");
    let entry = json!({"url": url, "relist_interval": 0});
    bench.write("c.json", &json!({"mcpServers": {"a": entry}}).to_string());
    let output = bench.lock();
    contains(
        &output.stderr,
        &["/a: it answers at `/mcp`, and not at its URL as written"],
    );
    let lock = bench.lock_json();
    assert_eq!(
        (&lock["lock_version"], &lock["sources"][0]["url_path"]),
        (&json!(3), &json!("/mcp"))
    );
    assert_eq!(locked(&bench)[0], ["get"]);
    // The lock holds, and a second run writes the same bytes.
    let (code, report) = bench.check();
    assert_eq!(code, Some(0), "{report:#}");
    let before = bench.read("c.lock.json");
    bench.lock();
    assert_eq!(bench.read("c.lock.json"), before);
    // A server that answers at its URL needs no such member.
    let at_root = json!({"tools": [tool("get")], "http": {"path": "/"}});
    bench.script("a", &at_root);
    bench.lock();
    assert_eq!(bench.lock_json()["sources"][0].get("url_path"), None);
}
