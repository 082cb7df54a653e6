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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, path, calls, audit @ ..] = &arguments[..]
        && option == "--run"
    {
        let path = Path::named(path).ok_or("the path is unknown")?;
        run::run(path, calls.parse()?, audit.first().map(FilePath::new));
        audit_cost::print_times()?;
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let mut figures = Figures::new();
    for path in Path::ALL {
        let instructions = run::per_call(count(path)?, calls(path));
        writeln!(out, "{}: {instructions} {}", path.name(), UNIT.name())?;
        figures.insert((path.name(), UNIT), instructions);
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
fn count(path: Path) -> Result<[u64; 2], String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let counts = thread::scope(|scope| {
        let runs = [calls(path), 2 * calls(path)].map(|calls| {
            let own = &own;
            scope.spawn(move || count_run(own, path, calls))
        });
        runs.map(|run| run.join().expect("it does not panic"))
    });
    let [less, more] = counts;
    Ok([less?, more?])
}

fn count_run(own: &FilePath, path: Path, calls: usize) -> Result<u64, String> {
    let output = Run::new(FilePath::new("valgrind"))
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([own])
        .args(["--run", path.name(), &calls.to_string()])
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
