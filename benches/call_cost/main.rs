//! The cost of a call: CPU time of the broker for one `meta_call`, compared with that of a bare relay.
//!
//! Both are in front of the same tool of `toolbox-mcp` and are driven by the same load: 16 connections,
//! about 100 bytes of arguments and of result. Rounds alternate, and the medians are compared, so that
//! a machine whose speed drifts does not decide the outcome. Run it with `cargo build --release
//! --locked -p toolbox-mcp && cargo bench --locked --bench call_cost`. Paths of other broker binaries
//! behind `--` are measured in the same rounds: of another profile, or of an older revision.

mod load;
mod relay;
mod server;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use server::Server;

/// Calls in one round, after as many warm-up calls as there are connections times eight.
const CALLS: usize = 20_000;
const ROUNDS: usize = 7;
const CONNECTIONS: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("--relay") {
        let program = args.next().ok_or("--relay takes the server's program")?;
        return relay::run(&program);
    }
    let toolbox = beside("toolbox-mcp")?;
    let own = std::env::current_exe()?;
    let mut others: Vec<String> = std::env::args().skip(1).collect();
    others.retain(|argument| argument != "--bench");
    let mut servers = vec![Measured::start(
        "relay",
        &own,
        &["--relay", &toolbox.to_string_lossy()],
    )?];
    let broker = env!("CARGO_BIN_EXE_mcp-broker");
    for (at, program) in std::iter::once(broker)
        .chain(others.iter().map(String::as_str))
        .enumerate()
    {
        let name = format!("broker {}", at + 1);
        servers.push(Measured::start(
            &name,
            Path::new(program),
            &["127.0.0.1:0"],
        )?);
    }

    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{CALLS} calls a round, {CONNECTIONS} connections, {ROUNDS} rounds; CPU microseconds a call, user and system"
    )?;
    for (at, program) in std::iter::once(broker)
        .chain(others.iter().map(String::as_str))
        .enumerate()
    {
        writeln!(out, "broker {}: {program}", at + 1)?;
    }
    for round in 1..=ROUNDS {
        write!(out, "round {round}:")?;
        for server in &mut servers {
            let cost = server.server.measure(CALLS, CONNECTIONS)?;
            write!(out, "  {} {cost:5.1}", server.name)?;
            server.costs.push(cost);
        }
        writeln!(out)?;
    }
    let floor = median(&mut servers[0].costs);
    for server in &mut servers {
        let cost = median(&mut server.costs);
        writeln!(
            out,
            "{}: median {cost:.1}, {:.2} of the relay, {} KiB of memory after the load",
            server.name,
            cost / floor,
            server.server.resident_kib()?
        )?;
    }
    Ok(())
}

/// A server under measurement.
struct Measured {
    name: String,
    server: Server,
    costs: Vec<f64>,
}

impl Measured {
    fn start(
        name: &str,
        program: &Path,
        args: &[&str],
    ) -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self {
            name: name.to_owned(),
            server: Server::start(program, args)?,
            costs: Vec::new(),
        })
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A binary of the workspace, in the folder of the broker's.
fn beside(name: &str) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_BIN_EXE_mcp-broker")).with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!(
            "{} is not built: run `cargo build --release --locked -p {name}`",
            path.display()
        ))
    }
}
