//! `lock`: the file that it writes, and the cases in which it writes nothing.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use broker_model::lock::Lock;
use harness::{Bench, contains, on_terminal};
use serde_json::{Value, json};

use super::bench::{names, tool};

#[test]
fn lock_of_absolute_paths_does_not_depend_on_the_folder() {
    let (first, second) = (Bench::new(), Bench::new());
    let script = first.path("a.json").to_string_lossy().into_owned();
    let journal = first.path("a.log").to_string_lossy().into_owned();
    let command = ["chaos-mcp", "--script", &script, "--journal", &journal];
    for bench in [&first, &second] {
        bench.configure([("a", json!({"command": command}))]);
    }
    first.script("a", &json!({"tools": [tool("x")]}));
    first.lock();
    second.lock();
    assert_eq!(first.lock_text(), second.lock_text());
    let text = first.lock_text();
    assert!(
        !text.contains(&*first.path("").to_string_lossy()),
        "the lock contains the folder"
    );
    assert_eq!(second.verb(&["verify"]).code, Some(0));
}

#[test]
fn lock_of_equal_states_has_equal_bytes() {
    let (first, second) = (Bench::new(), Bench::new());
    first.configure([
        ("a", json!({})),
        ("b", json!({"tool_filter": ["x*", "!x2"]})),
    ]);
    second.configure([
        ("b", json!({"tool_filter": ["!x2", "x*"]})),
        ("a", json!({})),
    ]);
    let tools = [tool("x1"), tool("x2"), tool("x3"), tool("y")];
    let reversed: Vec<_> = tools.iter().rev().collect();
    for (name, size) in [("a", 1), ("b", 3)] {
        first.script(name, &json!({"tools": tools, "page_size": size}));
        second.script(name, &json!({"tools": reversed}));
    }
    first.lock();
    let (text, inode, time) = first.lock_state().expect("there is a lock");
    let again = first.lock();
    contains(&again.stderr, &["c.lock.json is up to date"]);
    assert_eq!(
        first.lock_state(),
        Some((text.clone(), inode, time)),
        "an equal lock is not written again"
    );
    second.lock();
    assert_eq!(second.lock_text(), text);
    assert!(text.ends_with("}\n") && !text.contains('\r'), "{text}");
    assert!(
        !text.contains(&*first.path("").to_string_lossy()),
        "the lock contains the folder"
    );
    let lock = first.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/a", "/b"]);
    assert_eq!(
        names(&lock["sources"][1]["exposed"], "upstream_name"),
        ["x1", "x3"]
    );
    assert_eq!(names(&lock["sources"][1]["hidden"], "name"), ["x2", "y"]);
    for hidden in lock["sources"][1]["hidden"].as_array().expect("a list") {
        let digest = hidden["digest"].as_str().expect("a digest");
        assert!(
            digest.starts_with("sha256/1:") && digest.len() == 73,
            "{digest}"
        );
        assert_eq!(hidden.as_object().expect("an object").len(), 2, "{hidden}");
    }
}

#[test]
fn lock_with_a_type_over_the_limit_is_written_with_a_note() {
    let bench = Bench::with_sources(&["a"]);
    let members = (0..3000).map(|index| (format!("m{index}"), json!({"type": "string"})));
    let mut large = tool("large");
    large["inputSchema"]["properties"] = Value::Object(members.collect());
    bench.script("a", &json!({"tools": [large, tool("small")]}));
    let output = bench.lock();
    let notes = output
        .stderr
        .lines()
        .filter(|line| line.contains("note: type of"));
    assert_eq!(
        notes.collect::<Vec<_>>(),
        [
            "note: type of /a/large Args: a JSON map: the code would be larger than 256 KiB or 2000 items"
        ]
    );
    assert_eq!(
        names(&bench.lock_json()["sources"][0]["exposed"], "upstream_name"),
        ["large", "small"]
    );
}

#[test]
fn lock_texts_are_split_by_line_and_invisible_characters_escaped() {
    let bench = Bench::with_sources(&["a"]);
    let mut odd = tool("odd");
    odd["description"] = "first\nsecond ⚠\u{fe0f} \u{5d0}\u{200f}. \u{845b}\u{e0100}é\n".into();
    odd["title"] = "\u{645}\u{6cc}\u{200c}\u{62e}".into();
    bench.script("a", &json!({"tools": [odd], "instructions": "do\nthis"}));
    bench.lock();
    let text = bench.lock_text();
    contains(
        &text,
        &[
            "\"second ⚠\\ufe0f \u{5d0}\\u200f. \u{845b}\\udb40\\udd00é\",",
            "\"title\": \"\u{645}\u{6cc}\\u200c\u{62e}\"",
        ],
    );
    assert!(
        !text
            .chars()
            .any(|c| c != '\n' && broker_model::text::is_invisible(c)),
        "{text}"
    );
    let source = &bench.lock_json()["sources"][0];
    assert_eq!(source["instructions"], json!(["do", "this"]));
    let lines = source["exposed"][0]["raw"]["description"]
        .as_array()
        .expect("lines");
    assert_eq!(
        (lines.len(), &lines[0], &lines[2]),
        (3, &json!("first"), &json!(""))
    );
    let lock = Lock::parse("c.lock.json", &text).expect("the lock is whole");
    assert_eq!(
        Value::Object(lock.sources[0].exposed[0].raw.clone()),
        odd_again()
    );
}

fn odd_again() -> Value {
    let mut odd = tool("odd");
    odd["description"] = "first\nsecond ⚠\u{fe0f} \u{5d0}\u{200f}. \u{845b}\u{e0100}é\n".into();
    odd["title"] = "\u{645}\u{6cc}\u{200c}\u{62e}".into();
    odd
}

#[test]
fn lock_keeps_unknown_members() {
    let bench = Bench::with_sources(&["a"]);
    let mut odd = tool("odd");
    odd["_meta"] = json!({"x": [1.5, 9_007_199_254_740_993_i64, null]});
    odd["zz"] = json!({"k": "v"});
    bench.one_tool("a", odd.clone());
    bench.lock();
    let locked = &bench.lock_json()["sources"][0]["exposed"][0];
    assert_eq!(
        (&locked["raw"]["_meta"], &locked["raw"]["zz"]),
        (&odd["_meta"], &odd["zz"])
    );
    for digest in [
        "whole",
        "name",
        "description",
        "inputSchema",
        "_meta",
        "other",
    ] {
        assert!(locked["digests"][digest].is_string(), "{digest}: {locked}");
    }
    assert!(
        locked["digests"].get("title").is_none(),
        "absent where the member is"
    );
}

#[test]
fn lock_reads_all_pages_with_an_empty_cursor() {
    let bench = Bench::with_sources(&["a"]);
    let tools: Vec<_> = (0..7).map(|n| tool(&format!("t{n}"))).collect();
    bench.script("a", &json!({"tools": tools, "page_size": 3}));
    assert_eq!(bench.verb(&["lock", "--once"]).code, Some(0));
    let lock = bench.lock_json();
    assert_eq!(
        names(&lock["sources"][0]["exposed"], "upstream_name"),
        ["t0", "t1", "t2", "t3", "t4", "t5", "t6"]
    );
    let cursors: Vec<_> = bench
        .journal("a", "list")
        .iter()
        .map(|line| line["cursor"].clone())
        .collect();
    assert_eq!(cursors, [Value::Null, json!(""), json!("page-2")]);
}

#[test]
fn lock_with_a_failed_source_names_it_and_keeps_the_old_lock() {
    let bench = Bench::new();
    bench.configure([
        ("good", json!({})),
        ("dies", json!({})),
        (
            "absent",
            json!({"command": "no-such-program-here", "cwd": "."}),
        ),
    ]);
    bench.script("dies", &json!({"start_exit": 3, "stderr_lines": ["reading settings", "cannot find \u{1b}[31mthe key"]}));
    let errors = bench.lock_fails(4);
    assert!(bench.lock_state().is_none());
    assert_eq!(errors.matches("the key").count(), 1, "{errors}");
    contains(
        &errors,
        &[
            "/good: 10 tools exposed, 0 hidden (MCP 2026-07-28",
            "error[source_failed]: `/dies` failed after",
            "exit_before_ready: ",
            "code 3",
            "; its last line on stderr: cannot find \\u{1b}[31mthe key\n    stderr: reading settings\n",
            "error[source_failed]: `/absent` failed after",
            "spawn_not_found: ",
        ],
    );

    let bench = Bench::with_sources(&["a", "b"]);
    bench.lock();
    bench.script("a", &json!({"tools": [tool("new")]}));
    bench.script("b", &json!({"list_error": true}));
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &[
            "/a: 1 tool exposed",
            "`/b` failed after",
            "list_failed: ",
            "the list is broken",
        ],
    );
}

#[test]
fn lock_is_replaced_atomically() {
    let bench = Bench::with_sources(&["a"]);
    bench.lock();
    let file = bench.path("c.lock.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is ours");
    let (old, inode, _) = bench.lock_state().expect("there is a lock");
    // A reader that has the old lock open reads it to its end: the new one takes its name, not its place.
    let mut reader = fs::File::open(&file).expect("there is a lock");
    bench.one_tool("a", tool("x"));
    bench.lock();
    let mut seen = String::new();
    reader.read_to_string(&mut seen).expect("text");
    assert_eq!(seen, old);
    let (new, other, _) = bench.lock_state().expect("there is a lock");
    assert!(new != old && inode != other, "another file under its name");
    Lock::parse("c.lock.json", &new).expect("the new one is whole");
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "the file's mode stays");
    let left: Vec<_> = fs::read_dir(bench.path(""))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".lock-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Each launch writes another number into the tool's description, and into a default.
fn unstable() -> Value {
    let write = r#"printf '{"tools":[{"name":"t","description":"launch %s","inputSchema":{"properties":{"n":{"default":%s}}}},{"name":"still","inputSchema":{}}]}'"#;
    let command = format!(
        "n=$(wc -l < launches); echo x >> launches; {write} $n $n > now.json; exec chaos-mcp --script now.json"
    );
    json!({"command": command})
}

#[test]
fn lock_of_an_unstable_source_is_refused_unless_volatile() {
    let bench = Bench::new();
    let with = |key: &str, value: Value| {
        let mut source = unstable();
        source[key] = value;
        source
    };
    let source = |members: Value| {
        let node = json!({"path": "/a", "type": "node", "source": members});
        let mut node = node;
        node["source"]["cwd"] = ".".into();
        bench.write("c.json", &json!({"tree": [node]}).to_string());
        bench.write("launches", "");
    };
    source(unstable());
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &[
            "error[source_unstable]: two launches of `/a` gave different answers at `/tools/t/description`, `/tools/t/inputSchema/properties/n/default`",
            "Name them in `volatile` of `/a`",
        ],
    );

    source(unstable());
    let once = bench.verb(&["lock", "--once"]);
    assert_eq!(once.code, Some(0), "{}", once.stderr);
    assert_eq!(
        fs::read_to_string(bench.path("launches")).expect("launches"),
        "x\n"
    );
    contains(&once.stderr, &["run by /bin/sh"]);

    let volatile = json!([
        "/tools/t/description",
        "/tools/*/inputSchema/properties/n/default"
    ]);
    source(with("volatile", volatile.clone()));
    bench.lock();
    let lock = bench.lock_json();
    let locked = &lock["sources"][0];
    let raw = &locked["exposed"][1]["raw"];
    assert_eq!(
        raw["inputSchema"],
        json!({"properties": {"n": {}}}),
        "{locked}"
    );
    assert!(raw.get("description").is_none(), "{raw}");
    let mut listed = locked["volatile"].as_array().expect("a list").clone();
    listed.sort_by_key(Value::to_string);
    let mut wanted = volatile.as_array().expect("a list").clone();
    wanted.sort_by_key(Value::to_string);
    assert_eq!(listed, wanted);
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["summary"]["same"]),
        (Some(0), &json!(2)),
        "{report}"
    );

    // Hiding the tool does not help: the lock has the digests of hidden tools as well.
    source(with("tool_filter", json!(["!t"])));
    contains(
        &bench.lock_fails(4),
        &["error[source_unstable]", "`/tools/t/description`"],
    );
}

#[test]
fn lock_with_unstable_instructions_asks_for_stable_values() {
    let bench = Bench::new();
    let write = r#"printf '{"instructions":"launch %s","tools":[]}'"#;
    let command = format!(
        "n=$(wc -l < launches); echo x >> launches; {write} $n > now.json; exec chaos-mcp --script now.json"
    );
    let node = json!({"path": "/a", "type": "node", "source": {"command": command, "cwd": "."}});
    bench.write("c.json", &json!({"tree": [node]}).to_string());
    bench.write("launches", "");
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &[
            "gave different answers at `/instructions`",
            "Make the server return the same values at every start",
        ],
    );
}

#[test]
fn lock_launches_each_source_twice_or_once_with_once() {
    let bench = Bench::with_sources(&["a"]);
    bench.lock();
    assert_eq!(bench.journal("a", "start").len(), 2);
    assert_eq!(bench.verb(&["lock", "--once"]).code, Some(0));
    assert_eq!(bench.journal("a", "start").len(), 3);
}

#[test]
fn lock_of_one_source_keeps_the_others() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.one_tool("a", tool("old_a"));
    bench.one_tool("b", tool("old_b"));
    bench.lock();
    let before = bench.lock_json();
    bench.one_tool("a", tool("new_a"));
    bench.one_tool("b", tool("new_b"));
    let launched = bench.journal("b", "start").len();
    let output = bench.verb(&["lock", "--source", "/a"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let after = bench.lock_json();
    assert_eq!(after["sources"][0]["exposed"][0]["upstream_name"], "new_a");
    assert_eq!(after["sources"][1], before["sources"][1]);
    assert_ne!(after["root_digest"], before["root_digest"]);
    assert_eq!(
        bench.journal("b", "start").len(),
        launched,
        "the other is not launched"
    );

    let output = bench.verb(&["lock", "--source", "/nope"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "`--source /nope` is not a source of the config",
            "The sources are `/a`, `/b`.",
        ],
    );

    bench.configure([("a", json!({})), ("b", json!({"tool_filter": ["new*"]}))]);
    let output = bench.verb(&["lock", "--source", "/a"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "error[lock_stale]: the config of the source `/b` has changed since it was locked",
            "Add `--source /b`",
        ],
    );
    let output = bench.verb(&["lock", "--source", "/a", "--source", "/b"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn lock_and_check_explain_a_failed_source_like_doctor() {
    let bench = Bench::with_sources(&["a"]);
    bench.lock();
    let frames = (1..=14).map(|at| format!("at frame {at}"));
    let mut lines = vec![
        "loading".to_owned(),
        "Error: MY_API_KEY is required".to_owned(),
    ];
    lines.extend(frames);
    bench.script("a", &json!({"start_exit": 1, "stderr_lines": lines}));
    let env = [("MY_API_KEY", "hunter2-hunter2")];
    let lock = bench.verb_with(&["lock", "--all-or-nothing"], &env);
    assert_eq!(lock.code, Some(4), "{}", lock.stderr);
    let remedy = "It is set here and is not passed on: add `\"MY_API_KEY\": \"${MY_API_KEY}\"` to the source's `env`.";
    contains(
        &lock.stderr,
        &[
            "exit_before_ready: ",
            "    variable_missing: it needs the variable `MY_API_KEY`\n    stderr: Error: MY_API_KEY is required\n    stderr: at frame 5\n",
            "    stderr: at frame 13\n  help: ",
            remedy,
        ],
    );
    assert!(!lock.stderr.contains("hunter2"), "{}", lock.stderr);
    let check = bench.verb_with(&["check", "--format", "json"], &env);
    assert_eq!(check.code, Some(4), "{}", check.stderr);
    let report: Value = serde_json::from_str(&check.stdout).expect("JSON");
    let found = &report["sources"][0]["findings"][0];
    assert_eq!(found["remedy"], remedy);
    contains(
        found["message"].as_str().expect("a text"),
        &[
            "variable_missing: it needs",
            "stderr: Error: MY_API_KEY is required",
        ],
    );
    let human = bench.verb_with(&["check"], &env).stdout;
    contains(
        &human,
        &["variable_missing: it needs", "stderr: at frame 13"],
    );
}

#[test]
fn lock_progress_names_a_slow_source() {
    let bench = Bench::with_sources(&["quick", "slow"]);
    bench.script(
        "slow",
        &json!({"start_delay_ms": 5500, "stderr_lines": ["fetching packages"]}),
    );
    let output = bench.verb(&["lock", "--once"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &["waiting for /slow (5 s): fetching packages"],
    );
    assert!(
        !output.stderr.contains("waiting for /quick"),
        "{}",
        output.stderr
    );
}

#[test]
fn lock_progress_on_a_terminal_is_drawn_in_place_and_removed() {
    let bench = Bench::with_sources(&["quick", "slow"]);
    let line = format!("fetching \u{1b}[31m漢字 {}", "x".repeat(100));
    bench.script(
        "slow",
        &json!({"start_delay_ms": 1500, "stderr_lines": [line]}),
    );
    let command = bench.verb_command(&["lock", "--once"], &[("TERM", "xterm")]);
    let (code, screen) = on_terminal(command, "");
    assert_eq!(code, Some(0), "{screen:?}");
    let (drawn, rest) = screen
        .rsplit_once("\u{1b}[2K")
        .expect("the lines are cleared");
    contains(drawn, &["/slow 1 s: fetching \\u{1b}[31m漢字 xxx"]);
    let is_cut = !drawn.contains(&"x".repeat(60));
    assert!(is_cut && !drawn.contains("\u{1b}[31m"), "{screen:?}");
    contains(rest, &["/quick: ", "wrote c.lock.json"]);
    assert!(!rest.contains("fetching"), "{screen:?}");
}

#[test]
fn lock_warns_about_values_of_the_machine() {
    let bench = Bench::with_sources(&["a", "b"]);
    let mut here = tool("here");
    let folder = bench.path("").canonicalize().expect("a folder");
    here["inputSchema"] =
        json!({"properties": {"p": {"default": format!("{}/x", folder.display())}}});
    bench.script("a", &json!({"tools": [here]}));
    bench.script("b", &json!({"instructions": "We are in Europe/Oslo."}));
    let output = bench.verb_with(&["lock"], &[("TZ", "Europe/Oslo")]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "warning[machine_text]: `/a` put the config's folder into its tool `here` at /inputSchema/properties/p/default",
            "warning[machine_text]: `/b` put the time zone into its instructions",
        ],
    );
}

#[test]
fn lock_warnings_of_one_kind_share_their_help_and_are_counted() {
    let bench = Bench::with_sources(&["a"]);
    let folder = bench.path("").canonicalize().expect("a folder");
    let tools: Vec<_> = (0..8)
        .map(|at| {
            let mut here = tool(&format!("t{at}"));
            here["description"] = format!("Reads {}/{at}.", folder.display()).into();
            here
        })
        .collect();
    bench.script("a", &json!({"tools": tools}));
    let output = bench.lock();
    let machine = "warning[machine_text]: ";
    assert_eq!(
        output.stderr.matches(machine).count(),
        5,
        "{}",
        output.stderr
    );
    contains(
        &output.stderr,
        &["`t4` at /description\n  … and 3 more warnings of this kind\n  help: "],
    );
}
