//! The time of the changes of a job, as ratios to a bare insert of a row into a SQLite file with the same settings: one after
//! the other, and 64 at a time, which share commits.

use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use broker_store::{
    Bounds, Clock, JobEnd, JobId, JobStart, JobState, JobStore, NewJob, StoreSettings,
};
use tokio::task::JoinSet;
use tokio::time::Instant;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The jobs of each measurement.
const JOBS: usize = 640;
/// The requests at a time.
const AT_A_TIME: usize = 64;
/// The bytes of the arguments, and of the result.
const BODY_BYTES: usize = 1_024;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let folder = match folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let bare = bare_insert(folder.path())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "bare insert: {} µs", bare.as_micros())?;
    for at_a_time in [1, AT_A_TIME] {
        let path = folder.path().join(format!("jobs-{at_a_time}.db"));
        let (store, _) = JobStore::open(StoreSettings {
            path: Some(path),
            bounds: Bounds {
                queued_per_owner: JOBS as u64,
                ..Bounds::default()
            },
            clock: Clock::system(),
        })
        .await?;
        for (name, time) in changes(&store, at_a_time).await? {
            let ratio = time.as_secs_f64() / bare.as_secs_f64();
            let rate = 1.0 / time.as_secs_f64();
            writeln!(
                out,
                "{name}, {at_a_time} at a time: {} µs, {ratio:.2} of a bare insert, {rate:.0} a second",
                time.as_micros()
            )?;
        }
        store.close().await;
    }
    Ok(())
}

/// Returns the time of the insert of a row with its commit.
fn bare_insert(folder: &Path) -> Result<Duration, Error> {
    let file = rusqlite::Connection::open(folder.join("bare.db"))?;
    file.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA secure_delete = ON; CREATE TABLE row (id TEXT PRIMARY KEY, body BLOB) STRICT;",
    )?;
    let body = vec![b' '; BODY_BYTES];
    let mut insert = file.prepare("INSERT INTO row VALUES (?1, ?2)")?;
    let begun = Instant::now();
    for _ in 0..JOBS {
        insert.execute((JobId::random()?.as_str(), &body))?;
    }
    Ok(begun.elapsed() / u32::try_from(JOBS)?)
}

/// Returns the time of each change of a job, on average.
async fn changes(
    store: &JobStore,
    at_a_time: usize,
) -> Result<Vec<(&'static str, Duration)>, Error> {
    let ids: Vec<JobId> = (0..JOBS)
        .map(|_| JobId::random())
        .collect::<Result<_, _>>()?;
    let ids: Arc<[JobId]> = ids.into();
    let create = |store: JobStore, id: JobId| async move {
        store.create(new_job(id)).await?;
        Ok(())
    };
    let claim = |store: JobStore, id: JobId| async move {
        store.claim(&id).await?.ok_or("it is not queued")?;
        Ok(())
    };
    let send = |store: JobStore, id: JobId| async move {
        match store.mark_sent(&id, 1).await? {
            true => Ok(()),
            false => Err("it is not claimed".into()),
        }
    };
    let finish = |store: JobStore, id: JobId| async move {
        let end = JobEnd {
            state: JobState::Succeeded,
            result: Some(vec![b'r'; BODY_BYTES].into()),
            is_error: false,
            error: None,
        };
        match store.finish(&id, 1, end).await? {
            true => Ok(()),
            false => Err("it is not claimed".into()),
        }
    };
    let get = |store: JobStore, id: JobId| async move {
        store.get(&id).await?.ok_or("it is not kept")?;
        Ok(())
    };
    Ok(vec![
        ("create", each(store, &ids, at_a_time, create).await?),
        ("claim", each(store, &ids, at_a_time, claim).await?),
        ("sent", each(store, &ids, at_a_time, send).await?),
        ("finish", each(store, &ids, at_a_time, finish).await?),
        ("get", each(store, &ids, at_a_time, get).await?),
    ])
}

/// Runs a change for each job, and returns its time on average.
async fn each<F>(
    store: &JobStore,
    ids: &[JobId],
    at_a_time: usize,
    change: impl Fn(JobStore, JobId) -> F,
) -> Result<Duration, Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for id in ids {
        if running.len() == at_a_time
            && let Some(done) = running.join_next().await
        {
            done??;
        }
        running.spawn(change(store.clone(), id.clone()));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(begun.elapsed() / u32::try_from(ids.len())?)
}

fn new_job(id: JobId) -> NewJob {
    NewJob {
        id,
        owner: Some("owner".to_owned()),
        path: "/source/tool".to_owned(),
        tool_digest: "sha256/1:tool".to_owned(),
        catalog_digest: "sha256/1:catalog".to_owned(),
        args: vec![b'a'; BODY_BYTES].into(),
        args_sha256: [0; 32],
        meta: None,
        key: None,
        caller: "{}".to_owned(),
        trace: None,
        ttl: Duration::from_secs(3_600),
        start: JobStart::Queued,
    }
}
