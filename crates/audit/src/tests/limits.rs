//! Floods: what callers and peers can add to the log, and how callers share it.

use std::time::Duration;

use super::fake::Fake;
use super::{OK, TestClock, begin, call, lines, log_on, wait, wait_until};
use crate::queue::{CallLine, Queue, Waiting};
use crate::{AuditError, CallEndFacts, CallOutcome};

const DENIED: CallEndFacts = CallEndFacts {
    outcome: CallOutcome::Denied,
    code: Some("path_not_found"),
    result: None,
    sent: false,
    ..OK
};

#[test]
fn flood_of_failed_identifications_adds_less_than_a_mebibyte_in_ten_minutes() {
    let disk = Fake::default();
    let clock = TestClock::default();
    let log = log_on(&disk, |settings| settings.clock = clock.clock());
    for minute in 0..10 {
        for second in 0..60 {
            for peer in 0..500 {
                // More peers than the table has.
                let peer = format!("2001:db8::{:x}", second * 500 + peer);
                log.identify_failed(&peer, "key_unknown");
            }
            log.identify_failed("10.0.0.9", "key_unknown");
            clock.advance(Duration::from_secs(1));
        }
        // A call is not refused, and its lines make the writer look at the windows.
        let open = begin(&log, "u1").unwrap();
        log.end(open, OK);
        wait_until("the lines", || log.status().lag_lines == 0);
        assert_eq!(log.status().missed, 0, "minute {minute}");
    }
    log.close();
    let size = disk.content("audit.jsonl").len();
    assert!(size < 1 << 20, "{size} bytes");
    let lines = lines(&disk, "audit.jsonl");
    let failed = lines
        .iter()
        .filter(|line| line["kind"] == "identify_failed");
    let counted: u64 = failed.map(|line| line["count"].as_u64().unwrap()).sum();
    // Every failure is counted, except for those of the last windows.
    let all = 10 * 60 * 501;
    assert!(
        counted <= all && counted > all / 10 * 8,
        "{counted} of {all}"
    );
    let one = lines.iter().filter(|line| line["peer"] == "10.0.0.9");
    assert!(one.count() <= 11);
}

#[test]
fn refused_calls_beyond_the_rate_are_one_line_a_second_with_a_count() {
    let disk = Fake::default();
    let clock = TestClock::default();
    let log = log_on(&disk, |settings| settings.clock = clock.clock());
    for _ in 0..5 {
        for _ in 0..100 {
            log.refused(&call("u1"), DENIED);
        }
        log.refused(&call("u2"), DENIED);
        clock.advance(Duration::from_secs(1));
        let open = begin(&log, "u3").unwrap();
        log.end(open, OK);
        wait_until("the lines", || log.status().lag_lines == 0);
    }
    log.close();
    let lines = lines(&disk, "audit.jsonl");
    let of = |subject: &str, kind: &str| {
        let lines = lines
            .iter()
            .filter(|line| line["actor"]["subject"] == subject);
        lines.filter(|line| line["kind"] == kind).count()
    };
    assert_eq!((of("u1", "call_end"), of("u1", "limited")), (10, 5));
    assert_eq!((of("u2", "call_end"), of("u2", "limited")), (5, 0));
    let limited = lines.iter().filter(|line| line["kind"] == "limited");
    let counted: u64 = limited.map(|line| line["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 490);
}

#[test]
fn caller_has_half_of_the_queue_and_lines_of_others_take_turns_with_it() {
    let mut queue = Queue::new(100, super::versions());
    let mut replies = Vec::new();
    let mut push = |queue: &mut Queue, lane: u64| {
        queue.check(lane)?;
        let (reply, answer) = tokio::sync::oneshot::channel();
        replies.push(answer);
        let line = CallLine::Reserve { room: 1, reply };
        let at = std::time::UNIX_EPOCH;
        let since = Duration::ZERO;
        queue.push(lane, Waiting { line, at, since });
        Ok::<_, AuditError>(())
    };
    let flood = (0..1000).take_while(|_| push(&mut queue, 1).is_ok());
    assert_eq!(flood.count(), 50);
    for _ in 0..10 {
        push(&mut queue, 2).unwrap();
    }
    let taken = queue.take(20);
    let of_flood = taken.iter().filter(|(lane, _)| *lane == 1);
    assert_eq!(of_flood.count(), 10);
    assert_eq!(queue.waiting(), 40);
}

#[test]
fn call_that_is_dropped_is_not_left_open() {
    let disk = Fake::default();
    let log = log_on(&disk, |_| {});
    drop(begin(&log, "u1").unwrap());
    drop(wait(log.admit(call("u1"))).unwrap());
    log.close();
    let lines = lines(&disk, "audit.jsonl");
    let ends: Vec<_> = lines
        .iter()
        .filter(|line| line["kind"] == "call_end")
        .collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(
        (&ends[0]["outcome"], &ends[0]["maybe_executed"]),
        (&"abandoned".into(), &true.into())
    );
    assert!(matches!(begin(&log, "u1"), Err(AuditError::Closed)));
}

#[test]
fn checkpoint_follows_a_thousand_lines_or_a_minute() {
    let disk = Fake::default();
    let clock = TestClock::default();
    let log = log_on(&disk, |settings| settings.clock = clock.clock());
    for _ in 0..1100 {
        let open = wait(log.admit(call("u1"))).unwrap();
        log.end(open, OK);
    }
    wait_until("the lines", || log.status().seq == 1102);
    clock.advance(Duration::from_secs(60));
    let open = begin(&log, "u1").unwrap();
    wait_until("the checkpoint", || log.status().seq == 1104);
    log.end(open, OK);
    log.close();
    let lines = lines(&disk, "audit.jsonl");
    let checkpoints = lines.iter().filter(|line| line["kind"] == "checkpoint");
    let at: Vec<_> = checkpoints
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(at, [1001, 1104, 1107]);
}
