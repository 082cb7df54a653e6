//! The handle: what callers get from the thread of a store in memory.

use std::sync::{Arc, Condvar, Mutex};

use crate::{Clock, Created, JobState, JobStore, StoreError, StoreSettings};

use super::fake::{FakeClock, new_job, progress, succeeded};

async fn open() -> JobStore {
    JobStore::open(StoreSettings::in_memory()).await.unwrap().0
}

#[tokio::test]
async fn job_is_created_claimed_sent_and_finished() {
    let store = open().await;
    let new = new_job(Some("a"));
    let id = new.id.clone();
    let Created::New(job) = store.create(new.clone()).await.unwrap() else {
        panic!("the job is new");
    };
    assert_eq!((job.state, job.last_seq), (JobState::Queued, 1));
    let claim = store.claim(&id).await.unwrap().expect("it is queued");
    assert_eq!(claim.args, new.args);
    assert!(store.mark_sent(&id, claim.fence).await.unwrap());
    assert_eq!(store.args(&id).await.unwrap(), None);
    let seq = store
        .append(&id, claim.fence, vec![progress("1")])
        .await
        .unwrap();
    assert_eq!(seq, Some(3));
    assert!(
        store
            .finish(&id, claim.fence, succeeded("done"))
            .await
            .unwrap()
    );
    let job = store.get(&id).await.unwrap().expect("it is kept");
    assert_eq!(
        (job.state, job.result_bytes),
        (JobState::Succeeded, Some(4))
    );
    assert_eq!(
        store.result(&id).await.unwrap().as_deref(),
        Some(&b"done"[..])
    );
    store.close().await;
    assert!(store.get(&id).await.is_err());
}

#[tokio::test]
async fn watch_wakes_for_its_job_and_is_forgotten_with_the_last_one() {
    let store = open().await;
    let (new, other) = (new_job(Some("a")), new_job(Some("a")));
    let id = new.id.clone();
    store.create(new).await.unwrap();
    let mut watch = store.subscribe(&id).expect("there is a place");
    let second = store.subscribe(&id).expect("there is a place");
    store.create(other).await.unwrap();
    let claim = store.claim(&id).await.unwrap().expect("it is queued");
    assert!(watch.changed().await);
    store
        .append(&id, claim.fence, vec![progress("1")])
        .await
        .unwrap();
    assert!(watch.changed().await);
    drop(second);
    assert_eq!(store.watched(), 1);
    drop(watch);
    assert_eq!(store.watched(), 0);
    let mut watch = store.subscribe(&id).expect("there is a place");
    store.close().await;
    assert!(!watch.changed().await);
}

#[tokio::test]
async fn watches_have_a_bound() {
    let store = open().await;
    let mut watches = Vec::new();
    while let Some(watch) = store.subscribe(&new_job(None).id) {
        watches.push(watch);
    }
    assert_eq!(watches.len(), 4_096);
    drop(watches);
    assert_eq!(store.watched(), 0);
}

#[tokio::test]
async fn last_handle_ends_the_store() {
    let store = open().await;
    let id = new_job(None).id;
    let mut watch = store.subscribe(&id).expect("there is a place");
    drop(store);
    assert!(!watch.changed().await);
}

/// The clock of this store blocks its thread, as a slow disk does.
#[tokio::test]
async fn runtime_goes_on_and_the_queue_has_a_bound_while_the_thread_waits() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let its_gate = Arc::clone(&gate);
    let clock = FakeClock::new();
    let settings = StoreSettings {
        clock: Clock::new(move || {
            let (is_closed, opened) = &*its_gate;
            let gate = opened.wait_while(is_closed.lock().unwrap(), |is_closed| *is_closed);
            drop(gate.unwrap());
            clock.now()
        }),
        ..StoreSettings::in_memory()
    };
    let (store, _) = JobStore::open(settings).await.unwrap();
    *gate.0.lock().unwrap() = true;
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..3_000 {
        let store = store.clone();
        asked.spawn(async move { store.counts().await });
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(asked.try_join_next().is_none());
    // At most those that the thread took before it waits, and those in the queue.
    assert!(store.waiting() <= 1_024, "{}", store.waiting());
    *gate.0.lock().unwrap() = false;
    gate.1.notify_all();
    while let Some(answer) = asked.join_next().await {
        answer.unwrap().unwrap();
    }
}

#[tokio::test]
async fn requests_that_wait_are_answered_before_the_store_closes() {
    let store = open().await;
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let store = store.clone();
        asked.spawn(async move { store.create(new_job(Some("a"))).await });
    }
    tokio::task::yield_now().await;
    store.close().await;
    while let Some(answer) = asked.join_next().await {
        match answer.unwrap() {
            Ok(_) | Err(StoreError::Unavailable { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(store.unavailable().as_deref(), Some("it is closed"));
}
