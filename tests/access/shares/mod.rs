//! What one caller asks for takes nothing from another: places of connections, of queues and of sessions, threads and
//! memory are shared by the identity of the caller.

mod calls;
mod connections;
mod logs;
mod memory;
mod pool;
mod sessions;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::Run;
use harness::figure::Watch;
use serde_json::{Value, json};

use crate::caller::{Caller, Key};
use crate::stage::{Stage, scripted};

/// The names of the callers.
const NAMES: [&str; 4] = ["ada", "bob", "cy", "dee"];

/// A broker over the scripted servers whose four callers may call everything.
struct Shared {
    stage: Stage,
    callers: [Caller; 4],
}

impl Shared {
    /// A broker with this script of `/a`.
    fn new(script: &Value) -> Self {
        Self::with(script, |_| {}, |run| run)
    }

    /// A broker with this script of `/a`, another config, and another way to start it.
    fn with(
        script: &Value,
        change: impl FnOnce(&mut Value),
        start: impl FnOnce(Run) -> Run,
    ) -> Self {
        let keys = NAMES.map(|name| Key::new(name, &["all"]));
        let mut config = scripted(json!({
            "groups": ["all"],
            "rules": [{"allow": ["/**"], "to": ["all"]}],
        }));
        config["mcp"] = json!({"mode": "direct"});
        change(&mut config);
        let stage = Stage::with_script(config, Some(script), &keys.each_ref(), start);
        let callers = keys.each_ref().map(|key| stage.caller(key));
        Self { stage, callers }
    }
}

/// Callers that ask again and again, until this is dropped or an assertion fails.
struct Flood<'s>(&'s AtomicBool);

impl<'s> Flood<'s> {
    /// A flood that ends when the result is dropped.
    fn new(is_over: &'s AtomicBool) -> Self {
        Self(is_over)
    }
}

impl Drop for Flood<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks again and again until the flood is over.
fn keep_asking(is_over: &AtomicBool, mut ask: impl FnMut()) {
    while !is_over.load(Ordering::Relaxed) {
        ask();
    }
}

/// The sorted times of so many requests, one after another.
fn times(count: usize, mut ask: impl FnMut()) -> Vec<Duration> {
    let one = |_| {
        let watch = Watch::start();
        ask();
        watch.passed()
    };
    let mut all: Vec<_> = (0..count).map(one).collect();
    all.sort_unstable();
    all
}

/// The percentile of sorted times.
fn percentile(times: &[Duration], part: usize) -> Duration {
    times[(times.len() - 1) * part / 100]
}
