//! The results of the run, compared with the conditions; for people or as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::account::{Account, CallOutcome, Executions};
use crate::caller::Tally;
use crate::plan::SOURCES;
use crate::rest::Rest;

/// All results.
pub(crate) struct RunResults {
    pub(crate) seed: u64,
    pub(crate) calls: u64,
    pub(crate) taken: Duration,
    pub(crate) tally: Tally,
    pub(crate) account: Account,
    pub(crate) executions: Executions,
    /// After each tenth of the calls.
    pub(crate) rests: Vec<Rest>,
    /// The most server processes at once.
    pub(crate) servers_at_once: usize,
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
/// Maximum growth of descriptors and threads: an idle connection, an idle thread.
const SLACK: u64 = 4;

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
            name: "server processes at once",
            holds: seen.servers_at_once as u64 <= SOURCES,
            found: format!("{}, at most {SOURCES}", seen.servers_at_once),
        },
        Check {
            name: "exit of the broker",
            holds: seen.exit == Some(0),
            found: format!("{:?}", seen.exit),
        },
    ];
    checks.extend(growth(&seen.rests));
    checks
}

/// Compares the values after the last tenth of the calls with the largest ones of the first half: a short run
/// still allocates what each part of the broker keeps from its first use on.
fn growth(rests: &[Rest]) -> Vec<Check> {
    let check = |name, read: fn(&Rest) -> u64, bound: fn(u64) -> u64| {
        let from = rests.iter().take(rests.len() / 2).map(read).max();
        let (from, to) = (from.unwrap_or(0), rests.last().map_or(u64::MAX, read));
        Check {
            name,
            holds: to <= bound(from),
            found: format!("{from} then {to}, at most {}", bound(from)),
        }
    };
    vec![
        check("descriptors", |rest| rest.descriptors, |from| from + SLACK),
        check("threads", |rest| rest.threads, |from| from + SLACK),
        check(
            "memory in KiB",
            |rest| rest.memory,
            |from| from * (100 + GROWTH) / 100,
        ),
    ]
}

fn figures(seen: &RunResults) -> Value {
    let tally = &seen.tally;
    let seconds = seen.taken.as_secs_f64();
    // The sorted times have a last element if they are not empty.
    let quantile = |percent: usize| {
        let at = tally.micros.len().saturating_sub(1) * percent / 100;
        tally.micros.get(at).copied()
    };
    let rests: Vec<_> = seen.rests.iter().map(|rest| rest.to_json()).collect();
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
        "kib_descriptors_threads": rests,
    })
}
