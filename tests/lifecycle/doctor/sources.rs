//! `doctor`: each fault of a source is reported with a remedy, in 80 columns and as JSON; and no
//! process is left.

use std::fs;

use harness::{Chaos, Output, Run, binary, children_of, is_alive, wait_until};
use serde_json::{Value, json};

/// Runs `doctor`, checks the conditions of every run, and returns the report.
fn examine(run: Run, args: &[&str], expected: i32) -> Value {
    let output = run.args(["doctor", "--format", "json"]).args(args).output();
    assert_eq!(
        output.code,
        Some(expected),
        "{}{}",
        output.stdout,
        output.stderr
    );
    assert_eq!(output.stdout.lines().count(), 1, "one line, nothing else");
    let report: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    assert_eq!(report["format_version"], 1);
    assert_eq!(report["ok"], expected == 0);
    let sources = report["sources"].as_array().expect("a list");
    let bad = sources.iter().filter(|source| source["ok"] == false);
    assert_eq!(report["summary"]["need_attention"], bad.count());
    assert_eq!(report["summary"]["sources"], sources.len());
    for finding in sources.iter().flat_map(findings) {
        for member in ["code", "severity", "message", "remedy"] {
            let text = finding[member].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{member}: {finding}");
        }
    }
    report
}

fn scripted(chaos: &Chaos, expected: i32) -> Value {
    let report = examine(chaos.run("chaos-broker", &[]), &[], expected);
    nothing_is_left(chaos);
    report
}

fn nothing_is_left(chaos: &Chaos) {
    for pid in ["a", "b", "optional"]
        .map(|source| chaos.pids(source))
        .concat()
    {
        assert!(!is_alive(pid), "process {pid} is left");
    }
}

fn source<'a>(report: &'a Value, path: &str) -> &'a Value {
    let sources = report["sources"].as_array().expect("a list");
    let one = sources.iter().find(|source| source["path"] == path);
    one.expect("every source is reported")
}

fn findings(source: &Value) -> &[Value] {
    source["findings"].as_array().expect("a list")
}

/// The codes of the findings about a source, the worst first.
fn codes(source: &Value) -> Vec<&str> {
    let codes = findings(source).iter();
    codes
        .map(|one| one["code"].as_str().expect("text"))
        .collect()
}

/// The compiled-in config with a change, as a file.
fn changed(chaos: &Chaos, change: impl FnOnce(&mut Value)) -> String {
    chaos.config(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/chaos-broker/config.json"
        ),
        change,
    )
}

#[test]
fn doctor_with_unchanged_sources_finds_nothing() {
    let chaos = Chaos::new();
    let report = scripted(&chaos, 0);
    let a = source(&report, "/a");
    assert_eq!(
        (&a["ok"], &a["required"], &a["findings"]),
        (&json!(true), &json!(true), &json!([]))
    );
    assert_eq!(a["protocol_version"], a["locked_protocol_version"]);
    assert_eq!(
        (&a["era"], &a["noise_lines"]),
        (&json!("modern"), &json!(0))
    );
    assert_eq!(
        source(&report, "/b")["tools"],
        json!({"listed": 10, "exposed": 4, "hidden": 6, "withdrawn": 0})
    );
    assert_eq!(source(&report, "/optional")["required"], false);
    for name in ["a", "b", "optional"] {
        assert_eq!(chaos.pids(name).len(), 1, "each is started once");
        assert_eq!(chaos.events(name, "call"), Vec::<Value>::new());
    }
}

#[test]
fn doctor_quotes_a_server_that_exits_at_once() {
    let chaos = Chaos::new();
    let script = json!({"start_exit": 3, "stderr_lines": ["first\u{1b}[2J", "no license\u{202e}"]});
    chaos.script("a", &script);
    chaos.script("optional", &json!({"start_exit": 0}));
    let report = scripted(&chaos, 1);
    let found = &findings(source(&report, "/a"))[0];
    assert_eq!(
        (&found["code"], &found["cause"], &found["severity"]),
        (
            &json!("exit_before_ready"),
            &json!("exit_before_ready"),
            &json!("error")
        )
    );
    let message = found["message"].as_str().expect("text");
    assert!(
        message.contains("code 3") && message.contains("no license"),
        "{message}"
    );
    assert_eq!(found["details"], json!(["stderr: first\\u{1b}[2J"]));
    // An optional source is reported in the same way.
    let optional = source(&report, "/optional");
    assert_eq!(codes(optional), ["exit_before_ready"]);
    let message = findings(optional)[0]["message"].as_str().expect("text");
    assert!(
        message.contains("exited 0 without speaking MCP"),
        "{message}"
    );
    assert_eq!(source(&report, "/b")["ok"], true);
}

#[test]
fn doctor_explains_the_last_output_of_a_server() {
    for (line, code, part) in [
        (
            "Error: GITHUB_TOKEN is required",
            "variable_missing",
            "`GITHUB_TOKEN`",
        ),
        (
            "Error: Cannot find module 'express'",
            "package_missing",
            "package",
        ),
        (
            "the input device is not a TTY",
            "terminal_wanted",
            "terminal",
        ),
        (
            "Usage: server [--stdio]",
            "usage_text",
            "Usage: server [--stdio]",
        ),
        (
            "getaddrinfo EAI_AGAIN example.org",
            "network_down",
            "network",
        ),
        (
            "listen EADDRINUSE: address already in use",
            "port_taken",
            "port",
        ),
    ] {
        let chaos = Chaos::new();
        chaos.script("a", &json!({"start_exit": 1, "start_stderr": line}));
        let run = chaos
            .run("chaos-broker", &[])
            .env("GITHUB_TOKEN", "a-value-to-hide");
        let report = examine(run, &[], 1);
        let found = &findings(source(&report, "/a"))[0];
        assert_eq!(
            (&found["code"], &found["cause"]),
            (&json!(code), &json!("exit_before_ready"))
        );
        let message = found["message"].as_str().expect("text");
        assert!(message.contains(part), "{message}");
        if code == "variable_missing" {
            let remedy = found["remedy"].as_str().expect("text");
            assert!(
                remedy.contains("not passed on") && remedy.contains("${GITHUB_TOKEN}"),
                "{remedy}"
            );
        }
        assert!(!report.to_string().contains("a-value-to-hide"));
    }
}

#[test]
fn doctor_counts_and_shows_noise_on_stdout() {
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"start_noise": ["\u{1b}]0;owned\u{7}Server a-token-for-tests up", "two", "three"]}),
    );
    let report = scripted(&chaos, 1);
    let a = source(&report, "/a");
    assert_eq!(codes(a), ["stdout_noise"]);
    let found = &findings(a)[0];
    assert_eq!(
        (&found["severity"], &a["noise_lines"]),
        (&json!("warning"), &json!(3))
    );
    assert!(found["message"].as_str().expect("text").contains("3 lines"));
    // The value of A_TOKEN is masked, and an escape sequence is escaped.
    assert_eq!(
        found["details"],
        json!(["stdout: \\u{1b}]0;owned\\u{7}Server •••• up"])
    );
}

#[test]
fn doctor_compares_a_slow_start_with_its_timeout() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"start_delay_ms": 1200}));
    chaos.script(
        "b",
        &json!({"on_method": {"server/discover": "hang", "initialize": "hang"}}),
    );
    let config = changed(&chaos, |config| {
        config["tree"][0]["source"]["startup_timeout"] = json!(2);
        config["tree"][1]["source"]["startup_timeout"] = json!(1);
    });
    let report = examine(chaos.run("chaos-broker", &[]), &[&config], 1);
    let a = source(&report, "/a");
    // On a machine under load the start may fail instead, which is reported too.
    if a.get("tools").is_some() {
        assert_eq!(codes(a), ["slow_start"]);
        assert_eq!(a["startup_timeout_ms"], 2000);
        assert!(a["took_ms"].as_u64() >= Some(1200), "{a}");
    } else {
        assert_eq!(codes(a), ["startup_timeout"]);
    }
    let b = source(&report, "/b");
    assert_eq!(codes(b), ["startup_timeout"]);
    let remedy = findings(b)[0]["remedy"].as_str().expect("text");
    assert!(remedy.contains("raise `startup_timeout`"), "{remedy}");
    assert!(remedy.starts_with("Read the end of its stderr"), "{remedy}");
    nothing_is_left(&chaos);
}

#[test]
fn doctor_reports_drift_by_class_with_a_command() {
    let chaos = Chaos::new();
    let mut tools = Chaos::tools_asking_more("echo");
    let list = tools.as_array_mut().expect("a list");
    list.retain(|tool| tool["name"] != "add");
    list.push(json!({"name": "brand_new", "inputSchema": {"type": "object"}}));
    chaos.script("a", &json!({"tools": tools}));
    chaos.script("b", &json!({"era": "legacy"}));
    let report = scripted(&chaos, 1);
    let a = source(&report, "/a");
    assert!(codes(a).iter().all(|code| *code == "drift"), "{a}");
    let about = |class: &str| {
        let mut all = findings(a).iter();
        all.find(|one| {
            one["message"]
                .as_str()
                .is_some_and(|text| text.contains(class))
        })
        .unwrap_or_else(|| panic!("{class}: {a}"))
    };
    let changed = about("class `breaking`");
    assert_eq!(changed["severity"], "error");
    assert!(
        changed["details"].to_string().contains("`echo`"),
        "{changed}"
    );
    let remedy = changed["remedy"].as_str().expect("text");
    assert!(
        remedy.contains("broker-gen lock --config config.json"),
        "{remedy}"
    );
    assert!(
        about("class `gone`")["details"]
            .to_string()
            .contains("`add`")
    );
    assert_eq!(about("1 tool is new")["severity"], "note");
    assert_eq!(a["tools"]["withdrawn"], 2);
    assert_eq!(
        a["drift"]["summary"]["gone"], 1,
        "the whole report is there"
    );
    // Another revision alone is only a note.
    let b = source(&report, "/b");
    assert_eq!((&b["ok"], &b["era"]), (&json!(true), &json!("legacy")));
    let note = &findings(b)[0];
    assert_eq!(note["severity"], "note");
    assert!(
        note["details"]
            .to_string()
            .contains("protocol-revision-changed"),
        "{note}"
    );
}

#[test]
fn doctor_reports_a_missing_variable_and_examines_other_sources() {
    let chaos = Chaos::new();
    // Without A_TOKEN.
    let run = Run::new(&binary("chaos-broker")).env("CHAOS", chaos.path());
    let report = examine(run, &[], 1);
    let a = source(&report, "/a");
    assert_eq!(codes(a), ["env_missing"]);
    let found = &findings(a)[0];
    assert_eq!(found["message"], "`A_TOKEN` is not set");
    assert_eq!(
        found["details"],
        json!(["at config.json /tree/0/source/env/A_TOKEN"])
    );
    assert_eq!(source(&report, "/b")["ok"], true);
    assert!(chaos.pids("a").is_empty() && chaos.pids("b").len() == 1);
}

#[test]
fn doctor_refuses_a_config_that_no_broker_starts_with() {
    let chaos = Chaos::new();
    let config = changed(&chaos, |config| {
        config["tree"][0]["source"]["tool_filter"] = json!(["*"]);
        config["tree"][1]["source"]["comand"] = json!("x");
    });
    for args in [["doctor", &config], ["doctor", "/no/such/config.json"]] {
        let output = chaos.run("chaos-broker", &args).output();
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains("error"), "{}", output.stderr);
    }
    assert_eq!(chaos.raw_journal("b"), "", "nothing was started");
}

#[test]
fn doctor_shows_the_worst_source_first_in_80_columns() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"start_noise": ["loud ".repeat(60)]}));
    chaos.script(
        "b",
        &json!({"start_exit": 4, "start_stderr": "x".repeat(400)}),
    );
    let output = chaos.run("chaos-broker", &["doctor"]).output();
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
    let text = &output.stdout;
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let order = ["\nwarning: /a\n", "\nok: /optional (not required)\n"].map(|part| text.find(part));
    assert!(text.starts_with("error: /b\n"), "{text}");
    assert!(order[0].is_some() && order[0] < order[1], "{text}");
    assert_eq!(text.lines().last(), Some("2 of 3 sources need attention"));
    nothing_is_left(&chaos);
}

#[test]
fn doctor_ends_its_processes_on_a_signal() {
    for signal in ["INT", "TERM"] {
        let chaos = Chaos::new();
        let never = json!({"on_method": {"server/discover": "hang"}, "ignore_eof": true, "ignore_sigterm": true});
        chaos.script("a", &never);
        let args = "chaos-broker doctor & echo $! > pid; wait $!";
        let folder = binary("chaos-broker");
        let folder = folder.parent().expect("it is in a folder");
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let shell = Run::new(std::path::Path::new("/bin/sh"))
            .args(["-c", args])
            .folder(chaos.path())
            .env("PATH", path)
            .env("CHAOS", chaos.path())
            .env("A_TOKEN", "a-token-for-tests");
        let waiting = std::thread::spawn(move || shell.output());
        chaos.await_events("a", "start", 1);
        let read = || {
            fs::read_to_string(chaos.path().join("pid"))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        wait_until("the shell says which process it is", || read().is_some());
        let pid: u32 = read().expect("it was there");
        let children = children_of(pid);
        kill(signal, pid);
        let output: Output = waiting.join().expect("it ended");
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(130), ""),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains("interrupted"), "{}", output.stderr);
        assert!(!children.is_empty());
        for child in children {
            wait_until("it is gone", || !is_alive(child));
        }
        nothing_is_left(&chaos);
    }
}

fn kill(signal: &str, pid: u32) {
    let kill = Run::new(std::path::Path::new("/bin/sh"))
        .args(["-c", &format!("kill -{signal} {pid}")])
        .output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
}
