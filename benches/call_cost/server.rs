//! A server under load: started, found by the address it prints or by its pipes, and read for what it used.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

use crate::calls::{Size, Transport};
use crate::load::{self, Pipes};

/// Clock ticks a second in `/proc/PID/stat`; fixed at 100 on Linux for user space.
const TICKS: f64 = 100.0;
/// Calls before a measurement, for each call that is open at one time.
const WARM_UP: usize = 8;

/// A started program.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// The process that answers, and its guard, if it has one.
    pids: Vec<u32>,
    link: Link,
}

/// The way to a server.
#[derive(Debug)]
enum Link {
    /// The address of its listener.
    Http(String),
    Stdio(Pipes),
}

impl Server {
    /// Starts `program` and waits until it says `listening on http://ADDRESS` on standard error.
    pub(crate) fn listening(program: &Path, args: &[&str]) -> io::Result<Self> {
        let mut child = command(program, args).stdin(Stdio::null()).spawn()?;
        let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(stderr).lines();
        let address = loop {
            let line = lines
                .next()
                .ok_or_else(|| io::Error::other(format!("{} ended", program.display())))??;
            if let Some((_, rest)) = line.split_once("listening on http://") {
                let address = rest.split_whitespace().next();
                break address.unwrap_or_default().to_owned();
            }
        };
        read_away(lines);
        load::until_answered(&address)?;
        Ok(Self {
            pids: serving(child.id())?,
            child,
            link: Link::Http(address),
        })
    }

    /// Starts `program`, whose callers use its standard input and output.
    pub(crate) fn piped(program: &Path, args: &[&str]) -> io::Result<Self> {
        let mut child = command(program, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        read_away(BufReader::new(stderr).lines());
        Ok(Self {
            link: Link::Stdio(Pipes::begin(input, output)?),
            pids: serving(child.id())?,
            child,
        })
    }

    /// The address of its listener.
    pub(crate) fn address(&self) -> Option<&str> {
        match &self.link {
            Link::Http(address) => Some(address),
            Link::Stdio(_) => None,
        }
    }

    /// CPU microseconds of a call: those of the server with its guard, without the processes behind it.
    /// `open` calls wait for their answer at one time.
    pub(crate) fn measure(
        &mut self,
        transport: Transport,
        size: Size,
        open: usize,
    ) -> io::Result<f64> {
        let calls = size.calls();
        self.load(transport, size, WARM_UP * open, open)?;
        let before = self.cpu_seconds()?;
        self.load(transport, size, calls, open)?;
        Ok((self.cpu_seconds()? - before) * 1e6 / calls as f64)
    }

    fn load(
        &mut self,
        transport: Transport,
        size: Size,
        calls: usize,
        open: usize,
    ) -> io::Result<()> {
        match &mut self.link {
            Link::Http(address) => load::over_http(address, (transport, size), calls, open),
            Link::Stdio(pipes) => pipes.call(size, calls, open),
        }
    }

    fn cpu_seconds(&self) -> io::Result<f64> {
        self.pids.iter().map(|pid| cpu_seconds(*pid)).sum()
    }

    /// Resident memory of the server with its guard.
    pub(crate) fn resident_kib(&self) -> io::Result<u64> {
        self.pids.iter().map(|pid| resident_kib(*pid)).sum()
    }
}

fn command(program: &Path, args: &[&str]) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark starts what it measures"
    )]
    let mut command = Command::new(program);
    command.args(args).stderr(Stdio::piped());
    command
}

/// Reads what a server says while it is measured, so that it never waits.
fn read_away(lines: io::Lines<BufReader<ChildStderr>>) {
    thread::spawn(move || lines.for_each(drop));
}

/// The process that was started, and the broker below it if it is a guard.
fn serving(pid: u32) -> io::Result<Vec<u32>> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"))?;
    Ok(match name.trim_end() {
        "mcp-guard" => vec![pid, harness::guarded_by(pid)],
        _ => vec![pid],
    })
}

fn cpu_seconds(pid: u32) -> io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses can hold anything; the fields begin after the last of them.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    Ok((ticks(11) + ticks(12)) / TICKS)
}

fn resident_kib(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    Ok(line
        .split_whitespace()
        .next()
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is over either way; a server that is gone already cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
