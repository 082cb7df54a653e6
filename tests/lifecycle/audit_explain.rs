//! `audit explain`: a line of the log with its lock, its reviews and its access rules, offline.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Output, Run, binary, refusal, request, wait_until};
use serde_json::{Value, json};

use crate::audit::{AuditStage, CANARY};

const KEY: &str = "mbk_kqwklyfhlzomvdsoalv2dfumpepwnx3p";
const KEY_DIGEST: &str = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
/// A text of a log that clears a terminal, and begins a line.
const HOSTILE: &str = "x\u{1b}[2J\nlock\n  found: yes\u{202e}";

fn chaos_broker(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/chaos-broker")
        .join(name)
}

/// A log of a broker with rules: `/a/echo` was called, withdrawn, refused and restored, and `/a/add` is denied.
pub(crate) fn recorded() -> AuditStage {
    let stage = AuditStage::new(|config| {
        config["access"] = json!({
            "groups": ["reader", "writer"],
            "rules": [
                {"allow": ["/a/**"], "to": ["reader"]},
                {"deny": ["/a/add"], "to": ["reader"]},
                {"allow": ["/b/**"], "to": ["writer"]},
                {"allow": ["/b/echo"], "to": ["reader"], "args": {"properties": {"text": {"maxLength": 9}}}},
            ],
        });
        config["identities"] =
            json!({"keys": [{"name": "ci", "sha256": KEY_DIGEST, "groups": ["reader"]}]});
    });
    let broker = harness::Broker::start_ready(stage.run());
    let bearer = format!("Bearer {KEY}");
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", bearer.as_str()),
    ];
    let call = |path: &str, args: Value| {
        let body = json!({"path": path, "args": args}).to_string();
        request(
            broker.address(),
            "POST",
            "/meta_call",
            &headers,
            body.as_bytes(),
        )
    };
    let echo = || call("/a/echo", json!({"text": CANARY}));
    assert_eq!(echo().status, 200);
    refusal(
        &call("/a/add", json!({"a": 1, "b": 2})),
        404,
        "path_not_found",
    );
    let tools = harness::Chaos::tools_without("echo");
    stage
        .chaos
        .script("a", &json!({"tools": tools, "generation": 1}));
    wait_until("the tool is withdrawn", || echo().status == 409);
    // Lines of refused calls are written after those of changes.
    wait_until("the refused call has a line", || {
        let ended = stage.lines("call_end");
        ended.iter().any(|line| line["code"] == "tool_withdrawn")
    });
    stage.chaos.script("a", &json!({"generation": 2}));
    wait_until("the tool is back", || echo().status == 200);
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    stage
}

/// Runs `audit explain` of a broker over the log of a stage.
fn explain(program: &str, stage: &AuditStage, seq: &Value, more: &[&str]) -> Output {
    explain_file(program, &stage.file(), seq, more)
}

fn explain_file(program: &str, file: &Path, seq: &Value, more: &[&str]) -> Output {
    let seq = seq.to_string();
    let file = file.to_str().expect("UTF-8");
    let args = ["audit", "explain", seq.as_str(), "--file", file];
    Run::new(&binary(program)).args(args).args(more).output()
}

/// Returns the answer as JSON. The exit code is 0.
fn answer(program: &str, stage: &AuditStage, seq: &Value, more: &[&str]) -> Value {
    let mut args = more.to_vec();
    args.extend(["--format", "json"]);
    let output = explain(program, stage, seq, &args);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str(&output.stdout).expect("JSON")
}

/// Returns the end line of a call.
fn end_line(stage: &AuditStage, outcome: &str, at: usize) -> Value {
    let lines = stage.lines("call_end").into_iter();
    let mut lines = lines.filter(|line| line["outcome"] == outcome);
    lines.nth(at).expect("a line")
}

/// Returns the texts of a list of an answer.
fn has_text(list: &Value, part: &str) -> bool {
    let mut texts = list.as_array().expect("a list").iter();
    texts.any(|text| text.as_str().is_some_and(|text| text.contains(part)))
}

/// Writes the audits beside the config of a stage: one entry of the time before the call, one after it.
fn audits(stage: &AuditStage, line: &Value) -> PathBuf {
    let digest = line["target"]["digest"].as_str().expect("a digest");
    let entry = |who: &str, date: &str, digest: &str| {
        format!(
            "[[audits]]\nsource = \"/a\"\ntool = \"echo\"\ndigest = \"{digest}\"\ncriteria = \"safe-to-expose\"\nwho = \"{who}\"\ndate = {date}\n"
        )
    };
    let other = format!("sha256/1:{}", "0".repeat(64));
    let text = entry("A. Reviewer <a@example.org>", "2026-01-02", digest)
        + &entry("Later <l@example.org>", "2999-01-02", digest)
        + &entry("Other <o@example.org>", "2026-01-02", &other);
    let file = Path::new(&stage.config).with_extension("audits.toml");
    fs::write(&file, text).expect("writable");
    file
}

#[test]
fn lines_of_a_broker_match_the_schema_that_is_printed() {
    let stage = recorded();
    let output = Run::new(&binary("broker-gen"))
        .args(["schema", "audit"])
        .output();
    let schema: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let validator = broker_schema::compile(&schema).expect("the schema compiles");
    let text = stage.text();
    let mut kinds = std::collections::BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let errors = validator.failures(&schema, &line, 5);
        assert!(errors.is_empty(), "{errors:#?}\n{line}");
        kinds.insert(line["kind"].to_string());
    }
    assert!(kinds.len() >= 7, "{kinds:?}");
}

#[test]
fn explain_says_what_a_caller_could_see_and_who_had_reviewed_the_tool() {
    let stage = recorded();
    let line = end_line(&stage, "ok", 0);
    audits(&stage, &line);
    let config = ["--config", stage.config.as_str()];
    let page = explain("chaos-broker", &stage, &line["seq"], &config);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    let digest = line["target"]["digest"].as_str().expect("a digest");
    for part in [
        &format!("begin: line {}", line["begin"]),
        "caller: ci (key), groups reader, via http, from 127.0.0.1",
        "item: /a/echo: echo of /a",
        digest,
        "outcome: ok, sent",
        "log: no change was found",
        "found: compiled into this program",
        "item: in the lock, with the digest of the line",
        "description: Echoes its arguments",
        "reviewed (the config asks for no review)",
        "accepted by A. Reviewer <a@example.org> on 2026-01-02",
        "accepted by Later <l@example.org> on 2999-01-02, not valid on the day",
        "rule 0 decided: allow /a/** to reader",
        "the item for the caller: callable",
        "/b/echo, narrowed",
        "the item was not withdrawn at that moment",
    ] {
        assert!(page.stdout.contains(part), "{part}\n{}", page.stdout);
    }
    assert!(!page.stdout.contains("/a/add"), "{}", page.stdout);
    let answer = answer("chaos-broker", &stage, &line["seq"], &config);
    assert_eq!(answer["line"], line);
    assert_eq!(answer["partner"]["seq"], line["begin"]);
    assert_eq!(answer["lock"]["is_same"], true);
    assert_eq!(answer["access"]["is_same"], true);
    assert_eq!(answer["review"]["is_reviewed"], true);
    assert_eq!(answer["review"]["of_other_bytes"], 1);
    let held = answer["review"]["entries"].as_array().expect("entries");
    let held: Vec<_> = held.iter().map(|entry| entry["held"].clone()).collect();
    assert_eq!(held, [json!(true), json!(false)]);
    let visible = answer["access"]["visible"].as_array().expect("items");
    let paths: Vec<_> = visible
        .iter()
        .filter_map(|one| one["path"].as_str())
        .collect();
    assert!(
        paths.contains(&"/a/echo") && paths.contains(&"/b/echo"),
        "{paths:?}"
    );
    assert!(
        !paths.contains(&"/a/add") && !paths.contains(&"/b/add"),
        "{paths:?}"
    );
    assert!(!page.stdout.contains(CANARY));
}

#[test]
fn explain_of_a_begin_line_and_of_a_denied_call_names_the_rule() {
    let stage = recorded();
    let config = ["--config", stage.config.as_str()];
    let begin = &stage.lines("call_begin")[0];
    let begun = answer("chaos-broker", &stage, &begin["seq"], &config);
    assert_eq!(begun["partner"]["begin"], begin["seq"]);
    let denied = end_line(&stage, "denied", 0);
    let denied = answer("chaos-broker", &stage, &denied["seq"], &config);
    assert_eq!(
        denied["access"]["rule"],
        json!({"number": 1, "text": "deny /a/add to reader"})
    );
    assert_eq!(denied["access"]["item"], "absent");
    // Without the config, the compiled-in one has no rules: the rules are named as missing.
    let without = answer("chaos-broker", &stage, &begin["seq"], &[]);
    assert_eq!(without["access"]["is_same"], false);
    assert!(has_text(&without["unknown"], "--config"), "{without}");
}

#[test]
fn explain_names_the_withdrawals_before_the_line() {
    let stage = recorded();
    let withdrawn = &stage.lines("withdrawn")[0];
    let refused = stage.lines("call_end").into_iter();
    let refused = refused
        .filter(|line| line["code"] == "tool_withdrawn")
        .find(|line| line["seq"].as_u64() > withdrawn["seq"].as_u64())
        .expect("a refused call");
    let refused = answer("chaos-broker", &stage, &refused["seq"], &[]);
    assert_eq!(refused["item"]["withdrawn_since"], withdrawn["seq"]);
    let kinds = |answer: &Value| {
        let before = answer["before"].as_array().expect("lines");
        let kinds = before.iter().filter_map(|line| line["kind"].as_str());
        kinds.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(
        kinds(&refused).contains(&"withdrawn".to_owned()),
        "{refused}"
    );
    let first = answer(
        "chaos-broker",
        &stage,
        &end_line(&stage, "ok", 0)["seq"],
        &[],
    );
    assert_eq!(kinds(&first), [""; 0], "{first}");
    let last = answer(
        "chaos-broker",
        &stage,
        &end_line(&stage, "ok", 1)["seq"],
        &[],
    );
    assert_eq!(last["item"]["withdrawn_since"], Value::Null, "{last}");
    assert!(kinds(&last).contains(&"restored".to_owned()), "{last}");
}

#[test]
fn explain_finds_the_lock_by_its_digest() {
    let stage = recorded();
    let line = end_line(&stage, "ok", 0);
    let seq = &line["seq"];
    // A broker with another catalog has another lock: it is missing, and this is named.
    let missing = explain("mcp-broker", &stage, seq, &[]);
    assert_eq!(missing.code, Some(0), "{}", missing.stderr);
    assert!(
        missing
            .stdout
            .contains("the lock is missing: it has the root digest sha256/1:"),
        "{}",
        missing.stdout
    );
    let lock = chaos_broker("config.lock.json");
    let named = answer(
        "mcp-broker",
        &stage,
        seq,
        &["--lock", lock.to_str().expect("UTF-8")],
    );
    assert_eq!(named["lock"]["is_same"], true);
    assert_eq!(named["item"]["is_locked"], true);
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("smoke_config.lock.json");
    let other = answer(
        "mcp-broker",
        &stage,
        seq,
        &["--lock", other.to_str().expect("UTF-8")],
    );
    assert_eq!(other["lock"]["is_same"], false);
    assert_eq!(other["item"]["is_locked"], false);
    assert!(
        has_text(&other["unknown"], "is not the one of this line"),
        "{other}"
    );
}

/// Runs git in a folder.
fn git(folder: &Path, args: &[&str]) {
    let output = Run::new(Path::new("git"))
        .folder(folder)
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(args)
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn explain_finds_the_lock_and_the_audits_in_git() {
    let stage = recorded();
    let line = end_line(&stage, "ok", 0);
    let audits = audits(&stage, &line);
    let repo = stage.chaos.path().join("repo");
    fs::create_dir(&repo).expect("writable");
    git(&repo, &["init", "--quiet"]);
    let write = |name: &str, from: &Path| {
        fs::copy(from, repo.join(name)).expect("copied");
    };
    write("c.json", Path::new(&stage.config));
    write("c.lock.json", &chaos_broker("config.lock.json"));
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "--quiet", "-m", "one"]);
    // A later commit has another lock, and the audits.
    write(
        "c.lock.json",
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("smoke_config.lock.json"),
    );
    write("c.audits.toml", &audits);
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "--quiet", "-m", "two"]);
    let folder = repo.to_str().expect("UTF-8");
    let found = answer("mcp-broker", &stage, &line["seq"], &["--repo", folder]);
    let place = found["lock"]["place"].as_str().expect("it was found");
    assert!(place.ends_with(":c.lock.json"), "{place}");
    assert_eq!(found["lock"]["is_same"], true);
    assert_eq!(
        found["access"]["is_same"], true,
        "the config of the commit: {found}"
    );
    assert_eq!(found["review"]["is_reviewed"], true, "{found}");
    // The history of another revision does not have it.
    let output = explain(
        "mcp-broker",
        &stage,
        &line["seq"],
        &["--repo", folder, "--revision", "no-such-revision"],
    );
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(
        output.stdout.contains("the lock is missing: git said"),
        "{}",
        output.stdout
    );
    // A text that git would read as an option is refused.
    let output = explain(
        "mcp-broker",
        &stage,
        &line["seq"],
        &["--repo", folder, "--revision=--output=stolen"],
    );
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    assert!(
        output.stderr.contains("is not a revision"),
        "{}",
        output.stderr
    );
    assert!(!repo.join("stolen").exists());
}

#[test]
fn explain_of_a_hostile_log_shows_one_page_and_says_that_it_was_changed() {
    let stage = recorded();
    let line = end_line(&stage, "ok", 0);
    let seq = &line["seq"];
    let text = stage.text();
    let own = text.lines().find(|text| {
        let value: Value = serde_json::from_str(text).expect("JSON");
        value["seq"] == *seq
    });
    let own = own.expect("its line");
    let mut hostile: Value = line.clone();
    hostile["actor"]["subject"] = json!(HOSTILE);
    hostile["target"]["path"] = json!(HOSTILE);
    hostile["outcome"] = json!(HOSTILE);
    let hostile = hostile.to_string();
    let unknown = own.replace("\"kind\":\"call_end\"", "\"kind\":\"call_stop\"");
    let giant = "y".repeat(3 << 20);
    let cut = &text[..text.len() - 40];
    let name = |name: &str, text: &str| {
        let file = stage.chaos.path().join(name);
        fs::write(&file, text).expect("writable");
        file
    };
    for (file, code, part) in [
        (name("escapes", &text.replace(own, &hostile)), 1, "CHANGED"),
        (name("unknown", &format!("{text}{unknown}\n")), 1, "CHANGED"),
        (
            name("giant", &format!("{text}{giant}\n{giant}")),
            1,
            "CHANGED",
        ),
        (name("cut", cut), 1, "CHANGED"),
        (name("twice", &format!("{text}{own}\n")), 1, "CHANGED"),
    ] {
        let output = explain_file("chaos-broker", &file, seq, &[]);
        let what = file.display();
        assert_eq!(output.code, Some(code), "{what}: {}", output.stderr);
        assert!(output.stdout.contains(part), "{what}: {}", output.stdout);
        let controls = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(
            !output.stdout.contains(controls),
            "{what}: {:?}",
            output.stdout
        );
        let found = output.stdout.lines().filter(|line| *line == "  found: yes");
        assert_eq!(
            found.count(),
            0,
            "{what}: a value began a line: {}",
            output.stdout
        );
        assert!(output.stdout.len() < 64 << 10, "{what}");
    }
    // Two logs in one file: the number is not unique.
    let stream = line["stream"].as_str().expect("an id");
    let other = own.replace(stream, "00000000-0000-4000-8000-000000000000");
    let several = name("several", &format!("{text}{other}\n"));
    let output = explain_file("chaos-broker", &several, seq, &[]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    assert!(
        output.stderr.contains("in several logs"),
        "{}",
        output.stderr
    );
}

#[test]
fn explain_refuses_files_that_cannot_be_used_with_place_cause_and_remedy() {
    let stage = recorded();
    let seq = &end_line(&stage, "ok", 0)["seq"];
    let folder = stage.chaos.path().to_str().expect("UTF-8").to_owned();
    let file = |name: &str, text: &str| {
        let file = stage.chaos.file(name, text);
        file.to_str().expect("UTF-8").to_owned()
    };
    let lock = fs::read_to_string(chaos_broker("config.lock.json")).expect("the lock");
    let edited = lock.replacen("Echoes its arguments", "Echoes its secrets", 1);
    let bad = [
        (
            "--lock",
            "/no/such.lock.json".to_owned(),
            "cannot read the lock",
        ),
        (
            "--lock",
            file("garbage.lock.json", "\u{1b}[2J{"),
            "garbage.lock.json",
        ),
        (
            "--lock",
            file("edited.lock.json", &edited),
            "edited.lock.json",
        ),
        ("--lock", folder, "a folder"),
        (
            "--config",
            "/no/such.json".to_owned(),
            "cannot read the config",
        ),
        ("--config", file("bad.json", "{"), "bad.json"),
        ("--audits", "/no/such.toml".to_owned(), "does not exist"),
        (
            "--audits",
            file("bad.toml", "[[audits]]\nx = 1\n"),
            "bad.toml",
        ),
        ("--repo", "/no/such".to_owned(), "is not a folder"),
    ];
    for (option, value, part) in bad {
        let output = explain("chaos-broker", &stage, seq, &[option, &value]);
        assert_eq!(output.code, Some(2), "{option} {value}: {}", output.stdout);
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        assert!(!output.stderr.contains('\u{1b}'), "{:?}", output.stderr);
    }
    let output = explain("chaos-broker", &stage, &json!(99_999), &[]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    assert!(
        output
            .stderr
            .contains("has no line 99999: its lines are 1 to"),
        "{}",
        output.stderr
    );
    let none = stage.chaos.file("empty.jsonl", "");
    for file in [Path::new("/no/such.jsonl"), &none, Path::new("/")] {
        let output = explain_file("chaos-broker", file, seq, &[]);
        assert_eq!(output.code, Some(2), "{}", output.stdout);
        assert!(
            output.stderr.contains("name the files of an audit log"),
            "{}",
            output.stderr
        );
    }
    let output = Run::new(&binary("chaos-broker"))
        .args(["audit", "explain", "1"])
        .output();
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    assert!(
        output.stderr.contains("name the log with `--file`"),
        "{}",
        output.stderr
    );
}
