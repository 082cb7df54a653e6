//! Calls with a nonce each, and the count of their outcomes: no call may be lost, answered twice,
//! answered to another caller, or executed twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::chaos::Chaos;
use crate::http::Response;
use crate::keep_alive::KeepAlive;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A text that is unique to the call.
pub fn nonce() -> String {
    format!(
        "nonce-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The outcome of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The right answer.
    Answered,
    /// The answer of another call.
    Crossed,
    /// More than one answer.
    Duplicated,
    /// No answer.
    Lost,
    /// An error: its code, and whether the call may have been executed.
    Refused(String, Option<bool>),
}

/// The outcomes of many calls, by nonce.
#[derive(Debug, Default)]
pub struct Tally {
    outcomes: BTreeMap<String, CallOutcome>,
}

impl Tally {
    /// `callers` at one time, each with a separate connection, call the tool at `path` `each` times;
    /// its argument `text` is the nonce. A connection that ends is opened again.
    pub fn flood(address: &str, callers: usize, each: usize, path: &str) -> Self {
        Self::many(callers, address, path, &|made| made < each)
    }

    /// Repeats the calls until `done` returns true.
    pub fn flood_until(
        address: &str,
        callers: usize,
        path: &str,
        done: &(impl Fn() -> bool + Sync),
    ) -> Self {
        Self::many(callers, address, path, &|_| !done())
    }

    fn many(
        callers: usize,
        address: &str,
        path: &str,
        goes_on: &(impl Fn(usize) -> bool + Sync),
    ) -> Self {
        let one = || {
            let mut tally = Self::default();
            let mut kept = None;
            while goes_on(tally.calls()) {
                let nonce = nonce();
                let outcome = call(&mut kept, address, path, &nonce);
                tally.outcomes.insert(nonce, outcome);
            }
            tally
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..callers).map(|_| scope.spawn(one)).collect();
            let mut all = Self::default();
            for thread in threads {
                all.add(thread.join().expect("a caller does not panic"));
            }
            all
        })
    }

    /// Records the answer to the call with this nonce.
    pub fn note(&mut self, nonce: &str, response: Option<&Response>) {
        let outcome = response.map_or(CallOutcome::Lost, |response| read(nonce, response));
        self.outcomes.insert(nonce.to_owned(), outcome);
    }

    /// Adds the counts of another tally.
    pub fn add(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
    }

    /// The number of calls with this outcome.
    pub fn count(&self, right: impl Fn(&CallOutcome) -> bool) -> usize {
        self.outcomes
            .values()
            .filter(|outcome| right(outcome))
            .count()
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.outcomes.len()
    }

    /// The number of answered calls.
    pub fn answered(&self) -> usize {
        self.count(|outcome| *outcome == CallOutcome::Answered)
    }

    /// The number of calls that were refused with this code.
    pub fn refused(&self, code: &str) -> usize {
        self.count(|outcome| matches!(outcome, CallOutcome::Refused(known, _) if known == code))
    }

    /// The codes of all refusals.
    pub fn codes(&self) -> BTreeMap<&str, usize> {
        let mut codes = BTreeMap::new();
        for outcome in self.outcomes.values() {
            if let CallOutcome::Refused(code, _) = outcome {
                *codes.entry(code.as_str()).or_insert(0) += 1;
            }
        }
        codes
    }

    /// Asserts that no answer was lost, duplicated or swapped.
    pub fn is_clean(&self) {
        for bad in [
            CallOutcome::Lost,
            CallOutcome::Duplicated,
            CallOutcome::Crossed,
        ] {
            assert_eq!(
                self.count(|outcome| *outcome == bad),
                0,
                "{bad:?} of {}",
                self.calls()
            );
        }
    }

    /// Compares the outcomes with the journal of the source: no call was executed twice, answered calls
    /// were executed, and calls that are reported as not executed were not.
    pub fn agrees_with(&self, chaos: &Chaos, source: &str) {
        let mut executed: BTreeMap<String, usize> = BTreeMap::new();
        for call in chaos.events(source, "call") {
            if let Some(nonce) = call["arguments"]["text"].as_str() {
                *executed.entry(nonce.to_owned()).or_insert(0) += 1;
            }
        }
        for (nonce, outcome) in &self.outcomes {
            let times = executed.get(nonce).copied().unwrap_or_default();
            assert!(
                times <= 1,
                "{nonce} was executed {times} times: {outcome:?}"
            );
            match outcome {
                CallOutcome::Answered => {
                    assert_eq!(times, 1, "{nonce} was answered, yet not executed")
                }
                CallOutcome::Refused(code, Some(false)) => {
                    assert_eq!(
                        times, 0,
                        "{nonce} was executed, and `{code}` says it was not"
                    );
                }
                _ => {}
            }
        }
    }
}

fn call(kept: &mut Option<KeepAlive>, address: &str, path: &str, nonce: &str) -> CallOutcome {
    let body = json!({"path": path, "args": {"text": nonce}});
    let mut open = kept.take().unwrap_or_else(|| KeepAlive::open(address));
    let Some(response) = open.post("/meta_call", &body) else {
        return CallOutcome::Lost;
    };
    if open.has_more() {
        return CallOutcome::Duplicated;
    }
    if response.header("connection") != Some("close") {
        *kept = Some(open);
    }
    read(nonce, &response)
}

fn read(nonce: &str, response: &Response) -> CallOutcome {
    let body: Value = response.json();
    if response.status != 200 {
        let error = &body["error"];
        let code = error["code"].as_str().unwrap_or_default().to_owned();
        return CallOutcome::Refused(code, error["maybe_executed"].as_bool());
    }
    let text = body["result"]["content"][0]["text"].as_str();
    let echoed: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    match echoed {
        Some(echoed) if echoed["text"] == nonce => CallOutcome::Answered,
        _ => CallOutcome::Crossed,
    }
}
