//! Claims, fences, the mark `sent`, ends and cancels: a job is executed at most once.

use crate::{Bounds, CancelOutcome, JobEnd, JobState, MAX_UPSTREAM_BYTES};

use crate::tests::fake::{failed, new_job, succeeded};

use super::{Make, on_each_store};

on_each_store! {
    job_is_claimed_once_with_its_arguments
    job_is_marked_as_sent_once_and_its_arguments_are_erased
    stale_fence_changes_nothing
    end_is_stored_once_and_only_with_a_last_state
    queued_job_is_canceled_at_once
    running_job_is_asked_to_end_and_is_not_sent_after_that
    claimed_job_that_was_not_sent_is_queued_again
    claims_that_are_given_back_have_a_bound_of_events
    task_of_a_server_has_a_bound
    job_that_waits_for_input_is_claimed_and_counted
}

fn job_is_claimed_once_with_its_arguments(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.create(&new);
    let claim = bed.claim(&new.id).expect("it is queued");
    assert_eq!((claim.fence, claim.job.fence), (1, 1));
    assert_eq!(claim.job.state, JobState::Running);
    assert_eq!(claim.job.started, Some(bed.clock.now().wall));
    assert_eq!(claim.args, new.args);
    assert!(bed.claim(&new.id).is_none());
    assert!(bed.claim(&new_job(None).id).is_none());
    let usage = bed.engine().usage(Some("a")).unwrap();
    assert_eq!((usage.queued, usage.running), (0, 1));
}

fn job_is_marked_as_sent_once_and_its_arguments_are_erased(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let before = bed.engine().total().unwrap().bytes;
    assert!(bed.sent(&new.id, claim.fence));
    assert!(!bed.sent(&new.id, claim.fence));
    let job = bed.get(&new.id).unwrap();
    assert!(job.sent);
    assert_eq!((job.args_bytes, job.args_sha256), (0, new.args_sha256));
    assert_eq!(bed.engine().args(&new.id).unwrap(), None);
    let freed = before - bed.engine().total().unwrap().bytes;
    assert_eq!(freed, new.args.len() as u64);
}

fn stale_fence_changes_nothing(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let now = bed.clock.now();
    let before = bed.get(&new.id);
    for fence in [0, claim.fence + 1] {
        assert!(!bed.sent(&new.id, fence));
        assert!(!bed.finish(&new.id, fence, &succeeded("r")));
        assert!(!bed.engine().requeue(&new.id, fence, now).unwrap());
        assert!(
            !bed.engine()
                .set_input_required(&new.id, fence, true, now)
                .unwrap()
        );
        assert!(
            !bed.engine()
                .set_upstream(&new.id, fence, "t", true, now)
                .unwrap()
        );
        let events = [crate::tests::fake::progress("1")];
        let appended = bed.engine().append(&new.id, fence, &events, now).unwrap();
        assert_eq!(appended, None);
    }
    assert_eq!(bed.get(&new.id), before);
}

fn end_is_stored_once_and_only_with_a_last_state(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    for state in [JobState::Queued, JobState::Running, JobState::InputRequired] {
        let end = JobEnd {
            state,
            ..succeeded("r")
        };
        assert!(!bed.finish(&new.id, claim.fence, &end));
    }
    let end = JobEnd {
        is_error: true,
        error: Some("{}".to_owned()),
        ..succeeded("result")
    };
    assert!(bed.finish(&new.id, claim.fence, &end));
    assert!(!bed.finish(&new.id, claim.fence, &failed("{}")));
    let job = bed.get(&new.id).unwrap();
    assert_eq!(job.state, JobState::Succeeded);
    assert!(job.is_error);
    assert_eq!(job.error.as_deref(), Some("{}"));
    assert_eq!(job.ended, Some(bed.clock.now().wall));
    assert_eq!(job.expires, Some(bed.clock.now().wall + new.ttl));
    assert_eq!(job.result_bytes, Some(6));
    assert_eq!(bed.engine().args(&new.id).unwrap(), None);
    let events = bed.engine().events(&new.id, 0, 10).unwrap().events;
    let last = events.last().expect("there are events");
    assert_eq!(&last.body[..], br#"{"status":"succeeded"}"#);
    assert_eq!(last.seq, job.last_seq);
}

fn queued_job_is_canceled_at_once(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.create(&new);
    let now = bed.clock.now();
    let canceled = bed.engine().cancel(&new.id, now).unwrap();
    assert_eq!(canceled, CancelOutcome::Canceled);
    bed.commit();
    let job = bed.get(&new.id).unwrap();
    assert_eq!((job.state, job.ended), (JobState::Canceled, Some(now.wall)));
    assert_eq!(bed.engine().args(&new.id).unwrap(), None);
    assert!(bed.claim(&new.id).is_none());
    let again = bed.engine().cancel(&new.id, now).unwrap();
    assert_eq!(again, CancelOutcome::Finished(JobState::Canceled));
    let unknown = bed.engine().cancel(&new_job(None).id, now).unwrap();
    assert_eq!(unknown, CancelOutcome::Unknown);
}

fn running_job_is_asked_to_end_and_is_not_sent_after_that(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let now = bed.clock.now();
    for _ in 0..2 {
        let asked = bed.engine().cancel(&new.id, now).unwrap();
        assert_eq!(asked, CancelOutcome::Asked);
    }
    bed.commit();
    assert!(bed.get(&new.id).unwrap().cancel_asked);
    assert!(!bed.sent(&new.id, claim.fence));
    assert!(!bed.engine().requeue(&new.id, claim.fence, now).unwrap());
    let end = JobEnd {
        state: JobState::Canceled,
        result: None,
        is_error: false,
        error: None,
    };
    assert!(bed.finish(&new.id, claim.fence, &end));
    assert_eq!(bed.get(&new.id).unwrap().state, JobState::Canceled);
}

fn claimed_job_that_was_not_sent_is_queued_again(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let now = bed.clock.now();
    assert!(bed.engine().requeue(&new.id, claim.fence, now).unwrap());
    bed.commit();
    assert!(!bed.sent(&new.id, claim.fence));
    let again = bed.claim(&new.id).expect("it is queued");
    assert_eq!((again.fence, &again.args), (2, &new.args));
    assert!(bed.sent(&new.id, again.fence));
    assert!(!bed.engine().requeue(&new.id, again.fence, now).unwrap());
}

fn job_that_waits_for_input_is_claimed_and_counted(make: Make) {
    let mut bed = make(Bounds {
        events: 3,
        ..Bounds::default()
    });
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    assert!(bed.sent(&new.id, claim.fence));
    let now = bed.clock.now();
    for number in 0..10 {
        let is_required = number % 2 == 0;
        assert!(
            bed.engine()
                .set_input_required(&new.id, claim.fence, is_required, now)
                .unwrap()
        );
    }
    assert!(
        bed.engine()
            .set_input_required(&new.id, claim.fence, true, now)
            .unwrap()
    );
    bed.commit();
    let job = bed.get(&new.id).unwrap();
    assert_eq!((job.state, job.events), (JobState::InputRequired, 3));
    assert_eq!(bed.engine().usage(Some("a")).unwrap().running, 1);
    assert!(bed.finish(&new.id, claim.fence, &succeeded("r")));
}

fn claims_that_are_given_back_have_a_bound_of_events(make: Make) {
    let mut bed = make(Bounds {
        events: 4,
        ..Bounds::default()
    });
    let new = new_job(Some("a"));
    bed.create(&new);
    let now = bed.clock.now();
    for _ in 0..20 {
        let claim = bed.claim(&new.id).expect("it is queued");
        assert!(bed.engine().requeue(&new.id, claim.fence, now).unwrap());
    }
    bed.commit();
    let events = bed.engine().events(&new.id, 0, 100).unwrap().events;
    assert_eq!(events.len(), 6);
    let claim = bed.claim(&new.id).expect("it is queued");
    assert!(bed.finish(&new.id, claim.fence, &succeeded("r")));
    let events = bed.engine().events(&new.id, 0, 100).unwrap().events;
    let last = events.last().expect("there are events");
    assert_eq!(&last.body[..], br#"{"status":"succeeded"}"#);
}

fn task_of_a_server_has_a_bound(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    let claim = bed.claimed(&new);
    let now = bed.clock.now();
    let before = bed.engine().total().unwrap().bytes;
    for (bytes, is_stored) in [(MAX_UPSTREAM_BYTES + 1, false), (MAX_UPSTREAM_BYTES, true)] {
        let task = "t".repeat(bytes);
        let is_set = bed
            .engine()
            .set_upstream(&new.id, claim.fence, &task, true, now)
            .unwrap();
        assert_eq!(is_set, is_stored);
    }
    bed.commit();
    assert_eq!(bed.engine().total().unwrap().bytes, before);
}
