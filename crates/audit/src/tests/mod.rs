//! Tests of the log through its API.

mod attacks;
mod fake;
mod files;
mod limits;
mod lines;
mod ocsf;
mod order;

use std::sync::Arc;
use std::time::Duration;

use broker_model::RequestId;

use crate::{
    Actor, ArgsFacts, AuditError, AuditKey, AuditLog, AuditSettings, CallEndFacts, CallFacts,
    CallOutcome, Clock, Now, OpenCall, ResultFacts, Target, Versions,
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

/// The root digest of a lock.
const LOCK: &str = "sha256/1:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

fn versions() -> Arc<Versions> {
    Arc::new(Versions {
        lock: LOCK.to_owned(),
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
            ..Actor::default()
        }),
        via: "http".into(),
        peer: "10.0.0.7".parse().ok(),
        request_id: RequestId::new(&["17"]),
        trace_id: None,
        target: Target {
            path: "/pay/refund".into(),
            source: Some("/pay".into()),
            tool: Some("refund".into()),
            kind: Some("tool".into()),
            digest: Some(format!("sha256/1:{}", "a".repeat(64)).into()),
        },
        rule: Some(3),
        args: ArgsFacts {
            bytes: 118,
            hmac: None,
            shown: [("/org".to_owned(), "acme".into())].into(),
        },
        versions: versions(),
        job: None,
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
    job: None,
};

fn begin(log: &AuditLog, subject: &str) -> Result<OpenCall, AuditError> {
    wait(log.begin(call(subject)))
}

/// A log on a file system in memory, with the first lines of a broker.
fn log_on(disk: &fake::Fake, change: impl FnOnce(&mut AuditSettings)) -> AuditLog {
    let mut settings = AuditSettings::new("audit.jsonl");
    "0.1.0".clone_into(&mut settings.broker_version);
    change(&mut settings);
    AuditLog::open_on(Box::new(disk.clone()), settings, versions()).unwrap()
}

fn key() -> AuditKey {
    AuditKey::parse(&[7; 32]).unwrap()
}

/// Waits until a condition holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = Clock::system();
    while !holds() {
        assert!(clock.now().since < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

/// A clock that tests set.
#[derive(Clone, Default)]
struct TestClock(Arc<std::sync::atomic::AtomicU64>);

impl TestClock {
    fn advance(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap();
        self.0
            .fetch_add(millis, std::sync::atomic::Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let millis = Arc::clone(&self.0);
        Clock::new(move || {
            let since = Duration::from_millis(millis.load(std::sync::atomic::Ordering::SeqCst));
            Now {
                // 2026-11-28, a minute before the day ends.
                wall: std::time::UNIX_EPOCH + Duration::from_secs(1_795_910_340) + since,
                since,
            }
        })
    }
}

/// The lines of a file, as values.
fn lines(disk: &fake::Fake, name: &str) -> Vec<serde_json::Value> {
    let bytes = disk.content(name);
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}
