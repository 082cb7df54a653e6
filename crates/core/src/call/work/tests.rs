//! The pool runs, refuses, withdraws and ends jobs. Each test has a time limit, since a pool that loses a job never
//! ends it.

use super::*;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

fn pool(threads: usize) -> WorkPool {
    WorkPool::with_threads("test-work", threads, start_thread)
}

/// Maximum duration of a test, far above what a slow machine takes.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs a test and fails it at the time limit.
async fn within_time_limit(test: impl Future<Output = ()>) {
    let ended = timeout(TIME_LIMIT, test).await;
    assert!(
        ended.is_ok(),
        "a job of the pool neither ended nor was refused"
    );
}

fn waiting(pool: &WorkPool) -> usize {
    pool.0.state().queue.len()
}

/// Runs until it is asked to stop.
fn endless(stop: &StopFlag) {
    while !stop.is_set() {
        thread::yield_now();
    }
}

/// Whether a future is still not ready, once it was polled.
async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
    timeout(Duration::ZERO, future).await.is_err()
}

/// Waits until a thread has taken the only job that was added.
async fn taken(pool: &WorkPool) {
    while waiting(pool) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn work_pool_runs_jobs_on_a_bounded_number_of_named_threads() {
    within_time_limit(async {
        let pool = pool(2);
        let mut running: Vec<_> = (0..3)
            .map(|_| Box::pin(pool.run(Owner::BROKER, endless)))
            .collect();
        for job in &mut running {
            assert!(is_pending(job).await);
        }
        while waiting(&pool) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.0.state().threads, 2);
        running.clear();
        let name = pool.run(Owner::BROKER, |_| {
            thread::current().name().map(str::to_owned)
        });
        let name = name.await.unwrap().unwrap();
        assert!(["test-work-0", "test-work-1"].contains(&&*name), "{name}");
        assert_eq!(pool.0.state().threads, 2);
    })
    .await;
}

#[tokio::test]
async fn work_pool_job_that_is_dropped_stops() {
    within_time_limit(async {
        let pool = pool(1);
        let mut given_up = Box::pin(pool.run(Owner::BROKER, endless));
        assert!(is_pending(&mut given_up).await);
        taken(&pool).await;
        drop(given_up);
        assert_eq!(pool.run(Owner::BROKER, |_| 7).await, Ok(7));
        assert_eq!(waiting(&pool), 0);
    })
    .await;
}

#[tokio::test]
async fn work_pool_job_dropped_in_the_queue_never_runs() {
    within_time_limit(async {
        let pool = pool(1);
        let mut running = pin!(pool.run(Owner::BROKER, endless));
        assert!(is_pending(&mut running).await);
        taken(&pool).await;
        let held = Arc::new(());
        let of_job = Arc::clone(&held);
        let mut queued = Box::pin(pool.run(Owner::BROKER, move |_| drop(of_job)));
        assert!(is_pending(&mut queued).await);
        assert_eq!((waiting(&pool), Arc::strong_count(&held)), (1, 2));
        drop(queued);
        assert_eq!((waiting(&pool), Arc::strong_count(&held)), (0, 1));
    })
    .await;
}

#[tokio::test]
async fn work_pool_with_a_full_queue_refuses_jobs() {
    within_time_limit(async {
        let pool = pool(1);
        let mut running = Box::pin(pool.run(Owner::BROKER, endless));
        assert!(is_pending(&mut running).await);
        taken(&pool).await;
        let mut queue: Vec<_> = (0..MAX_WAITING)
            .map(|_| Box::pin(pool.run(Owner::BROKER, |_| ())))
            .collect();
        for waiting in &mut queue {
            assert!(is_pending(waiting).await);
        }
        let full = PoolError::Full {
            waiting: MAX_WAITING,
        };
        assert_eq!(pool.run(Owner::BROKER, |_| ()).await, Err(full));
        // A job that must not be refused waits.
        let mut bounded = Box::pin(pool.run_bounded(Owner::BROKER, || 5));
        assert!(is_pending(&mut bounded).await);
        drop(bounded);
        queue.pop();
        let mut next = Box::pin(pool.run(Owner::BROKER, |_| ()));
        assert!(is_pending(&mut next).await, "it waits");
        drop(running);
        drop(queue);
        assert_eq!(next.await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn work_pool_runs_jobs_in_order() {
    within_time_limit(async {
        let pool = pool(1);
        let mut running = Box::pin(pool.run(Owner::BROKER, endless));
        assert!(is_pending(&mut running).await);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut jobs: Vec<_> = (0..9)
            .map(|number| {
                let order = Arc::clone(&order);
                Box::pin(pool.run(Owner::BROKER, move |_| order.lock().unwrap().push(number)))
            })
            .collect();
        for job in &mut jobs {
            assert!(is_pending(job).await);
        }
        drop(jobs.remove(4));
        drop(running);
        for job in jobs {
            assert_eq!(job.await, Ok(()));
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 5, 6, 7, 8]);
    })
    .await;
}

#[tokio::test]
async fn work_pool_gives_turns_to_callers() {
    within_time_limit(async {
        let budget = broker_memory::MemoryBudget::new(1 << 20);
        let (many, few) = (budget.account(), budget.account());
        let pool = pool(1);
        let mut running = Box::pin(pool.run(many.owner(), endless));
        assert!(is_pending(&mut running).await);
        taken(&pool).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let job = |owner, name: &'static str| {
            let order = Arc::clone(&order);
            Box::pin(pool.run(owner, move |_| order.lock().unwrap().push(name)))
        };
        let mut flood: Vec<_> = (0..MAX_WAITING)
            .map(|_| job(many.owner(), "many"))
            .collect();
        for waiting in &mut flood {
            assert!(is_pending(waiting).await);
        }
        let mut other = job(few.owner(), "few");
        assert!(is_pending(&mut other).await);
        let full = PoolError::Full {
            waiting: MAX_WAITING,
        };
        assert_eq!(
            flood.pop().unwrap().await,
            Err(full),
            "its place is the other caller's"
        );
        drop(running);
        assert_eq!(other.await, Ok(()));
        let place = order.lock().unwrap().iter().position(|name| *name == "few");
        assert!(place.unwrap() <= 1, "{place:?}");
    })
    .await;
}

#[tokio::test]
async fn work_pool_thread_survives_a_panic_of_a_job() {
    within_time_limit(async {
        let pool = Arc::new(pool(1));
        let failing = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(Owner::BROKER, |_| panic!("planned")).await }
        });
        assert!(failing.await.is_err_and(|error| error.is_panic()));
        assert_eq!(pool.run(Owner::BROKER, |_| 7).await, Ok(7));
        assert_eq!(pool.0.state().threads, 1);
    })
    .await;
}

#[tokio::test]
async fn work_pool_threads_end_with_the_pool() {
    within_time_limit(async {
        let pool = pool(2);
        let mut running = Box::pin(pool.run(Owner::BROKER, endless));
        assert!(is_pending(&mut running).await);
        assert_eq!(pool.run(Owner::BROKER, |_| 7).await, Ok(7));
        drop(running);
        let shared = Arc::downgrade(&pool.0);
        drop(pool);
        // Each thread holds the shared part until it ends.
        while shared.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn work_pool_without_a_thread_refuses_requests_and_shapes_in_place() {
    within_time_limit(async {
        let pool = WorkPool::with_threads("test-work", 1, |_, _| Err(io::Error::other("planned")));
        assert_eq!(
            pool.run(Owner::BROKER, |_| 7).await,
            Err(PoolError::NoThread)
        );
        let here = thread::current().id();
        let there = pool
            .run_bounded(Owner::BROKER, || thread::current().id())
            .await;
        assert_eq!(there, here);
        assert_eq!(waiting(&pool), 0);
    })
    .await;
}
