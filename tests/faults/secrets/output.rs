//! Canary values in every place of a secret, every error that can be forced, and a check of all output
//! of the broker: no canary may occur in it.

use std::fs;

use harness::{Broker, Chaos, Output, Response, Run, binary, request, wait_until};
use serde_json::{Value, json};

const TOKEN: &str = "canary-token-5f0e\"quoted\\";
const SECRET: &str = "canary-secret-91c2";
const ARGUMENT: &str = "canary-argument-77ab";
const LITERAL: &str = "canary-literal-3d4e";

/// The canaries that must not be printed; in JSON the token is written with escapes.
fn is_clean(what: &str, text: &str) {
    let escaped = json!(TOKEN).to_string();
    for canary in [
        TOKEN,
        escaped.trim_matches('"'),
        "canary-token",
        SECRET,
        ARGUMENT,
        LITERAL,
    ] {
        assert!(!text.contains(canary), "{what} holds {canary}:\n{text}");
    }
}

fn all_clean(what: &str, output: &Output) {
    is_clean(what, &output.stdout);
    is_clean(what, &output.stderr);
}

/// Runs with all log levels, in both formats; returns the outputs, which must not contain a canary.
fn ends(chaos: &Chaos, code: i32, args: &[&str]) -> Vec<Output> {
    let formats = [
        ["--log-level", "trace", "--log-format", "json"],
        ["--log-level", "debug", "--log-format", "human"],
    ];
    let run = |format: &[&str; 4]| {
        let run = chaos.run("chaos-broker", &[&["127.0.0.1:0"], args, format].concat());
        let output = run
            .env("A_TOKEN", TOKEN)
            .env("MCP_BROKER_SECRET", SECRET)
            .output();
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        all_clean("a start", &output);
        output
    };
    formats.iter().map(run).collect()
}

fn compiled() -> Value {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    ));
    serde_json::from_str(&text.expect("it is there")).expect("it is JSON")
}

fn written(chaos: &Chaos, name: &str, text: &str) -> String {
    let file = chaos.file(name, text);
    file.to_str().expect("the path is text").to_owned()
}

#[test]
fn secret_is_not_shown_by_a_refused_start() {
    let chaos = Chaos::new();
    let say = format!("cannot log in with {TOKEN} at {}", chaos.path().display());
    for script in [
        json!({"start_stderr": say, "start_exit": 3}),
        json!({"start_stderr": say, "list_error": {"code": -32000, "message": say, "data": {"token": TOKEN}}}),
        json!({"start_stderr": say, "probe_error": {"code": -32000, "message": say}, "era": "legacy", "on_method": {"initialize": {"rpc_error": {"code": -32001, "message": say}}}}),
        json!({"start_stderr": say, "start_noise": [say], "on_method": {"tools/list": "exit:1"}}),
    ] {
        chaos.script("a", &script);
        for output in ends(&chaos, 4, &[]) {
            assert!(
                output.stderr.contains("cannot log in with ••••"),
                "it is logged, but masked: {}",
                output.stderr
            );
        }
    }
}

#[test]
fn secret_is_not_shown_in_drift() {
    let chaos = Chaos::new();
    let tools = Chaos::tools_with("echo", |tool| {
        tool["description"] = json!(format!("Uses {TOKEN}"));
        tool["inputSchema"]["properties"]["text"]["default"] = json!(TOKEN);
    });
    let script = json!({"tools": tools, "instructions": TOKEN, "server_info": {"name": TOKEN, "version": TOKEN}});
    chaos.script("a", &script);
    ends(&chaos, 3, &[]);
}

#[test]
fn secret_is_not_shown_by_config_problems() {
    let chaos = Chaos::new();
    let mut config = compiled();
    config["tree"][0]["source"]["env"]["A_TOKEN"] = json!(LITERAL);
    config["tree"][0]["source"]["command"] = json!(format!("chaos-mcp --token {LITERAL}"));
    let file = written(&chaos, "other.json", &config.to_string());
    ends(&chaos, 2, &[&file]);
    let torn = config
        .to_string()
        .replace(LITERAL, &format!("{LITERAL}\",,\""));
    let file = written(&chaos, "torn.json", &torn);
    ends(&chaos, 2, &[&file]);
    config["tree"][0]["source"]["env"]["A_TOKEN"] = json!(["${A_TOKEN}", LITERAL]);
    let file = written(&chaos, "type.json", &config.to_string());
    ends(&chaos, 2, &[&file]);
    // The secret twice, by a variable and by a file; and one with a newline in it.
    let secret = written(&chaos, "secret", SECRET);
    ends(&chaos, 2, &["--secret-file", &secret]);
    let run = chaos
        .run("chaos-broker", &["127.0.0.1:0"])
        .env("A_TOKEN", format!("{TOKEN}\nx"));
    let output = run.output();
    assert_eq!(output.code, Some(2));
    all_clean("a value with a newline", &output);
    let run = chaos
        .run("chaos-broker", &["127.0.0.1:0"])
        .env("MCP_BROKER_SECRET", format!("{SECRET}\t"));
    all_clean("a secret that cannot be used", &run.output());
}

#[test]
fn secret_is_not_shown_by_a_missing_command() {
    // A copy of the broker alone in its folder.
    let chaos = Chaos::named("canary-literal-3d4e-");
    let alone = chaos.path().join("broker");
    harness::copy_program(&binary("chaos-broker"), &alone);
    for level in ["info", "trace"] {
        let run = Run::new(&alone).args(["127.0.0.1:0", "--log-level", level]);
        let run = run
            .env("CHAOS", chaos.path())
            .env("A_TOKEN", TOKEN)
            .env("PATH", "/nonexistent");
        let output = run.folder("/".as_ref()).output();
        assert_eq!(output.code, Some(4), "{}", output.stderr);
        assert!(
            output.stderr.contains("spawn_not_found") || output.stderr.contains("not found"),
            "{}",
            output.stderr
        );
        is_clean("a failed spawn", &output.stdout);
        // The folder of the executable is named as a place that was searched; the variable is not.
        is_clean(
            "a failed spawn",
            &output
                .stderr
                .replace(&chaos.path().display().to_string(), ""),
        );
    }
}

/// The faults of a running broker, from one script.
fn faults() -> Value {
    json!({
        "start_stderr": format!("token is {TOKEN}"),
        "on_call": {
            "echo": {"rpc_error": {"code": -32000, "message": format!("denied: {TOKEN}"), "data": {TOKEN: [TOKEN]}}},
            "add": "not-object",
            "slow": "hang",
            "structured": {"big": 2 << 20},
            "notify": "not-json",
        },
    })
}

#[test]
fn secret_is_not_shown_by_a_running_broker() {
    for format in ["human", "json"] {
        let chaos = Chaos::named("canary-");
        chaos.script("a", &faults());
        let args = [
            "127.0.0.1:0",
            "--log-level",
            "trace",
            "--log-format",
            format,
            "--ignore-broken-tool",
        ];
        let run = chaos.run("chaos-broker", &args);
        let broker =
            Broker::start_ready(run.env("A_TOKEN", TOKEN).env("MCP_BROKER_SECRET", SECRET));
        let ask = |route: &str, secret: &str, body: &str| -> Response {
            let bearer = format!("Bearer {secret}");
            let headers = [
                ("Content-Type", "application/json"),
                ("Authorization", bearer.as_str()),
                ("Cookie", ARGUMENT),
            ];
            let response = request(broker.address(), "POST", route, &headers, body.as_bytes());
            is_clean(route, &response.text());
            let heads: Vec<&str> = response
                .headers
                .iter()
                .map(|(_, value)| value.as_str())
                .collect();
            is_clean("a header", &heads.join("\n"));
            response
        };
        let call = |path: &str, args: Value| {
            ask(
                "/meta_call",
                SECRET,
                &json!({"path": path, "args": args}).to_string(),
            )
        };
        assert_eq!(
            call("/a/echo", json!({"text": ARGUMENT})).code(),
            "source_error"
        );
        assert_eq!(
            call("/a/add", json!({"a": 1, "b": 2})).code(),
            "source_protocol"
        );
        assert_eq!(call("/a/slow", json!({"ms": 1})).code(), "call_timeout");
        assert_eq!(
            call("/a/structured", json!({"n": 1})).code(),
            "output_too_large"
        );
        assert_eq!(
            call("/a/echo", json!({"text": {"api_key": ARGUMENT}})).code(),
            "args_invalid"
        );
        assert_eq!(
            call("/a/echo", json!({"text": "x", "password": ARGUMENT})).code(),
            "args_invalid"
        );
        assert_eq!(call("/a/die", json!({"code": 3})).code(), "source_exited");
        chaos.script("a", &json!({"start_stderr": TOKEN, "start_exit": 3}));
        let mut down = call("/a/die", json!({}));
        wait_until("the source is down for good", || {
            down = call("/a/die", json!({}));
            down.code() == "source_unavailable"
        });
        assert_eq!(
            ask("/meta_tree", &format!("{SECRET}x"), "{}").code(),
            "unauthorized"
        );
        let torn = format!(r#"{{"path":"/a/echo","args":{{"text":"{ARGUMENT}"}},,}}"#);
        assert_eq!(ask("/meta_call", SECRET, &torn).code(), "json_invalid");
        let twice = format!(r#"{{"path":"/a/echo","args":{{"text":"{ARGUMENT}","text":1}}}}"#);
        assert_eq!(ask("/meta_call", SECRET, &twice).code(), "json_invalid");
        let route = format!("/meta_tree?token={SECRET}");
        assert_eq!(ask(&route, SECRET, "{}").code(), "header_invalid");
        for route in ["/healthz", "/readyz", "/sources"] {
            is_clean(route, &broker.get(route).text());
        }
        broker.signal("TERM");
        let (status, stdout, stderr) = broker.finish();
        assert_eq!((status.code(), stdout.as_str()), (Some(0), ""));
        is_clean("the log", &stderr);
        assert!(
            !stderr.contains(&chaos.path().display().to_string()),
            "the value of `CHAOS`: {stderr}"
        );
    }
}

#[test]
fn secret_is_not_shown_however_it_is_given() {
    let chaos = Chaos::new();
    let config = written(&chaos, "given.json", &compiled().to_string());
    let file = written(&chaos, "secret", &format!("{SECRET}\n"));
    let run = |args: &[&str]| {
        chaos
            .run(
                "chaos-broker",
                &[&["127.0.0.1:0", "--log-level", "trace"], args].concat(),
            )
            .env("A_TOKEN", TOKEN)
    };
    for (run, warning) in [
        (run(&[]).env("MCP_BROKER_SECRET", SECRET), None),
        (run(&["--secret-file", &file]), Some("secret_permissions")),
        (run(&[&config, SECRET]), Some("process table")),
    ] {
        let broker = Broker::start_ready(run);
        let wrong = request(
            broker.address(),
            "POST",
            "/meta_tree",
            &[("X-API-Key", "canary-wrong")],
            b"{}",
        );
        assert_eq!(wrong.status, 401);
        is_clean("a refusal", &wrong.text());
        let (status, stderr) = broker.terminate();
        assert_eq!(status.code(), Some(0), "{stderr}");
        is_clean("the log", &stderr);
        assert!(!stderr.contains("canary-wrong"), "{stderr}");
        if let Some(warning) = warning {
            assert!(stderr.contains(warning), "{warning}: {stderr}");
        }
    }
}

#[test]
fn environment_of_servers_has_only_allowed_variables() {
    let chaos = Chaos::new();
    let mut run = chaos
        .run("chaos-broker", &["127.0.0.1:0"])
        .env("A_TOKEN", TOKEN)
        .env("MCP_BROKER_SECRET", SECRET);
    for name in [
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "LD_CANARY",
        "NODE_OPTIONS",
        "CANARY",
        "HTTP_PROXY",
        "SSH_AUTH_SOCK",
        "PYTHONPATH",
        "MCP_BROKER_OTHER",
    ] {
        run = run.env(name, LITERAL);
    }
    let broker = Broker::start_ready(
        run.env("LC_CANARY", "kept")
            .env("XDG_CANARY", "kept")
            .env("NPM_CONFIG_CACHE", "/kept")
            .env("UV_INDEX_URL", "https://kept.example/simple")
            .env(
                "PIP_INDEX_URL",
                format!("https://user:{LITERAL}@host.example/simple"),
            )
            .env("npm_config__authToken", LITERAL)
            .env("TZ", "UTC"),
    );
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer canary-secret-91c2"),
        ("X-API-Key", SECRET),
        ("Cookie", "session=canary-argument-77ab"),
        ("X-Forwarded-For", ARGUMENT),
    ];
    let dump = |tool: &str| -> Value {
        let body = json!({"path": format!("/a/{tool}")}).to_string();
        let response = request(
            broker.address(),
            "POST",
            "/meta_call",
            &headers,
            body.as_bytes(),
        );
        assert_eq!(response.status, 200, "{}", response.text());
        let result = response.json()["result"]["content"][0]["text"].clone();
        serde_json::from_str(result.as_str().expect("it is text")).expect("it is JSON")
    };
    let environment = dump("env_dump");
    let allowed = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TZ",
        "TMPDIR",
        "TERM",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "PIP_CERT",
        "REQUESTS_CA_BUNDLE",
        "PYTHONUTF8",
        "PYTHONIOENCODING",
        "MCP_BROKER_COOKIE",
        "A_TOKEN",
    ];
    for name in environment.as_object().expect("an object").keys() {
        let prefixes = ["LC_", "XDG_", "NPM_CONFIG_", "npm_config_", "UV_", "PIP_"];
        let prefixed = prefixes.iter().any(|prefix| name.starts_with(prefix));
        assert!(
            prefixed || allowed.contains(&name.as_str()),
            "{name} reached the child"
        );
    }
    assert_eq!(
        (&environment["A_TOKEN"], &environment["PYTHONUTF8"]),
        (&json!(TOKEN), &json!("1"))
    );
    assert_eq!(
        (
            &environment["LC_CANARY"],
            &environment["XDG_CANARY"],
            &environment["TZ"]
        ),
        (&json!("kept"), &json!("kept"), &json!("UTC"))
    );
    assert_eq!(
        (
            &environment["NPM_CONFIG_CACHE"],
            &environment["UV_INDEX_URL"]
        ),
        (&json!("/kept"), &json!("https://kept.example/simple"))
    );
    for name in ["PIP_INDEX_URL", "npm_config__authToken"] {
        assert_eq!(environment.get(name), None, "it has a secret");
    }
    // The secret of the caller is not passed on.
    let mut seen = environment.clone();
    seen["A_TOKEN"] = Value::Null;
    is_clean("the child's environment", &seen.to_string());
    is_clean("the child's arguments", &dump("args_dump").to_string());
    for source in ["a", "b", "optional"] {
        is_clean("what the server was sent", &chaos.raw_journal(source));
    }
}

#[test]
fn lock_contains_no_secret() {
    let chaos = Chaos::new();
    let mut config = compiled();
    config["tree"][0]["source"]["env"]["B_TOKEN"] = json!(LITERAL);
    let file = written(&chaos, "config.json", &config.to_string());
    chaos.script("a", &json!({"start_stderr": format!("{TOKEN} {LITERAL}")}));
    let lock = |args: &[&str]| {
        let output = chaos
            .run("broker-gen", &[args, &["--config", &file]].concat())
            .env("A_TOKEN", TOKEN)
            .output();
        all_clean("broker-gen", &output);
        output
    };
    let locked = lock(&["lock"]);
    assert_eq!(locked.code, Some(0), "{}{}", locked.stdout, locked.stderr);
    let text =
        fs::read_to_string(chaos.path().join("config.lock.json")).expect("the lock was written");
    is_clean("the lock", &text);
    assert!(
        !text.contains(&chaos.path().display().to_string()),
        "the value of `CHAOS`"
    );
    chaos.script(
        "a",
        &json!({"start_stderr": format!("{TOKEN} {LITERAL}"), "start_exit": 3}),
    );
    assert_eq!(lock(&["check"]).code, Some(4));
    assert_eq!(lock(&["check", "--format", "json"]).code, Some(4));
}

/// Prints for each ancestor whether its environment can be read and whether the secret is in it. Then
/// leaves a daemon that only its parentage shows, and prints its id.
#[cfg(target_os = "linux")]
const LOOK_AT_ANCESTORS: &str = r#"pid=$$
while [ "$pid" -gt 1 ]; do
  while read -r key value rest; do
    case "$key" in Name:) name=$value ;; PPid:) parent=$value ;; esac
  done < /proc/$pid/status
  text=$(tr '\0' ' ' < /proc/$pid/environ 2> /dev/null)
  case "$text" in *canary-secret*) echo "$name:secret" ;; ?*) echo "$name:read" ;; *) echo "$name:denied" ;; esac
  ls /proc/$pid/fd > /dev/null 2>&1 || echo "$name:files denied"
  pid=$parent
done
env -i setsid sh -c 'sleep 1000 < /dev/null > /dev/null 2>&1 & echo daemon:$!'"#;

/// Runs as a user without privileges, if the test may change the user and the programs are in folders
/// that such a user can enter; otherwise prints why not.
#[cfg(target_os = "linux")]
#[test]
fn environment_of_broker_and_guard_is_not_readable_by_servers() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    const USER: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let chaos = Chaos::new();
    let as_user = |run: Run| run.through("setpriv", &USER);
    let is_root = fs::metadata("/proc/self").is_ok_and(|us| us.uid() == 0);
    if is_root {
        let all_may = fs::Permissions::from_mode(0o777);
        fs::set_permissions(chaos.path(), all_may).expect("the folder is ours");
        let probe = as_user(Run::new(&binary("chaos-mcp")).args(["--version"])).output();
        if probe.code.is_none_or(|code| code >= 125) {
            println!(
                "did not run: no other user can run the programs: {}",
                probe.stderr
            );
            return;
        }
    }
    chaos.script("a", &json!({"start_shell": LOOK_AT_ANCESTORS}));
    let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
    let run = run.env("MCP_BROKER_SECRET", SECRET);
    let broker = Broker::start(if is_root { as_user(run) } else { run });
    let shell = &chaos.await_events("a", "shell", 1)[0];
    let printed = shell["stdout"].as_str().expect("it is text");
    let lines: Vec<_> = printed.lines().collect();
    for expected in [
        // A server can read its environment, so the method of reading works.
        "chaos-mcp:read",
        "chaos-broker:denied",
        "chaos-broker:files denied",
        "mcp-guard:denied",
        "mcp-guard:files denied",
    ] {
        assert!(lines.contains(&expected), "{expected}: {shell}");
    }
    assert!(!printed.contains(":secret"), "{shell}");
    let guards = lines.iter().filter(|line| **line == "mcp-guard:denied");
    assert_eq!(guards.count(), 1, "the broker knows its guard: {shell}");
    // As such a user, guard and broker still find their processes.
    let daemon = lines.iter().find_map(|line| line.strip_prefix("daemon:"));
    let daemon = daemon.and_then(|pid| pid.parse().ok()).expect("a number");
    assert!(harness::is_alive(daemon));
    let kill = Run::new(std::path::Path::new("/bin/sh"));
    let kill = kill.args(["-c", &format!("kill -KILL {}", broker.pid())]);
    assert_eq!(kill.output().code, Some(0));
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(137), "{stderr}");
    assert!(!harness::is_alive(daemon));
}
