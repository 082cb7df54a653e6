//! The outcome of every call, one byte each, and the calls that the servers executed. Both are compared
//! after the run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::{Value, json};

use crate::plan::SOURCES;

/// The nonces of calls after the run.
const AFTER: &str = r#"{"nonce":"after","text":""}"#;

/// The outcome of a call for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CallOutcome {
    /// No answer arrived, which must not happen.
    Lost = 0,
    /// The server's answer arrived.
    Answered = 1,
    /// An error said that the call was not executed.
    NotRun = 2,
    /// An error said that the call may have been executed.
    MayHaveRun = 3,
    /// The caller disconnected after it had sent the request.
    Left = 4,
    /// The caller disconnected before it had sent the request.
    LeftHalfWay = 5,
}

/// The outcome of each call by its number.
pub(crate) struct Account(Vec<AtomicU8>);

/// The calls in the journals.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    pub(crate) calls: u64,
    /// Executed more than once.
    pub(crate) twice: u64,
    /// Executed although the caller got the opposite, or had not sent the request.
    pub(crate) denied: u64,
    /// Answered as executed, and not executed.
    pub(crate) invented: u64,
    /// Lines that are not journal entries.
    pub(crate) unreadable: u64,
    pub(crate) starts: u64,
    pub(crate) numbers: Vec<u64>,
}

impl Account {
    pub(crate) fn new(calls: u64) -> Self {
        Self(
            (0..calls)
                .map(|_| AtomicU8::new(CallOutcome::Lost as u8))
                .collect(),
        )
    }

    pub(crate) fn settle(&self, number: u64, outcome: CallOutcome) {
        if let Some(place) = usize::try_from(number).ok().and_then(|at| self.0.get(at)) {
            place.store(outcome as u8, Ordering::Relaxed);
        }
    }

    pub(crate) fn count(&self, outcome: CallOutcome) -> u64 {
        let places = self.0.iter().map(|place| place.load(Ordering::Relaxed));
        places.filter(|known| *known == outcome as u8).count() as u64
    }

    /// Reads the journals of the sources in this folder.
    pub(crate) fn compare(&self, folder: &Path) -> io::Result<Executions> {
        let mut seen = vec![0u8; self.0.len()];
        let mut found = Executions::default();
        for source in 1..=SOURCES {
            let file = File::open(folder.join(format!("s{source}.log")))?;
            for line in BufReader::new(file).split(b'\n') {
                let Ok(entry) = serde_json::from_slice::<Value>(&line?) else {
                    found.unreadable += 1;
                    continue;
                };
                found.starts += u64::from(entry["event"] == "start");
                if entry["event"] != "call" {
                    continue;
                }
                if entry["arguments"] == AFTER {
                    continue;
                }
                found.calls += 1;
                match nonce(&entry).and_then(|number| seen.get_mut(number)) {
                    Some(times) => *times = times.saturating_add(1),
                    None => found.unreadable += 1,
                }
            }
        }
        for (number, (times, outcome)) in seen.iter().zip(&self.0).enumerate() {
            let outcome = outcome.load(Ordering::Relaxed);
            let denied = *times > 0
                && (outcome == CallOutcome::NotRun as u8
                    || outcome == CallOutcome::LeftHalfWay as u8);
            let invented = *times == 0 && outcome == CallOutcome::Answered as u8;
            found.twice += u64::from(*times > 1);
            found.denied += u64::from(denied);
            found.invented += u64::from(invented);
            if (*times > 1 || denied || invented) && found.numbers.len() < 20 {
                found.numbers.push(number as u64);
            }
        }
        Ok(found)
    }

    /// Calls by outcome.
    pub(crate) fn to_json(&self) -> Value {
        let counts: BTreeMap<_, _> = [
            ("answered", CallOutcome::Answered),
            ("told_not_run", CallOutcome::NotRun),
            ("told_may_have_run", CallOutcome::MayHaveRun),
            ("left", CallOutcome::Left),
            ("left_half_way", CallOutcome::LeftHalfWay),
        ]
        .into_iter()
        .map(|(name, outcome)| (name, self.count(outcome)))
        .collect();
        json!(counts)
    }
}

/// The nonce in a brief journal line, which has the beginning of the arguments as text.
fn nonce(entry: &Value) -> Option<usize> {
    let text = entry["arguments"].as_str()?.strip_prefix("{\"nonce\":\"")?;
    text.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_compares_callers_with_the_journals() {
        let folder = tempfile::tempdir().unwrap();
        let call = |number: u64| json!({"event": "call", "arguments": format!("{{\"nonce\":\"{number}\",\"text\":\"xx")});
        for source in 1..=SOURCES {
            let lines = match source {
                1 => vec![json!({"event": "start"}), call(0), call(1), call(2)],
                2 => vec![
                    call(1),
                    call(3),
                    json!({"event": "call", "arguments": AFTER}),
                ],
                _ => Vec::new(),
            };
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(folder.path().join(format!("s{source}.log")), text).unwrap();
        }
        let account = Account::new(7);
        let outcomes = [
            CallOutcome::Answered,
            CallOutcome::MayHaveRun,
            CallOutcome::NotRun,
            CallOutcome::LeftHalfWay,
            CallOutcome::Answered,
            CallOutcome::Left,
        ];
        for (number, outcome) in (0..).zip(outcomes) {
            account.settle(number, outcome);
        }
        let found = account.compare(folder.path()).unwrap();
        assert_eq!((found.calls, found.starts, found.unreadable), (5, 1, 0));
        assert_eq!((found.twice, found.denied, found.invented), (1, 2, 1));
        assert_eq!(found.numbers, [1, 2, 3, 4]);
        assert_eq!(account.count(CallOutcome::Lost), 1);
    }
}
