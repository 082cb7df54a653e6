//! A crate made by `broker-gen new`: it locks, it builds offline without a change, and its broker
//! runs and calls a tool. A typed caller in it builds until a lock breaks it.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Broker, Output, Run, binary};
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of this build, `target` or another, so that crates that are built already are shared.
fn target() -> PathBuf {
    let program = binary("broker-gen");
    let profile = program.parent().expect("a profile");
    profile.parent().expect("the target folder").to_owned()
}

/// Builds the crate in a folder.
fn build(folder: &Path) -> Output {
    let profile = if cfg!(debug_assertions) {
        "dev"
    } else {
        "release"
    };
    let mut run = harness::cargo(folder).args(["build", "--offline", "--profile", profile]);
    // As in this workspace, so that its build is reused. A variable has set it for both.
    if std::env::var_os("CARGO_PROFILE_DEV_DEBUG").is_none() {
        run = run.args(["--config", "profile.dev.debug=\"line-tables-only\""]);
    }
    run.env("CARGO_TARGET_DIR", target()).output()
}

/// Builds the crate, which must succeed.
fn built(folder: &Path) {
    let output = build(folder);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

fn broker_gen(args: &[&str], folder: &Path) -> Output {
    let path = std::env::var("PATH").unwrap_or_default();
    let beside = binary("toolbox-mcp");
    let beside = beside.parent().expect("it is in a folder").display();
    Run::new(&binary("broker-gen"))
        .args(args)
        .folder(folder)
        .env("PATH", format!("{beside}:{path}"))
        .output()
}

/// A crate of this name made by `broker-gen new`, not yet locked.
fn new_crate(name: &str, folder: &Path) -> PathBuf {
    let broker = root().to_str().expect("UTF-8");
    let made = broker_gen(&["new", name, "--broker", broker], folder);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let own = folder.join(name);
    // The versions of this workspace are available without a network.
    fs::copy(root().join("Cargo.lock"), own.join("Cargo.lock")).expect("a lock of crates");
    own
}

fn lock(own: &Path) {
    let locked = broker_gen(&["lock", "--config", "config.json"], own);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
}

#[test]
fn new_crate_locks_builds_and_serves() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let own = new_crate("own-broker-of-a-test", folder.path());
    let refused = build(&own);
    assert_ne!(refused.code, Some(0), "a build without a lock");
    assert!(
        refused
            .stderr
            .contains("broker-gen lock --config config.json"),
        "{}",
        refused.stderr
    );

    // The config as other clients write it, with the entries in another order.
    let toolbox = json!({"command": "toolbox-mcp", "tool_filter": ["time_*", "hash_*"]});
    let servers = format!("{{\"mcpServers\": {{\"util\": {toolbox}, \"also\": {toolbox}}}}}");
    fs::write(own.join("config.json"), servers).expect("written");
    lock(&own);
    built(&own);

    let program = binary("own-broker-of-a-test");
    let version = Run::new(&program).args(["--version"]).output();
    assert!(
        version
            .stdout
            .contains("built from config.json, config sha256/1:"),
        "{}",
        version.stdout
    );
    let tree = Run::new(&program).args(["--dump-tree=json"]).output();
    let tree: Value = serde_json::from_str(&tree.stdout).expect("JSON");
    let order = |list: &Value| -> Vec<Value> {
        let entries = list.as_array().expect("a list").iter();
        entries.map(|entry| entry["path"].clone()).collect()
    };
    assert_eq!(order(&tree["tree"]["children"]), ["/util", "/also"]);

    // The broker starts with the file that it was built from.
    let start = Run::new(&program).args(["127.0.0.1:0", "config.json"]);
    let running = Broker::start_ready(start.folder(&own));
    let sources = running.get("/sources").json();
    assert_eq!(order(&sources["sources"]), ["/util", "/also"], "{sources}");
    let result = running.result("/util/hash_text", json!({"text": "hello"}));
    assert_eq!(
        result["structuredContent"]["digest"],
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    );
    let health = running.get("/healthz").json();
    assert_eq!(health["catalog_digest"], tree["catalog_digest"]);
    assert_eq!(health["built_from"]["config"], "config.json");
    let (status, stderr) = running.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    // Built into a shared folder: removes its files.
    fs::remove_file(&program).expect("it was built");
}

/// Moves config and lock to names with this ending, or back. Their times stay.
fn set_aside(own: &Path, from: &str, to: &str) {
    for name in ["config.json", "config.lock.json"] {
        let path = |ending: &str| own.join(format!("{name}{ending}"));
        fs::rename(path(from), path(to)).expect("a rename within one folder");
    }
}

#[test]
fn broker_says_that_a_restored_config_and_lock_are_not_compiled_in() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let own = new_crate("restored-broker-of-a-test", folder.path());
    let configure = |filter: Value| {
        let toolbox = json!({"command": "toolbox-mcp", "tool_filter": filter});
        let config = json!({"mcpServers": {"util": toolbox}});
        fs::write(own.join("config.json"), config.to_string()).expect("written");
        lock(&own);
    };
    configure(json!(["hash_text"]));
    set_aside(&own, "", ".old");
    configure(json!(["hash_text", "time_now"]));
    built(&own);
    let program = binary("restored-broker-of-a-test");
    let digest = |file: &str| -> String {
        let text = fs::read_to_string(own.join(file)).expect("a lock");
        let lock: Value = serde_json::from_str(&text).expect("JSON");
        lock["root_digest"].as_str().expect("a digest").to_owned()
    };
    let [old, new] = [digest("config.lock.json.old"), digest("config.lock.json")];
    let verify = || {
        let file = program.to_str().expect("UTF-8");
        broker_gen(
            &[
                "verify",
                "--config",
                "config.json",
                "--offline",
                "--binary",
                file,
            ],
            &own,
        )
    };
    let log = |args: &[&str]| {
        let start = Run::new(&program).args(args).folder(&own);
        let (_, stderr) = Broker::start_ready(start).terminate();
        stderr
    };
    assert_eq!(verify().code, Some(0), "{}", verify().stderr);
    let said = log(&["127.0.0.1:0"]);
    assert!(!said.contains("lock_mismatch"), "{said}");

    set_aside(&own, "", ".new");
    set_aside(&own, ".old", "");
    built(&own);
    // Cargo may have built again; then the broker has the restored files.
    let version = Run::new(&program).args(["--version"]).output().stdout;
    if version.contains(&new) {
        let output = verify();
        assert_eq!(output.code, Some(5), "{}", output.stderr);
        assert!(
            output.stderr.contains("generated_stale"),
            "{}",
            output.stderr
        );
        let said = log(&["127.0.0.1:0"]);
        for part in [
            "lock_mismatch",
            &old,
            &new,
            "touch config.json config.lock.json",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        // The command of the message.
        let touch = Run::new(Path::new("/bin/touch")).folder(&own);
        let touched = touch.args(["config.json", "config.lock.json"]).output();
        assert_eq!(touched.code, Some(0), "{}", touched.stderr);
        built(&own);
    }
    assert_eq!(verify().code, Some(0), "{}", verify().stderr);
    let said = log(&["127.0.0.1:0"]);
    assert!(!said.contains("lock_mismatch"), "{said}");
    fs::remove_file(&program).expect("it was built");
}

/// Adds a typed call of a tool to the files of `new`.
const CALLER: &str = r#"
//! Posts a letter by its type.
mcp_broker::include_catalog!();
mcp_broker::include_tools!();

use mcp_broker::typed::{Broker, CallError};
use tools::mail::send;

pub async fn post(broker: &Broker) -> Result<i64, CallError> {
    let args = send::Args {
        to: "reader".to_owned(),
        text: "hello".to_owned(),
        urgent: Some(true),
    };
    let called = broker.call::<send::Tool>(args).await?;
    Ok(called.output.id)
}

pub fn by_name() -> send::Args {
    let required = send::Required {
        to: "reader".to_owned(),
        text: "hello".to_owned(),
    };
    send::Args::new(required).with_urgent(true)
}

fn main() -> std::process::ExitCode {
    mcp_broker::main(&CATALOG)
}
"#;

/// The tool that it calls.
fn send() -> Value {
    json!({
        "name": "send",
        "description": "Sends a letter",
        "inputSchema": {
            "type": "object",
            "properties": {
                "to": {"type": "string"},
                "text": {"type": "string"},
                "urgent": {"type": "boolean"},
            },
            "required": ["to", "text"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        },
    })
}

/// A breaking change of the tool, and the name that the compiler must report.
type Break = (fn(&mut Value), &'static str);

const BREAKS: [Break; 8] = [
    (
        |tool| {
            let schema = &mut tool["inputSchema"];
            schema["properties"] = json!({
                "address": {"type": "string"}, "body": {"type": "string"}, "urgent": {"type": "boolean"},
            });
            schema["required"] = json!(["address", "body"]);
        },
        "Required` has no field named `to`",
    ),
    (
        |tool| {
            tool["inputSchema"]["properties"]["subject"] = json!({"type": "string"});
            tool["inputSchema"]["required"] = json!(["to", "text", "subject"]);
        },
        "missing field `subject`",
    ),
    (
        |tool| {
            let schema = &mut tool["inputSchema"];
            schema["properties"] = json!({"to": {"type": "string"}, "urgent": {"type": "boolean"}});
            schema["required"] = json!(["to"]);
        },
        "no field named `text`",
    ),
    (
        |tool| {
            let schema = &mut tool["inputSchema"];
            let text = schema["properties"]["text"].take();
            schema["properties"] =
                json!({"to": {"type": "string"}, "body": text, "urgent": {"type": "boolean"}});
            schema["required"] = json!(["to", "body"]);
        },
        "no field named `text`",
    ),
    (
        |tool| {
            tool["inputSchema"]["properties"]["to"] =
                json!({"type": "array", "items": {"type": "string"}})
        },
        "to: \"reader\".to_owned()",
    ),
    (
        |tool| tool["inputSchema"]["required"] = json!(["to", "text", "urgent"]),
        "urgent: Some(true)",
    ),
    (
        |tool| {
            tool["outputSchema"]["properties"] = json!({"number": {"type": "integer"}});
            tool["outputSchema"]["required"] = json!(["number"]);
        },
        "no field `id`",
    ),
    (
        |tool| tool["name"] = json!("send_letter"),
        "tools::mail::send",
    ),
];

#[test]
fn lock_with_a_breaking_change_fails_the_build_of_a_typed_caller() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let own = new_crate("typed-caller-of-a-test", folder.path());
    let write = |file: &str, text: &str| fs::write(own.join(file), text).expect("written");
    write("src/main.rs", CALLER);
    let server = binary("chaos-mcp");
    let command = json!([server.to_str().expect("UTF-8"), "--script", "script.json"]);
    let source = json!({"command": command, "cwd": "."});
    let node = json!({"path": "/mail", "type": "node", "source": source});
    write("config.json", &json!({"tree": [node]}).to_string());
    let offer = |tool: &Value| {
        write("script.json", &json!({"tools": [tool]}).to_string());
        lock(&own);
    };
    offer(&send());
    built(&own);
    for (change, named) in BREAKS {
        let mut tool = send();
        change(&mut tool);
        offer(&tool);
        let output = build(&own);
        assert_ne!(output.code, Some(0), "it builds although {tool}");
        assert!(
            output.stderr.contains("src/main.rs:") && output.stderr.contains(named),
            "{named}: {}",
            output.stderr
        );
    }
    // A changed description does not affect a caller.
    let mut tool = send();
    tool["description"] = json!("Posts a letter");
    offer(&tool);
    built(&own);
    fs::remove_file(binary("typed-caller-of-a-test")).expect("it was built");
}

#[test]
fn generate_writes_the_bytes_that_the_build_compiled() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let out = folder.path().join("generated");
    let made = Run::new(&binary("broker-gen"))
        .folder(root())
        .args(["generate", "--config", "smoke_config.json", "--out"])
        .args([&out])
        .output();
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let files = |folder: &Path| -> Vec<(String, Vec<u8>)> {
        let mut found: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("readable").path())
            .map(|path| {
                let name = path
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
                (name, fs::read(&path).expect("readable"))
            })
            .collect();
        found.sort();
        found
    };
    let (ours, built) = (files(&out), files(Path::new(env!("OUT_DIR"))));
    let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
        files.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&ours), names(&built));
    assert!(ours == built, "the bytes differ");
    for (name, bytes) in &ours {
        let text = String::from_utf8_lossy(bytes);
        assert!(
            !text.contains(&*root().to_string_lossy()),
            "{name} names a folder of this machine"
        );
    }
}
