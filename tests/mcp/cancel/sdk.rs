//! A client of the official SDK that abandons a call.

use std::path::Path;
use std::time::Duration;

use harness::{Broker, Chaos, binary};
use oracle_mcp::{Client, Era};
use serde_json::json;

use crate::sdk::client::{broker, call, connected, object};

#[tokio::test]
async fn sdk_call_that_is_abandoned_is_cancelled_and_delays_no_end() {
    for era in [Era::Legacy, Era::Modern] {
        let client = broker(era).await;
        let args =
            json!({"path": "/util/slow_echo", "args": {"text": "late", "milliseconds": 9_500}});
        let slow = client.call("meta_call", object(args));
        // Sent, and abandoned before its answer can arrive.
        assert!(
            tokio::time::timeout(Duration::from_millis(300), slow)
                .await
                .is_err()
        );
        let args = json!({"path": "/util/hex", "args": {"text": "a", "direction": "encode"}});
        let quick = call(&client, "meta_call", args).await.expect("a result");
        assert!(quick["content"].is_array(), "{quick}");
        client.close().await.expect("it ends");
    }
}

/// Waits until the source `a` has written so many entries of this kind; the client works meanwhile.
async fn journal(chaos: &Chaos, event: &str, count: usize) {
    let written = async {
        while chaos.events("a", event).len() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let written = tokio::time::timeout(Duration::from_secs(60), written).await;
    written.unwrap_or_else(|_| panic!("the server writes `{event}` {count} times"));
}

/// Abandons a call that has reached the server, which must be asked to cancel it.
async fn abandons(chaos: &Chaos, client: &Client, what: &str) {
    let args = json!({"path": "/a/echo", "args": {"text": "x"}});
    let before = chaos.events("a", "cancelled").len();
    let calls = chaos.events("a", "call").len() + 1;
    tokio::select! {
        ended = client.call("meta_call", object(args)) => panic!("{what}: {ended:?}"),
        () = journal(chaos, "call", calls) => {}
    }
    journal(chaos, "cancelled", before + 1).await;
    let (calls, cancelled) = (chaos.events("a", "call"), chaos.events("a", "cancelled"));
    let ids = [&calls, &cancelled].map(|events| events.last().map(|event| event["id"].clone()));
    assert_eq!(ids[0], ids[1], "{what}");
    let args = json!({"path": "/a/add", "args": {"a": 1, "b": 2}});
    let sum = call(client, "meta_call", args).await.expect("a result");
    assert_ne!(sum["isError"], true, "{what}: {sum}");
}

#[tokio::test]
async fn sdk_call_that_is_abandoned_is_cancelled_at_the_server() {
    for era in [Era::Legacy, Era::Modern] {
        let chaos = Chaos::new();
        chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 600_000}}}));
        let over_http = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
        let client = connected(&over_http, "/mcp", era).await;
        abandons(&chaos, &client, &format!("{era:?} over HTTP")).await;
        client.close().await.expect("it ends");
        drop(over_http);

        let folder = format!("CHAOS={}", chaos.path().display());
        let program = binary("chaos-broker");
        let args = [
            &folder,
            "A_TOKEN=a-token-for-tests",
            &program.to_string_lossy(),
            "stdio",
            "--log-level",
            "error",
        ];
        let env = Path::new("/usr/bin/env");
        let client = Client::start(env, args, None, era)
            .await
            .expect("it connects");
        abandons(&chaos, &client, &format!("{era:?} over stdio")).await;
        client.close().await.expect("it ends");
    }
}
