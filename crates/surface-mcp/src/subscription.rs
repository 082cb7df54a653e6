//! `subscriptions/listen` of the modern era: one open request that reports changes of the tool list, and of tasks.

use broker_config::McpMode;
use broker_wire::protocol::{INVALID_PARAMS, META_SUBSCRIPTION_ID};
use broker_wire::write::{self, Outgoing};
use broker_wire::{Id, JsonMembers, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Client;
use super::notifications::TOOLS_CHANGED;
use super::params::Params;
use super::reply::Answer;
use super::tasks::{TaskWatch, extension};
use broker_core::{Broker, ToolListChanges};

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A subscription: what its client asked for and the broker reports.
#[derive(Debug)]
pub(super) struct Subscription {
    /// `_meta` of each of its messages.
    meta: Value,
    tools: bool,
    /// Boxed, since few clients ask about tasks.
    tasks: Option<Box<TaskWatch>>,
}

impl Subscription {
    /// Reads the params of the request `id`. Only the tool list of direct mode changes.
    pub(super) fn read(
        client: &Client<impl Broker>,
        id: &Id,
        params: &Params<'_>,
    ) -> Result<Self, RpcError> {
        let asked = params
            .members
            .get("notifications")
            .and_then(|raw| JsonMembers::parse(raw).ok())
            .ok_or_else(|| RpcError::new(INVALID_PARAMS, "`notifications` must be an object"))?;
        let asks_for_tools = asked.given("toolsListChanged") == Some("true");
        let id: Value = serde_json::from_str(&id.to_string()).unwrap_or_default();
        Ok(Self {
            meta: json!({ META_SUBSCRIPTION_ID: id }),
            tools: client.view.mode == McpMode::Direct && asks_for_tools,
            tasks: match extension::is_declared(&params.meta) {
                true => TaskWatch::read(client, &asked)?.map(Box::new),
                false => None,
            },
        })
    }

    /// Returns its first message, if [`Self::run`] does not send it. Which tasks are those of the caller is known later.
    pub(super) fn acknowledgement_at_once(&self) -> Option<Outgoing> {
        self.tasks.is_none().then(|| self.acknowledgement(None))
    }

    /// Returns its first message: the part of the request that the broker fulfils.
    fn acknowledgement(&self, tasks: Option<&[String]>) -> Outgoing {
        let mut honoured = match self.tools {
            true => json!({ "toolsListChanged": true }),
            false => json!({}),
        };
        if let Some(tasks) = tasks {
            honoured["taskIds"] = json!(tasks);
        }
        let params = json!({ "_meta": self.meta, "notifications": honoured });
        write::notification(ACKNOWLEDGED, Some(&params.to_string()))
    }

    /// Reports changes to `messages` until `end` is cancelled, then returns the answer to the request.
    pub(super) async fn run(
        mut self,
        changes: ToolListChanges,
        end: CancellationToken,
        messages: mpsc::Sender<Outgoing>,
    ) -> Answer {
        let params = json!({ "_meta": self.meta }).to_string();
        let tasks = self.tasks.take();
        let report = async {
            // Boxed, so that other subscriptions do not carry its size.
            let tasks = match tasks {
                Some(tasks) => Some(Box::pin(self.acknowledge(*tasks, &messages)).await),
                None => None,
            };
            tokio::join!(
                async {
                    if self.tools {
                        report_changes(changes, &messages, Some(&params), || {}).await;
                    }
                },
                async {
                    if let Some(tasks) = &tasks {
                        Box::pin(tasks.report(&self.meta, &messages)).await;
                    }
                },
            );
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = report => {}
            () = end.cancelled() => {}
        }
        let result = json!({ "resultType": "complete", "_meta": self.meta });
        Ok(result.to_string().into_bytes().into())
    }

    /// Sends the first message of a subscription of tasks, and returns the tasks of the caller.
    async fn acknowledge(
        &self,
        mut tasks: TaskWatch,
        messages: &mpsc::Sender<Outgoing>,
    ) -> TaskWatch {
        let own = tasks.keep_own().await;
        let acknowledgement = self.acknowledgement(Some(own));
        if messages.send(acknowledgement).await.is_err() {
            tracing::debug!("the client of a subscription left before its first message");
        }
        tasks
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
