//! Launches sources concurrently and meanwhile shows the sources that have not answered. A panic of one task does not
//! stop the others.

use std::sync::Arc;

use broker_mcp::SourceSpec;
use broker_model::text;
use broker_process::StderrTail;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use crate::cli::launch::progress::Progress;
use crate::cli::output::say;

/// Maximum number of servers that start at one time.
const MAX_CONCURRENT_STARTS: usize = 8;

/// Runs `work` for each job; results have the order of the jobs, and `None` is a task that panicked. `spec`
/// names the source of a job. Dropping the future ends every task.
pub(in crate::cli) async fn launch_all<Job, Done, Work>(
    jobs: Vec<Job>,
    spec: impl Fn(&Job) -> &SourceSpec,
    work: impl Fn(Job, StderrTail) -> Work,
) -> Vec<Option<Done>>
where
    Done: Send + 'static,
    Work: Future<Output = Done> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_STARTS));
    let mut tasks = JoinSet::new();
    let mut progress = Progress::new();
    let mut results: Vec<Option<Done>> = jobs.iter().map(|_| None).collect();
    for (index, job) in jobs.into_iter().enumerate() {
        let spec = spec(&job);
        let tail = StderrTail::new(spec.redactor.clone());
        progress.add(index, spec.source.clone(), tail.clone());
        let permits = Arc::clone(&permits);
        let work = work(job, tail);
        tasks.spawn(async move {
            let _permit = permits.acquire_owned().await;
            (index, work.await)
        });
    }
    loop {
        match tokio::time::timeout(progress.pause(), tasks.join_next()).await {
            Ok(Some(Ok((index, result)))) => {
                progress.remove(index);
                results[index] = Some(result);
            }
            Ok(Some(Err(panicked))) => {
                progress.clear();
                say(text!("error: a task of broker-gen failed: {}", panicked));
            }
            Ok(None) => break,
            Err(_) => progress.tick(),
        }
    }
    progress.clear();
    results
}

/// Resumes the panic of a blocking task; it was printed where it occurred.
pub(in crate::cli) fn resume<T>(error: JoinError) -> T {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => panic!("work was cancelled that nothing cancels: {error}"),
    }
}
