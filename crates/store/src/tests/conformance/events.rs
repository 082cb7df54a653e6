//! Events: their numbers, their bounds, the gap.

use crate::{Bounds, EventKind, Events};

use crate::tests::fake::{new_job, progress, succeeded};

use super::{Bed, Make, on_each_store};

on_each_store! {
    events_are_read_in_order_from_any_number
    long_events_are_read_in_parts
    events_beyond_their_number_are_one_gap_and_the_end_is_seen
    events_beyond_their_bytes_are_one_gap
    events_beyond_the_bytes_of_the_owner_are_one_gap
    events_that_were_lost_are_a_gap
    progress_moves_when_events_are_dropped
}

fn append(bed: &mut Bed, new: &crate::NewJob, fence: u64, bodies: &[&str]) -> Option<u64> {
    let now = bed.clock.now();
    let events: Vec<_> = bodies
        .iter()
        .map(|body| progress((*body).to_owned()))
        .collect();
    let seq = bed.engine().append(&new.id, fence, &events, now).unwrap();
    bed.commit();
    seq
}

fn texts(events: &Events) -> Vec<(u64, &'static str, String)> {
    let text = |event: &crate::JobEvent| {
        let body = String::from_utf8(event.body.to_vec()).unwrap();
        (event.seq, event.kind.as_str(), body)
    };
    events.events.iter().map(text).collect()
}

fn events_are_read_in_order_from_any_number(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    assert_eq!(
        append(&mut bed, &new, claim.fence, &["1", "2", "3"]),
        Some(5)
    );
    assert_eq!(append(&mut bed, &new, claim.fence, &["4"]), Some(6));
    assert_eq!(append(&mut bed, &new, claim.fence, &[]), Some(6));
    let page = bed.engine().events(&new.id, 3, 2).unwrap();
    assert_eq!(
        texts(&page),
        [
            (4, "progress", "2".to_owned()),
            (5, "progress", "3".to_owned())
        ]
    );
    assert!(!page.gap);
    let all = bed.engine().events(&new.id, 0, 100).unwrap();
    let numbers: Vec<u64> = all.events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert!(
        bed.engine()
            .events(&new.id, 6, 9)
            .unwrap()
            .events
            .is_empty()
    );
    let job = bed.get(&new.id).unwrap();
    assert_eq!((job.last_seq, job.events, job.event_bytes), (6, 4, 4));
    assert_eq!(job.progress.as_deref(), Some(&b"4"[..]));
    let unknown = bed.engine().events(&new_job(None).id, 0, 9).unwrap();
    assert_eq!(unknown, Events::default());
}

fn long_events_are_read_in_parts(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    // More than a part, and less than one.
    let (long, short) = ("x".repeat(300 << 10), "y".repeat(100 << 10));
    append(
        &mut bed,
        &new,
        claim.fence,
        &[&long, &short, &short, &short],
    );
    let mut read = Vec::new();
    let mut after = 2;
    while after < 6 {
        let part = bed.engine().events(&new.id, after, 100).unwrap();
        after = part.events.last().unwrap().seq;
        read.push(
            part.events
                .iter()
                .map(|event| event.seq)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(read, [vec![3], vec![4, 5], vec![6]]);
}

fn events_beyond_their_number_are_one_gap_and_the_end_is_seen(make: Make) {
    let mut bed = make(Bounds {
        events: 3,
        ..Bounds::default()
    });
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    append(&mut bed, &new, claim.fence, &["1", "2"]);
    append(&mut bed, &new, claim.fence, &["3", "4", "5"]);
    append(&mut bed, &new, claim.fence, &["6"]);
    assert!(bed.finish(&new.id, claim.fence, &succeeded("r")));
    let events = bed.engine().events(&new.id, 2, 100).unwrap();
    assert!(events.gap);
    assert_eq!(
        texts(&events),
        [
            (3, "progress", "1".to_owned()),
            (4, "progress", "2".to_owned()),
            (5, "progress", "3".to_owned()),
            (6, "gap", r#"{"dropped":3}"#.to_owned()),
            (7, "status", r#"{"status":"succeeded"}"#.to_owned()),
        ]
    );
}

fn events_beyond_their_bytes_are_one_gap(make: Make) {
    let mut bed = make(Bounds {
        event_bytes: 10,
        ..Bounds::default()
    });
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    append(&mut bed, &new, claim.fence, &["123456", "12345", "1"]);
    let events = bed.engine().events(&new.id, 2, 100).unwrap();
    let kinds: Vec<EventKind> = events.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Progress, EventKind::Gap]);
    assert_eq!(bed.get(&new.id).unwrap().dropped_events, 2);
}

fn events_beyond_the_bytes_of_the_owner_are_one_gap(make: Make) {
    let mut bed = make(Bounds {
        store_bytes: 160_000,
        ..Bounds::default()
    });
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let body = "x".repeat(9_000);
    let bodies: Vec<&str> = std::iter::repeat_n(body.as_str(), 20).collect();
    append(&mut bed, &new, claim.fence, &bodies);
    let job = bed.get(&new.id).unwrap();
    assert_eq!((job.events, job.dropped_events), (2, 18));
    assert!(bed.engine().usage(Some("a")).unwrap().bytes <= 40_000);
}

fn events_that_were_lost_are_a_gap(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    bed.engine().lose_events(&new.id, 4);
    assert!(bed.finish(&new.id, claim.fence, &succeeded("r")));
    let events = bed.engine().events(&new.id, 2, 100).unwrap();
    assert_eq!(
        texts(&events),
        [
            (3, "gap", r#"{"dropped":4}"#.to_owned()),
            (4, "status", r#"{"status":"succeeded"}"#.to_owned()),
        ]
    );
}

fn progress_moves_when_events_are_dropped(make: Make) {
    let mut bed = make(Bounds {
        events: 1,
        ..Bounds::default()
    });
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    append(&mut bed, &new, claim.fence, &["1", "2"]);
    bed.clock.pass(std::time::Duration::from_secs(5));
    append(&mut bed, &new, claim.fence, &["3"]);
    let job = bed.get(&new.id).unwrap();
    assert_eq!(job.progress.as_deref(), Some(&b"3"[..]));
    assert_eq!(job.updated, bed.clock.now().wall);
}
