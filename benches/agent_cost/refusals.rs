//! The texts of refused calls: every error that a caller can cause by its own call, and those of a failing source.

use harness::{Broker, Chaos, DirectServer};
use serde_json::{Value, json};

use crate::stage::{Reply, Stage};
use crate::tokens::tokens;

/// The tokens of refused calls.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) cause: &'static str,
    pub(crate) tokens: usize,
}

/// The refusals that a caller of the servers that most people use causes.
pub(crate) fn of_calls(stage: &Stage) -> Vec<Refusal> {
    let read = "/filesystem/read_text_file";
    let cases = [
        (
            "unknown tool, similar name",
            "meta_call",
            json!({ "path": "/filesystem/read_txt_file" }),
        ),
        ("unknown node", "meta_tree", json!({ "path": "/files" })),
        (
            "unknown tool of `meta_desc`",
            "meta_desc",
            json!({ "path": "/memory/create_entity" }),
        ),
        (
            "path outside the grammar",
            "meta_call",
            json!({ "path": "filesystem/read text file" }),
        ),
        ("no path", "meta_call", json!({})),
        ("listing of a tool", "meta_tree", json!({ "path": read })),
        (
            "call of a node",
            "meta_call",
            json!({ "path": "/filesystem" }),
        ),
        (
            "`arguments` instead of `args`",
            "meta_call",
            json!({ "path": read, "arguments": {} }),
        ),
        (
            "`args` as a list",
            "meta_call",
            json!({ "path": read, "args": ["a"] }),
        ),
        ("`depth` out of range", "meta_tree", json!({ "depth": 99 })),
        ("neither `path` nor `paths`", "meta_desc", json!({})),
        ("argument is missing", "meta_call", json!({ "path": read })),
        (
            "argument of another type",
            "meta_call",
            json!({ "path": read, "args": { "path": 1 } }),
        ),
        (
            "time zone is missing",
            "meta_call",
            json!({ "path": "/time/convert_time", "args": { "time": "12:00" } }),
        ),
        (
            "nested arguments are wrong",
            "meta_call",
            json!({ "path": "/memory/create_entities", "args": { "entities": [{ "name": "a" }] } }),
        ),
    ];
    let cases = cases.into_iter();
    cases
        .map(|(cause, tool, arguments)| refusal(cause, &stage.call(tool, &arguments)))
        .collect()
}

/// The refusal of a call of each tool whose arguments need a member, without any: path and tokens.
pub(crate) fn of_missing_arguments(stage: &Stage) -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for path in stage.paths() {
        let reply = stage.call("meta_call", &json!({ "path": path }));
        if reply.is_error && reply.text.contains("args_invalid") {
            all.push((path, refused_tokens(&reply.text)));
        }
    }
    all
}

/// The refusals because of a source or the broker.
pub(crate) fn of_sources() -> Vec<Refusal> {
    let echo = ("/a/echo", json!({ "text": "x" }));
    let slow = ("/a/slow", json!({ "ms": 1 }));
    let die = ("/a/die", json!({ "code": 9 }));
    let rpc = json!({ "code": -32050, "message": "out of paper" });
    let cases = [
        (
            "error of the server",
            &echo,
            on_call("echo", &json!({ "rpc_error": rpc })),
        ),
        (
            "answer that is not MCP",
            &echo,
            on_call("echo", &json!("not-object")),
        ),
        (
            "answer over the limit",
            &echo,
            on_call("echo", &json!({ "big": 2 << 20 })),
        ),
        ("no answer in time", &slow, on_call("slow", &json!("hang"))),
        ("server exits", &die, json!({})),
        ("server does not start", &echo, json!({ "start_exit": 3 })),
        (
            "tool differs from the lock",
            &echo,
            json!({ "tools": Chaos::tools_asking_more("echo") }),
        ),
    ];
    let cases = cases.into_iter();
    let by_sources = cases.map(|(cause, (path, args), script)| {
        let chaos = Chaos::new();
        chaos.script("a", &script);
        let run = chaos.run("chaos-broker", &["127.0.0.1:0", "--ignore-broken-tool"]);
        let stage = Stage::new(Broker::start_ready(run), None);
        refusal(
            cause,
            &stage.call("meta_call", &json!({ "path": path, "args": args })),
        )
    });
    by_sources.chain([forbidden(), refused_start()]).collect()
}

/// Of a tool that the caller may not use, where the config says that callers are informed.
fn forbidden() -> Refusal {
    let rules = json!([{ "allow": ["/**"], "to": ["a"] }]);
    let access = json!({ "groups": ["a"], "rules": rules, "denied": "forbidden" });
    let stage = Stage::serve(&json!({ "tree": [Stage::node("time")], "access": access }));
    let call = json!({ "path": "/time/convert_time" });
    refusal("tool of other callers", &stage.call("meta_call", &call))
}

/// Of every call, if a source differs from the lock and the config refuses drift.
fn refused_start() -> Refusal {
    let chaos = Chaos::new();
    chaos.script("a", &json!({ "tools": Chaos::tools_without("echo") }));
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let config = chaos.config(compiled, |config| config["on_drift"] = json!("refuse"));
    let mut broker = DirectServer::start(chaos.run("chaos-broker", &["stdio", &config]));
    let answer = broker.call("meta_call", &json!({ "path": "/b/echo" }));
    let text = answer["result"]["content"][0]["text"].as_str();
    let reply = Reply {
        structured: None,
        text: text.expect("a reply is text").to_owned(),
        is_error: answer["result"]["isError"] == true,
    };
    refusal("source differs from the lock", &reply)
}

fn on_call(tool: &str, behaviour: &Value) -> Value {
    json!({ "on_call": { tool: behaviour } })
}

fn refusal(cause: &'static str, reply: &Reply) -> Refusal {
    assert!(reply.is_error, "{cause}: {}", reply.text);
    let error: Value = serde_json::from_str(&reply.text).expect("an error object");
    Refusal {
        code: error["code"].as_str().expect("a code").to_owned(),
        cause,
        tokens: refused_tokens(&reply.text),
    }
}

/// The id of a request and times differ between runs: their digits are not counted as they are.
fn refused_tokens(text: &str) -> usize {
    let mut error: Value = serde_json::from_str(text).expect("an error object");
    for place in ["/request_id", "/details/since", "/details/withdrawn/since"] {
        if let Some(value) = error.pointer_mut(place) {
            *value = "2f1c9e07-12".into();
        }
    }
    tokens(&error.to_string())
}
