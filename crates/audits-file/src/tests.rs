//! The audits file as people write it, and what it means for a lock.

use broker_config::Config;
use broker_model::lock::Lock;
use broker_model::{DiagnosticCode, Snapshot};
use serde_json::json;

use super::*;

const TODAY: &str = "2026-11-21";

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

/// A lock with the tools `x` and `y` on `/a`, whose server has instructions.
fn lock() -> Lock {
    let text = r#"{"tree": [{"path": "/a", "source": {"command": "server"}}]}"#;
    let config = Config::parse("c.json", text.as_bytes()).unwrap().config;
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let snapshot = Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: json!({"name": "server", "version": "1"}),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: json!({}),
        instructions: Some("Call x first.".to_owned()),
        tools: ["x", "y"]
            .map(|name| tool(name).as_object().unwrap().clone().into())
            .to_vec(),
    };
    Lock {
        version: broker_model::lock::LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "test".to_owned(),
        sources: config
            .sources()
            .map(|source| source.to_locked(&snapshot))
            .collect(),
        left_out: Vec::new(),
    }
}

/// An audit of one subject of the lock, with more lines.
fn entry(subject: &Subject<'_>, more: &str) -> String {
    let tool = subject
        .tool_name()
        .map_or_else(String::new, |name| format!("tool = \"{name}\"\n"));
    format!(
        "[[audits]]\nsource = \"{}\"\n{tool}digest = \"{}\"\ncriteria = \"safe-to-expose\"\nwho = \"A\"\ndate = 2026-01-02\n{more}\n",
        subject.source.path, subject.digest
    )
}

fn parse(text: &str) -> Audits {
    Audits::parse("c.audits.toml", text).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// The problems: line, column, code, message.
fn wrong(text: &str) -> Vec<(usize, usize, &'static str, String)> {
    let problems = Audits::parse("c.audits.toml", text).expect_err("it is refused");
    let place = |problem: &Diagnostic| {
        assert_eq!(problem.file.as_deref(), Some("c.audits.toml"));
        let at = problem.position.expect("it has a place");
        let message = format!("{}; {}", problem.message, problem.remedy());
        (at.line, at.column, problem.code.as_str(), message)
    };
    problems.iter().map(place).collect()
}

#[test]
fn audits_with_several_problems_report_each_with_its_place() {
    let source = "source = \"/a\"\n";
    let digest = format!("{source}digest = \"{}\"\n", lock().config_digest);
    let rows = [
        (
            "[[audits]]\n".to_owned(),
            (0, 1, "audits_value", "missing field `source`"),
        ),
        (
            format!("[[audits]]\n{digest}criteria = \"safe-to-expose\"\ndate = \"2026-01-01\"\n"),
            (0, 1, "audits_value", "missing field `who`"),
        ),
        (
            "[[audits]]\nsource = \"a\"\n".to_owned(),
            (1, 10, "audits_value", "begins with `/`"),
        ),
        (
            "[[audits]]\ndigest = \"sha256/1:0\"\n".to_owned(),
            (
                1,
                10,
                "audits_value",
                "`sha256/1:` or `sha256/2:` and 64 hexadecimal digits",
            ),
        ),
        (
            "[[audits]]\ncriteria = \"fine\"\n".to_owned(),
            (1, 12, "audits_value", "`fine`, expected `safe-to-expose`"),
        ),
        (
            "[[audits]]\nlookedAt = []\n".to_owned(),
            (
                1,
                1,
                "audits_unknown_key",
                "`notes`, `expires`; did you mean `looked_at`?",
            ),
        ),
        (
            "[[audits]]\nlooked_at = [\"a\", \"\"]\n".to_owned(),
            (1, 19, "audits_value", "got an empty one"),
        ),
        (
            "[[audits]]\nlooked_at = 1\n".to_owned(),
            (1, 13, "audits_value", "expected a sequence"),
        ),
        (
            "[[audits]]\ndate = \"2026-02-30\"\n".to_owned(),
            (
                1,
                8,
                "audits_value",
                "a day that exists, as `2026-11-21`, got `2026-02-30`",
            ),
        ),
        (
            "[[audits]]\nexpires = 7\n".to_owned(),
            (1, 11, "audits_value", "expected a day, as `2026-11-21`"),
        ),
        (
            "[[exemptions]]\ntool = \"!x\"\n".to_owned(),
            (1, 8, "audits_value", "a glob without `!`, got `!x`"),
        ),
        (
            format!("[[exemptions]]\n{source}expires = 2026-11-21\n"),
            (0, 1, "audits_value", "missing field `reason`"),
        ),
        (
            "[[exemptions]]\nreason = \" \"\n".to_owned(),
            (1, 10, "audits_value", "got an empty one"),
        ),
        (
            "[[suppressions]]\nwho = 1\n".to_owned(),
            (1, 7, "audits_value", "integer `1`, expected a string"),
        ),
        (
            "[[suppressions]]\nlooked_at = 1\n".to_owned(),
            (1, 1, "audits_unknown_key", "expected one of `rule`"),
        ),
        (
            "[[audit]]\n".to_owned(),
            (0, 3, "audits_unknown_key", "did you mean `audits`?"),
        ),
    ];
    // Alone, and all in one run.
    let mut all = (String::new(), Vec::new());
    for (text, (line, column, code, message)) in rows {
        let before = all.0.matches('\n').count();
        let expected = |first: usize| (first + line, column, code, message);
        check(&wrong(&text), &[expected(1)]);
        all.1.push(expected(before + 1));
        all.0.push_str(&text);
    }
    check(&wrong(&all.0), &all.1);
}

#[track_caller]
fn check(
    found: &[(usize, usize, &'static str, String)],
    expected: &[(usize, usize, &'static str, &str)],
) {
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((line, column, code, message), want) in found.iter().zip(expected) {
        let place = (*line, *column, *code);
        assert_eq!(place, (want.0, want.1, want.2), "{message}");
        assert!(message.contains(want.3), "{message}\nhas no {}", want.3);
    }
}

#[test]
fn audits_with_bad_syntax_or_conflict_markers_are_refused() {
    let found = wrong("[[audits]]\nsource = /a\n");
    assert_eq!((found[0].0, found[0].2), (2, "audits_syntax"), "{found:#?}");
    let found =
        wrong("[[audits]]\n<<<<<<< HEAD\nwho = \"A\"\n=======\nwho = \"B\"\n>>>>>>> other\n");
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].0, found[0].1, found[0].2),
        (2, 1, "audits_syntax")
    );
    assert!(
        found[0].3.contains("keep the entries of both sides"),
        "{found:#?}"
    );
    // As a merge leaves it that takes both sides by itself.
    let found = wrong("[[audits]]\nwho = \"A\"\nwho = \"B\"\n");
    assert_eq!((found[0].0, found[0].2), (3, "audits_syntax"));
    assert!(
        found[0].3.contains("keep the entries of both sides"),
        "{found:#?}"
    );
    let found = wrong("audits = 1\nexemptions = [1]\n");
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].3.contains("list of tables: `[[audits]]`"),
        "{found:#?}"
    );
    assert!(
        found[1].3.contains("a table: `[[exemptions]]`"),
        "{found:#?}"
    );
}

#[test]
fn audit_counts_for_its_digest_until_it_expires() {
    let lock = lock();
    let all = subjects(&lock);
    let shown: Vec<_> = all.iter().map(Subject::shown).collect();
    assert_eq!(shown, ["source /a", "/a/x", "/a/y"]);
    let today = date(TODAY);
    let why = |text: &str| -> Vec<String> {
        let audits = parse(text);
        let missing = audits.missing(&lock, today, 1);
        missing
            .iter()
            .map(|one| format!("{}: {}", one.subject.shown(), one.why))
            .collect()
    };
    assert_eq!(
        why(""),
        [
            "source /a: it was never audited",
            "/a/x: it was never audited",
            "/a/y: it was never audited"
        ]
    );
    let every: String = all.iter().map(|one| entry(one, "")).collect();
    assert_eq!(why(&every), [""; 0]);
    // Twice the same, or by two people, is fine.
    assert_eq!(why(&(every.clone() + &every)), [""; 0]);

    // It counts on its last day, and not after.
    let last = entry(&all[0], "") + &entry(&all[1], "expires = 2026-11-21") + &entry(&all[2], "");
    assert_eq!(why(&last), [""; 0]);
    let over = last.replace("expires = 2026-11-21", "expires = \"2026-11-20\"");
    assert_eq!(why(&over), ["/a/x: the audit of A expired on 2026-11-20"]);

    // Other bytes, and the digest of another tool, have no valid audit.
    let other = every.replace(all[1].digest.as_str(), all[2].digest.as_str());
    assert_eq!(
        why(&other),
        ["/a/x: it has changed since the audit of A on 2026-01-02"]
    );
}

#[test]
fn exemption_covers_what_its_globs_match_until_it_expires() {
    let lock = lock();
    let today = date(TODAY);
    let missing = |text: &str| -> Vec<String> {
        let audits = parse(text);
        let missing = audits.missing(&lock, today, 1);
        missing
            .iter()
            .map(|one| format!("{}: {}", one.subject.shown(), one.why))
            .collect()
    };
    let exemption = |tool: &str, expires: &str| {
        format!(
            "[[exemptions]]\nsource = \"/*\"\n{tool}reason = \"r\"\nwho = \"A\"\nexpires = {expires}\n"
        )
    };
    let tools = exemption("tool = \"*\"\n", TODAY);
    assert_eq!(missing(&tools), ["source /a: it was never audited"]);
    assert_eq!(missing(&(tools + &exemption("", TODAY))), [""; 0]);
    let over = exemption("tool = \"[x]\"\n", "2026-11-20") + &exemption("", TODAY);
    assert_eq!(
        missing(&over),
        [
            "/a/x: it was never audited, and its exemption expired on 2026-11-20",
            "/a/y: it was never audited"
        ]
    );
}

#[test]
fn audits_that_match_nothing_give_one_warning_with_their_lines() {
    let lock = lock();
    let all = subjects(&lock);
    let good: String = all.iter().map(|one| entry(one, "")).collect();
    assert_eq!(parse(&good).stale(&lock), None);
    let stale = good.replace("source = \"/a\"", "source = \"/gone\"");
    let warning = parse(&(good + &stale)).stale(&lock).expect("it warns");
    assert_eq!(warning.code, DiagnosticCode::AuditStale);
    assert!(
        !warning.is_error()
            && warning
                .message
                .contains("3 entries match nothing in the lock: lines 24, 31, 39"),
        "{warning}"
    );
}

#[test]
fn suppression_is_bound_to_rule_place_and_digest() {
    let lock = lock();
    let x = &subjects(&lock)[1];
    let text = format!(
        "[[suppressions]]\nrule = \"r\"\nsource = \"/a\"\ntool = \"x\"\ndigest = \"{}\"\nreason = \"an emoji\"\nwho = \"A\"\ndate = 2026-01-02\n",
        x.digest
    );
    let audits = parse(&text);
    assert!(audits.suppresses("r", "/a", Some("x"), &x.digest));
    let other = &subjects(&lock)[2].digest;
    assert!(!audits.suppresses("q", "/a", Some("x"), &x.digest));
    assert!(!audits.suppresses("r", "/b", Some("x"), &x.digest));
    assert!(!audits.suppresses("r", "/a", None, &x.digest));
    assert!(!audits.suppresses("r", "/a", Some("x"), other));
}

#[test]
fn audits_cut_or_edited_anywhere_do_not_panic() {
    let lock = lock();
    let whole = entry(
        &subjects(&lock)[1],
        "looked_at = [\"a\", \"b\"]\nexpires = 2027-01-01",
    ) + "[[exemptions]]\nsource = \"/a\"\nreason = \"\"\"x\ny\"\"\"\nwho = 'W'\nexpires = 2027-01-01\n";
    parse(&whole);
    for end in 0..whole.len() {
        // A prefix is fine only where it ends an entry that is whole.
        if let Err(problems) = Audits::parse("c.audits.toml", &whole[..end]) {
            assert!(
                problems.iter().all(|one| one.position.is_some()),
                "{problems:#?}"
            );
        }
        for other in ["\u{0}", "\"", "[", "=", "é", "\n", "9"] {
            let edited = format!("{}{other}{}", &whole[..end], &whole[end + 1..]);
            // It must not panic; its result is not known for most of these.
            let _ = Audits::parse("c.audits.toml", &edited);
        }
    }
}
