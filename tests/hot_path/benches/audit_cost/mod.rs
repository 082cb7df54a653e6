//! The processor time that an audit log adds to a call, as ratios within one run: callgrind knows neither the instructions
//! for SHA-256 nor the time of a system call.

use std::error::Error;
use std::fmt;
use std::io::Write as _;
use std::path::Path as FilePath;

use harness::Run;
use hot_path::Path;

/// The calls of one run, and the runs with and without a log, in turns. Without optimisation a call takes ten times as
/// long, and the figures are for information.
const CALLS: usize = if cfg!(debug_assertions) {
    10_000
} else {
    200_000
};
const ROUNDS: usize = if cfg!(debug_assertions) { 2 } else { 5 };
/// What a log may add in the task of a call and in the process, in percent, and for a line, in microseconds.
const MAX_TASK: f64 = 6.0;
const MAX_PROCESS: f64 = 60.0;
const MAX_LINE_MICROS: f64 = 10.0;

/// The costs of a log without `sync`, for calls of a tool that only reads.
pub(crate) struct AuditCost {
    /// In the task of a call, in percent.
    task: f64,
    /// In the process, in percent.
    process: f64,
    /// Of a line, in microseconds.
    line_micros: f64,
}

/// The processor times of a run, in seconds.
struct Times {
    task: f64,
    process: f64,
}

impl AuditCost {
    /// Runs this program with and without a log, in turns, and compares the shortest times.
    pub(crate) fn measure() -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let (mut off, mut on) = (Times::MAX, Times::MAX);
        for round in 0..ROUNDS {
            off = off.min(&Times::of_run(None)?);
            let audit = folder.path().join(format!("audit-{round}.jsonl"));
            on = on.min(&Times::of_run(Some(&audit))?);
        }
        let more = |on: f64, off: f64| (on / off - 1.0) * 100.0;
        Ok(Self {
            task: more(on.task, off.task),
            process: more(on.process, off.process),
            line_micros: (on.process - off.process) * 1e6 / CALLS as f64,
        })
    }

    /// Whether the costs are within the bounds.
    pub(crate) fn is_within(&self) -> bool {
        self.task <= MAX_TASK && self.process <= MAX_PROCESS && self.line_micros <= MAX_LINE_MICROS
    }
}

impl fmt::Display for AuditCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            task,
            process,
            line_micros,
        } = self;
        write!(
            f,
            "an audit log adds {task:.1} % in the task of a call, {process:.1} % in the process, {line_micros:.1} µs a line"
        )
    }
}

impl Times {
    const MAX: Self = Self {
        task: f64::MAX,
        process: f64::MAX,
    };

    fn min(&self, other: &Self) -> Self {
        Self {
            task: self.task.min(other.task),
            process: self.process.min(other.process),
        }
    }

    fn of_run(audit: Option<&FilePath>) -> Result<Self, Box<dyn Error>> {
        let run = Run::new(&std::env::current_exe()?)
            .args(["--run", Path::HttpSmallCall.name(), &CALLS.to_string()])
            .args(audit);
        let output = run.output();
        let line = output.stdout.lines().last().unwrap_or_default();
        let times: Vec<f64> = line
            .split(' ')
            .filter_map(|time| time.parse().ok())
            .collect();
        match times[..] {
            [task, process] if output.code == Some(0) => Ok(Self { task, process }),
            _ => Err(output.stderr.into()),
        }
    }
}

/// Prints the processor times of this thread and of this process, with its ended threads, in seconds.
pub(crate) fn print_times() -> Result<(), Box<dyn Error>> {
    let seconds = |file: &str| -> Result<f64, Box<dyn Error>> {
        let stat = std::fs::read_to_string(file)?;
        // The name of the program ends with a parenthesis; user and system time are the fields 14 and 15.
        let (_, fields) = stat.rsplit_once(')').ok_or("no fields")?;
        let times = fields.split_whitespace().skip(11).take(2);
        let hundredths = times.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
        Ok(f64::from(hundredths) / 100.0)
    };
    let (task, process) = (
        seconds("/proc/thread-self/stat")?,
        seconds("/proc/self/stat")?,
    );
    Ok(writeln!(std::io::stdout(), "{task} {process}")?)
}
