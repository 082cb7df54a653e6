//! A server under load: started, found by the address it prints, and read for what it used.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::load;

/// Clock ticks a second in `/proc/PID/stat`; fixed at 100 on Linux for user space.
const TICKS: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// The process that answers: the broker below its guard.
    pid: u32,
    address: String,
}

impl Server {
    /// Starts `program` and waits until it says `listening on http://ADDRESS` on standard error.
    pub(crate) fn start(program: &Path, args: &[&str]) -> io::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a benchmark starts what it measures"
        )]
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines =
            BufReader::new(child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?).lines();
        let address = loop {
            let line = lines
                .next()
                .ok_or_else(|| io::Error::other(format!("{} ended", program.display())))??;
            if let Some((_, rest)) = line.split_once("listening on http://") {
                break rest
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned();
            }
        };
        // What it says from now on is read away, so that it never waits for us.
        thread::spawn(move || lines.for_each(drop));
        load::until_answered(&address)?;
        let name = fs::read_to_string(format!("/proc/{}/comm", child.id()))?;
        let pid = match name.trim_end() {
            "mcp-guard" => harness::guarded_by(child.id()),
            _ => child.id(),
        };
        Ok(Self {
            child,
            pid,
            address,
        })
    }

    /// CPU microseconds a call of the process itself, its children not counted.
    pub(crate) fn measure(&mut self, calls: usize, connections: usize) -> io::Result<f64> {
        load::run(&self.address, connections * 8, connections)?;
        let before = self.cpu_seconds()?;
        load::run(&self.address, calls, connections)?;
        Ok((self.cpu_seconds()? - before) * 1e6 / calls as f64)
    }

    fn cpu_seconds(&self) -> io::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
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

    /// Resident memory of the process itself.
    pub(crate) fn resident_kib(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
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
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is over either way; a server that is gone already cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
