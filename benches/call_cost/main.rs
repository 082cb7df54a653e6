//! What a call costs: CPU of the broker for one `meta_call`, beside that of a bare relay, in one run.
//!
//! Both are in front of the same tool of `toolbox-mcp` and are driven by the same load: 16 connections,
//! about 100 bytes of arguments and of result. Rounds alternate, and the medians are compared, so that
//! a machine whose speed drifts does not decide the outcome. Run it with `cargo build --release
//! --locked -p toolbox-mcp && cargo bench --locked --bench call_cost`.

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
    let mut broker = Server::start(
        Path::new(env!("CARGO_BIN_EXE_mcp-broker")),
        &["127.0.0.1:0"],
    )?;
    let mut relay = Server::start(&own, &["--relay", &toolbox.to_string_lossy()])?;

    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{CALLS} calls a round, {CONNECTIONS} connections, {ROUNDS} rounds; CPU microseconds a call, user and system"
    )?;
    let (mut of_broker, mut of_relay) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let relayed = relay.measure(CALLS, CONNECTIONS)?;
        let brokered = broker.measure(CALLS, CONNECTIONS)?;
        writeln!(
            out,
            "round {round}: relay {relayed:6.1}  broker {brokered:6.1}  ratio {:.2}",
            brokered / relayed
        )?;
        of_broker.push(brokered);
        of_relay.push(relayed);
    }
    let (broker_median, relay_median) = (median(&mut of_broker), median(&mut of_relay));
    writeln!(
        out,
        "median:  relay {relay_median:6.1}  broker {broker_median:6.1}  ratio {:.2}",
        broker_median / relay_median
    )?;
    writeln!(
        out,
        "memory after the load: relay {} KiB, broker {} KiB",
        relay.resident_kib()?,
        broker.resident_kib()?
    )?;
    Ok(())
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
