//! Steps 2 and 5: what the server is asked for an operation: the arguments that are checked, and the URI that is read.

use broker_mcp::{RemoteTask, ServerOperation};
use broker_memory::SMALL_BYTES;
use broker_model::CallCode;
use broker_model::item::ItemKind;
use broker_model::text::shown_line;
use broker_model::uri::{MAX_URI_BYTES, has_dot_segment};
use broker_model::uri_template::{TemplateError, UriTemplate};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::Call;
use super::coerce::CoercedArgs;
use super::context::Operation;
use super::deadline::Deadline;
use super::resolve::Target;
use crate::call::arguments::Args;
use crate::errors::error::CoreError;
use crate::listing::items::covers;
use crate::listing::look_up::{no_prompt, no_resource};
use crate::snapshot::Snapshot;

/// The hints of errors about URIs and completions.
const URI_HINT: &str = "Send other values.";
const COMPLETION_HINT: &str = "Send less context.";
const LIST_HINT: &str = "`meta_desc` of the path lists the URIs.";

/// An operation that its item has, before its arguments are checked.
pub(super) enum UncheckedOperation {
    /// The result of the item for these arguments.
    Result(Args),
    /// The content of the locked resource with this URI.
    Resource(Box<str>),
    /// The content of a URI that the template covers.
    Uri(Box<str>),
    /// A completion with these parameters.
    Completion(Bytes),
    /// The result of this task of the server.
    Task(Box<RemoteTask>),
}

impl UncheckedOperation {
    /// Returns the arguments that rules about arguments are applied to.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        match self {
            Self::Result(args) => args.text(),
            Self::Resource(_) | Self::Uri(_) | Self::Task(_) => b"{}",
            Self::Completion(params) => params,
        }
    }
}

/// An operation that may be sent, unless the rules change.
pub(super) struct CheckedOperation {
    /// The arguments that were checked, or the parameters of a completion.
    text: Bytes,
    /// The arguments that replace them.
    coerced: Option<Box<CoercedArgs>>,
    asked: Asked,
}

/// The request to a server.
enum Asked {
    /// The result of the item, for its arguments.
    Result,
    /// The content of this URI.
    Uri(Box<str>),
    /// A completion.
    Completion,
    /// The result of this task.
    Task(Box<RemoteTask>),
}

impl CheckedOperation {
    /// Returns the text of the arguments, as they are sent.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        match &self.coerced {
            Some(coerced) => &coerced.text,
            None => &self.text,
        }
    }

    /// Returns the URI that is read, unless it is the one of the item.
    #[inline]
    pub(super) fn uri(&self) -> Option<&str> {
        match &self.asked {
            Asked::Uri(uri) => Some(uri),
            Asked::Result | Asked::Completion | Asked::Task(_) => None,
        }
    }

    /// Returns the task whose result is asked for, in place of a call.
    #[inline]
    pub(super) fn task(&self) -> Option<&RemoteTask> {
        match &self.asked {
            Asked::Task(task) => Some(task),
            Asked::Result | Asked::Uri(_) | Asked::Completion => None,
        }
    }

    /// Returns the request that the server of the item gets.
    #[inline]
    pub(super) fn to_server<'a>(&'a self, target: &Target) -> ServerOperation<'a> {
        let (id, args) = (target.item.id, self.text());
        match &self.asked {
            Asked::Uri(uri) => ServerOperation::ReadResource { uri },
            Asked::Completion => ServerOperation::Complete { params: args },
            Asked::Result | Asked::Task(_) => match target.item.kind {
                ItemKind::Tool => ServerOperation::CallTool { name: id, args },
                ItemKind::Prompt => ServerOperation::GetPrompt { name: id, args },
                ItemKind::Template | ItemKind::Resource => {
                    ServerOperation::ReadResource { uri: id }
                }
            },
        }
    }

    /// Returns the warning about converted arguments.
    pub(super) fn into_warning(self) -> Option<String> {
        self.coerced.map(|coerced| coerced.warning)
    }
}

impl Call<'_> {
    /// Refuses an operation that the item does not have.
    pub(super) fn unchecked(
        &self,
        operation: Operation,
    ) -> Result<UncheckedOperation, Box<CoreError>> {
        match operation {
            Operation::CallTool(args) => Ok(UncheckedOperation::Result(args)),
            Operation::FollowTask(task) => Ok(UncheckedOperation::Task(task)),
            Operation::GetPrompt(args) => match self.target.item.kind {
                ItemKind::Prompt => Ok(UncheckedOperation::Result(args)),
                ItemKind::Tool | ItemKind::Template | ItemKind::Resource => {
                    Err(no_prompt(self.target.path))
                }
            },
            Operation::ReadResource(uri) => self.unchecked_read(uri),
            Operation::Complete(params) => match (self.target.item.kind, params) {
                (ItemKind::Prompt | ItemKind::Template, _) if self.is_narrowed() => {
                    Err(self.no_completions())
                }
                (ItemKind::Prompt | ItemKind::Template, Args::Read { text, .. }) => {
                    Ok(UncheckedOperation::Completion(text))
                }
                // A server may read the second of two equal names, so that parameters must have been read strictly.
                (ItemKind::Prompt | ItemKind::Template, Args::Unread { .. }) => {
                    let message =
                        format!("the parameters of a completion have at most {SMALL_BYTES} bytes");
                    Err(refused(self.target, message, COMPLETION_HINT))
                }
                (ItemKind::Tool | ItemKind::Resource, Args::Read { .. } | Args::Unread { .. }) => {
                    Err(self.no_completions())
                }
            },
        }
    }

    /// Refuses a URI that the item does not serve.
    fn unchecked_read(&self, uri: Box<str>) -> Result<UncheckedOperation, Box<CoreError>> {
        let item = self.target.item;
        match item.kind {
            ItemKind::Tool | ItemKind::Prompt => Err(no_resource(&uri)),
            ItemKind::Resource if item.is_live() => {
                let value = json!({ "uri": uri });
                let text = Bytes::from(value.to_string());
                Ok(UncheckedOperation::Result(Args::Read { text, value }))
            }
            ItemKind::Resource if *uri == *item.id => Ok(UncheckedOperation::Resource(uri)),
            ItemKind::Resource => Err(no_resource(&uri)),
            ItemKind::Template => match UriTemplate::parse(item.id) {
                Ok(template) if !self.is_narrowed() && template.covers(&uri) => {
                    Ok(UncheckedOperation::Uri(uri))
                }
                Ok(_) => Err(self.bad_uri(TemplateError::Leaves.to_string())),
                Err(error) => Err(self.bad_uri(error.to_string())),
            },
        }
    }

    /// Whether rules narrow the arguments. They cannot be applied to parts of arguments, nor to a URI.
    const fn is_narrowed(&self) -> bool {
        self.target.narrowed.is_some()
    }

    /// Returns the error of a completion that the item does not have.
    fn no_completions(&self) -> Box<CoreError> {
        self.bad_uri("the entry has no completions for this caller".to_owned())
    }

    /// Returns the error of arguments or a URI that lead to no readable URI.
    fn bad_uri(&self, message: String) -> Box<CoreError> {
        refused(self.target, message, URI_HINT)
    }

    /// Checks the arguments of an operation and the URI that it reads.
    #[inline]
    pub(super) async fn check(
        &self,
        begun: &Snapshot,
        operation: UncheckedOperation,
        deadline: &Deadline,
    ) -> Result<CheckedOperation, Box<CoreError>> {
        match operation {
            UncheckedOperation::Result(args) => {
                let (text, coerced) = self.validate(args, deadline).await?;
                let mut checked = CheckedOperation {
                    text,
                    coerced,
                    asked: Asked::Result,
                };
                if let Some(uri) = self.uri_of(begun, checked.text())? {
                    checked.asked = Asked::Uri(uri);
                }
                Ok(checked)
            }
            UncheckedOperation::Resource(uri) => {
                let (text, coerced) = self.validate(Args::empty(), deadline).await?;
                self.check_rights(begun, &uri)?;
                Ok(CheckedOperation {
                    text,
                    coerced,
                    asked: Asked::Uri(uri),
                })
            }
            UncheckedOperation::Uri(uri) => {
                self.check_template_uri(begun, &uri)?;
                Ok(CheckedOperation {
                    text: Bytes::from_static(b"{}"),
                    coerced: None,
                    asked: Asked::Uri(uri),
                })
            }
            UncheckedOperation::Completion(params) => Ok(CheckedOperation {
                text: params,
                coerced: None,
                asked: Asked::Completion,
            }),
            UncheckedOperation::Task(task) => Ok(CheckedOperation {
                text: Bytes::from_static(b"{}"),
                coerced: None,
                asked: Asked::Task(task),
            }),
        }
    }

    /// Returns the URI that is read for these arguments: the argument of a live entry, or the URI that a template
    /// expands to. `None` for everything else.
    fn uri_of(&self, begun: &Snapshot, args: &[u8]) -> Result<Option<Box<str>>, Box<CoreError>> {
        let item = self.target.item;
        let values = || serde_json::from_slice::<Map<String, Value>>(args).unwrap_or_default();
        match item.kind {
            ItemKind::Template => {
                let uri = UriTemplate::parse(item.id)
                    .and_then(|template| template.expand(&values()))
                    .map_err(|error| self.bad_uri(error.to_string()))?;
                self.check_template_uri(begun, &uri)?;
                Ok(Some(uri.into()))
            }
            ItemKind::Resource if item.is_live() => {
                let values = values();
                let uri = values
                    .get("uri")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                if !self.is_readable_now(uri, true) {
                    return Err(refused(self.target, not_listed(uri), LIST_HINT));
                }
                self.check_rights(begun, uri)?;
                Ok(Some(uri.into()))
            }
            ItemKind::Tool | ItemKind::Prompt | ItemKind::Resource => Ok(None),
        }
    }

    /// Refuses a URI of a template that the filter of the source or another entry excludes.
    fn check_template_uri(&self, begun: &Snapshot, uri: &str) -> Result<(), Box<CoreError>> {
        let source = self.target.item.source as usize;
        match self.core.fleet.drift_state.admits_uri(source, uri) {
            true => self.check_rights(begun, uri),
            false => Err(self.bad_uri(
                "the filter of the source does not admit the URI for these values".to_owned(),
            )),
        }
    }

    /// Refuses a URI of an entry that the caller may not use, in the same way as an unknown URI.
    fn check_rights(&self, begun: &Snapshot, uri: &str) -> Result<(), Box<CoreError>> {
        let (catalog, view) = (self.core.catalog, &begun.view);
        let (source, called) = (self.target.item.source, Some(self.target.at));
        match begun.caller.may_read(view, catalog, source, uri, called) {
            true => Ok(()),
            false => Err(no_resource(uri)),
        }
    }

    /// Refuses a URI of a live entry that its source does not list any longer: its first list may have come after the
    /// check of the arguments.
    pub(super) fn check_listed(&self, uri: &str) -> Result<(), Box<CoreError>> {
        match self.target.item.is_live() && !self.is_readable_now(uri, false) {
            true => Err(refused(self.target, not_listed(uri), LIST_HINT)),
            false => Ok(()),
        }
    }

    /// Whether the source of a live entry lists a URI now, or has a template that covers it. `unlisted` is the answer
    /// before its first list.
    fn is_readable_now(&self, uri: &str, unlisted: bool) -> bool {
        let (source, drift_state) = (self.target.item.source, &self.core.fleet.drift_state);
        let is_admitted = || drift_state.admits_uri(source as usize, uri);
        if uri.len() > MAX_URI_BYTES || has_dot_segment(uri) || !is_admitted() {
            return false;
        }
        let mut items = self.core.catalog.items.iter();
        let list = drift_state.live.get(source as usize);
        list.map_or(unlisted, |list| list.has(uri))
            || items.any(|item| item.source == source && covers(item, uri))
    }
}

/// Returns the message about a URI that a live entry does not read.
fn not_listed(uri: &str) -> String {
    let shown = shown_line(uri, 160);
    format!("the source does not list the resource `{shown}`, or its filter excludes it")
}

/// Returns the error of arguments that give no readable URI.
fn refused(target: &Target, message: String, hint: &str) -> Box<CoreError> {
    let error = CoreError::new(CallCode::ArgsInvalid, message).path(target.path);
    Box::new(error.hint(hint.to_owned()).maybe_executed(false))
}
