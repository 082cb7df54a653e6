//! A lock of format version 1, written by `broker-gen lock` once and kept for ever: every later
//! program reads it, writes the same bytes, and finds each digest in it again, or refuses it with
//! what to do. `lock-v1-config.json` is the config that it was made for; neither is ever renewed.

use broker_config::Config;
use broker_model::lock::{Lock, LockedSource};
use broker_model::snapshot::Snapshot;
use broker_model::{Diagnostic, DiagnosticCode};

const LOCK: &str = include_str!("lock-v1.json");
const CONFIG: &str = include_str!("lock-v1-config.json");

fn read() -> Lock {
    Lock::parse("lock-v1.json", LOCK).expect("a lock of version 1 is read")
}

fn refused(text: &str) -> Diagnostic {
    let problems = Lock::parse("lock-v1.json", text).expect_err("it is refused");
    problems.into_iter().next().expect("with a reason")
}

/// The line number of the first line with `needle`.
fn line_of(text: &str, needle: &str) -> usize {
    let at = text.lines().position(|line| line.contains(needle));
    at.expect("the fixture has the line") + 1
}

#[test]
fn lock_v1_is_read_and_written_with_the_same_bytes() {
    let lock = read();
    assert_eq!(lock.to_text(), LOCK);
    assert_eq!(lock.generator, "broker-gen 0.1.0");

    let names = |source: &LockedSource| {
        let exposed = source.exposed.iter().map(|tool| tool.exposed_name.clone());
        let hidden = source.hidden.iter().map(|tool| format!("-{}", tool.name));
        exposed.chain(hidden).collect::<Vec<_>>().join(" ")
    };
    let [atlas, clock] = &lock.sources[..] else {
        panic!("two sources");
    };
    assert_eq!(names(atlas), "find get_map -admin_import -admin_reset");
    assert_eq!(names(clock), "now");
    assert_eq!(
        atlas.instructions.as_deref(),
        Some("Zuerst `find_place` fragen.\nKoordinaten sind WGS 84 – Länge vor Breite.")
    );
    assert_eq!((&clock.instructions, clock.volatile.len()), (&None, 0));
    let volatile: Vec<_> = atlas.volatile.iter().collect();
    assert_eq!(volatile, ["/tools/*/_meta/example~1started"]);

    // What a careless reader would lose: a carriage return, what only an escape shows, the last
    // digit of a large integer, and an unknown member.
    let find = &atlas.exposed[0].raw;
    assert_eq!(
        find["description"],
        "Finds a place by its name.\n\nNames may be written in any script: 東京, Zürich, Αθήνα.\r\nNo wildcards."
    );
    assert_eq!(
        atlas.exposed[1].raw["description"],
        "Gives a map \u{1f5fa}\u{fe0f}, as it was last drawn."
    );
    assert_eq!(
        find["inputSchema"]["properties"]["limit"]["maximum"].to_string(),
        "9007199254740993"
    );
    assert_eq!(find["x-unknown"][2], "–");
    assert!(find["_meta"].get("example/started").is_none());
}

#[test]
fn lock_v1_fits_its_config_and_is_rebuilt_from_its_tools() {
    let lock = read();
    let config = Config::parse("lock-v1-config.json", CONFIG.as_bytes())
        .expect("a config of that time is read")
        .config;
    // An unchanged config does not make its lock stale.
    assert_eq!(lock.config_digest, config.digest());
    for source in config.sources() {
        let locked = lock.source(source.path.as_str()).expect("it is locked");
        assert_eq!(locked.config_digest, source.digest(), "{}", source.path);
    }

    // The clock hides nothing, so that its lock holds all that the server said.
    let clock = lock.source("/clock").expect("it is locked");
    let live = Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: clock.server_info.clone(),
        protocol_version: clock.protocol_version.clone(),
        capabilities: clock.capabilities.clone(),
        instructions: clock.instructions.clone(),
        tools: clock
            .exposed
            .iter()
            .map(|tool| tool.raw.clone().into())
            .collect(),
    };
    let source = config.sources().find(|one| one.path.as_str() == "/clock");
    let again = source.expect("the source").to_locked(&live);
    assert_eq!(&again, clock);
}

#[test]
fn lock_v1_with_any_changed_digest_is_refused() {
    let mut seen = 0;
    for (number, line) in LOCK.lines().enumerate() {
        if !line.contains("\"sha256/1:") {
            continue;
        }
        let at = line.rfind('"').expect("a quoted digest") - 1;
        let other = if &line[at..=at] == "0" { "1" } else { "0" };
        let wrong = format!("{}{other}{}", &line[..at], &line[at + 1..]);
        let mut lines: Vec<&str> = LOCK.lines().collect();
        lines[number] = &wrong;
        let problem = refused(&lines.join("\n"));
        assert_eq!(problem.code, DiagnosticCode::LockCorrupt, "{line}");
        seen += 1;
    }
    assert_eq!(seen, 23);
}

#[test]
fn lock_v1_relabelled_as_version_4_is_refused_with_the_remedy() {
    let newer = LOCK.replace("\"lock_version\": 1", "\"lock_version\": 4");
    // Additions of a newer program are not reported, only the version.
    let newer = newer.replace("\"hidden\"", "\"withheld\"");
    let newer = newer.replacen('{', "{\n  \"added_in_4\": [],", 1);
    let problem = refused(&newer);
    assert_eq!(problem.code, DiagnosticCode::LockVersion);
    assert_eq!(
        problem.message,
        "the lock has format version 4, this program reads 1 to 3"
    );
    assert_eq!(
        problem.position.map(|at| at.line),
        Some(line_of(&newer, "\"lock_version\""))
    );
    assert_eq!(problem.file.as_deref(), Some("lock-v1.json"));
    let help = problem.remedy();
    assert!(
        help.contains("Upgrade mcp-broker and broker-gen") && help.contains("make a new lock"),
        "{help}"
    );
}

#[test]
fn lock_v1_with_a_merge_conflict_is_refused_with_the_remedy() {
    let ours = "              \"Gives a map \u{1f5fa}\\ufe0f, as it was last drawn.\"\n";
    assert!(LOCK.contains(ours));
    let theirs = "              \"Draws a map.\"\n";
    let base = "              \"Gives a map.\"\n";
    for (name, conflict) in [
        (
            "merge",
            format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> topic\n"),
        ),
        (
            "diff3",
            format!("<<<<<<< HEAD\n{ours}||||||| 0123abc\n{base}=======\n{theirs}>>>>>>> topic\n"),
        ),
        (
            "carriage returns",
            format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> topic\n").replace('\n', "\r\n"),
        ),
        // Some markers were removed by hand.
        (
            "half solved",
            format!("{ours}=======\n{theirs}>>>>>>> topic\n"),
        ),
        ("one left", format!("{ours}=======\n")),
    ] {
        let text = LOCK.replace(ours, &conflict);
        let problem = refused(&text);
        assert_eq!(problem.code, DiagnosticCode::LockCorrupt, "{name}");
        assert_eq!(
            problem.message, "the lock has merge-conflict markers",
            "{name}"
        );
        let first = ["<<<<<<<", "======="]
            .iter()
            .filter(|mark| text.contains(**mark))
            .map(|mark| line_of(&text, mark))
            .min();
        assert_eq!(problem.position.map(|at| at.line), first, "{name}");
        let help = problem.remedy();
        assert!(help.contains("`broker-gen lock`"), "{help}");
    }
}
