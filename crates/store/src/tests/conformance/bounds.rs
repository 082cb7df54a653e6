//! The bounds of owners and of the store.

use crate::{Bounds, Dropped, FullLimit, JobState, MAX_ERROR_BYTES, StoreError};

use crate::tests::fake::{failed, new_job, progress, succeeded};

use super::{Make, on_each_store};

on_each_store! {
    owner_has_a_maximum_of_queued_jobs
    store_has_a_maximum_of_unfinished_jobs
    owner_has_a_quarter_of_the_store_and_its_oldest_results_go_first
    results_of_other_owners_are_not_evicted
    end_fits_when_the_owner_has_no_room_for_a_result
    end_fits_in_a_store_that_is_full_of_queued_jobs
    result_and_error_beyond_their_bounds_are_left_out
    numbers_are_zero_when_all_jobs_have_expired
}

fn owner_has_a_maximum_of_queued_jobs(make: Make) {
    let bounds = Bounds {
        queued_per_owner: 2,
        ..Bounds::default()
    };
    for owner in [Some("a"), None] {
        let mut bed = make(bounds.clone());
        let first = new_job(owner);
        bed.create(&first);
        bed.create(&new_job(owner));
        let limit = FullLimit::Queued;
        assert_eq!(
            bed.try_create(&new_job(owner)).unwrap_err(),
            StoreError::OwnerFull { limit, max: 2 }
        );
        bed.create(&new_job(Some("b")));
        let claim = bed.claim(&first.id).expect("it is queued");
        bed.create(&new_job(owner));
        // The claimed job may come back beyond the maximum: it exists.
        let now = bed.clock.now();
        assert!(bed.engine().requeue(&first.id, claim.fence, now).unwrap());
        assert_eq!(bed.engine().usage(owner).unwrap().queued, 3);
    }
}

fn store_has_a_maximum_of_unfinished_jobs(make: Make) {
    let mut bed = make(Bounds {
        unfinished: 3,
        ..Bounds::default()
    });
    let first = new_job(Some("a"));
    let claim = bed.claimed(&first);
    bed.create(&new_job(Some("b")));
    let mut sent = new_job(None);
    sent.start = crate::JobStart::Sent;
    bed.create(&sent);
    let limit = FullLimit::Unfinished;
    assert_eq!(
        bed.try_create(&new_job(Some("c"))).unwrap_err(),
        StoreError::Full { limit, max: 3 }
    );
    assert!(bed.finish(&first.id, claim.fence, &succeeded("r")));
    bed.create(&new_job(Some("c")));
}

/// Bounds with this number of bytes for an owner.
fn owner_bytes(bytes: u64) -> Bounds {
    Bounds {
        store_bytes: bytes * 4,
        result_bytes: 100_000,
        ..Bounds::default()
    }
}

fn owner_has_a_quarter_of_the_store_and_its_oldest_results_go_first(make: Make) {
    let mut bed = make(owner_bytes(250_000));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let new = new_job(Some("a"));
        bed.clock.pass(std::time::Duration::from_secs(1));
        bed.run(&new, &succeeded(vec![b'x'; 70_000]));
        ids.push(new.id);
    }
    let last = new_job(Some("a"));
    bed.run(&last, &succeeded(vec![b'y'; 60_000]));
    let first = bed.get(&ids[0]).expect("its row stays");
    assert_eq!(first.dropped, Some(Dropped::Evicted));
    assert_eq!(
        (first.state, first.result_bytes),
        (JobState::Succeeded, None)
    );
    assert_eq!(bed.engine().result(&ids[0]).unwrap(), None);
    let events = bed.engine().events(&ids[0], 0, 10).unwrap();
    assert!(events.events.is_empty());
    for id in &ids[1..] {
        assert_eq!(bed.get(id).unwrap().dropped, None);
        assert_eq!(bed.engine().result(id).unwrap().unwrap().len(), 70_000);
    }
    assert_eq!(
        bed.engine().result(&last.id).unwrap().unwrap().len(),
        60_000
    );
    assert!(bed.engine().usage(Some("a")).unwrap().bytes <= 250_000);
}

fn results_of_other_owners_are_not_evicted(make: Make) {
    let mut bed = make(Bounds {
        store_bytes: 400_000,
        result_bytes: 100_000,
        ..Bounds::default()
    });
    let mut ids = Vec::new();
    for owner in ["a", "b", "c", "d"] {
        let new = new_job(Some(owner));
        bed.run(&new, &succeeded(vec![b'x'; 90_000]));
        ids.push(new.id);
    }
    let new = new_job(Some("e"));
    let job = bed.run(&new, &succeeded(vec![b'x'; 90_000]));
    assert_eq!(job.state, JobState::Succeeded);
    assert_eq!(job.dropped, Some(Dropped::NoRoom));
    for id in &ids {
        assert_eq!(bed.engine().result(id).unwrap().unwrap().len(), 90_000);
    }
}

fn end_fits_when_the_owner_has_no_room_for_a_result(make: Make) {
    let mut bed = make(owner_bytes(100_000));
    let first = new_job(Some("a"));
    let claim = bed.claimed(&first);
    let mut large = new_job(Some("a"));
    large.args = vec![b' '; 50_000].into();
    bed.create(&large);
    assert!(bed.sent(&first.id, claim.fence));
    assert!(bed.finish(&first.id, claim.fence, &succeeded(vec![b'x'; 60_000])));
    let job = bed.get(&first.id).unwrap();
    assert_eq!(
        (job.state, job.dropped),
        (JobState::Succeeded, Some(Dropped::NoRoom))
    );
    assert_eq!(job.result_bytes, None);
    assert_eq!(bed.engine().result(&first.id).unwrap(), None);
}

fn end_fits_in_a_store_that_is_full_of_queued_jobs(make: Make) {
    let mut bed = make(Bounds {
        store_bytes: 400_000,
        ..Bounds::default()
    });
    let mut ids = Vec::new();
    let full = loop {
        let new = new_job(Some(&format!("owner {}", ids.len())));
        match bed.try_create(&new) {
            Ok(_) => ids.push(new.id),
            Err(error) => break error,
        }
    };
    let limit = FullLimit::Bytes;
    let max = 400_000;
    assert_eq!(full, StoreError::Full { limit, max });
    assert!(ids.len() > 10, "{}", ids.len());
    for id in &ids {
        let claim = bed.claim(id).expect("it is queued");
        assert!(bed.sent(id, claim.fence));
        let error = format!("\"{}\"", "e".repeat(MAX_ERROR_BYTES - 2));
        assert!(bed.finish(id, claim.fence, &failed(&error)));
        assert_eq!(bed.get(id).unwrap().error, Some(error));
        assert!(bed.engine().total().unwrap().bytes <= max);
    }
}

fn result_and_error_beyond_their_bounds_are_left_out(make: Make) {
    let mut bed = make(Bounds {
        result_bytes: 10,
        ..Bounds::default()
    });
    let fits = bed.run(&new_job(None), &succeeded(vec![b'x'; 10]));
    assert_eq!((fits.result_bytes, fits.dropped), (Some(10), None));
    let large = bed.run(&new_job(None), &succeeded(vec![b'x'; 11]));
    assert_eq!(large.state, JobState::Succeeded);
    assert_eq!(
        (large.result_bytes, large.dropped),
        (None, Some(Dropped::TooLarge))
    );
    let error = "e".repeat(MAX_ERROR_BYTES + 1);
    let long = bed.run(&new_job(None), &failed(&error));
    assert_eq!((long.state, long.error), (JobState::Failed, None));
    assert_eq!(long.dropped, Some(Dropped::TooLarge));
}

fn numbers_are_zero_when_all_jobs_have_expired(make: Make) {
    let mut bed = make(Bounds::default());
    for owner in [Some("a"), Some("b"), None] {
        let new = new_job(owner);
        let claim = bed.claimed(&new);
        let now = bed.clock.now();
        let events = [progress("1"), progress("2")];
        bed.engine()
            .append(&new.id, claim.fence, &events, now)
            .unwrap();
        assert!(bed.sent(&new.id, claim.fence));
        assert!(bed.finish(&new.id, claim.fence, &succeeded("r")));
        let canceled = new_job(owner);
        bed.create(&canceled);
        bed.engine().cancel(&canceled.id, now).unwrap();
    }
    let usage = bed.engine().total().unwrap();
    assert_eq!((usage.unfinished(), usage.finished), (0, 6));
    bed.clock.pass(crate::tests::fake::TTL);
    assert_eq!(bed.expire().len(), 6);
    assert_eq!(bed.engine().total().unwrap(), crate::Usage::default());
    assert_eq!(bed.engine().usage(None).unwrap(), crate::Usage::default());
}
