//! The cost of a call: CPU time of the broker on each of its surfaces, compared with that of a bare relay
//! and with `/meta_call`.
//!
//! All are in front of the same tools of `toolbox-mcp` and are driven by the same load: 16 calls at one
//! time, with about 100 bytes or 100 KiB of result; MCP clients are in the mode `meta`. Rounds alternate,
//! and medians are compared, so that a machine whose speed drifts does not decide the outcome. Run it with
//! `cargo build --release --locked -p toolbox-mcp -p broker-gen && cargo bench --locked --bench call_cost`. Paths
//! of other broker binaries behind `--` are measured in the same rounds: of another profile, or of an older
//! revision. The last two rows are `broker-gen serve` with the tools as a process and over HTTP: there they are
//! those of the first broker, in the mode `direct`.

mod calls;
mod load;
mod relay;
mod server;
mod sources;

use std::io::{StdoutLock, Write as _};
use std::path::{Path, PathBuf};

use calls::{Size, Transport};
use server::Server;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 7;
/// Calls that wait for their answer at one time.
const OPEN_CALLS: usize = 16;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("--relay") {
        let program = args.next().ok_or("--relay takes the server's program")?;
        return relay::run(&program);
    }
    let others = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let brokers: Vec<String> = std::iter::once(env!("CARGO_BIN_EXE_mcp-broker").to_owned())
        .chain(others)
        .collect();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{OPEN_CALLS} calls at one time, {ROUNDS} rounds; CPU microseconds of a call, user and system"
    )?;
    for (at, program) in brokers.iter().enumerate() {
        writeln!(out, "broker {}: {program}", at + 1)?;
    }
    let mut rows = rows(&brokers)?;
    for round in 1..=ROUNDS {
        measure(&mut rows, round, &mut out)?;
    }
    report(&rows, &mut out)
}

/// A server under measurement, and the costs of each round.
struct Row {
    name: String,
    transport: Transport,
    /// The index of its server, which other rows may share.
    server: usize,
    /// The index of the row of `/meta_call` of the same broker.
    meta_call: Option<usize>,
    costs: [Vec<f64>; Size::ALL.len()],
}

/// The rows of the table, and their servers.
struct Rows {
    rows: Vec<Row>,
    servers: Vec<Server>,
}

/// The relay, and each broker on each transport.
fn rows(brokers: &[String]) -> Outcome<Rows> {
    let toolbox = beside("toolbox-mcp")?;
    let relay_args = ["--relay", &toolbox.to_string_lossy()];
    let mut servers = vec![Server::listening(&std::env::current_exe()?, &relay_args)?];
    let row = |name, transport, server, meta_call| Row {
        name,
        transport,
        server,
        meta_call,
        costs: Default::default(),
    };
    let mut rows = vec![row("relay".to_owned(), Transport::Meta, 0, None)];
    for (at, program) in brokers.iter().enumerate() {
        let listening = servers.len();
        servers.push(Server::listening(Path::new(program), &["127.0.0.1:0"])?);
        servers.push(Server::piped(Path::new(program), &["stdio"])?);
        let meta_call = rows.len();
        for transport in Transport::ALL {
            let name = format!("broker {} {}", at + 1, transport.name());
            let server = listening + usize::from(transport == Transport::Stdio);
            rows.push(row(name, transport, server, Some(meta_call)));
        }
    }
    let folder = tempfile::tempdir()?;
    let generator = beside("broker-gen")?;
    let process = rows.len();
    let address = servers[1].address().ok_or("the broker listens on HTTP")?;
    let of_sources = [
        ("source as a process", sources::process(&toolbox)),
        ("source over HTTP", sources::http(address)),
    ];
    for (name, config) in of_sources {
        let server = servers.len();
        servers.push(sources::serve(&generator, folder.path(), &config)?);
        rows.push(row(name.to_owned(), Transport::Meta, server, Some(process)));
    }
    Ok(Rows { rows, servers })
}

/// One round of every row.
fn measure(rows: &mut Rows, round: usize, out: &mut StdoutLock<'_>) -> Outcome<()> {
    for (at, size) in Size::ALL.into_iter().enumerate() {
        write!(out, "round {round}, {}:", size.name())?;
        for row in &mut rows.rows {
            let server = &mut rows.servers[row.server];
            let cost = server.measure(row.transport, size, OPEN_CALLS)?;
            write!(out, "  {} {cost:.1}", row.name)?;
            row.costs[at].push(cost);
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The medians: the cost of a call, and its ratios to the relay and to `/meta_call` of the same round.
fn report(rows: &Rows, out: &mut StdoutLock<'_>) -> Outcome<()> {
    for (at, size) in Size::ALL.into_iter().enumerate() {
        writeln!(
            out,
            "\n{}: median, of the relay, of /meta_call or of the source as a process, with the lowest and highest of the rounds",
            size.name()
        )?;
        for row in &rows.rows {
            let costs = &row.costs[at];
            let relay = Ratios::new(costs, &rows.rows[0].costs[at]);
            write!(
                out,
                "{:28} {:8.1}  {relay}",
                row.name,
                median(costs.clone())
            )?;
            if let Some(base) = row.meta_call {
                write!(out, "  {}", Ratios::new(costs, &rows.rows[base].costs[at]))?;
            }
            writeln!(out)?;
        }
    }
    writeln!(out)?;
    for (at, server) in rows.servers.iter().enumerate() {
        let used: Vec<&str> = (rows.rows.iter())
            .filter(|row| row.server == at)
            .map(|row| row.name.as_str())
            .collect();
        let kib = server.resident_kib()?;
        writeln!(
            out,
            "{}: {kib} KiB of memory after the load",
            used.join(", ")
        )?;
    }
    Ok(())
}

/// The ratios of costs in the same rounds.
struct Ratios {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl Ratios {
    fn new(costs: &[f64], base: &[f64]) -> Self {
        let ratios: Vec<f64> = costs
            .iter()
            .zip(base)
            .map(|(cost, base)| cost / base)
            .collect();
        Self {
            lowest: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            highest: ratios.iter().copied().fold(0.0, f64::max),
            median: median(ratios),
        }
    }
}

impl std::fmt::Display for Ratios {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            median,
            lowest,
            highest,
        } = self;
        write!(f, "{median:.2} ({lowest:.2} to {highest:.2})")
    }
}

fn median(mut values: Vec<f64>) -> f64 {
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
