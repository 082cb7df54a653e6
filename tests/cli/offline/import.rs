//! `import`: the config on standard output or in a new file, the notes, the variables and the next command.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use harness::{Bench, Output, assert_inert, contains};
use serde_json::{Value, json};

const FILE: &str = r#"{
  "mcpServers": {
    "github": {"command": "npx", "args": ["-y", "x@1"], "env": {"GITHUB_TOKEN": "ghp_canary0123456789", "MODE": "a"}, "autoApprove": ["t"]},
    "remote": {"type": "http", "url": "https://h.example/mcp?api_key=canary&a=b", "headers": {"Authorization": "Bearer canary-2"}},
    "off": {"command": "x", "disabled": true}
  }
}
"#;

fn import(bench: &Bench, args: &[&str]) -> Output {
    let output = bench.run(&[&["import"][..], args].concat());
    assert_inert("stdout", &output.stdout);
    assert_inert("stderr", &output.stderr);
    assert!(!format!("{output:?}").contains("canary"), "{output:?}");
    output
}

/// The config of [`FILE`].
fn config() -> Value {
    let node = |path: &str, source: Value| json!({"path": path, "type": "node", "source": source});
    json!({"tree": [
        node("/github", json!({"command": "npx", "args": ["-y", "x@1"],
            "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "MODE": "a"}})),
        node("/remote", json!({"url": "https://h.example/mcp?api_key=${REMOTE_API_KEY}&a=b",
            "headers": {"Authorization": "Bearer ${REMOTE_AUTHORIZATION}"}})),
    ], "coerce": true})
}

#[test]
fn import_prints_only_the_config_to_standard_output() {
    let bench = Bench::new();
    bench.write("mcp.json", FILE);
    let output = import(&bench, &["mcp.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let printed: Value = serde_json::from_str(&output.stdout).expect("the output is JSON");
    assert_eq!(printed, config());
    let order = output
        .stdout
        .find("/github")
        .zip(output.stdout.find("/remote"));
    assert!(order.is_some_and(|(first, second)| first < second));
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "mcp.json has servers as several clients write them; --from CLIENT names one",
            "note: mcp.json:3:5: `github`: not taken: `autoApprove`",
            "note: mcp.json:5:5: left out: `off`: it is disabled in the file",
            "2 servers of mcp.json; review the config",
            "set these variables where the broker runs:",
            "  GITHUB_TOKEN  secret: `env.GITHUB_TOKEN` of `github`",
            "  REMOTE_API_KEY  secret: the URL of `remote`",
            "  REMOTE_AUTHORIZATION  secret: the header `Authorization` of `remote` behind `Bearer`",
            "next: write it to a file, then broker-gen lock --config FILE",
        ]
    );
}

#[test]
fn import_writes_a_new_config_and_replaces_no_file() {
    let bench = Bench::new();
    bench.write("mcp.json", FILE);
    let output = import(&bench, &["mcp.json", "-o", "my config.json"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), ""),
        "{}",
        output.stderr
    );
    contains(
        &output.stderr,
        &[
            "wrote my config.json: 2 servers of mcp.json; review it",
            "next: broker-gen lock --config 'my config.json'",
        ],
    );
    let written = bench.read("my config.json");
    assert_eq!(
        serde_json::from_str::<Value>(&written).expect("JSON"),
        config()
    );
    let metadata = fs::metadata(bench.path("my config.json")).expect("it exists");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o644);
    // The file itself, a dangling link and the imported file exist as well.
    symlink("nowhere", bench.path("link.json")).expect("a link can be made");
    for name in ["my config.json", "link.json", "mcp.json"] {
        let output = import(&bench, &["mcp.json", "--output", name]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
        contains(
            &output.stderr,
            &["file_exists", name, "nothing was written"],
        );
    }
    assert_eq!(bench.read("my config.json"), written);
    assert_eq!(bench.read("mcp.json"), FILE);
    let output = import(&bench, &["mcp.json", "-o", "none/c.json"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    contains(&output.stderr, &["file_write", "none/c.json"]);
}

#[test]
fn import_of_a_file_that_it_cannot_read_writes_nothing() {
    let bench = Bench::new();
    for (name, text, code, place) in [
        (
            "a.json",
            "{\"mcpServers\": {\n  \"a\": {\"env\": {\"T\": \"canary\" x",
            "import_syntax",
            "a.json:2:",
        ),
        (
            "a.toml",
            "[mcp_servers.a]\ncommand = \"canary",
            "import_syntax",
            "a.toml:2:",
        ),
        (
            "b.json",
            "{\"theme\": \"canary\"}",
            "import_servers",
            "b.json:1:1",
        ),
        (
            "c.json",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"instances\": \"canary\"}}}",
            "config_type",
            "c.json:1:",
        ),
    ] {
        bench.write(name, text);
        let output = import(&bench, &[name, "-o", "out.json"]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(2), ""),
            "{name}"
        );
        contains(
            &output.stderr,
            &[&format!("error[{code}]"), place, "help: "],
        );
        assert!(!bench.path("out.json").exists(), "{name}");
    }
    let output = import(&bench, &["none.json"]);
    assert_eq!(output.code, Some(2));
    contains(&output.stderr, &["config_unreadable", "none.json"]);
    let large = fs::File::create(bench.path("large.json")).expect("writable");
    large
        .set_len((4 << 20) + 1)
        .expect("a file with a hole can be made");
    let output = import(&bench, &["large.json"]);
    assert_eq!(output.code, Some(2));
    contains(&output.stderr, &["config_size"]);
}

#[test]
fn imported_config_is_read_by_other_verbs() {
    let bench = Bench::new();
    bench.write(
        "config.toml",
        "[mcp_servers.files]\ncommand = \"/bin/false\"\nargs = [\"--api-key\", \"canary\"]\n",
    );
    let output = import(&bench, &["config.toml", "-o", "c.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let output = bench.run(&["verify", "--offline", "--config", "c.json"]);
    contains(&output.stderr, &["lock_missing"]);
    let output = bench.run(&["lock", "--config", "c.json"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["env_missing", "FILES_API_KEY"]);
}
