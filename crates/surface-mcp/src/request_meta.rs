//! `_meta` of a request: the token of its progress, the requested log messages, and the members that the server gets.

use broker_wire::era::Meta;
use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::{Era, Id, LogLevel, RpcError};

use broker_core::WantedEvents;
use broker_surface::meta::caller_meta::to_forward;

/// The parts of `_meta` that concern a call.
#[derive(Debug, Default)]
pub(super) struct RequestMeta {
    /// A JSON string or integer, as it was written.
    pub(super) progress_token: Option<Box<str>>,
    /// The least severe log message that a modern request wants.
    pub(super) log_level: Option<LogLevel>,
    /// One JSON object: the members that go to the server.
    pub(super) forwarded: Option<String>,
}

impl RequestMeta {
    /// Reads `_meta` of a request.
    pub(super) fn read(meta: &Meta<'_>, era: Era) -> Result<Self, RpcError> {
        let wrong = |message: String| RpcError::new(INVALID_PARAMS, message);
        let Some(members) = meta.members()? else {
            return Ok(Self::default());
        };
        let progress_token = match members.given("progressToken") {
            Some(token) if Id::parse(token).is_none() => {
                let message =
                    "`progressToken` must be a string or an integer, of at most 1024 bytes";
                return Err(wrong(message.to_owned()));
            }
            token => token.map(Box::from),
        };
        let log_level = match era {
            Era::Modern => meta.log_level(),
            Era::Legacy => None,
        };
        Ok(Self {
            progress_token,
            log_level,
            forwarded: to_forward(members)
                .map_err(|problem| wrong(format!("`_meta` {problem}")))?,
        })
    }

    /// Returns the events that the caller wants, with log messages of at least `level`; `None` if it wants no events.
    pub(super) fn wanted(&self, level: Option<LogLevel>) -> Option<WantedEvents> {
        let wanted = WantedEvents {
            progress: self.progress_token.is_some(),
            log: level,
        };
        (wanted.progress || wanted.log.is_some()).then_some(wanted)
    }
}
