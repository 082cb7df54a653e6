//! Expiry: the stored time, and the time of this run on the clock that never jumps.

use std::time::Duration;

use crate::Bounds;

use crate::tests::fake::{TTL, new_job, progress, succeeded};

use super::{Make, on_each_store};

/// A day.
const DAY: Duration = Duration::from_secs(86_400);

on_each_store! {
    ended_job_is_removed_with_everything_when_its_time_is_over
    unfinished_job_does_not_expire
    clock_that_jumps_ahead_removes_no_result_early
    clock_that_jumps_back_keeps_no_result_longer_than_twice_its_time
    clock_that_jumps_back_between_runs_keeps_no_result_longer_than_twice_its_time
    clock_that_jumps_ahead_between_runs_removes_no_result_early
    time_in_which_the_store_is_closed_counts
}

fn ended_job_is_removed_with_everything_when_its_time_is_over(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let now = bed.clock.now();
    bed.engine()
        .append(&new.id, claim.fence, &[progress("1")], now)
        .unwrap();
    assert!(bed.finish(&new.id, claim.fence, &succeeded("r")));
    bed.clock.pass(TTL - Duration::from_millis(1));
    assert!(bed.expire().is_empty());
    assert!(bed.engine().result(&new.id).unwrap().is_some());
    bed.clock.pass(Duration::from_millis(1));
    assert_eq!(bed.engine().next_expiry(), Some(bed.clock.now().since));
    assert_eq!(bed.expire(), std::slice::from_ref(&new.id));
    assert_eq!(bed.get(&new.id), None);
    assert_eq!(bed.engine().result(&new.id).unwrap(), None);
    assert!(
        bed.engine()
            .events(&new.id, 0, 9)
            .unwrap()
            .events
            .is_empty()
    );
    assert_eq!(bed.engine().next_expiry(), None);
}

fn unfinished_job_does_not_expire(make: Make) {
    let mut bed = make(Bounds::default());
    let (queued, running) = (new_job(Some("a")), new_job(Some("a")));
    bed.create(&queued);
    bed.claimed(&running);
    bed.clock.pass(TTL * 10);
    assert!(bed.expire().is_empty());
    assert!(bed.get(&queued.id).is_some() && bed.get(&running.id).is_some());
}

fn clock_that_jumps_ahead_removes_no_result_early(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.run(&new, &succeeded("r"));
    bed.clock.jump(bed.clock.now().wall + DAY);
    assert!(bed.expire().is_empty());
    bed.clock.pass(TTL - Duration::from_secs(1));
    assert!(bed.expire().is_empty());
    bed.clock.pass(Duration::from_secs(1));
    assert_eq!(bed.expire(), [new.id]);
}

fn clock_that_jumps_back_keeps_no_result_longer_than_twice_its_time(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.run(&new, &succeeded("r"));
    bed.clock.jump(bed.clock.now().wall - DAY);
    bed.clock.pass(TTL);
    assert!(bed.expire().is_empty());
    bed.clock.pass(TTL - Duration::from_secs(1));
    assert!(bed.expire().is_empty());
    bed.clock.pass(Duration::from_secs(1));
    assert_eq!(bed.expire(), [new.id]);
}

fn clock_that_jumps_back_between_runs_keeps_no_result_longer_than_twice_its_time(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.run(&new, &succeeded("r"));
    bed.clock.pass(TTL / 2);
    bed.clock.jump(bed.clock.now().wall - DAY);
    bed.reopen();
    bed.clock.pass(TTL * 3 / 2 - Duration::from_secs(1));
    assert!(bed.expire().is_empty());
    bed.clock.pass(Duration::from_secs(1));
    assert_eq!(bed.expire(), [new.id]);
}

fn clock_that_jumps_ahead_between_runs_removes_no_result_early(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.run(&new, &succeeded("r"));
    bed.clock.pass(TTL / 2);
    bed.clock.jump(bed.clock.now().wall + DAY);
    bed.reopen();
    assert!(bed.expire().is_empty());
    bed.clock.pass(TTL / 2 - Duration::from_secs(1));
    assert!(bed.expire().is_empty());
    bed.clock.pass(Duration::from_secs(1));
    assert_eq!(bed.expire(), [new.id]);
}

fn time_in_which_the_store_is_closed_counts(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.run(&new, &succeeded("r"));
    bed.clock.pass(TTL / 2);
    bed.reopen();
    bed.clock.pass(TTL / 2 - Duration::from_secs(1));
    assert!(bed.expire().is_empty());
    bed.clock.pass(Duration::from_secs(1));
    assert_eq!(bed.expire(), [new.id]);
    let next = new_job(Some("a"));
    bed.run(&next, &succeeded("r"));
    bed.clock.pass(TTL * 2);
    bed.reopen();
    bed.expire();
    assert_eq!(bed.get(&next.id), None);
}
