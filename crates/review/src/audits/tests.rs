//! Entries that are appended to an audits file.

use std::fs;
use std::path::PathBuf;

use broker_config::Config;
use broker_model::Snapshot;
use broker_model::lock::Lock;
use serde_json::json;
use tempfile::TempDir;

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

/// A config's folder with audits in it.
fn folder(text: Option<&str>) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("c.json");
    if let Some(text) = text {
        fs::write(audits_file(&config), text).unwrap();
    }
    (folder, config)
}

fn decision(notes: &str) -> Decision {
    let lock = lock();
    let subject = &subjects(&lock)[1];
    Decision::Audit(Audit {
        source: subject.source.path.clone(),
        tool: Some(notes.to_owned()),
        digest: subject.digest.clone(),
        criteria: Criteria::SafeToExpose,
        who: notes.to_owned(),
        date: date(TODAY),
        looked_at: vec!["description".to_owned(), notes.to_owned()],
        notes: Some(notes.to_owned()),
        expires: Some(date("2027-01-01")),
    })
}

#[test]
fn audits_append_keeps_every_byte_and_reads_back() {
    let entry = entry(&subjects(&lock())[1], "");
    let crlf = entry.replace('\n', "\r\n");
    let olds = [
        "",
        "# a comment without an end",
        entry.as_str(),
        entry.trim_end(),
        crlf.as_str(),
        crlf.trim_end(),
        "\u{feff}# with a mark\n",
        "audits = []\n#\n",
    ];
    for old in &olds[..7] {
        let (_folder, config) = folder(Some(old));
        append(&config, &[decision("one")])
            .unwrap_or_else(|problems| panic!("{old:?}: {problems:#?}"));
        append(&config, &[decision("two"), decision("three")]).unwrap();
        let new = fs::read_to_string(audits_file(&config)).unwrap();
        assert!(new.starts_with(old), "{new:?}");
        let (all, crlf) = (new.matches('\n').count(), new.matches("\r\n").count());
        assert_eq!(crlf, if old.contains('\r') { all } else { 0 }, "{new:?}");
        let before = Audits::parse("c.audits.toml", old).unwrap().audits().len();
        assert_eq!(Audits::read(&config).unwrap().audits().len(), before + 3);
    }
    // A static list cannot grow by tables: refused, and the file is as it was.
    let (_folder, config) = folder(Some(olds[7]));
    let problems = append(&config, &[decision("one")]).unwrap_err();
    assert!(
        problems[0].message.contains("nothing can be appended"),
        "{problems:#?}"
    );
    assert_eq!(fs::read_to_string(audits_file(&config)).unwrap(), olds[7]);
}

#[test]
fn audits_file_when_created_begins_with_its_purpose() {
    let (_folder, config) = folder(None);
    let added = append(&config, &[decision("one")]).unwrap();
    let text = fs::read_to_string(audits_file(&config)).unwrap();
    assert!(
        text.starts_with("# Who looked at what in c.lock.json."),
        "{text}"
    );
    assert!(text.ends_with(&added), "{text}");
}

#[test]
fn audit_with_hostile_text_stays_one_string() {
    for hostile in [
        "\"\n[[audits]]\nsource = \"/b\"",
        "\\",
        "\\\"",
        "tab\tcr\rnul\u{0}esc\u{1b}[31m",
        "bidi \u{202e} tag \u{e0041} zero\u{200b}",
        "'''\"\"\"",
        "# = [",
        "ü 日本 🧩",
    ] {
        let (_folder, config) = folder(None);
        append(&config, &[decision(hostile)]).unwrap_or_else(|problems| panic!("{problems:#?}"));
        let audits = Audits::read(&config).unwrap();
        assert_eq!(audits.audits().len(), 1);
        let read = audits.audits().next().unwrap();
        assert_eq!(read.who, hostile);
        assert_eq!(read.notes.as_deref(), Some(hostile));
        assert_eq!(read.looked_at[1], hostile);
        let text = fs::read_to_string(audits_file(&config)).unwrap();
        let hidden = |c: char| broker_model::text::is_invisible(c);
        assert!(!text.contains(hidden), "{text:?}");
    }
}

#[test]
fn audits_append_to_a_symbolic_link_keeps_the_link() {
    let (folder, config) = folder(None);
    let target = folder.path().join("elsewhere.toml");
    fs::write(&target, "# mine\n").unwrap();
    std::os::unix::fs::symlink(&target, audits_file(&config)).unwrap();
    append(&config, &[decision("one")]).unwrap();
    assert!(audits_file(&config).is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("[[audits]]"));
}
