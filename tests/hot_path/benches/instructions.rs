//! The instructions of a call, counted by callgrind, and their stored bounds. Runs itself under valgrind
//! for each path.

#[path = "audit_cost/mod.rs"]
mod audit_cost;
#[path = "../tests/run/mod.rs"]
mod run;

use std::io::Write as _;
use std::path::Path as FilePath;
use std::thread;

use audit_cost::AuditCost;
use harness::Run;
use hot_path::Path;
use hot_path::bounds::{self, Figures, Unit};
use mcp_broker::core::CallMode;
use mcp_broker::scripted::Addition;

mcp_broker::include_catalog!();

/// The unit of this profile, and the command that counts in it. Without optimisation it uses what
/// `cargo test --workspace` has compiled, with optimisation the features of a broker.
const UNIT: Unit = if cfg!(debug_assertions) {
    Unit::DevInstructions
} else {
    Unit::ReleaseInstructions
};
const COMMAND: &str = if cfg!(debug_assertions) {
    "cargo bench --locked --bench instructions --workspace --profile dev"
} else {
    "cargo bench --locked --bench instructions -p hot-path"
};

/// The argument of a run whose calls are traced, and the share of them that is sampled.
const TRACES: &str = "--traces";
const TRACED_SHARE: f64 = 0.01;
/// What this may add to the instructions of a call, in percent.
const MAX_TRACES: f64 = 1.5;

/// The option of a run whose broker has jobs, before the mode of a call of an MCP client.
const JOBS: &str = "--jobs";
/// What jobs may add to the instructions of a call in a mode, in percent.
const MAX_JOBS: [(CallMode, f64); 2] = [(CallMode::Sync, 0.5), (CallMode::Auto, 2.0)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, path, calls, addition @ ..] = &arguments[..]
        && option == "--run"
    {
        let path = Path::named(path).ok_or("the path is unknown")?;
        let (store, file);
        let words: Vec<&str> = addition.iter().map(String::as_str).collect();
        let addition = match words[..] {
            [] => Addition::None,
            [TRACES] => Addition::Traces(TRACED_SHARE),
            [JOBS, mode] => {
                let mode = CallMode::parse(mode).ok_or("the mode is unknown")?;
                store = tempfile::tempdir()?;
                file = store.path().join("jobs.sqlite");
                Addition::Jobs(&file, mode)
            }
            [audit, ..] => Addition::Audit(FilePath::new(audit)),
        };
        run::run(path, calls.parse()?, addition);
        audit_cost::print_times()?;
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let mut figures = Figures::new();
    for path in Path::ALL {
        let instructions = run::per_call(count(path, &[])?, calls(path));
        writeln!(out, "{}: {instructions} {}", path.name(), UNIT.name())?;
        figures.insert((path.name(), UNIT), instructions);
    }
    // Of the process: the task of the call makes the spans, and no exporter encodes them.
    let path = Path::HttpSmallCall;
    let traced = run::per_call(count(path, &[TRACES])?, calls(path));
    let untraced = figures[&(path.name(), UNIT)];
    let more = (traced as f64 / untraced as f64 - 1.0) * 100.0;
    writeln!(
        out,
        "{}, traces {} %: {traced} {} ({more:+.2} %)",
        path.name(),
        100.0 * TRACED_SHARE,
        UNIT.name()
    )?;
    // Without optimisation the figure is for information.
    if !cfg!(debug_assertions) && more > MAX_TRACES {
        return Err(format!("traces cost more than {MAX_TRACES} % of a call").into());
    }
    let path = Path::ModernSmallCall;
    for (mode, most) in MAX_JOBS {
        let with_jobs = run::per_call(count(path, &[JOBS, mode.as_str()])?, calls(path));
        let without = figures[&(path.name(), UNIT)];
        let more = (with_jobs as f64 / without as f64 - 1.0) * 100.0;
        writeln!(
            out,
            "{}, jobs in the mode {}: {with_jobs} {} ({more:+.2} %)",
            path.name(),
            mode.as_str(),
            UNIT.name()
        )?;
        if !cfg!(debug_assertions) && more > most {
            return Err(format!("jobs cost more than {most} % of a call").into());
        }
    }
    let audit = AuditCost::measure()?;
    writeln!(out, "{audit}")?;
    if !cfg!(debug_assertions) && !audit.is_within() {
        return Err("an audit log costs more than docs/audit-log.md says".into());
    }
    Ok(bounds::check(&figures, &run::compiler(), COMMAND)?)
}

/// The calls of the shorter run. Without optimisation a call takes ten to thirty times as many instructions.
fn calls(path: Path) -> usize {
    match UNIT {
        Unit::DevInstructions => path.calls() / 5,
        _ => path.calls(),
    }
}

/// The instructions of both runs, which are executed at the same time.
fn count(path: Path, more: &[&str]) -> Result<[u64; 2], String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let counts = thread::scope(|scope| {
        let runs = [calls(path), 2 * calls(path)].map(|calls| {
            let own = &own;
            scope.spawn(move || count_run(own, path, calls, more))
        });
        runs.map(|run| run.join().expect("it does not panic"))
    });
    let [less, more] = counts;
    Ok([less?, more?])
}

fn count_run(own: &FilePath, path: Path, calls: usize, more: &[&str]) -> Result<u64, String> {
    let output = Run::new(FilePath::new("valgrind"))
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([own])
        .args(["--run", path.name(), &calls.to_string()])
        .args(more)
        .output();
    let collected = output.stderr.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected : ")?;
        count.trim().parse().ok()
    });
    match collected {
        Some(count) if output.code == Some(0) => Ok(count),
        _ => Err(format!(
            "{}: callgrind failed: {}",
            path.name(),
            output.stderr
        )),
    }
}
