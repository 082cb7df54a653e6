//! The effects of a script on the process: before the first message, on signals, on stdout, and at its end.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::flags;
use crate::journal::Journal;
use crate::output::Output;
use crate::script::{Grandchild, Script};

/// Runs the start of the script; returns the exit code if the process ends there.
pub(crate) fn play(
    script: &Script,
    output: &Output,
    journal: &Journal,
) -> Result<Option<u8>, String> {
    if let Some(kind) = script.fork_grandchild {
        fork(kind, journal)?;
    }
    if let Some(text) = &script.start_shell {
        run_shell(text, journal)?;
    }
    for line in script.stderr_lines.iter().chain(&script.start_stderr) {
        // No script closes stderr.
        drop(writeln!(std::io::stderr(), "{line}"));
    }
    if script.stderr_flood > 0 {
        flood(script.stderr_flood)?;
    }
    std::thread::sleep(Duration::from_millis(script.start_delay_ms));
    if let Some(code) = script.start_exit {
        return Ok(Some(code));
    }
    for line in &script.start_noise {
        output.line(line);
    }
    Ok(None)
}

/// Starts the program again with SIGTERM ignored, which survives `exec`; returns only with the error of a
/// failure.
pub(crate) fn restart_with_term_ignored() -> String {
    let Ok(program) = std::env::current_exe() else {
        return "the path of the program is not known".to_owned();
    };
    let error = command("sh")
        .args(["-c", r#"trap "" TERM; exec "$0" "$@""#])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .arg(flags::TERM_IGNORED)
        .exec();
    format!("cannot start again with SIGTERM ignored: {error}")
}

/// Closes stdout for good, which safe code can do only with `exec`.
pub(crate) fn close_stdout() -> String {
    let Ok(program) = std::env::current_exe() else {
        return "the path of the program is not known".to_owned();
    };
    let error = command(program)
        .args(std::env::args_os().skip(1))
        .arg(flags::MUTE)
        .stdout(Stdio::null())
        .exec();
    format!("cannot close stdout: {error}")
}

/// Ends the process at once, from any thread.
#[expect(clippy::exit, reason = "a scripted death is not an orderly return")]
pub(crate) fn end_process(code: u8) -> ! {
    std::process::exit(i32::from(code))
}

fn fork(kind: Grandchild, journal: &Journal) -> Result<(), String> {
    let mut sleeper = match kind {
        Grandchild::Session | Grandchild::Bare => {
            let mut sleeper = command("setsid");
            sleeper.arg("sleep");
            if kind == Grandchild::Bare {
                sleeper.env_clear();
            }
            sleeper
        }
        Grandchild::Plain | Grandchild::Group => command("sleep"),
    };
    if kind == Grandchild::Group {
        sleeper.process_group(0);
    }
    // Stdout and stderr stay open in it, as in a child of a careless server.
    let sleeper = sleeper
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start a grandchild: {error}"))?;
    journal.write("grandchild", json!({"child": sleeper.id()}));
    Ok(())
}

/// Runs a shell script and waits until its output is closed. A background process of the script must close the
/// pipes.
fn run_shell(text: &str, journal: &Journal) -> Result<(), String> {
    let output = command("sh")
        .args(["-c", text])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start a shell: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    journal.write("shell", json!({"stdout": stdout, "stderr": stderr}));
    Ok(())
}

/// Writes this many kilobytes a second to stderr until the process ends.
fn flood(kilobytes: u64) -> Result<(), String> {
    let line = format!("{}\n", "e".repeat(99));
    let lines = usize::try_from(kilobytes).unwrap_or(usize::MAX);
    // Lines of 100 bytes, a hundred bursts per second: lines per burst are a tenth of the kilobytes.
    let burst = line.repeat(lines.div_ceil(10));
    let write = move || {
        while std::io::stderr().write_all(burst.as_bytes()).is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    match std::thread::Builder::new().spawn(write) {
        Ok(_detached) => Ok(()),
        Err(error) => Err(format!("cannot start the flood: {error}")),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test server shares no code with the broker and its spawner"
)]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}
