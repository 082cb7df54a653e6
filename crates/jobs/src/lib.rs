//! The layer that keeps jobs: calls that outlive their caller. [`Jobs`] wraps a broker; a call that asks for it becomes a
//! job of the store, and the [`Keeper`] runs the jobs that wait, for the identities that made them.
//!
//! A job is made after all checks of its call, and runs as a separate call: its caller, its right and its arguments are
//! checked again. It is marked as sent before its server gets it, so that no restart runs it twice.

mod adopt;
mod caller;
mod creation;
mod desk;
mod errors;
mod keeper;
mod kept_results;
mod promotion;
mod run;
mod schedule;
mod settings;
mod view;
mod waits;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use broker_core::{Broker, CallMode, CoreError, JobDesk, Outcome, Request, forward};
use futures_util::future::Either;

pub use broker_store::{Bounds, Clock, JobStore, Now, OpenError, Recovered, StoreSettings};
pub use keeper::{Keeper, KeeperParts};
pub use settings::JobSettings;

/// A broker whose calls can become jobs.
#[derive(Clone)]
pub struct Jobs<B> {
    inner: B,
    kept: Option<Kept>,
}

/// A call that asks for a job.
type Calling = Pin<Box<dyn Future<Output = Result<Outcome, Box<CoreError>>> + Send>>;

#[derive(Clone)]
struct Kept {
    keeper: Arc<Keeper>,
    desk: Arc<dyn JobDesk>,
}

impl<B> Jobs<B> {
    /// Makes a broker without jobs.
    pub const fn off(inner: B) -> Self {
        Self { inner, kept: None }
    }

    /// Makes a broker whose jobs this keeper keeps.
    pub fn new(inner: B, keeper: Arc<Keeper>) -> Self {
        let desk: Arc<dyn JobDesk> = keeper.clone();
        Self {
            inner,
            kept: Some(Kept { keeper, desk }),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for Jobs<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs")
            .field("inner", &self.inner)
            .field("is_on", &self.kept.is_some())
            .finish()
    }
}

impl<B: Broker> Broker for Jobs<B> {
    forward!(
        inner: services, list, describe, search, look_up, items, tools, callable_tools, listed_items, traces_calls,
        health
    );

    fn jobs(&self) -> Option<&Arc<dyn JobDesk>> {
        self.kept.as_ref().map(|kept| &kept.desk)
    }

    #[inline]
    fn call(
        &self,
        mut request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        let Some((job, kept)) = request.context.job.take().zip(self.kept.as_ref()) else {
            return Either::Left(self.inner.call(request));
        };
        let (inner, keeper) = (self.inner.clone(), Arc::clone(&kept.keeper));
        // Boxed, so that other calls do not carry the size of these.
        match (job.mode, &job.key) {
            (CallMode::Sync, None) => Either::Left(self.inner.call(request)),
            // A job that a restart loses is made only for a caller that asks for it.
            (CallMode::Auto, None) if keeper.promote_after().is_none() => {
                Either::Left(self.inner.call(request))
            }
            (CallMode::Sync | CallMode::Async, _) | (CallMode::Auto, Some(_)) => {
                let making: Calling =
                    Box::pin(async move { keeper.make(&inner, request, *job).await });
                Either::Right(making)
            }
            (CallMode::Auto, None) => Either::Right(keeper.promote(inner, request, job)),
        }
    }

    async fn close(&self) {
        if let Some(kept) = &self.kept {
            kept.keeper.stop();
        }
        self.inner.close().await;
        if let Some(kept) = &self.kept {
            kept.keeper.close().await;
        }
    }
}

/// Returns the faults of the file of a store, after a check of all of it. The store must not be in use.
///
/// # Errors
///
/// [`OpenError`] if the file cannot be opened as a store.
pub fn check_file(path: &Path) -> Result<Vec<String>, OpenError> {
    broker_store::check_file(path, &Clock::system())
}
