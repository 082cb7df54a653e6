//! A config that is given at the start instead of the compiled-in one: it may restrict and tune, and
//! other changes are refused with exit code 2 before a source is started.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use harness::{Broker, Chaos, Output, Run, binary, refusal};
use serde_json::{Value, json};

/// The compiled-in config with a change, as a file; the three sources by their place in the tree.
pub(crate) fn changed(chaos: &Chaos, change: impl FnOnce(&mut Value)) -> String {
    chaos.config(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/chaos-broker/config.json"
        ),
        change,
    )
}

pub(crate) fn started(change: impl FnOnce(&mut Value)) -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let config = changed(&chaos, change);
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
    (chaos, broker)
}

/// The diagnostics of a start that is refused with exit 2.
fn diagnostics(output: &Output) -> Vec<Value> {
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(2), ""),
        "{}",
        output.stderr
    );
    let mut lines = output
        .stderr
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let report = lines.find(|line| line.get("diagnostics").is_some());
    let report = report.unwrap_or_else(|| panic!("no diagnostics: {}", output.stderr));
    report["diagnostics"].as_array().expect("a list").clone()
}

pub(crate) fn refused(change: impl FnOnce(&mut Value)) -> Vec<Value> {
    let chaos = Chaos::new();
    let config = changed(&chaos, change);
    let args = ["127.0.0.1:0", &config, "--log-format", "json"];
    let found = diagnostics(&chaos.run("chaos-broker", &args).output());
    assert_eq!(
        chaos.raw_journal("a") + &chaos.raw_journal("b"),
        "",
        "nothing was started"
    );
    found
}

pub(crate) fn codes(diagnostics: &[Value]) -> Vec<&str> {
    diagnostics
        .iter()
        .filter_map(|diagnostic| diagnostic["code"].as_str())
        .collect()
}

#[test]
fn config_equal_to_the_compiled_one_is_accepted() {
    let (_chaos, broker) = started(|_| {});
    broker.result("/a/echo", json!({"text": "x"}));
}

#[test]
fn config_with_another_source_is_refused() {
    let found = refused(|config| {
        let more = json!({"path": "/more", "type": "node", "source": {"command": "chaos-mcp"}});
        config["tree"].as_array_mut().expect("a list").push(more);
    });
    assert!(codes(&found).contains(&"lock_widen"), "{found:?}");
}

#[test]
fn config_with_another_command_is_refused() {
    for command in [
        "chaos-mcp --script ${CHAOS}/b.json --journal ${CHAOS}/a.log",
        "env chaos-mcp",
        "chaos-mcp; id",
    ] {
        let found = refused(|config| config["tree"][0]["source"]["command"] = json!(command));
        assert_eq!(codes(&found), ["lock_mismatch"], "{command}");
        let message = found[0]["message"].as_str().unwrap_or_default();
        let part = ["`args`", "`command`"]
            .iter()
            .any(|part| message.contains(part));
        assert!(part && message.contains("`/a`"), "{message}");
        assert_eq!(
            found[0].to_string().matches("sha256/1:").count(),
            2,
            "both digests: {}",
            found[0]
        );
    }
}

#[test]
fn config_with_other_aliases_texts_or_variables_is_refused() {
    assert_eq!(
        codes(&refused(
            |config| config["tree"][0]["source"]["path_aliases"] = json!({"echo": "say"})
        )),
        ["lock_mismatch"]
    );
    assert_eq!(
        codes(&refused(
            |config| config["tree"][0]["source"]["env"]["MORE"] = json!("x")
        )),
        ["lock_mismatch"]
    );
    assert_eq!(
        codes(&refused(
            |config| config["tree"][0]["summary"] = json!("Other")
        )),
        ["lock_mismatch"]
    );
    let all = refused(|config| {
        config["tree"][0]["source"]["command"] = json!("true");
        config["tree"][1]["source"]["tool_filter"] = json!(["*"]);
    });
    let mut all = codes(&all);
    all.sort_unstable();
    assert_eq!(
        all,
        ["lock_mismatch", "lock_widen"],
        "all problems in one run"
    );
}

#[test]
fn config_with_other_timeouts_limits_or_values_is_accepted() {
    let (_chaos, broker) = started(|config| {
        config["tree"][0]["source"]["tool_overrides"]["slow"]["timeout"] = json!(50);
        config["tree"][0]["source"]["env"]["A_TOKEN"] = json!("${A_TOKEN}-and-more");
        config["limits"] = json!({"body_bytes": 4096});
    });
    broker.result("/a/slow", json!({"ms": 1500}));
    let dump = broker.result("/a/env_dump", json!({}))["content"][0]["text"].clone();
    let dump: Value = serde_json::from_str(dump.as_str().expect("it is text")).expect("it is JSON");
    assert_eq!(dump["A_TOKEN"], "a-token-for-tests-and-more");
    let long = broker.call("/a/echo", json!({"text": "x".repeat(5000)}));
    refusal(&long, 413, "body_too_large");
    let chaos = Chaos::new();
    chaos.script("a", &json!({"start_exit": 1}));
    let config = changed(&chaos, |config| {
        config["tree"][0]["source"]["required"] = json!(false)
    });
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
}

#[test]
fn config_with_missing_variables_reports_all_of_them() {
    let found = Run::new(&binary("chaos-broker"))
        .args(["127.0.0.1:0", "--log-format", "json"])
        .output();
    let found = diagnostics(&found);
    assert!(
        codes(&found).iter().all(|code| *code == "env_missing"),
        "{found:?}"
    );
    let places: Vec<&str> = found
        .iter()
        .filter_map(|one| one["pointer"].as_str())
        .collect();
    for source in ["/tree/0/source", "/tree/1/source", "/tree/2/source"] {
        assert!(
            places.iter().any(|place| place.starts_with(source)),
            "{source}: {places:?}"
        );
    }
    let messages: String = found.iter().map(|one| one["message"].to_string()).collect();
    assert!(
        messages.contains("`CHAOS`") && messages.contains("`A_TOKEN`"),
        "{messages}"
    );
}

#[test]
fn config_that_cannot_be_read_is_refused_by_name() {
    let chaos = Chaos::new();
    let args = [
        "127.0.0.1:0",
        "/nonexistent/config.json",
        "--log-format",
        "json",
    ];
    let found = diagnostics(&chaos.run("chaos-broker", &args).output());
    assert_eq!(codes(&found), ["config_unreadable"]);
    assert_eq!(found[0]["file"], "/nonexistent/config.json");
}

/// Files that no reader can read to the end, below the folder of a test, each with its error code.
fn unreadable_files(chaos: &Chaos) -> Vec<(PathBuf, &'static str)> {
    let at = |name: &str| chaos.path().join(name);
    for device in ["full", "zero"] {
        symlink(format!("/dev/{device}"), at(device)).expect("a link");
    }
    let pipe = at("pipe");
    let made = Run::new("/usr/bin/mkfifo".as_ref()).args([&pipe]).output();
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    fs::create_dir(at("folder")).expect("a folder");
    let sparse = File::create(at("sparse")).expect("a file");
    sparse.set_len(1 << 40).expect("a file without content");
    vec![
        (at("full"), "config_unreadable"),
        (at("zero"), "config_unreadable"),
        (pipe, "config_unreadable"),
        (at("folder"), "config_unreadable"),
        (at("sparse"), "config_size"),
    ]
}

#[test]
fn config_not_a_regular_file_or_too_large_is_refused() {
    let chaos = Chaos::new();
    for (file, code) in unreadable_files(&chaos) {
        let file = file.to_str().expect("UTF-8");
        for args in [
            &["127.0.0.1:0", file][..],
            &["stdio", file],
            &["doctor", file],
        ] {
            let output = chaos.run("chaos-broker", args).output();
            assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
            assert!(output.stderr.contains(code), "{args:?}: {}", output.stderr);
        }
        let generated = Run::new(&binary("broker-gen"))
            .args(["lock", "--config", file])
            .output();
        assert_eq!(generated.code, Some(2), "{file}: {}", generated.stderr);
        assert!(generated.stderr.contains(code), "{}", generated.stderr);
    }
}

#[test]
fn secret_file_is_a_regular_file_or_a_pipe() {
    let chaos = Chaos::new();
    for (file, _) in unreadable_files(&chaos) {
        let secret = file.to_str().expect("UTF-8");
        let output = chaos
            .run("chaos-broker", &["127.0.0.1:0", "--secret-file", secret])
            .output();
        assert_eq!(output.code, Some(2), "{secret}: {}", output.stderr);
        assert!(
            output.stderr.contains("cannot read the secret file"),
            "{secret}: {}",
            output.stderr
        );
    }
}

#[test]
fn config_that_becomes_a_device_is_not_reloaded() {
    let chaos = Chaos::new();
    let config = changed(&chaos, |_| {});
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", &config, "--reload"]);
    let broker = Broker::start_ready(run);
    fs::remove_file(&config).expect("removed");
    symlink("/dev/zero", &config).expect("a link");
    // Long enough to check the file three times: reading the device would block in the first check.
    std::thread::sleep(std::time::Duration::from_millis(1600));
    broker.result("/a/echo", json!({"text": "x"}));
    let (status, stderr) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
}
