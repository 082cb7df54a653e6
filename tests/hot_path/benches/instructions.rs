//! The instructions of a call, counted by callgrind, and their stored bounds. Runs itself under valgrind
//! for each path.

#[path = "../tests/run/mod.rs"]
mod run;

use std::io::Write as _;
use std::path::Path as FilePath;
use std::thread;

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

/// What an audit log may add to a call, in percent.
const MAX_AUDIT_TASK: f64 = 6.0;
const MAX_AUDIT_PROCESS: f64 = 60.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, path, calls, audit @ ..] = &arguments[..]
        && option == "--run"
    {
        let path = Path::named(path).ok_or("the path is unknown")?;
        run::run(path, calls.parse()?, audit.first().map(FilePath::new));
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let mut figures = Figures::new();
    for path in Path::ALL {
        let instructions = run::per_call(count(path)?, calls(path));
        writeln!(out, "{}: {instructions} {}", path.name(), UNIT.name())?;
        figures.insert((path.name(), UNIT), instructions);
    }
    let [off, on] = [false, true].map(count_threads);
    let (off, on) = (off?, on?);
    let more = |on: u64, off: u64| (on as f64 / off as f64 - 1.0) * 100.0;
    let (task, all) = (more(on.task, off.task), more(on.all, off.all));
    writeln!(
        out,
        "an audit log adds {task:.1} % in the task of a call and {all:.1} % in the process"
    )?;
    if task > MAX_AUDIT_TASK || all > MAX_AUDIT_PROCESS {
        return Err("the audit log adds more than docs/audit-log.md says".into());
    }
    Ok(bounds::check(&figures, &run::compiler(), COMMAND)?)
}

/// The instructions of a call.
struct ThreadCounts {
    /// In the thread of its task.
    task: u64,
    /// In all threads.
    all: u64,
}

/// Counts a call whose tool only reads, with an audit log or without one, by threads.
fn count_threads(has_audit: bool) -> Result<ThreadCounts, Box<dyn std::error::Error>> {
    let path = Path::HttpSmallCall;
    let calls = calls(path);
    let mut counts = Vec::new();
    for calls in [calls, 2 * calls] {
        let folder = tempfile::tempdir()?;
        let audit = folder.path().join("audit.jsonl");
        let out = folder.path().join("out");
        let run = Run::new(FilePath::new("valgrind"))
            .args(["--tool=callgrind", "--separate-threads=yes"])
            .args([format!("--callgrind-out-file={}", out.display())])
            .args([std::env::current_exe()?])
            .args(["--run", path.name(), &calls.to_string()]);
        let output = match has_audit {
            true => run.args([&audit]).output(),
            false => run.output(),
        };
        if output.code != Some(0) {
            return Err(output.stderr.into());
        }
        let mut threads = Vec::new();
        for entry in std::fs::read_dir(folder.path())? {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if let Some(thread) = name.strip_prefix("out-") {
                let text = std::fs::read_to_string(&file)?;
                let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
                let total: u64 = total.ok_or("no total")?.trim().parse()?;
                threads.push((thread.parse::<u32>()?, total));
            }
        }
        let task = threads.iter().filter(|(thread, _)| *thread == 1);
        counts.push((
            task.map(|(_, total)| total).sum::<u64>(),
            threads.iter().map(|(_, total)| total).sum::<u64>(),
        ));
    }
    Ok(ThreadCounts {
        task: run::per_call([counts[0].0, counts[1].0], calls),
        all: run::per_call([counts[0].1, counts[1].1], calls),
    })
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
