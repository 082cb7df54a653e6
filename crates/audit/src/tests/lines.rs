//! The text of lines, in both forms.

use serde_json::{Value, json};

use super::fake::Fake;
use super::{OK, begin, call, key, lines, log_on, versions, wait_until};
use crate::{
    CallEndFacts, CallOutcome, DriftFacts, Event, Format, JobFacts, Kind, OcsfVersion, ReadFacts,
    ReloadOutcome, Target, parse,
};

/// Writes a line of each kind that a caller can cause.
pub(super) fn write_all(disk: &Fake, format: Format) -> Vec<Value> {
    let log = log_on(disk, |settings| {
        settings.format = format;
        settings.key = Some(key());
    });
    let open = begin(&log, "https://idp.example|u42").unwrap();
    log.end(open, OK);
    let denied = CallEndFacts {
        outcome: CallOutcome::Denied,
        code: Some("forbidden"),
        result: None,
        sent: false,
        ..OK
    };
    log.refused(&call("u7"), denied);
    log.identify_failed("10.0.0.9", "key_unknown");
    log.read(ReadFacts {
        actor: call("u42").actor,
        method: "meta_desc",
        paths: vec!["/pay/refund".to_owned()],
        via: "http".into(),
        ..ReadFacts::default()
    });
    let target = Target {
        path: "/pay/refund".into(),
        ..Target::default()
    };
    log.event(Event::Withdrawn {
        target: target.clone(),
        code: "drift".into(),
    });
    log.event(Event::Restored {
        target: target.clone(),
    });
    log.event(Event::SourceDown {
        target: target.clone(),
        code: "hung".into(),
    });
    log.event(Event::SourceUp {
        target: target.clone(),
    });
    log.event(Event::Drift(DriftFacts {
        target,
        class: "breaking".into(),
        finding: "param_removed".into(),
        found: None,
    }));
    log.event(Event::Reload {
        outcome: ReloadOutcome::Done,
        code: None,
        versions: versions(),
    });
    let job = JobFacts {
        id: "j_1".into(),
        actor: call("u42").actor,
        target: Target {
            path: "/pay/refund".into(),
            ..Target::default()
        },
    };
    log.event(Event::JobClaimed(job.clone()));
    log.event(Event::JobEnded {
        job,
        outcome: "lost",
        code: Some("job_lost".into()),
        maybe_executed: true,
    });
    log.event(Event::KeysChanged {
        added: vec!["ci".to_owned()],
        removed: Vec::new(),
    });
    log.close();
    lines(disk, "audit.jsonl")
}

#[test]
fn line_of_a_call_has_its_members_in_their_order() {
    let disk = Fake::default();
    write_all(&disk, Format::Native);
    let bytes = disk.content("audit.jsonl");
    let text = String::from_utf8(bytes).unwrap();
    let end = text.lines().find(|line| line.contains("call_end")).unwrap();
    let at = |member: &str| end.find(&format!("\"{member}\":")).unwrap();
    let members = [
        "v",
        "seq",
        "prev",
        "at",
        "stream",
        "kind",
        "begin",
        "outcome",
        "code",
        "actor",
        "via",
        "peer",
        "request_id",
        "target",
        "rule",
        "args",
        "result",
        "ms",
        "sent",
        "maybe_executed",
        "catalog",
        "policy",
    ];
    assert!(members.is_sorted_by_key(|member| at(member)), "{end}");
    let value: Value = serde_json::from_str(end).unwrap();
    let begin = text
        .lines()
        .find(|line| line.contains("call_begin"))
        .unwrap();
    let begin: Value = serde_json::from_str(begin).unwrap();
    assert_eq!(value["begin"], begin["seq"]);
    for (member, expected) in [
        ("outcome", json!("ok")),
        ("code", json!(null)),
        ("rule", json!(3)),
        ("ms", json!(41.2)),
        ("args", json!({"bytes": 118, "shown": {"/org": "acme"}})),
        ("result", json!({"bytes": 2048, "is_error": false})),
        ("catalog", json!(versions().catalog)),
        ("policy", json!(versions().policy)),
    ] {
        assert_eq!(value[member], expected, "{member}");
    }
}

#[test]
fn lines_of_a_job_name_it() {
    let disk = Fake::default();
    let log = log_on(&disk, |_| {});
    let mut run = call("u42");
    run.job = Some("j_1".into());
    let open = crate::tests::wait(log.begin(run)).unwrap();
    log.end(open, OK);
    let accepted = CallEndFacts {
        outcome: CallOutcome::Accepted,
        result: None,
        job: Some("j_2".into()),
        ..OK
    };
    let open = begin(&log, "u42").unwrap();
    log.end(open, accepted);
    log.close();
    let lines = lines(&disk, "audit.jsonl");
    let parents: Vec<(&str, &Value)> = lines
        .iter()
        .filter(|line| line["kind"].as_str().unwrap().starts_with("call"))
        .map(|line| (line["kind"].as_str().unwrap(), &line["parent"]))
        .collect();
    let (first, second) = (json!({"job": "j_1"}), json!({"job": "j_2"}));
    assert_eq!(
        parents,
        [
            ("call_begin", &first),
            ("call_end", &first),
            ("call_begin", &json!(null)),
            ("call_end", &second),
        ]
    );
}

#[test]
fn every_kind_of_line_is_read_in_both_forms() {
    let forms = [
        Format::Native,
        Format::Ocsf(OcsfVersion::V1_8),
        Format::Ocsf(OcsfVersion::V1_9Dev),
    ];
    for format in forms {
        let disk = Fake::default();
        write_all(&disk, format);
        let bytes = disk.content("audit.jsonl");
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let kinds: Vec<_> = lines.map(|line| parse(line).unwrap().kind).collect();
        for kind in [
            Kind::Start,
            Kind::Stop,
            Kind::Checkpoint,
            Kind::IdentifyFailed,
            Kind::CallBegin,
            Kind::CallEnd,
            Kind::Withdrawn,
            Kind::Restored,
            Kind::SourceDown,
            Kind::SourceUp,
            Kind::Drift,
            Kind::Reload,
            Kind::KeysChanged,
        ] {
            assert!(kinds.contains(&kind), "{format:?}: {kind:?}");
        }
        let folder = tempfile::TempDir::new().unwrap();
        let options = crate::VerifyOptions {
            key: Some(key().public()),
            head: None,
        };
        let report = crate::verify(&disk.save(folder.path()), &options).unwrap();
        assert!(
            report.is_unchanged() && report.unprotected_lines == 0,
            "{report}"
        );
    }
}

#[test]
fn line_of_every_kind_matches_the_json_schema() {
    let disk = Fake::default();
    let mut all = write_all(&disk, Format::Native);
    // Lines that need a full queue, an old file or a torn end are made from the last line.
    let stop = all.last().unwrap().clone();
    let hash = "0".repeat(64);
    for (kind, members) in [
        ("limited", json!({"actor": all[1]["actor"], "count": 3})),
        (
            "deleted",
            json!({"deleted": {"file": "audit-1.jsonl", "first": 1, "last": 9, "hash": hash}}),
        ),
        (
            "gap",
            json!({"code": "torn", "torn": {"bytes": 7, "hash": hash}}),
        ),
        ("gap", json!({"code": "not_recorded", "count": 7})),
    ] {
        let mut line = stop.clone();
        let line = line.as_object_mut().unwrap();
        line.retain(|name, _| !["key_id", "sig"].contains(&name.as_str()));
        line.insert("kind".to_owned(), kind.into());
        line.extend(members.as_object().unwrap().clone());
        let text = serde_json::to_string(line).unwrap();
        parse(text.as_bytes()).unwrap();
        all.push(Value::Object(line.clone()));
    }
    let schema = jsonschema::validator_for(&crate::json_schema()).unwrap();
    for line in &all {
        let errors: Vec<_> = schema
            .iter_errors(line)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, [""; 0], "{line}");
        let mut other = line.clone();
        other["value"] = "x".into();
        assert!(!schema.is_valid(&other), "another member: {other}");
        for member in ["catalog", "seq", "kind", "at"] {
            let mut other = line.clone();
            other.as_object_mut().unwrap().remove(member);
            assert!(!schema.is_valid(&other), "without `{member}`: {other}");
        }
    }
    for kind in Kind::ALL {
        let kind = json!(kind);
        assert!(all.iter().any(|line| line["kind"] == kind), "{kind}");
    }
}

#[test]
fn event_of_a_denied_call_has_the_members_of_its_class() {
    let disk = Fake::default();
    let lines = write_all(&disk, Format::Ocsf(OcsfVersion::V1_9Dev));
    let is_denied = |event: &&Value| event["unmapped"]["outcome"] == "denied";
    let event = lines.iter().find(is_denied).unwrap();
    for (pointer, expected) in [
        ("/class_uid", json!(6003)),
        ("/category_uid", json!(6)),
        ("/type_uid", json!(600_399)),
        ("/activity_id", json!(99)),
        ("/activity_name", json!("Invoke")),
        ("/action_id", json!(2)),
        ("/disposition_id", json!(2)),
        ("/status_id", json!(2)),
        ("/status_code", json!("forbidden")),
        ("/api/operation", json!("tools/call")),
        ("/api/request/uid", json!("17")),
        ("/actor/user/uid", json!("u7")),
        ("/resources/0/uid", json!("/pay/refund")),
        ("/resources/0/type", json!("mcp_tool")),
        ("/src_endpoint/ip", json!("10.0.0.7")),
        ("/attestation_list/0/fingerprint/algorithm_id", json!(3)),
        (
            "/attestation_list/0/chain_uid",
            event["unmapped"]["stream"].clone(),
        ),
    ] {
        assert_eq!(event.pointer(pointer), Some(&expected), "{pointer}");
    }
}

#[test]
fn texts_of_a_line_are_cut_and_only_scalars_are_shown() {
    let disk = Fake::default();
    let log = log_on(&disk, |_| {});
    let mut facts = call(&"s".repeat(2000));
    facts.target.path = "/\u{7f}\"\\\n".repeat(2000).into();
    facts.args.shown = (0..30)
        .map(|n| (format!("/{n:02}"), json!("x".repeat(300))))
        .collect();
    facts
        .args
        .shown
        .insert("/".to_owned(), json!({"secret": 1}));
    let open = super::wait(log.begin(facts)).unwrap();
    log.end(open, OK);
    log.close();
    let end = &lines(&disk, "audit.jsonl")[2];
    let chars = |value: &Value| value.as_str().unwrap().chars().count();
    assert_eq!(chars(&end["target"]["path"]), 512);
    assert_eq!(chars(&end["actor"]["subject"]), 512);
    let shown = end["args"]["shown"].as_object().unwrap();
    assert_eq!(shown.len(), 16);
    assert!(shown.values().all(|value| chars(value) == 200));
}

#[test]
fn room_of_a_call_is_at_least_the_length_of_its_lines() {
    for format in [
        Format::Native,
        Format::Ocsf(OcsfVersion::V1_8),
        Format::Ocsf(OcsfVersion::V1_9Dev),
    ] {
        let disk = Fake::default();
        let log = log_on(&disk, |settings| settings.format = format);
        let mut facts = call("\u{1}\u{2}\"quoted\"");
        facts.trace_id = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
        facts.args.hmac = Some("a".repeat(64));
        let room = crate::line::end_room(&facts, format);
        let open = super::wait(log.begin(facts)).unwrap();
        log.end(open, OK);
        wait_until("the end line", || log.status().seq >= 3);
        drop(log);
        let bytes = disk.content("audit.jsonl");
        let longest = bytes
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::len)
            .max()
            .unwrap();
        assert!(
            room > longest as u64,
            "{room} bytes of room, {longest} bytes"
        );
    }
}
