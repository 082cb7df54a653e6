//! The jobs of a run that ended without their end.

use crate::{Bounds, JobState, Recovered};

use crate::tests::fake::{new_job, progress, succeeded};

use super::{Make, on_each_store};

on_each_store! {
    claimed_job_that_was_not_sent_is_queued_under_a_new_fence
    sent_job_is_lost_and_says_that_it_may_have_been_executed
    promoted_job_is_lost
    job_whose_cancel_was_asked_for_before_it_was_sent_is_canceled
    job_with_a_task_that_survives_is_adopted_once
    job_with_a_task_that_ends_with_its_broker_is_lost
    numbers_of_events_are_not_given_again
    queued_and_ended_jobs_stay_as_they_are
}

fn claimed_job_that_was_not_sent_is_queued_under_a_new_fence(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let recovered = bed.reopen();
    let expected = Recovered {
        requeued: vec![new.id.clone()],
        queued: 1,
        ..Recovered::default()
    };
    assert_eq!(recovered, expected);
    assert!(!bed.sent(&new.id, claim.fence));
    assert!(!bed.finish(&new.id, claim.fence, &succeeded("r")));
    let again = bed.claim(&new.id).expect("it is queued");
    assert!(again.fence > claim.fence);
    assert_eq!(again.args, new.args);
    assert!(bed.sent(&new.id, again.fence));
}

fn sent_job_is_lost_and_says_that_it_may_have_been_executed(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    assert!(bed.sent(&new.id, claim.fence));
    let recovered = bed.reopen();
    assert_eq!(recovered.lost, std::slice::from_ref(&new.id));
    assert!(recovered.requeued.is_empty());
    let job = bed.get(&new.id).unwrap();
    assert_eq!(job.state, JobState::Lost);
    let error = job.error.expect("it has an error");
    assert!(error.contains(r#""maybe_executed":true"#), "{error}");
    assert!(job.expires.is_some());
    assert!(!bed.finish(&new.id, claim.fence, &succeeded("r")));
    assert!(bed.claim(&new.id).is_none());
    let events = bed.engine().events(&new.id, 0, 10).unwrap().events;
    let last = events.last().expect("there are events");
    assert_eq!(&last.body[..], br#"{"status":"lost"}"#);
}

fn promoted_job_is_lost(make: Make) {
    let mut bed = make(Bounds::default());
    let mut new = new_job(None);
    new.start = crate::JobStart::Sent;
    bed.create(&new);
    assert_eq!(bed.reopen().lost, [new.id]);
}

fn job_whose_cancel_was_asked_for_before_it_was_sent_is_canceled(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.claimed(&new);
    let now = bed.clock.now();
    bed.engine().cancel(&new.id, now).unwrap();
    let recovered = bed.reopen();
    assert_eq!(recovered.canceled, std::slice::from_ref(&new.id));
    assert_eq!(bed.get(&new.id).unwrap().state, JobState::Canceled);
}

fn job_with_a_task_that_survives_is_adopted_once(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    assert!(bed.sent(&new.id, claim.fence));
    let now = bed.clock.now();
    let is_set = bed
        .engine()
        .set_upstream(&new.id, claim.fence, r#"{"task":"t1"}"#, true, now)
        .unwrap();
    assert!(is_set);
    assert!(bed.engine().adopt(&new.id, now).unwrap().is_none());
    let recovered = bed.reopen();
    assert_eq!(recovered.adoptable, std::slice::from_ref(&new.id));
    assert!(!bed.finish(&new.id, claim.fence, &succeeded("r")));
    let adopted = bed.engine().adopt(&new.id, now).unwrap();
    let adopted = adopted.expect("it waits for it");
    assert_eq!(adopted.job.upstream.as_deref(), Some(r#"{"task":"t1"}"#));
    assert!(bed.engine().adopt(&new.id, now).unwrap().is_none());
    assert!(!bed.sent(&new.id, adopted.fence));
    assert!(bed.finish(&new.id, adopted.fence, &succeeded("r")));
}

fn job_with_a_task_that_ends_with_its_broker_is_lost(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    assert!(bed.sent(&new.id, claim.fence));
    let now = bed.clock.now();
    bed.engine()
        .set_upstream(&new.id, claim.fence, "t", false, now)
        .unwrap();
    assert_eq!(bed.reopen().lost, [new.id]);
}

fn numbers_of_events_are_not_given_again(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let now = bed.clock.now();
    let seen = bed
        .engine()
        .append(&new.id, claim.fence, &[progress("1"), progress("2")], now)
        .unwrap();
    let seen = seen.expect("the fence is right");
    bed.reopen();
    let events = bed.engine().events(&new.id, seen, 10).unwrap().events;
    // The last run may have shown as many events as a job can have, of which none is on the disk.
    assert!(events[0].seq > seen + 10_000, "{}", events[0].seq);
}

fn queued_and_ended_jobs_stay_as_they_are(make: Make) {
    let mut bed = make(Bounds::default());
    let (queued, ended) = (new_job(Some("a")), new_job(Some("a")));
    bed.create(&queued);
    bed.run(&ended, &succeeded("result"));
    let before = (bed.get(&queued.id), bed.get(&ended.id));
    let usage = bed.engine().usage(Some("a")).unwrap();
    let recovered = bed.reopen();
    let expected = Recovered {
        queued: 1,
        ..Recovered::default()
    };
    assert_eq!(recovered, expected);
    assert_eq!((bed.get(&queued.id), bed.get(&ended.id)), before);
    assert_eq!(bed.engine().usage(Some("a")).unwrap(), usage);
    let result = bed.engine().result(&ended.id).unwrap();
    assert_eq!(result.as_deref(), Some(&b"result"[..]));
}
