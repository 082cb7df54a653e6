//! Tests of the authenticator, with a clock that they set.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use broker_config::Config;

use crate::{Authenticator, BlockingThreads, Clock, Offload, Settings};

mod cache;
mod issuer;
mod key_sets;
mod keys;
mod revisions;
mod signer;
mod tokens;

/// The address of callers.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A clock that only tests move.
#[derive(Debug)]
struct ManualClock {
    elapsed: Mutex<Duration>,
}

impl ManualClock {
    fn new() -> Arc<Self> {
        let elapsed = Mutex::new(Duration::ZERO);
        Arc::new(Self { elapsed })
    }

    fn advance(&self, time: Duration) {
        *self.elapsed.lock().unwrap() += time;
    }

    /// Seconds since 1970, as tokens have them.
    fn seconds(&self) -> u64 {
        let since = self.now().duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap().as_secs()
    }
}

impl Clock for ManualClock {
    /// Begins at 2026-11-23T16:00:00Z.
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_449_600) + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap()
    }
}

/// The groups of the tests.
const GROUPS: &str = r#"["a","b","c","reader","writer","before","after"]"#;

/// The settings of this section `identities`.
fn settings(identities: &str) -> Settings {
    let text = format!(
        r#"{{"tree":[],"access":{{"groups":{GROUPS},"rules":[]}},"identities":{identities}}}"#
    );
    let parsed = Config::parse("c.json", text.as_bytes());
    let parsed = parsed.unwrap_or_else(|found| panic!("{found:?}"));
    Settings::load(&parsed.config.identities, std::path::Path::new(""), &|_| {
        None
    })
    .unwrap()
}

fn authenticator(identities: &str) -> (Authenticator, Arc<ManualClock>) {
    let clock = ManualClock::new();
    let authenticator = Authenticator::new(&settings(identities), clock.clone());
    (authenticator, clock)
}

/// A pool that counts its jobs.
#[derive(Default)]
struct CountingPool(AtomicUsize);

impl Offload for CountingPool {
    async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.0.fetch_add(1, Ordering::Relaxed);
        BlockingThreads.run(job).await
    }
}

impl CountingPool {
    fn jobs(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
