//! `tools/call`: reads the name of the tool, calls core, and turns the outcome into a result.

use std::pin::Pin;

use broker_config::McpMode;
use broker_model::CallCode;
use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::write::Outgoing;
use broker_wire::{Era, RpcError, valid_string};
use bytes::Bytes;
use tokio::sync::mpsc;

use super::adapter::{CommandCall, Dialect, ResultForm, read_mode};
use super::call_error::CallError;
use super::item_error;
use super::items::{self, ItemAnswer, ItemCall, ItemMethod};
use super::params::Params;
use super::reply::{Answer, Text};
use super::request_meta::RequestMeta;
use super::result::ServerResult;
use super::started::started;
use super::tasks::{CallJob, CalledTool, JobForm, TaskRequest, modern, replayed, rpc_error};
use super::tools::{OwnTool, own_tool};
use super::unknown_tool::{unknown_flat_name, unknown_own_tool};
use super::{Client, cut_note, job_tool, own_listing, result, retrieve, server_error};
use broker_core::{
    Account, Broker, CallEvents, CallTrace, Charge, CoreError, FlatTool, ItemKind, Name, Outcome,
    RequestId, ResultLimit, memory_error_for_result,
};
use broker_surface::job_json;
use broker_surface::meta::{BodyForm, Listing, MetaCaller, ReplyRoom, is_quoted_object};

/// Results longer than this are processed on another thread, so that other answers do not wait for
/// them.
const MIN_POOLED_BYTES: usize = 256 << 10;

/// The maximum length of an answer, as a multiple of the length of the server's result.
const MAX_ANSWER_COPIES: usize = 8;

/// A call of a tool.
#[derive(Debug)]
pub(super) struct ToolCall {
    tool: Tool,
    /// One JSON object, a slice of its message.
    arguments: Bytes,
    pub(super) era: Era,
    pub(super) meta: RequestMeta,
    /// Results of more bytes may make an answer that is too long.
    decided_above: u32,
    /// The form of its result, if it differs from the specification.
    form: Option<Box<ResultForm>>,
    /// What the call asks of jobs.
    job: CallJob,
}

#[derive(Debug)]
enum Tool {
    /// A tool of the broker.
    Own(OwnTool),
    /// A tool of the catalog, by its flat name.
    Flat(FlatTool),
    /// A prompt, template or resource. Boxed, so that other calls do not carry its size.
    Item(Box<ItemCall>),
    /// A request about resources that waits until the sources have listed theirs.
    AfterStart(ItemMethod),
    /// A request about tasks, or the resource of a job. Boxed, so that calls do not carry its size.
    Task(Box<TaskRequest>),
    /// A tool that is not known, since the start was refused.
    Refused,
}

/// The circumstances of one call.
#[derive(Debug)]
pub(super) struct CallParts<'a> {
    pub(super) request_id: RequestId,
    /// The account that is charged for the call and its result.
    pub(super) account: &'a Account,
    /// The trace context of the request that brought the call.
    pub(super) trace: Option<&'a CallTrace>,
    /// Receives the events that the caller wants.
    pub(super) events: Option<CallEvents>,
    /// Receives the announcement of a change of the list that the call makes.
    pub(super) announcements: Option<mpsc::Sender<Outgoing>>,
}

impl ToolCall {
    /// Reads the params of `tools/call`.
    pub(super) fn parse(
        client: &Client<impl Broker>,
        params: &Params<'_>,
        era: Era,
    ) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let broker = &client.broker;
        let name = params
            .members
            .get("name")
            .and_then(valid_string)
            .ok_or_else(|| wrong("`name` must be a string"))?;
        let tool = match own_tool(client.view, &name) {
            None if name == job_tool::NAME && broker.jobs().is_some() => Tool::Own(OwnTool::Job),
            Some(own) => Tool::Own(own),
            // The reason is of more use than the names that there are.
            None if broker.services().start_refusal(&client.identity).is_some() => Tool::Refused,
            None if client.view.mode == McpMode::Meta => {
                return Err(unknown_own_tool(client.view, &name));
            }
            None => match broker.look_up(&client.identity, Name::Flat(&name, client.view.vendor)) {
                Ok(tool) => Tool::Flat(tool.into()),
                Err(_) if client.view.mode == McpMode::Direct => {
                    return Err(unknown_flat_name(&name));
                }
                Err(_) => return Err(unknown_own_tool(client.view, &name)),
            },
        };
        let arguments = match params.members.given("arguments") {
            None => Bytes::from_static(b"{}"),
            Some(raw) if raw.starts_with('{') => params.raw.slice_ref(raw.as_bytes()),
            Some(raw) if is_quoted_object(raw) => {
                return Err(wrong(
                    "`arguments` is a string that contains JSON: send the object itself",
                ));
            }
            Some(_) => return Err(wrong("`arguments` must be an object")),
        };
        let mode = match client.dialect {
            Dialect::Standard => None,
            Dialect::Aliases | Dialect::Simple => {
                read_mode(&params.members, broker.jobs().is_some())?
            }
        };
        let called = match &tool {
            Tool::Flat(tool) => CalledTool::Flat(tool),
            Tool::Own(OwnTool::MetaCall(_) | OwnTool::CallTool(_)) | Tool::Refused => {
                CalledTool::Calling
            }
            _ => CalledTool::Other,
        };
        let job = CallJob::read(client, params, era, mode, called)?;
        let form = (client.dialect == Dialect::Simple).then(|| {
            let path = match &tool {
                Tool::Flat(tool) => tool.path,
                _ => &name,
            };
            Box::new(ResultForm::WithStatus(CommandCall::from_path(path)))
        });
        Ok(Self {
            tool,
            arguments,
            era,
            meta: RequestMeta::read(&params.meta, era)?,
            decided_above: u32::MAX,
            form,
            job,
        })
    }

    /// Makes the call that gets a prompt or reads a resource.
    pub(super) fn wrap(call: ItemCall, params: &Params<'_>, era: Era) -> Result<Self, RpcError> {
        let arguments = call.kept_text(params);
        Self::other(Tool::Item(Box::new(call)), arguments, params, era)
    }

    /// A request about tasks.
    pub(super) fn about_tasks(
        request: TaskRequest,
        params: &Params<'_>,
        era: Era,
    ) -> Result<Self, RpcError> {
        Self::other(Tool::Task(Box::new(request)), Params::none(), params, era)
    }

    /// A request about resources that waits for the start. Its arguments are the params.
    pub(super) fn after_start(
        method: ItemMethod,
        params: &Params<'_>,
        era: Era,
    ) -> Result<Self, RpcError> {
        Self::other(Tool::AfterStart(method), params.raw.clone(), params, era)
    }

    /// A request of another method than `tools/call`. It asks nothing of jobs.
    fn other(
        tool: Tool,
        arguments: Bytes,
        params: &Params<'_>,
        era: Era,
    ) -> Result<Self, RpcError> {
        Ok(Self {
            tool,
            arguments,
            era,
            meta: RequestMeta::read(&params.meta, era)?,
            decided_above: u32::MAX,
            form: None,
            job: CallJob::default(),
        })
    }

    /// Reads the params of `callTool`.
    pub(super) fn parse_command(
        client: &Client<impl Broker>,
        params: &Params<'_>,
        era: Era,
    ) -> Result<Self, RpcError> {
        let (call, arguments) = CommandCall::read(params)?;
        Ok(Self {
            tool: Tool::Flat(call.find(client)?),
            arguments,
            era,
            meta: RequestMeta::read(&params.meta, era)?,
            job: CallJob::in_mode(read_mode(&params.members, client.broker.jobs().is_some())?),
            decided_above: u32::MAX,
            form: Some(Box::new(ResultForm::Command(call))),
        })
    }

    /// Returns the call for a client that reads answers of so many bytes.
    pub(super) fn for_reader_of(self, bytes: usize) -> Self {
        let bytes = u32::try_from(bytes / MAX_ANSWER_COPIES);
        Self {
            decided_above: bytes.unwrap_or(u32::MAX),
            ..self
        }
    }

    /// The tool, if it was called by its flat name.
    pub(super) const fn flat_tool(&self) -> Option<&FlatTool> {
        match &self.tool {
            Tool::Flat(tool) => Some(tool),
            _ => None,
        }
    }

    /// The arguments, one JSON object.
    pub(super) const fn arguments(&self) -> &Bytes {
        &self.arguments
    }

    /// Runs the call. A refusal of the broker is a result too.
    pub(super) async fn run(&self, client: &Client<impl Broker>, parts: &CallParts<'_>) -> Answer {
        match &self.tool {
            Tool::AfterStart(method) => return self.run_after_start(client, parts, *method).await,
            Tool::Task(request) => {
                let answer = request.answer(client, parts.account, parts.request_id);
                return Box::pin(answer).await;
            }
            Tool::Own(_) | Tool::Flat(_) | Tool::Item(_) | Tool::Refused => {}
        }
        let result = match self.ask(client, parts).await {
            Ok(result) => result,
            Err(CallError::Server(error)) => {
                return Err(match &self.form {
                    None => error,
                    Some(form) => form.server_error(error),
                });
            }
            Err(CallError::Accepted(text)) => return Ok(*text),
            Err(CallError::Refused(error)) => {
                let request_id = parts.request_id.as_str();
                tracing::debug!(request_id, code = error.code.as_str(), "refused");
                let form = self.form.as_deref();
                if let Some(form) = form {
                    return Err(form.refusal(&error, request_id));
                }
                if let Tool::Item(_) = self.tool {
                    let object = result::error_object(&error, request_id);
                    return Err(item_error::refusal(&error, object));
                }
                if self.job.form == JobForm::Legacy {
                    return Err(rpc_error(&error, self.era, request_id));
                }
                result::error(&error, request_id, self.era).into()
            }
        };
        match &self.form {
            None => Ok(result),
            // Boxed, so that other calls do not carry its size.
            Some(form) => Box::pin(form.convert(&client.broker, parts.account, result)).await,
        }
    }

    /// Waits for the start, then answers the request. Boxed, so that calls do not carry its size.
    fn run_after_start<'a>(
        &'a self,
        client: &'a Client<impl Broker>,
        parts: &'a CallParts<'a>,
        method: ItemMethod,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            started(client).await;
            let params = Params::read(&self.arguments)?;
            match items::answer(client, parts.account, method, &params, self.era)? {
                ItemAnswer::List(list) => Ok(list),
                ItemAnswer::Call(call) => {
                    let mut call = Self::wrap(call, &params, self.era)?;
                    call.decided_above = self.decided_above;
                    call.run(client, parts).await
                }
            }
        })
    }

    async fn ask(
        &self,
        client: &Client<impl Broker>,
        parts: &CallParts<'_>,
    ) -> Result<Text, CallError> {
        if let Some(refusal) = client.broker.services().start_refusal(&client.identity) {
            return Err(refusal.into());
        }
        let asker = MetaCaller {
            broker: &client.broker,
            identity: &client.identity,
            request_id: parts.request_id,
            account: parts.account,
            reply: ReplyRoom {
                around: result::MAX_ADDED_CHARS + job_tool::REST_CHARS,
                note: cut_note::MAX_NOTE_CHARS,
                limit: ResultLimit::Default,
                keeps_whole: client.broker.jobs().is_some(),
            },
            form: BodyForm::Mcp,
            meta: self.meta.forwarded.as_deref(),
            only: match self.tool {
                Tool::Own(OwnTool::MetaCall(only) | OwnTool::CallTool(only)) => only,
                _ => None,
            },
            trace: parts.trace,
            events: parts.events.as_ref(),
            job: self.job.request(client),
            is_job: self.job.form == JobForm::Legacy,
            decided_above: self.decided_above,
        };
        let listing = match self.tool {
            Tool::Own(OwnTool::Tree) => Listing::Tree,
            Tool::Own(OwnTool::Desc) => Listing::Desc,
            Tool::Own(OwnTool::Retrieve) => {
                // Boxed, so that calls do not carry the size of a search.
                let dynamic = self.is_dynamic(client);
                let announced = parts.announcements.as_ref();
                let what = (&self.arguments[..], dynamic, self.era);
                let found = retrieve::answer(client, parts.account, announced, what);
                return Ok(Box::pin(own_listing::decided(found)).await?);
            }
            Tool::Own(OwnTool::Job) => {
                let answer = job_tool::answer(client, parts.account, &self.arguments, self.era);
                return Ok(Box::pin(answer).await?.into());
            }
            Tool::Own(OwnTool::MetaCall(_) | OwnTool::CallTool(_))
            | Tool::Flat(_)
            | Tool::Item(_)
            | Tool::AfterStart(_)
            | Tool::Task(_)
            | Tool::Refused => {
                let outcome = self.call(client, &asker).await?;
                return self.forwarded(client, parts.account, outcome).await;
            }
        };
        // Boxed, so that calls do not carry the size of a listing.
        let answer = own_listing::answer(client, &asker, listing, self.arguments.clone(), self.era);
        Ok(Box::pin(answer).await?)
    }

    /// Whether the call may change the list of its session.
    pub(super) fn may_change_list(&self, client: &Client<impl Broker>) -> bool {
        matches!(self.tool, Tool::Own(OwnTool::Retrieve)) && self.is_dynamic(client)
    }

    /// Requests of the modern era change no list.
    fn is_dynamic(&self, client: &Client<impl Broker>) -> bool {
        self.era == Era::Legacy && client.session_tools.is_some()
    }

    /// Calls the tool; once more if the sources had to be compared with the lock first.
    async fn call(
        &self,
        client: &Client<impl Broker>,
        asker: &MetaCaller<'_, impl Broker>,
    ) -> Result<Outcome, CallError> {
        let outcome = match self.call_once(client, asker).await {
            // The call was not sent, so it may be repeated.
            Err(error) if error.code == CallCode::Starting && !error.has_waited => {
                started(client).await;
                self.call_once(client, asker).await
            }
            outcome => outcome,
        };
        match (outcome, &self.tool) {
            (Err(error), Tool::Flat(_) | Tool::Item(_)) => {
                Err(server_error::extract(&error, self.era)
                    .map_or(CallError::Refused(error), CallError::Server))
            }
            (outcome, _) => Ok(outcome?),
        }
    }

    async fn call_once(
        &self,
        client: &Client<impl Broker>,
        asker: &MetaCaller<'_, impl Broker>,
    ) -> Result<Outcome, Box<CoreError>> {
        let arguments = self.arguments.clone();
        let note = |path: &str| {
            if let Some(tools) = &client.session_tools {
                tools.note_call(path);
            }
        };
        match &self.tool {
            Tool::Flat(tool) => {
                note(tool.path);
                asker.call_tool(tool.path.into(), arguments).await
            }
            Tool::Item(item) => item.make(asker).await,
            Tool::AfterStart(_) | Tool::Task(_) | Tool::Refused => {
                asker.call_tool("".into(), arguments).await
            }
            // Boxed, so that other calls do not carry its size.
            Tool::Own(OwnTool::CallTool(_)) => Box::pin(asker.call_named(arguments, note)).await,
            Tool::Own(_) => asker.call(arguments).await,
        }
    }

    /// A server's result in the form of the era.
    async fn forwarded(
        &self,
        client: &Client<impl Broker>,
        account: &Account,
        mut outcome: Outcome,
    ) -> Result<Text, CallError> {
        let (length, era) = (outcome.result.len(), self.era);
        let is_task = length == 0 || self.job.form == JobForm::Legacy;
        if let Some(accepted) = outcome.job.as_ref().filter(|_| is_task) {
            return match (&self.form, self.job.form) {
                (None, JobForm::Text) => Ok(job_tool::accepted(accepted, era).into()),
                (None, JobForm::Legacy) => Ok(client.legacy_task(accepted, &self.meta)),
                (None, JobForm::Modern) => Ok(modern::created(accepted)),
                (Some(_), _) => {
                    let text: Text = job_json::accepted(accepted).into_bytes().into();
                    let follow = client.following.as_ref();
                    let receipt = follow.map(|following| following.receipt(&accepted.job.id));
                    Err(CallError::Accepted(Box::new(text.with_receipt(receipt))))
                }
            };
        }
        if outcome.cut.is_some() {
            job_tool::keep_rest(client, &mut outcome);
        }
        let receipt = outcome.receipt.take();
        let is_replayed = outcome.job.as_ref().is_some_and(|job| job.is_replayed);
        let form = match &self.tool {
            Tool::Item(item) if item.is_cacheable() => ServerResult::Cacheable {
                is_private: client.broker.services().lists_may_differ(),
            },
            Tool::Item(_) => ServerResult::Same,
            Tool::Flat(tool)
                if tool.lists_output
                    && outcome.kind == ItemKind::Tool
                    && (self.job.form == JobForm::Modern || !client.may_promote()) =>
            {
                ServerResult::Promised
            }
            Tool::Flat(_) | Tool::Own(_) | Tool::AfterStart(_) | Tool::Task(_) | Tool::Refused => {
                match outcome.kind {
                    ItemKind::Tool => ServerResult::Same,
                    ItemKind::Prompt | ItemKind::Template | ItemKind::Resource => {
                        ServerResult::AsToolResult
                    }
                }
            }
        };
        let mut charge = Charge::default();
        // The result for the era, in addition to the one of the server.
        charge
            .cover(account, form.max_copies() * length)
            .map_err(|full| Box::new(memory_error_for_result(full)))?;
        let result = if length > MIN_POOLED_BYTES {
            let render = move || result::forward(&outcome, form, era);
            client.broker.services().shape_long(account, render).await?
        } else {
            result::forward(&outcome, form, era)?
        };
        let result = match is_replayed {
            true => replayed(result),
            false => result,
        };
        Ok(Text::charged(result, charge).with_receipt(receipt))
    }
}
