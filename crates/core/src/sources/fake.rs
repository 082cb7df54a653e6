//! A scripted source for tests: answers from a script and shows the status that the test sets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use broker_mcp::{
    CallFailure, CallTime, RawResult, ServerCall, ServerOperation, SourceFailure, State, Status,
};
use bytes::Bytes;
use tokio::sync::watch;

/// One call as a server would receive it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedCall {
    /// The name of the tool, or the URI that is read.
    pub(crate) tool: String,
    pub(crate) args: String,
    pub(crate) meta: Option<String>,
    pub(crate) wants_progress: bool,
    pub(crate) timeout: Duration,
    pub(crate) time: CallTime,
}

/// A scripted source. A call after the end of the script waits for another answer, or until the source is stopped.
#[derive(Debug)]
pub(crate) struct Fake {
    status: watch::Sender<Status>,
    answers: Mutex<VecDeque<Result<RawResult, CallFailure>>>,
    seen: Mutex<Vec<RecordedCall>>,
}

impl Fake {
    pub(crate) fn new() -> Arc<Self> {
        let status = Status {
            state: State::Starting,
            since: SystemTime::UNIX_EPOCH,
            failure: None,
            attempts: 0,
            verdicts: 0,
            next_attempt: None,
            restarts: 0,
            counters: Arc::default(),
        };
        Arc::new(Self {
            status: watch::Sender::new(status),
            answers: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    pub(crate) fn answer(&self, answer: Result<&'static str, CallFailure>) {
        let answer = answer.map(|text| RawResult {
            result: Bytes::from_static(text.as_bytes()),
            repaired: false,
            is_error: false,
        });
        self.answers.lock().unwrap().push_back(answer);
        // Wakes a call that waits for its answer.
        self.status.send_modify(|_| {});
    }

    pub(crate) fn seen(&self) -> Vec<RecordedCall> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn set(&self, state: State, failure: Option<SourceFailure>) {
        self.status.send_modify(|status| {
            status.state = state;
            status.attempts += 1;
            status.failure = failure;
        });
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status.borrow().state == State::Ready
    }

    /// Returns when no start is in progress.
    pub(crate) async fn started(&self) {
        let mut status = self.status();
        let up = status.wait_for(|status| status.state != State::Starting);
        up.await.unwrap();
    }

    pub(crate) async fn call(
        &self,
        call: ServerCall<'_>,
        time: CallTime,
    ) -> Result<RawResult, CallFailure> {
        let (name, args) = match call.operation {
            ServerOperation::CallTool { name, args } => (name, args),
            ServerOperation::ReadResource { uri } => (uri, &b"{}"[..]),
            ServerOperation::GetPrompt { .. } | ServerOperation::Complete { .. } => {
                panic!("a fake has tools and resources only")
            }
        };
        self.seen.lock().unwrap().push(RecordedCall {
            tool: name.to_owned(),
            args: String::from_utf8(args.to_vec()).unwrap(),
            meta: call.meta.map(str::to_owned),
            wants_progress: call.events.is_some_and(|events| events.wants().progress),
            timeout: time.first(),
            time,
        });
        let mut status = self.status();
        loop {
            let answer = self.answers.lock().unwrap().pop_front();
            if let Some(answer) = answer {
                return answer;
            }
            if status.borrow_and_update().state == State::Stopping {
                return Err(CallFailure::Stopping);
            }
            status.changed().await.unwrap();
        }
    }

    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(crate) async fn stop(&self) {
        self.status
            .send_modify(|status| status.state = State::Stopping);
    }
}
