//! The SDK's client as a program: `oracle-client legacy|modern|auto PROGRAM [ARGUMENT]...`. Writes the server's
//! info and its tools, then the outcome of each call from its input.
//!
//! A call is one line, `{"tool": …, "args": {…}}`; an outcome is `{"result": …}`, `{"rpc": …}` for a
//! JSON-RPC error, or `{"error": …}`.

use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use oracle_mcp::{CallError, Client, Era};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Call {
    tool: String,
    #[serde(default)]
    args: JsonObject,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [era, program, rest @ ..] = &args[..] else {
        return usage("the era and the program are needed");
    };
    let era = match era.as_str() {
        "legacy" => Era::Legacy,
        "modern" => Era::Modern,
        "auto" => Era::Auto,
        _ => return usage("the era is `legacy`, `modern` or `auto`"),
    };
    match run(era, Path::new(program), rest).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => usage(&error.to_string()),
    }
}

async fn run(era: Era, program: &Path, args: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::start(program, args, None, era).await?;
    say(&json!({ "server": client.server(), "tools": client.tools().await? }))?;
    for line in io::stdin().lock().lines() {
        let call: Call = serde_json::from_str(&line?)?;
        say(&match client.call(&call.tool, call.args).await {
            Ok(result) => json!({ "result": result }),
            Err(CallError::Rpc(error)) => json!({ "rpc": error }),
            Err(error) => json!({ "error": error.to_string() }),
        })?;
    }
    client.close().await?;
    Ok(())
}

fn say(value: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{value}")?;
    stdout.flush()
}

fn usage(message: &str) -> ExitCode {
    let said = writeln!(io::stderr(), "oracle-client: {message}");
    // If the output cannot be written, only the exit code is left.
    ExitCode::from(if said.is_ok() { 2 } else { 1 })
}
