//! `subscriptions/listen` of the modern era: one open request that reports changes of the tool list.

use broker_config::McpMode;
use broker_wire::protocol::{INVALID_PARAMS, META_SUBSCRIPTION_ID};
use broker_wire::write::{self, Outgoing};
use broker_wire::{Id, JsonMembers, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::notifications::TOOLS_CHANGED;
use super::reply::Answer;
use broker_core::ToolListChanges;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A subscription: what its client asked for and the broker reports.
#[derive(Debug)]
pub(super) struct Subscription {
    /// `_meta` of each of its messages.
    meta: Value,
    tools: bool,
}

impl Subscription {
    /// Reads the params of the request `id`. Only the tool list of direct mode changes.
    pub(super) fn read(id: &Id, params: &JsonMembers<'_>, mode: McpMode) -> Result<Self, RpcError> {
        let asked = params
            .get("notifications")
            .and_then(|raw| JsonMembers::parse(raw).ok())
            .ok_or_else(|| RpcError::new(INVALID_PARAMS, "`notifications` must be an object"))?;
        let asks_for_tools = asked.given("toolsListChanged") == Some("true");
        let id: Value = serde_json::from_str(&id.to_string()).unwrap_or_default();
        Ok(Self {
            meta: json!({ META_SUBSCRIPTION_ID: id }),
            tools: mode == McpMode::Direct && asks_for_tools,
        })
    }

    /// Its first message: the part of the request that the broker fulfils.
    pub(super) fn acknowledgement(&self) -> Outgoing {
        let honoured = match self.tools {
            true => json!({ "toolsListChanged": true }),
            false => json!({}),
        };
        let params = json!({ "_meta": self.meta, "notifications": honoured });
        write::notification(ACKNOWLEDGED, Some(&params.to_string()))
    }

    /// Reports changes to `messages` until `end` is cancelled, then returns the answer to the request.
    pub(super) async fn run(
        self,
        changes: ToolListChanges,
        end: CancellationToken,
        messages: mpsc::Sender<Outgoing>,
    ) -> Answer {
        let params = json!({ "_meta": self.meta }).to_string();
        let report = async {
            if self.tools {
                report_changes(changes, &messages, Some(&params), || {}).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = report => {}
            () = end.cancelled() => {}
        }
        let result = json!({ "resultType": "complete", "_meta": self.meta });
        Ok(result.to_string().into_bytes().into())
    }
}

/// Sends `notifications/tools/list_changed` after each change, until no change is possible or its receiver is gone.
/// Changes during a send are reported once. `announced` is called after each notification.
pub(super) async fn report_changes(
    mut changes: ToolListChanges,
    messages: &mpsc::Sender<Outgoing>,
    params: Option<&str>,
    announced: impl Fn(),
) {
    while changes.next().await {
        let message = write::notification(TOOLS_CHANGED, params);
        if messages.send(message).await.is_err() {
            return;
        }
        announced();
    }
}
