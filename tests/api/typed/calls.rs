//! The typed API against the real smoke server, and the example that shows it.

use std::path::Path;

use harness::Run;
use mcp_broker::typed::{Broker, CallCode, CallError, OpenError, Options, StartMode, Tool};
use serde_json::{Value, json};

#[expect(unreachable_pub, reason = "generated for the root of a program")]
mod catalog {
    mcp_broker::include_catalog!();
}
mcp_broker::include_tools!();

use self::catalog::CATALOG;
use self::tools::util::{fail, hash_text, time_now};

fn hash(text: &str) -> hash_text::Args {
    hash_text::Args {
        algorithm: None,
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn typed_call_returns_the_output_type_and_the_raw_result() {
    let broker = Broker::open(&CATALOG, Options::new()).await.unwrap();
    let called = broker.call::<hash_text::Tool>(hash("hello")).await.unwrap();
    assert_eq!(called.output.bytes, 5);
    assert_eq!(called.output.algorithm, hash_text::OutputAlgorithm::Sha256);
    assert_eq!(
        called.raw.to_value().unwrap()["structuredContent"],
        serde_json::to_value(&called.output).unwrap()
    );
    let called = broker
        .call::<time_now::Tool>(time_now::Args {})
        .await
        .unwrap();
    assert!(!called.raw.text().is_empty());
    broker.close().await;
    broker.close().await;
    let error = broker.call::<hash_text::Tool>(hash("x")).await.unwrap_err();
    assert_eq!(error.code(), Some(CallCode::ShuttingDown));
    assert!(!error.maybe_executed());
}

/// Another type for a real tool's path, as if the server had changed its result.
struct Liar;

impl Tool for Liar {
    type Args = Value;
    type Output = Vec<String>;
    const PATH: &'static str = hash_text::PATH;
    const HAS_OUTPUT: bool = true;
}

/// Arguments with a field for undeclared members.
#[derive(serde::Serialize)]
struct Open {
    text: &'static str,
    #[serde(flatten)]
    extra: serde_json::Map<String, Value>,
}

struct OpenTool;

impl Tool for OpenTool {
    type Args = Open;
    type Output = Value;
    const PATH: &'static str = hash_text::PATH;
    const HAS_OUTPUT: bool = true;
}

#[tokio::test]
async fn typed_call_with_a_duplicate_member_is_refused() {
    let broker = Broker::open(&CATALOG, Options::new()).await.unwrap();
    let args = Open {
        text: "shown",
        extra: [("text".to_owned(), json!("hidden"))].into_iter().collect(),
    };
    let error = broker.call::<OpenTool>(args).await.unwrap_err();
    assert_eq!(error.code(), Some(CallCode::ArgsInvalid), "{error}");
    assert!(
        error.to_string().contains("duplicate key `text`"),
        "{error}"
    );
    assert!(!error.maybe_executed());
    broker.close().await;
}

#[tokio::test]
async fn typed_output_that_does_not_fit_is_an_error_with_the_result() {
    let broker = Broker::open(&CATALOG, Options::new()).await.unwrap();
    let error = broker
        .call::<Liar>(json!({"text": "hello"}))
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Output { .. }), "{error:?}");
    assert_eq!(error.code(), None);
    assert!(error.maybe_executed());
    let raw = error.raw().unwrap().to_value().unwrap();
    assert_eq!(raw["structuredContent"]["bytes"], 5);

    let error = broker.call::<Liar>(json!({"text": 1})).await.unwrap_err();
    assert_eq!(error.code(), Some(CallCode::ArgsInvalid));
    assert!(error.raw().is_none());

    let error = broker
        .call::<fail::Tool>(fail::Args::new("on purpose".to_owned()))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, CallError::Tool { raw } if raw.is_error()),
        "{error:?}"
    );
    let args = fail::Args {
        kind: Some(fail::ArgsKind::Rpc),
        message: "on purpose".to_owned(),
    };
    let error = broker.call::<fail::Tool>(args).await.unwrap_err();
    assert_eq!(error.code(), Some(CallCode::SourceError));
    broker.close().await;
}

#[tokio::test]
async fn typed_plain_start_with_an_unchecked_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let text = include_str!("../../../smoke_config.json");
    std::fs::write(&config, text.replacen("toolbox-mcp", "no-such-program", 1)).unwrap();
    let error = Broker::open(&CATALOG, Options::new().config(&config))
        .await
        .unwrap_err();
    // Another command is another source; a config that only restricts is accepted.
    assert!(
        matches!(error, OpenError::Diagnostics(_) | OpenError::Refused { .. }),
        "{error}"
    );

    std::fs::write(&config, "{").unwrap();
    let options = Options::new().config(&config).mode(StartMode::Tolerant);
    let error = Broker::open(&CATALOG, options).await.unwrap_err();
    assert!(matches!(error, OpenError::Diagnostics(_)), "{error}");
}

#[test]
fn typed_example_runs() {
    let own = std::env::current_exe().unwrap();
    let build = own.parent().and_then(Path::parent).unwrap();
    let output = Run::new(&build.join("examples/typed")).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for line in [
        "hash: 3610a686 over 5 bytes",
        r#"format: {"a":null,"b":1}"#,
        "time: 2",
        "refused: args_invalid: ",
        "failed: no",
    ] {
        assert!(output.stdout.contains(line), "{line} in {}", output.stdout);
    }
}
