//! Files over time: continuation, torn ends, rotation, removal, a file that was moved, and a full disk.

use std::path::Path;
use std::time::Duration;

use super::fake::{Fake, Operation};
use super::{OK, TestClock, begin, call, key, lines, log_on, versions, wait, wait_until};
use crate::{
    AuditError, AuditLog, AuditSettings, Event, FileLayer as _, FoundBy, ReloadOutcome, Rotation,
    VerifyOptions, head_of_envelope, verify,
};

fn report(disk: &Fake) -> crate::Report {
    let folder = tempfile::TempDir::new().unwrap();
    let options = VerifyOptions {
        key: Some(key().public()),
        head: None,
    };
    verify(&disk.save(folder.path()), &options).unwrap()
}

fn call_and_end(log: &AuditLog) {
    let open = begin(log, "u1").unwrap();
    log.end(open, OK);
}

fn kinds(disk: &Fake, name: &str) -> Vec<String> {
    let lines = lines(disk, name).into_iter();
    lines
        .map(|line| line["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn killed_broker_leaves_its_call_open_and_the_next_one_continues_the_chain() {
    let disk = Fake::default();
    let log = log_on(&disk, |_| {});
    let open = begin(&log, "u1").unwrap();
    // The log is gone before the call has ended.
    drop(log);
    drop(open);
    let log = log_on(&disk, |settings| settings.key = Some(key()));
    call_and_end(&log);
    log.close();
    assert_eq!(
        kinds(&disk, "audit.jsonl"),
        [
            "start",
            "call_begin",
            "start",
            "call_begin",
            "call_end",
            "stop",
            "checkpoint"
        ]
    );
    let report = report(&disk);
    assert!(report.is_unchanged(), "{report}");
    assert_eq!(report.left_open.len(), 1);
    assert_eq!(
        (report.left_open[0].seq, report.left_open[0].path.as_str()),
        (2, "/pay/refund")
    );
}

#[test]
fn torn_end_is_kept_and_reported() {
    for torn in [&b"{\"v\":1,\"se"[..], b"{\"v\":1,\"se\n\0\0\0", b"\0\0\0\n"] {
        let disk = Fake::default();
        let log = log_on(&disk, |settings| settings.key = Some(key()));
        call_and_end(&log);
        log.close();
        disk.open(Path::new("audit.jsonl"))
            .unwrap()
            .append(torn)
            .unwrap();
        let cut = report(&disk);
        assert_eq!(cut.findings[0].by, FoundBy::Chain, "{cut}");
        let log = log_on(&disk, |settings| settings.key = Some(key()));
        log.close();
        let report = report(&disk);
        assert!(report.is_unchanged() && report.notes.len() == 1, "{report}");
        let content = disk.content("audit.jsonl");
        assert!(content.windows(torn.len()).any(|part| part == torn));
    }
}

#[test]
fn file_that_is_not_a_log_or_is_in_use_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("audit.jsonl");
    std::fs::write(&path, "{\"some\": \"json\"}\n").unwrap();
    let open = || AuditLog::open(AuditSettings::new(&path), versions());
    assert!(matches!(open(), Err(AuditError::NotALog(_))));
    std::fs::remove_file(&path).unwrap();
    let log = open().unwrap();
    assert!(matches!(open(), Err(AuditError::Locked(_))));
    log.close();
    open().unwrap().close();
}

#[test]
fn file_on_a_disk_has_its_mode_and_no_padding() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut settings = AuditSettings::new(&path);
    settings.key = Some(key());
    let log = AuditLog::open(settings, versions()).unwrap();
    call_and_end(&log);
    wait_until("the end line", || log.status().seq == 3);
    // The file has no byte behind its last line while room is allocated.
    let content = std::fs::read(&path).unwrap();
    assert!(content.ends_with(b"}\n") && !content.contains(&0));
    log.close();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let head = std::fs::read_to_string(folder.path().join("audit.jsonl.head.dsse.json")).unwrap();
    let head = head_of_envelope(&head, key().public()).unwrap();
    let status = log.status();
    assert_eq!((head.seq, &head.hash), (status.seq, &status.hash));
    assert!(!status.is_available);
    let options = VerifyOptions {
        key: Some(key().public()),
        head: Some(head),
    };
    let report = verify(&[path], &options).unwrap();
    assert!(
        report.is_unchanged() && report.unprotected_lines == 0,
        "{report}"
    );
}

#[test]
fn file_is_rotated_at_its_size_and_older_ones_are_removed_after_their_head_was_anchored() {
    let disk = Fake::default();
    let log = log_on(&disk, |settings| {
        settings.key = Some(key());
        settings.rotate = Rotation::Size(8000);
        settings.keep = Some(2);
    });
    let open = begin(&log, "u9").unwrap();
    for _ in 0..50 {
        call_and_end(&log);
    }
    // Its begin line may be in a file that was removed.
    log.end(open, OK);
    log.close();
    let names = disk.names();
    let logs = names.iter().filter(|name| name.ends_with(".jsonl"));
    assert_eq!(logs.count(), 3, "{names:?}");
    let report = report(&disk);
    assert!(report.is_unchanged(), "{report}");
    assert!(
        report.first_seq > 1 && report.notes[0].contains("were removed"),
        "{report}"
    );
    // A file is removed right after its line and a checkpoint were synced.
    let operations = disk.lock().operations.clone();
    let is_removed = |operation: &Operation| matches!(operation, Operation::Remove(name) if name.ends_with(".jsonl"));
    let removals = (0..operations.len()).filter(|at| is_removed(&operations[*at]));
    let mut count = 0;
    for at in removals {
        count += 1;
        assert!(
            matches!(operations[at - 1], Operation::Replace(_)),
            "{operations:?}"
        );
        assert_eq!(operations[at - 2], Operation::Sync);
        let Operation::Append(kinds) = &operations[at - 3] else {
            panic!("{operations:?}");
        };
        assert_eq!(kinds[..], ["start", "deleted", "checkpoint"]);
    }
    assert!(count > 2);
}

#[test]
fn file_is_rotated_when_the_day_ends() {
    let disk = Fake::default();
    let clock = TestClock::default();
    let log = log_on(&disk, |settings| {
        settings.key = Some(key());
        settings.rotate = Rotation::Day;
        settings.clock = clock.clock();
    });
    call_and_end(&log);
    clock.advance(Duration::from_secs(59));
    call_and_end(&log);
    wait_until("the lines of the day", || log.status().lag_lines == 0);
    clock.advance(Duration::from_secs(2));
    call_and_end(&log);
    log.close();
    let days = |name: &str| {
        let days = lines(&disk, name).into_iter();
        let mut days: Vec<_> = days
            .map(|line| line["at"].as_str().unwrap()[..10].to_owned())
            .collect();
        days.dedup();
        days
    };
    // The checkpoint that ends the old file is made on the new day.
    assert_eq!(days("audit-1.jsonl"), ["2026-11-28", "2026-11-29"]);
    assert_eq!(days("audit.jsonl"), ["2026-11-29"]);
    assert!(report(&disk).is_unchanged());
}

#[test]
fn chain_continues_after_a_rotation_that_broke_off() {
    let disk = Fake::default();
    let log = log_on(&disk, |settings| settings.key = Some(key()));
    call_and_end(&log);
    log.close();
    // Between the two renames.
    let path = Path::new;
    disk.rename(path("audit.jsonl"), path("audit-1.jsonl"))
        .unwrap();
    drop(disk.open(path("audit.jsonl.new")).unwrap());
    let log = log_on(&disk, |settings| settings.key = Some(key()));
    log.close();
    let report = report(&disk);
    assert!(report.is_unchanged() && report.first_seq == 1, "{report}");
    assert!(!disk.names().contains(&"audit.jsonl.new".to_owned()));
}

#[test]
fn file_that_was_moved_is_opened_again_on_request() {
    let disk = Fake::default();
    let log = log_on(&disk, |settings| settings.key = Some(key()));
    let open = begin(&log, "u1").unwrap();
    disk.rename(Path::new("audit.jsonl"), Path::new("moved.jsonl"))
        .unwrap();
    log.reopen();
    wait_until("the new file", || {
        disk.names().contains(&"audit.jsonl".to_owned())
    });
    log.end(open, OK);
    // The same name: nothing changes.
    log.reopen();
    call_and_end(&log);
    log.close();
    assert_eq!(kinds(&disk, "moved.jsonl"), ["start", "call_begin"]);
    assert_eq!(kinds(&disk, "audit.jsonl")[..2], ["start", "call_end"]);
    assert_eq!(
        kinds(&disk, "audit.jsonl")
            .iter()
            .filter(|kind| *kind == "start")
            .count(),
        1
    );
    assert!(report(&disk).is_unchanged());
}

#[test]
fn full_disk_refuses_the_next_call_and_loses_no_end_line() {
    for cannot_allocate in [false, true] {
        let disk = Fake::default();
        disk.lock().cannot_allocate = cannot_allocate;
        // Room for some calls, beside the margin of a file system that cannot allocate.
        disk.fill(if cannot_allocate { 1 << 20 } else { 0 } + (300 << 10));
        let log = log_on(&disk, |settings| settings.key = Some(key()));
        let mut open = Vec::new();
        let refused = loop {
            match begin(&log, "u1") {
                Ok(call) => open.push(call),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, AuditError::Full), "{refused}");
        assert!(open.len() > 5 && !log.status().is_available);
        // The file system has not one byte more now.
        disk.fill(0);
        let refused = wait(log.admit(call("u2"))).unwrap_err();
        assert!(matches!(refused, AuditError::Full), "{refused}");
        let count = open.len();
        for call in open {
            log.end(call, OK);
        }
        log.event(Event::Reload {
            outcome: ReloadOutcome::Done,
            code: None,
            versions: versions(),
        });
        let ends = || {
            kinds(&disk, "audit.jsonl")
                .iter()
                .filter(|kind| *kind == "call_end")
                .count()
        };
        if !cannot_allocate {
            wait_until("the end lines", || ends() == count);
        }
        // There is space again.
        disk.lock().size = None;
        wait_until("the log is available", || log.status().is_available);
        call_and_end(&log);
        log.close();
        assert_eq!(ends(), count + 1);
        let report = report(&disk);
        assert!(
            report.is_unchanged() && report.left_open.is_empty(),
            "{report}"
        );
        assert!(kinds(&disk, "audit.jsonl").contains(&"reload".to_owned()));
    }
}

#[test]
fn write_that_fails_refuses_the_call_and_is_tried_again() {
    let disk = Fake::default();
    let log = log_on(&disk, |settings| settings.key = Some(key()));
    let before = begin(&log, "u1").unwrap();
    disk.lock().broken = true;
    assert!(matches!(begin(&log, "u2"), Err(AuditError::Write(_))));
    log.end(before, OK);
    assert!(matches!(begin(&log, "u2"), Err(AuditError::Write(_))));
    log.missed();
    disk.lock().broken = false;
    wait_until("the log is available", || log.status().is_available);
    call_and_end(&log);
    log.close();
    let lines = lines(&disk, "audit.jsonl");
    // The call whose line was made has an end line that says that it was not sent.
    let is_abandoned = |line: &&serde_json::Value| line["outcome"] == "abandoned";
    let abandoned: Vec<_> = lines.iter().filter(is_abandoned).collect();
    assert_eq!(abandoned.len(), 1);
    assert_eq!(
        (&abandoned[0]["sent"], &abandoned[0]["begin"]),
        (&false.into(), &3.into())
    );
    let gap = lines.iter().find(|line| line["kind"] == "gap").unwrap();
    assert_eq!(gap["count"], 1);
    let report = report(&disk);
    assert!(
        report.is_unchanged() && report.left_open.is_empty(),
        "{report}"
    );
}

#[test]
fn rotation_without_room_leaves_the_log_in_its_file() {
    let disk = Fake::default();
    let log = log_on(&disk, |settings| {
        settings.key = Some(key());
        settings.rotate = Rotation::Size(4000);
    });
    // The old file has room for calls, and a new one has none.
    disk.fill(0);
    for _ in 0..10 {
        call_and_end(&log);
    }
    log.close();
    let names = disk.names();
    let logs: Vec<_> = names
        .iter()
        .filter(|name| name.contains(".jsonl") && !name.ends_with(".json"))
        .collect();
    assert_eq!(logs, ["audit.jsonl"]);
    assert!(report(&disk).is_unchanged());
}

#[test]
fn call_that_waits_is_refused_when_the_log_ends_without_its_line() {
    let disk = Fake::default();
    let log = log_on(&disk, |_| {});
    disk.lock().panics = true;
    assert!(matches!(begin(&log, "u1"), Err(AuditError::Closed)));
    assert!(matches!(begin(&log, "u1"), Err(AuditError::Closed)));
    assert!(!log.status().is_available);
    log.close();
}

#[test]
fn calls_of_one_batch_are_taken_only_as_far_as_there_is_room() {
    let disk = Fake::default();
    disk.fill(300 << 10);
    let log = log_on(&disk, |settings| settings.key = Some(key()));
    let mut calls: Vec<_> = (0..200).map(|_| Box::pin(log.begin(call("u1")))).collect();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    {
        // The writer waits for the disk while the calls come.
        let _stopped = disk.lock();
        for call in &mut calls {
            assert!(call.as_mut().poll(&mut context).is_pending());
        }
    }
    let (open, refused): (Vec<_>, Vec<_>) = calls.into_iter().map(wait).partition(Result::is_ok);
    assert!(open.len() > 5 && !refused.is_empty());
    disk.fill(0);
    let count = open.len();
    for call in open.into_iter().flatten() {
        log.end(call, OK);
    }
    log.close();
    let ends = kinds(&disk, "audit.jsonl");
    let ends = ends.iter().filter(|kind| *kind == "call_end");
    assert_eq!(ends.count(), count);
    let report = report(&disk);
    assert!(
        report.is_unchanged() && report.left_open.is_empty(),
        "{report}"
    );
}
