//! The broker as an MCP server, in both eras. `protocol` has the methods, `exposure` what a client
//! sees in its mode; the transports `stdio` and `http` carry the messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use broker_config::{McpMode, Routing};
use broker_core::{AcceptedJob, Account, Broker, CallMode, Identity, JobDesk, ToolListChanges};
use broker_observe::{Announcer, ListChangedExec};
use broker_surface::RequestIds;
use broker_wire::LogLevel;
use broker_wire::write::{Outgoing, Text};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

mod adapter;
mod answer_limit;
mod call;
mod call_error;
mod call_task;
mod connection;
mod cut_note;
mod error_text;
mod exposure;
pub mod http;
mod in_flight;
mod item_error;
mod items;
mod job_resource;
mod job_tool;
mod listing_text;
mod notifications;
mod own_listing;
mod params;
mod protocol;
mod reply;
mod request_meta;
mod result;
mod retrieve;
mod schema_text;
mod server_error;
mod server_info;
mod session_tools;
mod settings;
mod started;
pub mod stdio;
mod subscription;
mod tasks;
mod tools;
mod unknown_tool;
mod websocket;

pub use server_info::set_server_name;
pub use settings::{ClientView, McpSettings};

use adapter::Dialect;
use request_meta::RequestMeta;
use session_tools::SessionTools;
use tasks::{TaskFeed, legacy};
use websocket::JobFollowing;

/// A client: who it is, and what it sees. A legacy session and a connection over stdio have one for their
/// whole life, a modern request over HTTP has its own.
#[derive(Debug)]
struct Client<B> {
    broker: B,
    identity: Identity,
    view: ClientView,
    dialect: Dialect,
    /// The tools in its list that it found, if the list changes with searches.
    session_tools: Option<Arc<SessionTools>>,
    ids: Arc<RequestIds>,
    log_level: Arc<SharedLogLevel>,
    /// Takes the jobs whose progress follows on the connection of the client.
    following: Option<JobFollowing>,
    /// Takes the tasks whose notifications the session of the client gets, if it has one.
    task_feed: Option<Arc<TaskFeed>>,
}

impl<B: Broker> Client<B> {
    fn new(broker: B, identity: Identity, view: ClientView, ids: Arc<RequestIds>) -> Self {
        Self {
            broker,
            identity,
            view,
            dialect: Dialect::default(),
            session_tools: None,
            ids,
            log_level: Arc::default(),
            following: None,
            task_feed: None,
        }
    }

    /// The same client, for a request of a session that was sent with another credential of the same caller.
    fn with_identity(self: &Arc<Self>, identity: &Identity) -> Arc<Self> {
        let client = Self::new(
            self.broker.clone(),
            identity.seeing_as(&self.identity),
            self.view,
            Arc::clone(&self.ids),
        );
        Arc::new(Self {
            dialect: self.dialect,
            session_tools: self.session_tools.clone(),
            log_level: Arc::clone(&self.log_level),
            task_feed: self.task_feed.clone(),
            ..client
        })
    }

    /// The same client with the methods and result forms of a dialect.
    fn with_dialect(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Returns the same client with a tool list that its searches change, if its view has one. `session` names the
    /// session for the command that runs after changes.
    fn with_session_tools(
        mut self,
        exec: Option<&Arc<ListChangedExec>>,
        session: impl FnOnce() -> String,
    ) -> Self {
        if self.view.mode == McpMode::Search && self.view.routing == Routing::Dynamic {
            let end = self.broker.services().drain().finished();
            let announcer = exec.map(|exec| Announcer::new(exec, session(), &self.identity, end));
            self.session_tools = Some(Arc::new(SessionTools::new(announcer)));
        }
        self
    }

    /// Returns the same client, whose session gets the notifications of its tasks, if it may have tasks.
    fn with_task_feed(mut self) -> Self {
        self.task_feed = self.tasks().map(|_| Arc::new(TaskFeed::new()));
        self
    }

    /// Returns the answer to a call that became a task. Once it is written the session gets the notifications of the task.
    fn legacy_task(&self, accepted: &AcceptedJob, meta: &RequestMeta) -> Text {
        let (feed, token) = (self.task_feed.as_ref(), meta.progress_token.as_deref());
        let receipt = feed.map(|feed| feed.receipt(accepted, token, &self.identity));
        legacy::created(accepted).with_receipt(receipt)
    }

    /// Sends the notifications of the tasks of its session to `messages`.
    async fn report_tasks(&self, account: &Account, messages: &mpsc::Sender<Outgoing>) {
        if let Some(feed) = &self.task_feed {
            feed.report(self, account, messages).await;
        }
    }

    /// Removes withdrawn and denied tools from the list of the session until `end` is cancelled.
    fn keep_session_tools_current(&self, end: CancellationToken) {
        let Some(tools) = self.session_tools.clone() else {
            return;
        };
        let (broker, identity) = (self.broker.clone(), self.identity.clone());
        let lists = broker.services().tool_list_changes(&identity);
        tokio::spawn(async move { tools.keep_current(&broker, &identity, lists, &end).await });
    }

    /// The changes of its list that are announced to a legacy client, from now on; `None` if it does not change.
    /// Those that follow a search are announced with its call if no stream is open.
    fn list_changes(&self, identity: &Identity) -> Option<ToolListChanges> {
        match (self.view.mode, &self.session_tools) {
            (McpMode::Direct, _) => Some(self.broker.services().tool_list_changes(identity)),
            (_, Some(tools)) => Some(tools.changes()),
            (McpMode::Meta | McpMode::Search, None) => None,
        }
    }

    /// Must be called after a change of its list was announced.
    fn list_change_announced(&self) {
        if let Some(tools) = &self.session_tools {
            tools.announced();
        }
    }

    /// Returns how long the client waits for the result of a call that does not say so. The dialect of simple clients has
    /// another form of jobs.
    fn call_mode(&self) -> CallMode {
        match (self.dialect, self.broker.jobs()) {
            (Dialect::Standard, Some(desk)) => desk.mcp_mode(),
            (Dialect::Standard, None) | (Dialect::Aliases | Dialect::Simple, _) => CallMode::Sync,
        }
    }

    /// Returns the desk of jobs, if the client may have them as tasks: if they survive a restart. The dialect of simple
    /// clients has another form of jobs.
    fn tasks(&self) -> Option<&Arc<dyn JobDesk>> {
        match self.dialect {
            Dialect::Standard => self.broker.jobs().filter(|desk| desk.is_durable()),
            Dialect::Aliases | Dialect::Simple => None,
        }
    }

    /// Whether a call of the client may become a job although it does not ask for one.
    fn may_promote(&self) -> bool {
        match self.call_mode() {
            CallMode::Sync => false,
            CallMode::Async | CallMode::Auto => true,
        }
    }

    /// Whether a name belongs to one of the broker's own tools.
    fn has_own_tool(&self, name: &str) -> bool {
        tools::own_tool(self.view, name).is_some() || name == job_tool::NAME
    }

    /// Sets the level of the log messages that the client gets.
    fn set_log_level(&self, level: LogLevel) {
        self.log_level.set(level);
        self.broker.services().ask_for_logs(level);
    }
}

/// The level that `logging/setLevel` sets. A call uses the level of its begin.
#[derive(Debug, Default)]
struct SharedLogLevel(AtomicU8);

impl SharedLogLevel {
    /// The level; `None` before it is set.
    fn get(&self) -> Option<LogLevel> {
        let index = usize::from(self.0.load(Ordering::Relaxed)).checked_sub(1)?;
        LogLevel::ALL.get(index).copied()
    }

    fn set(&self, level: LogLevel) {
        let index = LogLevel::ALL.iter().position(|known| *known == level);
        let stored = index.map_or(0, |index| index as u8 + 1);
        self.0.store(stored, Ordering::Relaxed);
    }
}
