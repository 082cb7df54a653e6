//! The results of the run, compared with the conditions; for people or as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::account::{Account, CallOutcome, Executions};
use crate::caller::Tally;
use crate::plan::SOURCES;
use crate::resources::{Sample, tenth};

/// All results.
pub(crate) struct RunResults {
    pub(crate) seed: u64,
    pub(crate) calls: u64,
    pub(crate) taken: Duration,
    pub(crate) tally: Tally,
    pub(crate) account: Account,
    pub(crate) executions: Executions,
    pub(crate) samples: Vec<Sample>,
    /// Resident KiB after each tenth of the calls.
    pub(crate) memory: Vec<u64>,
    pub(crate) killed: u64,
    /// Server processes when all were up again, and after the broker had ended.
    pub(crate) servers_after: usize,
    pub(crate) servers_left: usize,
    pub(crate) exit: Option<i32>,
}

/// The report.
pub(crate) struct Report {
    figures: Value,
    checks: Vec<Check>,
}

struct Check {
    name: &'static str,
    holds: bool,
    found: String,
}

/// The share of calls to untouched sources that must be served, in hundredths of a percent.
const AVAILABILITY: u64 = 9999;
/// Maximum growth of memory, in percent.
const GROWTH: u64 = 5;
/// The allowed change of descriptors and threads: connections of disconnected callers, starting
/// servers.
const SLACK: u64 = 16;

impl Report {
    pub(crate) fn new(mut seen: RunResults) -> Self {
        seen.tally.micros.sort_unstable();
        let figures = figures(&seen);
        Self {
            checks: checks(&seen),
            figures,
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    pub(crate) fn to_json(&self) -> Value {
        let checks = self
            .checks
            .iter()
            .map(|check| json!({"name": check.name, "holds": check.holds, "found": check.found}));
        json!({
            "holds": self.holds(),
            "checks": checks.collect::<Vec<_>>(),
            "figures": self.figures,
        })
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let word = if check.holds { "holds" } else { "FAILS" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{word}  {:<32} {}", check.name, check.found);
        }
        for (name, value) in self.figures.as_object().into_iter().flatten() {
            let _ = writeln!(text, "       {name:<32} {value}");
        }
        text
    }
}

fn checks(seen: &RunResults) -> Vec<Check> {
    let (tally, executions) = (&seen.tally, &seen.executions);
    let none = |name, count: u64| Check {
        name,
        holds: count == 0,
        found: count.to_string(),
    };
    let mut checks = vec![
        none("lost", seen.account.count(CallOutcome::Lost)),
        none("duplicated", tally.duplicated),
        none("crossed", tally.crossed),
        none("spoilt", tally.spoilt),
        none("executed twice", executions.twice),
        none("executed and denied", executions.denied),
        none("answered and not executed", executions.invented),
        none("journal lines that are none", executions.unreadable),
        Check {
            name: "answers that must not be",
            holds: tally.wrong.is_empty(),
            found: format!("{:?}", tally.wrong),
        },
        Check {
            name: "untouched sources served",
            holds: tally.untouched_served * 10_000 >= tally.untouched * AVAILABILITY,
            found: format!("{} of {}", tally.untouched_served, tally.untouched),
        },
        Check {
            name: "sources were killed",
            holds: seen.killed > 0,
            found: seen.killed.to_string(),
        },
        Check {
            name: "processes as configured",
            holds: seen.servers_after == usize::try_from(SOURCES).unwrap_or(0),
            found: seen.servers_after.to_string(),
        },
        none("processes left", seen.servers_left as u64),
        Check {
            name: "exit of the broker",
            holds: seen.exit == Some(0),
            found: format!("{:?}", seen.exit),
        },
    ];
    checks.extend(growth(&seen.samples));
    checks.extend(memory_growth(&seen.memory));
    checks
}

/// The last tenth of the run compared with the first two: in a short run the number of connected callers of one
/// tenth varies by more than the slack.
fn growth(samples: &[Sample]) -> Vec<Check> {
    let tenths = (tenth(samples, 0), tenth(samples, 1), tenth(samples, 9));
    let (Some(first), Some(second), Some(last)) = tenths else {
        return vec![Check {
            name: "growth",
            holds: true,
            found: "too short a run to tell; 10 seconds at least".to_owned(),
        }];
    };
    let check = |name, from: u64, to: u64, most: u64| Check {
        name,
        holds: to <= most,
        found: format!("{from} then {to}, at most {most}"),
    };
    let descriptors = first.descriptors.max(second.descriptors);
    vec![
        check(
            "descriptors",
            descriptors,
            last.descriptors,
            descriptors + SLACK,
        ),
        check(
            "threads",
            second.threads,
            last.threads,
            second.threads + SLACK,
        ),
        check(
            "server processes at once",
            second.servers,
            last.servers,
            SOURCES,
        ),
    ]
}

/// The memory after the last tenth compared with that after the second, when every part of the broker
/// has been used.
fn memory_growth(memory: &[u64]) -> Option<Check> {
    let (second, last) = (memory.get(1)?, memory.last()?);
    let most = second * (100 + GROWTH) / 100;
    Some(Check {
        name: "memory in KiB",
        holds: *last <= most,
        found: format!("{second} then {last}, at most {most}"),
    })
}

fn figures(seen: &RunResults) -> Value {
    let tally = &seen.tally;
    let seconds = seen.taken.as_secs_f64();
    // The sorted times have a last element if they are not empty.
    let quantile = |percent: usize| {
        let at = tally.micros.len().saturating_sub(1) * percent / 100;
        tally.micros.get(at).copied()
    };
    let looks = seen.samples.len();
    let tenths: Vec<_> = (0..10)
        .filter_map(|which| tenth(&seen.samples, which))
        .map(Sample::to_json)
        .collect();
    json!({
        "seed": seen.seed,
        "calls": seen.calls,
        "seconds": seconds.round(),
        "calls_a_second": (seen.calls as f64 / seconds).round(),
        "echo_p50_micros": quantile(50),
        "echo_p99_micros": quantile(99),
        "fates": seen.account.to_json(),
        "codes": tally.codes,
        "executed": seen.executions.calls,
        "server_starts": seen.executions.starts,
        "killed": seen.killed,
        "numbers_to_look_at": seen.executions.numbers,
        "looks": looks,
        "tenths": tenths,
        "memory_kib": seen.memory,
    })
}
