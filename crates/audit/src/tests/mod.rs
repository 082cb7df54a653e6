//! Tests of the log through its API.

mod fake;
mod order;

use std::sync::Arc;
use std::time::Duration;

use crate::{
    Actor, ArgsFacts, AuditError, AuditLog, CallEndFacts, CallFacts, CallOutcome, OpenCall,
    ResultFacts, Target, Versions,
};

/// Waits for a future without a runtime: the log needs none.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

fn versions() -> Arc<Versions> {
    Arc::new(Versions {
        catalog: format!("sha256/1:{}", "c".repeat(64)),
        policy: format!("sha256/1:{}", "d".repeat(64)),
    })
}

/// A call of a caller.
fn call(subject: &str) -> CallFacts {
    CallFacts {
        actor: Arc::new(Actor {
            subject: subject.to_owned(),
            kind: "jwt".into(),
            groups: vec!["deployer".to_owned()],
            key: None,
            act: Vec::new(),
        }),
        via: "http".into(),
        peer: Some("10.0.0.7".to_owned()),
        request_id: "17".to_owned(),
        trace_id: None,
        target: Target {
            path: "/pay/refund".to_owned(),
            source: Some("/pay".to_owned()),
            tool: Some("refund".to_owned()),
            kind: Some("tool".into()),
            digest: Some(format!("sha256/1:{}", "a".repeat(64))),
        },
        rule: Some(3),
        args: ArgsFacts {
            bytes: 118,
            hmac: None,
            shown: [("/org".to_owned(), "acme".into())].into(),
        },
        versions: versions(),
    }
}

const OK: CallEndFacts = CallEndFacts {
    outcome: CallOutcome::Ok,
    code: None,
    result: Some(ResultFacts {
        bytes: 2048,
        is_error: false,
    }),
    elapsed: Duration::from_micros(41_234),
    sent: true,
    maybe_executed: false,
};

fn begin(log: &AuditLog, subject: &str) -> Result<OpenCall, AuditError> {
    wait(log.begin(call(subject)))
}
