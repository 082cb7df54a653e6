//! The tokens that an agent pays for the texts of the broker: at the start of a session, on the way to the first call
//! of a tool, and for calls that are refused. Prints the report of `docs/agent-cost.md`; a test with the same code
//! keeps the bounds. Run it with `cargo test --workspace --locked --no-run && cargo bench --locked --profile dev --bench agent_cost`.

mod caller;
mod figures;
mod refusals;
mod stage;
mod tokens;

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let report = figures::Figures::measure().report();
    std::io::stdout().lock().write_all(report.as_bytes())
}
