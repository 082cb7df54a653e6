//! A client of the official SDK that abandons a call.

use std::time::Duration;

use oracle_mcp::Era;
use serde_json::json;

use crate::sdk::client::{broker, call, object};

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
