//! Creation and idempotency keys.

use crate::{Bounds, Created, JobId, JobStart, JobState};

use crate::tests::fake::{new_job, succeeded};

use super::{Make, on_each_store};

on_each_store! {
    created_job_is_queued_with_its_arguments
    sent_job_is_running_at_once_and_has_no_stored_arguments
    key_replays_the_job_of_the_same_owner_path_and_arguments
    key_of_another_owner_or_path_is_another_key
    key_without_an_owner_is_not_compared
    key_survives_the_end_and_a_restart_and_is_free_after_expiry
    id_is_not_given_twice
}

fn created_job_is_queued_with_its_arguments(make: Make) {
    let mut bed = make(Bounds::default());
    let mut new = new_job(Some("a"));
    new.meta = Some("{}".to_owned());
    new.trace = Some("00-1-2-01".to_owned());
    new.key = Some("k".to_owned());
    let job = bed.create(&new);
    assert_eq!(job.state, JobState::Queued);
    assert_eq!((job.fence, job.sent, job.cancel_asked), (0, false, false));
    assert_eq!((job.started, job.ended, job.expires), (None, None, None));
    assert_eq!(job.created, bed.clock.now().wall);
    assert_eq!(bed.get(&new.id), Some(job.clone()));
    assert_eq!(bed.engine().args(&new.id).unwrap(), Some(new.args.clone()));
    let events = bed.engine().events(&new.id, 0, 10).unwrap();
    assert_eq!(events.events.len(), 1);
    assert_eq!(&events.events[0].body[..], br#"{"status":"queued"}"#);
    let usage = bed.engine().usage(Some("a")).unwrap();
    assert_eq!((usage.queued, usage.unfinished()), (1, 1));
    assert_eq!(bed.engine().usage(Some("b")).unwrap().queued, 0);
    assert_eq!(bed.engine().total().unwrap(), usage);
    bed.reopen();
    assert_eq!(bed.get(&new.id), Some(job));
}

fn sent_job_is_running_at_once_and_has_no_stored_arguments(make: Make) {
    let mut bed = make(Bounds::default());
    let mut new = new_job(Some("a"));
    new.start = JobStart::Sent;
    let job = bed.create(&new);
    assert_eq!(
        (job.state, job.sent, job.fence),
        (JobState::Running, true, 1)
    );
    assert_eq!(bed.engine().args(&new.id).unwrap(), None);
    assert!(bed.claim(&new.id).is_none());
    assert!(!bed.sent(&new.id, 1));
    assert!(bed.finish(&new.id, 1, &succeeded("r")));
}

fn key_replays_the_job_of_the_same_owner_path_and_arguments(make: Make) {
    let mut bed = make(Bounds::default());
    let mut new = new_job(Some("a"));
    new.key = Some("k".to_owned());
    bed.create(&new);
    let mut again = new.clone();
    again.id = JobId::random().unwrap();
    match bed.try_create(&again).unwrap() {
        Created::Replayed(job) => assert_eq!(job.id, new.id),
        other => panic!("{other:?}"),
    }
    again.args_sha256[31] ^= 1;
    match bed.try_create(&again).unwrap() {
        Created::OtherArguments(id) => assert_eq!(id, new.id),
        other => panic!("{other:?}"),
    }
    assert_eq!(bed.engine().total().unwrap().queued, 1);
}

fn key_of_another_owner_or_path_is_another_key(make: Make) {
    let mut bed = make(Bounds::default());
    for (owner, path) in [("a", "/t"), ("b", "/t"), ("a", "/u")] {
        let mut new = new_job(Some(owner));
        new.path = path.to_owned();
        new.key = Some("k".to_owned());
        bed.create(&new);
    }
    assert_eq!(bed.engine().total().unwrap().queued, 3);
}

fn key_without_an_owner_is_not_compared(make: Make) {
    let mut bed = make(Bounds::default());
    for _ in 0..2 {
        let mut new = new_job(None);
        new.key = Some("k".to_owned());
        bed.create(&new);
    }
    assert_eq!(bed.engine().usage(None).unwrap().queued, 2);
}

fn key_survives_the_end_and_a_restart_and_is_free_after_expiry(make: Make) {
    let mut bed = make(Bounds::default());
    let mut new = new_job(Some("a"));
    new.key = Some("k".to_owned());
    bed.run(&new, &succeeded("r"));
    bed.reopen();
    let mut again = new.clone();
    again.id = JobId::random().unwrap();
    match bed.try_create(&again).unwrap() {
        Created::Replayed(job) => {
            assert_eq!((job.id, job.state), (new.id.clone(), JobState::Succeeded))
        }
        other => panic!("{other:?}"),
    }
    bed.clock.pass(new.ttl);
    assert_eq!(bed.expire(), [new.id]);
    bed.create(&again);
}

fn id_is_not_given_twice(make: Make) {
    let mut bed = make(Bounds::default());
    let new = new_job(Some("a"));
    bed.create(&new);
    let mut other = new_job(Some("b"));
    other.id = new.id.clone();
    assert!(matches!(
        bed.try_create(&other).unwrap(),
        Created::OtherArguments(_)
    ));
    assert_eq!(bed.get(&new.id).unwrap().owner.as_deref(), Some("a"));
}
