//! The table, and the function that tests a case: a plain start, a start with `--ignore-broken-tool`, a
//! re-check while running, and the recovery.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use harness::{Broker, Chaos, Run, is_alive, refusal, wait_until};
use serde_json::{Value, json};

use super::replies::{REVIEWED, events, health, only_withdrawn, unreviewed};

/// The outcome of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Serves,
    /// Ends with this exit code and one report.
    Refused(i32),
}

/// The outcome for a running source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    /// All tools are served as reviewed.
    Served,
    Withdrawn,
    /// All tools are listed as reviewed, and calls are answered 503.
    Down,
}

/// The table of drift at run time.
const TABLE: [(&str, Start, Running); 10] = [
    ("same", Start::Serves, Running::Served),
    ("equivalent", Start::Refused(3), Running::Served),
    ("text", Start::Refused(3), Running::Served),
    ("compatible", Start::Refused(3), Running::Served),
    ("breaking", Start::Refused(3), Running::Withdrawn),
    ("security", Start::Refused(3), Running::Withdrawn),
    ("unknown", Start::Refused(3), Running::Withdrawn),
    ("gone", Start::Refused(3), Running::Withdrawn),
    ("added", Start::Serves, Running::Served),
    ("unchecked", Start::Refused(4), Running::Down),
];

/// The subject of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// This tool of `/a`, callable with these arguments.
    Tool(&'static str, fn() -> Value),
    /// A tool that no catalog has.
    New(&'static str),
    /// The source as a whole. Its metadata is read when its process starts.
    Source,
}

pub(crate) const ECHO: Subject = Subject::Tool("echo", || json!({"text": "x"}));
pub(crate) const ADD: Subject = Subject::Tool("add", || json!({"a": 2, "b": 3}));
pub(crate) const SLOW: Subject = Subject::Tool("slow", || json!({"ms": 1}));
pub(crate) const STRUCTURED: Subject = Subject::Tool("structured", || json!({"n": 2}));

struct Case<'a> {
    class: &'a str,
    subject: Subject,
    rules: &'a [&'a str],
    running: Running,
}

/// A case: the class, the subject, the rules in the expected order, and the change of the server, as an
/// edit of its script.
pub(crate) fn check_case(class: &str, subject: Subject, rules: &[&str], edit: impl Fn(&mut Value)) {
    let found = TABLE.into_iter().find(|(known, ..)| *known == class);
    let (_, start, running) = found.expect("the class is in the table");
    let case = Case {
        class,
        subject,
        rules,
        running,
    };
    static TOOLS: LazyLock<Vec<Value>> = LazyLock::new(Chaos::tools);
    let script = |generation: u64| {
        let mut script = json!({"tools": *TOOLS, "generation": generation});
        edit(&mut script);
        script
    };
    match start {
        Start::Serves => case.serves(&script(0), &[]),
        Start::Refused(code) => case.is_refused(&script(0), code),
    }
    case.serves(&script(0), &["--ignore-broken-tool"]);
    case.changes_while_running(&script(1));
}

/// The tool of this name in a script.
pub(crate) fn tool<'a>(script: &'a mut Value, name: &str) -> &'a mut Value {
    let tools = script["tools"].as_array_mut().expect("a list");
    let tool = tools.iter_mut().find(|tool| tool["name"] == name);
    tool.expect("the tool is one of the built-in ones")
}

fn run(chaos: &Chaos, more: &[&str]) -> Run {
    let args = ["127.0.0.1:0", "--log-format", "json"];
    chaos.run("chaos-broker", &[&args, more].concat())
}

impl Case<'_> {
    fn concerns_source(&self) -> bool {
        matches!(self.subject, Subject::Source)
    }

    /// A plain start ends with one report, executes no call and leaves no process.
    fn is_refused(&self, script: &Value, code: i32) {
        let chaos = Chaos::new();
        chaos.script("a", script);
        let output = run(&chaos, &[]).output();
        assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""));
        let lines = output.stderr.lines().map(serde_json::from_str::<Value>);
        let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("each line is JSON");
        let mut reports = lines.iter().filter(|line| line["format_version"].is_u64());
        let (report, second) = (reports.next(), reports.next());
        let report = report.unwrap_or_else(|| panic!("no report: {}", output.stderr));
        assert_eq!(second, None);
        assert_eq!(report["summary"][self.class], 1, "{report}");
        let (list, empty) = match self.subject {
            Subject::Source => ("sources", "tools"),
            Subject::Tool(..) | Subject::New(_) => ("tools", "sources"),
        };
        let one = &report[list][0];
        let rules = one["findings"].as_array().expect("a list");
        let rules: Vec<_> = rules.iter().map(|found| found["rule"].as_str()).collect();
        let wanted: Vec<_> = self.rules.iter().copied().map(Some).collect();
        assert_eq!(
            (&one["class"], rules),
            (&json!(self.class), wanted),
            "{one}"
        );
        assert_eq!(report[empty], json!([]), "{report}");
        // A tool with another name is also a new one.
        let others = report[list].as_array().map_or(0, Vec::len) - 1;
        assert_eq!(report["summary"]["added"], others, "{report}");
        for source in ["a", "b", "optional"] {
            assert_eq!(chaos.events(source, "call"), Vec::<Value>::new());
            for pid in chaos.pids(source) {
                assert!(!is_alive(pid), "process {pid} of {source} is left");
            }
        }
    }

    /// A start that must succeed: the outcome of the case is visible, and disappears when the server is as
    /// reviewed again.
    fn serves(&self, script: &Value, more: &[&str]) {
        let chaos = Chaos::new();
        chaos.script("a", script);
        let broker = Broker::start_ready(run(&chaos, more));
        self.shows(&chaos, &broker);
        self.recovers(&chaos, &broker);
    }

    /// A broker that serves while the server changes.
    fn changes_while_running(&self, script: &Value) {
        let chaos = Chaos::new();
        let broker = Broker::start_ready(run(&chaos, &[]));
        let lists = chaos.await_events("a", "list", 1).len();
        chaos.script("a", script);
        if self.concerns_source() && self.running != Running::Down {
            kill(&chaos, &broker);
        }
        if self.running != Running::Down {
            chaos.await_events("a", "list", lists + 1);
        }
        self.shows(&chaos, &broker);
        self.recovers(&chaos, &broker);
    }

    /// All conditions of the table for a running broker.
    fn shows(&self, chaos: &Chaos, broker: &Broker) {
        match self.running {
            Running::Served => {
                self.is_logged(broker);
                wait_until("it is up", || broker.source("/a")["state"] == "ready");
                only_withdrawn(broker, &BTreeSet::new());
                self.is_served(chaos, broker);
            }
            Running::Withdrawn => self.is_withdrawn(chaos, broker),
            Running::Down => self.is_down(chaos, broker),
        }
        broker.result("/b/echo", json!({"text": "x"}));
        assert_eq!(health(broker, "/b")["withdrawn"], 0);
    }

    fn is_logged(&self, broker: &Broker) {
        let message = match self.class {
            "same" | "added" => "source has changes that do not affect calls",
            _ => "source differs from the lock",
        };
        let path = match self.subject {
            Subject::Tool(name, _) | Subject::New(name) => format!("/a/{name}"),
            Subject::Source => "/a".to_owned(),
        };
        for rule in self.rules {
            wait_until(&format!("the log tells of {rule} at {path}"), || {
                events(broker, message).iter().any(|event| {
                    [&event["rule"], &event["path"], &event["source"]] == [*rule, &path, "/a"]
                        && event["message"].is_string()
                })
            });
        }
    }

    fn is_served(&self, chaos: &Chaos, broker: &Broker) {
        let source = health(broker, "/a");
        assert_eq!(
            (&source["state"], &source["withdrawn"]),
            (&json!("ready"), &json!(0))
        );
        if let Subject::Tool(name, args) = self.subject {
            let before = executed(chaos, name);
            broker.result(&format!("/a/{name}"), args());
            assert_eq!(executed(chaos, name), before + 1);
        }
        if let Subject::New(name) = self.subject {
            let call = broker.call(&format!("/a/{name}"), json!({}));
            let error = refusal(&call, 404, "path_not_found");
            // The request of the caller is the caller's text.
            assert!(!unreviewed(&error["did_you_mean"].to_string()), "{error}");
            assert_eq!(executed(chaos, name), 0);
        }
        broker.result("/a/fail", json!({}));
    }

    fn is_withdrawn(&self, chaos: &Chaos, broker: &Broker) {
        let tools: BTreeSet<String> = match self.subject {
            Subject::Tool(name, _) => [format!("/a/{name}")].into(),
            _ => tools_of_a(),
        };
        let count = tools.len();
        wait_until("it is withdrawn", || {
            broker.source("/a")["withdrawn"] == count
        });
        let said = only_withdrawn(broker, &tools);
        assert!(said.len() >= 6 * count, "each in tree and description");
        for why in &said {
            let mut names: Vec<&str> = why
                .as_object()
                .expect("an object")
                .keys()
                .map(String::as_str)
                .collect();
            names.sort_unstable();
            assert_eq!(names, ["class", "message", "rules", "since"], "{why}");
            assert_eq!(
                (&why["class"], &why["rules"]),
                (&json!(self.class), &json!(self.reported()))
            );
        }
        let state = if count == tools_of_a().len() {
            "withdrawn"
        } else {
            "ready"
        };
        assert_eq!(health(broker, "/a")["state"], state);
        for path in &tools {
            self.is_refused_at(chaos, broker, path, &said[0]);
        }
        if state == "ready" {
            broker.result("/a/fail", json!({}));
        }
    }

    /// The rules that callers get. For a source it is the rule that gave the source its class.
    fn reported(&self) -> &[&str] {
        match self.subject {
            Subject::Source => &self.rules[..1],
            Subject::Tool(..) | Subject::New(_) => self.rules,
        }
    }

    fn is_refused_at(&self, chaos: &Chaos, broker: &Broker, path: &str, why: &Value) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let before = executed(chaos, name);
        let args = match self.subject {
            Subject::Tool(_, args) => args(),
            _ => json!({}),
        };
        let reply = broker.call(path, args);
        assert!(!unreviewed(&reply.text()), "{}", reply.text());
        let error = refusal(&reply, 409, "tool_withdrawn");
        let described = broker.post("/meta_desc", &json!({"path": path})).json();
        let details = &error["details"];
        assert_eq!(
            (&details["class"], &details["rules"], &details["expected"]),
            (&why["class"], &why["rules"], &described["digest"]),
        );
        let one_is_listed = self.class != "gone" && !self.concerns_source();
        assert_eq!(
            details["found"]
                .as_str()
                .is_some_and(|found| found.starts_with("sha256/1:")
                    && details["found"] != details["expected"]),
            one_is_listed,
            "{details}"
        );
        let message = error["message"].as_str().unwrap_or_default();
        let because = why["message"].as_str().unwrap_or_default();
        assert!(!because.is_empty() && message.ends_with(because), "{error}");
        assert_eq!(
            (&error["maybe_executed"], &error["retryable"]),
            (&json!(false), &json!(false))
        );
        assert_eq!(executed(chaos, name), before, "nothing reached the server");
        let logged = || {
            let all = events(broker, "tool withdrawn");
            all.into_iter().find(|event| event["path"] == path)
        };
        wait_until("the log reports it", || logged().is_some());
        let event = logged().expect("it was just there");
        assert_eq!(
            (&event["source"], &event["class"], &event["rules"]),
            (
                &json!("/a"),
                &json!(self.class),
                &json!(format!("{:?}", self.reported()))
            ),
        );
        assert_eq!(
            (&event["expected"], event.get("found")),
            (
                &details["expected"],
                details.get("found").filter(|found| !found.is_null())
            )
        );
        assert!(
            event["reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty())
        );
    }

    fn is_down(&self, chaos: &Chaos, broker: &Broker) {
        wait_until("it is down", || {
            let state = broker.source("/a")["state"].clone();
            state == "backoff" || state == "failed"
        });
        only_withdrawn(broker, &BTreeSet::new());
        let source = health(broker, "/a");
        assert_eq!(source["withdrawn"], 0, "what was not read has not drifted");
        assert!(source["cause"].is_string(), "{source}");
        let before = executed(chaos, "echo");
        let error = refusal(
            &broker.call("/a/echo", json!({"text": "x"})),
            503,
            "source_unavailable",
        );
        assert!(error["details"]["cause"].is_string(), "{error}");
        assert_eq!(executed(chaos, "echo"), before);
        let reported = |event: &Value| event["source"] == "/a" && event["cause"].is_string();
        let lines = || {
            [
                events(broker, "source not checked"),
                events(broker, "source is down"),
            ]
        };
        wait_until("the log reports it", || {
            lines().concat().iter().any(reported)
        });
    }

    /// The server is as reviewed again, and so are all replies.
    fn recovers(&self, chaos: &Chaos, broker: &Broker) {
        let pids = chaos.pids("a").len();
        chaos.script("a", &json!({"generation": 9}));
        if self.concerns_source() {
            kill(chaos, broker);
        }
        if self.running == Running::Down {
            wait_until("a call wakes it", || {
                broker.call("/a/echo", json!({"text": "x"})).status == 200
            });
        } else if !self.concerns_source() {
            wait_until("the change is known", || {
                self.is_seen_to_recover(chaos, broker)
            });
            assert_eq!(chaos.pids("a").len(), pids, "the server went on");
        }
        wait_until("all is served", || {
            let source = broker.source("/a");
            source["state"] == "ready" && source["withdrawn"] == 0
        });
        only_withdrawn(broker, &BTreeSet::new());
        if let Subject::Tool(name, args) = self.subject {
            broker.result(&format!("/a/{name}"), args());
        }
        if self.running == Running::Withdrawn {
            wait_until("the log tells that it is back", || {
                !events(broker, "tool restored").is_empty()
            });
        }
    }

    fn is_seen_to_recover(&self, chaos: &Chaos, broker: &Broker) -> bool {
        match self.class {
            // Without a difference nothing is logged; the tools were listed once more.
            "same" | "added" => chaos.events("a", "list").len() > 1,
            _ => events(broker, "source matches the lock again")
                .iter()
                .any(|event| event["source"] == "/a"),
        }
    }
}

/// Every tool below `/a`.
fn tools_of_a() -> BTreeSet<String> {
    let below = REVIEWED[&format!("/meta_tree {}", json!({"path": "/a"}))].json();
    let children = below["children"].as_array().expect("a list").iter();
    let paths = children.filter_map(|child| child["path"].as_str());
    paths.map(str::to_owned).collect()
}

fn executed(chaos: &Chaos, tool: &str) -> usize {
    let calls = chaos.events("a", "call").into_iter();
    calls.filter(|call| call["tool"] == tool).count()
}

/// Ends the server of `/a`, and waits until the next one runs.
fn kill(chaos: &Chaos, broker: &Broker) {
    let pids = chaos.pids("a");
    let last = pids.last().copied().expect("it was started");
    if is_alive(last) {
        let order = format!("kill -KILL {last}");
        let kill = Run::new("/bin/sh".as_ref()).args(["-c", &order]).output();
        assert_eq!(kill.code, Some(0), "{}", kill.stderr);
    }
    wait_until("another one is started", || {
        // A call wakes the source earlier; its answer does not matter.
        broker.call("/a/fail", json!({}));
        chaos.pids("a").len() > pids.len()
    });
}
