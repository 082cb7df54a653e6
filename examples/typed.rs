//! Calls the smoke server's tools by their types. Run it with
//! `cargo build -p toolbox-mcp && cargo run --example typed`.

use std::error::Error;
use std::io::Write as _;

use mcp_broker::typed::{Broker, CallCode, CallError, Options};

mcp_broker::include_catalog!();
mcp_broker::include_tools!();

use tools::text::{format, text_lorem};
use tools::util::{fail, hash_text, time_now};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let broker = Broker::open(&CATALOG, Options::new()).await?;
    let outcome = calls(&broker).await;
    broker.close().await;
    outcome
}

async fn calls(broker: &Broker) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();

    // A tool with an output schema: the answer is a type too.
    let args = hash_text::Args {
        text: "hello".to_owned(),
        algorithm: Some(hash_text::ArgsAlgorithm::Crc32),
    };
    let called = broker.call::<hash_text::Tool>(args).await?;
    writeln!(
        out,
        "hash: {} over {} bytes",
        called.output.digest, called.output.bytes
    )?;

    // What is required is asked for, what is optional can be left out.
    let args = text_lorem::Args {
        paragraphs: Some(1),
    };
    let called = broker.call::<text_lorem::Tool>(args).await?;
    writeln!(out, "filler: {} characters", called.raw.text().len())?;

    let args = format::Args {
        style: Some(format::ArgsStyle::Compact),
        text: r#"{"b": 1, "a": null}"#.to_owned(),
    };
    let called = broker.call::<format::Tool>(args).await?;
    writeln!(out, "format: {}", called.raw.text())?;

    // A tool without arguments has an empty type for them.
    let called = broker.call::<time_now::Tool>(time_now::Args {}).await?;
    writeln!(out, "time: {}", called.output.rfc3339)?;

    // Bounds are not types; the broker checks them before it sends anything.
    let args = text_lorem::Args {
        paragraphs: Some(1_000_000),
    };
    match broker.call::<text_lorem::Tool>(args).await {
        Err(error) if error.code() == Some(CallCode::ArgsInvalid) => {
            writeln!(out, "refused: {error}")?;
        }
        other => return Err(format!("expected a refusal, got {other:?}").into()),
    }

    // A tool that fails says so in its result, which is kept.
    match broker
        .call::<fail::Tool>(fail::Args::new("no".to_owned()))
        .await
    {
        Err(CallError::Tool { raw }) => writeln!(out, "failed: {}", raw.text())?,
        other => return Err(format!("expected a failure, got {other:?}").into()),
    }
    Ok(())
}
