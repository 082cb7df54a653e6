//! The order of lines, of room and of syncs around a call.

use super::fake::{Fake, Operation};
use super::{OK, begin, call, versions, wait};
use crate::{AuditLog, AuditSettings};

fn log(disk: &Fake) -> AuditLog {
    let settings = AuditSettings::new("audit.jsonl");
    AuditLog::open_on(Box::new(disk.clone()), settings, versions()).unwrap()
}

fn append(kinds: &[&str]) -> Operation {
    Operation::Append(kinds.iter().map(|kind| (*kind).to_owned()).collect())
}

#[test]
fn begin_line_is_allocated_written_and_synced_before_the_call() {
    let disk = Fake::default();
    let log = log(&disk);
    let open = begin(&log, "u1").unwrap();
    assert_eq!(open.begin(), Some(2));
    disk.step("sent");
    log.end(open, OK);
    log.close();
    let operations = disk.lock().operations.clone();
    let expected = [
        Operation::Allocate,
        append(&["start"]),
        Operation::Sync,
        append(&["call_begin"]),
        Operation::Sync,
        Operation::Step("sent"),
        append(&["call_end"]),
        Operation::Sync,
        append(&["stop", "checkpoint"]),
        Operation::Sync,
    ];
    assert_eq!(operations, expected);
}

#[test]
fn call_without_a_begin_line_has_room_for_its_end_line() {
    let disk = Fake::default();
    let log = log(&disk);
    let open = wait(log.admit(call("u1"))).unwrap();
    assert_eq!(open.begin(), None);
    disk.fill(0);
    log.end(open, OK);
    log.close();
    let operations = disk.lock().operations.clone();
    assert!(
        operations.contains(&append(&["call_end"])),
        "{operations:?}"
    );
}
