//! A long run of a broker over eight scripted sources, of which one is killed every second, while
//! callers disconnect and servers hang or send too much. Accounts for every call, and exits with 1 if a
//! condition does not hold.

mod account;
mod caller;
mod clock;
mod http;
mod plan;
mod report;
mod resources;
mod rest;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use harness::{Broker, Chaos, Run, wait_until};
use serde_json::json;

use crate::account::{Account, Executions};
use crate::caller::{Tally, Work};
use crate::clock::now;
use crate::plan::SOURCES;
use crate::report::{Report, RunResults};
use crate::rest::Rest;

/// The script of the sources; the same as when their lock was made.
const SCRIPT: &str = include_str!("../script.json");

/// Runs a broker for a long time under faults, and accounts for every call.
///
/// Needs `soak-broker` and `chaos-mcp` beside it: `cargo build -p soak -p chaos-mcp`.
#[derive(Parser)]
struct Flags {
    /// The number of calls.
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
    /// The number of concurrent callers, each with a separate connection.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// The seed of the mix of calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Human,
    Json,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let report = soak(&flags);
    let text = match flags.format {
        Format::Human => report.to_text(),
        Format::Json => format!("{:#}\n", report.to_json()),
    };
    let written = std::io::stdout().write_all(text.as_bytes());
    match written.is_ok() && report.holds() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn soak(flags: &Flags) -> Report {
    let chaos = Chaos::named("soak-");
    chaos.file("script.json", SCRIPT);
    let program = beside("soak-broker");
    let run = Run::new(&program).args(["127.0.0.1:0"]);
    let broker = Broker::start_ready(run.env("SOAK", chaos.path()));
    let worker = resources::worker(broker.pid(), &program);
    let work = Work {
        address: broker.address(),
        seed: flags.seed,
        limit: AtomicU64::new(0),
        next: AtomicU64::new(0),
        account: Account::new(flags.calls),
    };
    let (over, resting) = (AtomicBool::new(false), AtomicBool::new(false));
    let begun = now();
    let (tally, taken, rests, (servers_at_once, killed)) = thread::scope(|scope| {
        let watch = scope.spawn(|| resources::watch(worker, &resting, &over));
        let progress = scope.spawn(|| print_progress(&work, flags.calls, &over));
        let (mut tally, mut rests) = (Tally::default(), Vec::new());
        for tenth in 1..=10 {
            work.begin_until(flags.calls * tenth / 10);
            let callers: Vec<_> = (0..flags.connections)
                .map(|_| scope.spawn(|| caller::run(&work)))
                .collect();
            for caller in callers {
                tally.add(caller.join().expect("a caller does not panic"));
            }
            // Every source is up and no call is in flight: two such measurements can be compared.
            resting.store(true, Ordering::Relaxed);
            all_up(&broker, worker);
            rests.push(Rest::measure(worker, chaos.path()));
            resting.store(false, Ordering::Relaxed);
        }
        let taken = begun.elapsed();
        over.store(true, Ordering::Relaxed);
        progress.join().expect("nothing in it panics");
        let watched = watch.join().expect("nothing in it panics");
        (tally, taken, rests, watched)
    });
    let servers_after = all_up(&broker, worker);
    let account = work.account;
    let pids: Vec<u32> = resources::servers(worker)
        .into_iter()
        .map(|(pid, _)| pid)
        .collect();
    let (status, _) = broker.terminate();
    let servers_left = pids
        .into_iter()
        .filter(|pid| harness::is_alive(*pid))
        .count();
    let executions = account
        .compare(chaos.path())
        .unwrap_or_else(|_| Executions {
            unreadable: 1,
            ..Executions::default()
        });
    Report::new(RunResults {
        seed: flags.seed,
        calls: flags.calls,
        taken,
        tally,
        account,
        executions,
        servers_at_once,
        rests,
        killed,
        servers_after,
        servers_left,
        exit: status.code(),
    })
}

/// Wakes every source by a call, and counts the server processes when all are up.
fn all_up(broker: &Broker, worker: u32) -> usize {
    wait_until("every source answers again", || {
        (1..=SOURCES).all(|source| {
            let args = json!({"nonce": "after", "text": ""});
            broker.call(&format!("/s{source}/echo"), args).status == 200
        })
    });
    resources::servers(worker).len()
}

/// Prints the progress on standard error.
fn print_progress(work: &Work<'_>, calls: u64, over: &AtomicBool) {
    let mut printed = now();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        if printed.elapsed() < Duration::from_secs(15) {
            continue;
        }
        printed = now();
        let done = work.next.load(Ordering::Relaxed).min(calls);
        let line = format!("{done} of {calls} calls\n");
        if std::io::stderr().write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

/// A program in the folder of this one.
fn beside(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).join(name)
}
