//! Starts a server's process and agrees with it: from a launch to a session. Whatever goes wrong on the
//! way, no process is left behind.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use broker_model::SourceCause;
use broker_model::mcp::Era;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::Session;
use crate::connection::Connection;
use crate::failure::SourceFailure;
use crate::handshake::{self, Agreed, Disagreement};
use crate::launch::Launch;
use crate::process::{Hurry, Process, ProcessHandle, StderrTail};
use crate::status::Counters;
use crate::subscription::Subscribed;
use crate::{request, startup};

/// What a supervisor adds to starting a session.
pub(crate) struct Opening<'a> {
    pub(crate) tail: &'a StderrTail,
    pub(crate) counters: &'a Arc<Counters>,
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) hurry: &'a Hurry,
    /// Whether a second process may be started for the other era when the first one dies.
    pub(crate) second_process: bool,
}

impl Session {
    /// Starts the process and agrees on an era; `era` is tried first.
    pub async fn open(launch: &Launch, era: Option<Era>) -> Result<Self, SourceFailure> {
        let tail = StderrTail::new(launch.redactor.clone());
        Self::open_watched(launch, era, &tail).await
    }

    /// The same, with stderr going into `tail` from the first byte.
    pub async fn open_watched(
        launch: &Launch,
        era: Option<Era>,
        tail: &StderrTail,
    ) -> Result<Self, SourceFailure> {
        let opening = Opening {
            tail,
            counters: &Arc::default(),
            tasks: &TaskTracker::new(),
            hurry: &Hurry::never(),
            second_process: true,
        };
        Self::open_supervised(launch, era, &opening).await
    }

    pub(crate) async fn open_supervised(
        launch: &Launch,
        era: Option<Era>,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let first = era.unwrap_or(Era::Modern);
        let result = match Self::attempt(launch, first, true, opening).await {
            Err(Disagreement::Died(failure)) if opening.second_process => {
                tracing::debug!(source = %launch.source.as_str(), %failure, "the server ended at the first question; trying the other era in a new process");
                Self::attempt(launch, handshake::other(first), false, opening).await
            }
            result => result,
        };
        result.map_err(|disagreement| match disagreement {
            Disagreement::Died(failure) | Disagreement::Refused(failure) => {
                startup::explain(failure, launch, opening.tail)
            }
        })
    }

    /// One process. Whatever goes wrong after it was started, it is stopped before this returns.
    async fn attempt(
        launch: &Launch,
        first: Era,
        both: bool,
        opening: &Opening<'_>,
    ) -> Result<Self, Disagreement> {
        opening.tail.clear();
        let mut process = Process::spawn(launch, opening.tail, opening.tasks, opening.hurry)
            .await
            .map_err(Disagreement::Refused)?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            let failure = SourceFailure::new(SourceCause::SpawnFailed, "the process has no pipes");
            return Err(Disagreement::Refused(failure));
        };
        let connection = Connection::open(
            stdin,
            stdout,
            &process.handle,
            launch,
            opening.tail,
            opening.counters,
            opening.tasks,
        );
        let (probe, redactor) = (launch.timing.probe, &launch.redactor);
        let agreed = tokio::select! {
            biased;
            agreed = handshake::agree(&connection, first, both, probe, redactor) => agreed,
            failure = startup::expired(launch.startup_timeout, opening.tail) => {
                Err(Disagreement::Refused(startup::name_stop(failure, process.handle.pid())))
            }
        };
        match agreed {
            Ok(agreed) => Ok(Self::new(
                connection,
                process.handle,
                agreed,
                launch,
                opening.tail,
            )),
            Err(disagreement) => {
                let (Disagreement::Died(reason) | Disagreement::Refused(reason)) = &disagreement;
                connection.close(reason.clone()).await;
                process.handle.stop().await;
                Err(disagreement)
            }
        }
    }

    fn new(
        connection: Connection,
        process: ProcessHandle,
        agreed: Agreed,
        launch: &Launch,
        tail: &StderrTail,
    ) -> Self {
        let meta = match agreed.era {
            Era::Modern => request::modern_meta(),
            Era::Legacy => String::new(),
        };
        // Before the first listing: a change between the two must not be missed.
        let subscribed = if agreed.era == Era::Modern && announces_changes(&agreed.capabilities) {
            Subscribed::open(&connection, &meta)
        } else {
            Subscribed::default()
        };
        Self {
            connection,
            process,
            agreed,
            meta,
            subscribed,
            tail: tail.clone(),
            launch: launch.clone(),
            calls_begun: AtomicU64::new(0),
        }
    }
}

fn announces_changes(capabilities: &Value) -> bool {
    capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true))
}
