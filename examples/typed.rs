//! Calls the smoke server's tools by their types. Run it with
//! `cargo build -p toolbox-mcp && cargo run --example typed`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;

use mcp_broker::typed::{Broker, CallCode, CallError, Number, Options};

mcp_broker::include_catalog!();
mcp_broker::include_tools!();

use tools::text::{table, text_lorem};
use tools::util::{fail, hash_text, time_convert};

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

    let args = table::Args::new(vec![row("Oslo", 709_037), row("Bergen", 291_940)]);
    let called = broker.call::<table::Tool>(args).await?;
    writeln!(
        out,
        "table: {} rows",
        called.raw.to_value()?["structuredContent"]["rows"]
            .as_array()
            .map_or(0, Vec::len)
    )?;

    // An integer or a string: an enum of both.
    let args = time_convert::Args {
        to: time_convert::ArgsTo::Rfc3339,
        value: 0.into(),
    };
    let called = broker.call::<time_convert::Tool>(args).await?;
    writeln!(out, "time: {}", called.raw.text())?;

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

fn row(city: &str, people: i64) -> BTreeMap<String, Option<table::ArgsRowsItemValue>> {
    let people = Number::from(people);
    BTreeMap::from([
        ("city".to_owned(), Some(city.to_owned().into())),
        ("people".to_owned(), Some(people.into())),
    ])
}
