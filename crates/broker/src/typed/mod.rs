//! The typed Rust API: a broker inside a program, whose tools are called by their generated types.
//!
//! ```
//! # use mcp_broker::typed::{Broker, CallError, OpenError, Tool};
//! # mod tools { pub mod util { pub mod hash_text {
//! #     #[derive(serde::Serialize)] pub struct Args { pub text: String }
//! #     #[derive(serde::Deserialize)] pub struct Output { pub hash: String }
//! #     pub struct Tool;
//! #     impl mcp_broker::typed::Tool for Tool {
//! #         type Args = Args; type Output = Output;
//! #         const PATH: &'static str = "/util/hash_text"; const HAS_OUTPUT: bool = true;
//! #     }
//! # } } }
//! use tools::util::hash_text;
//!
//! async fn hash(broker: &Broker, text: &str) -> Result<String, CallError> {
//!     let args = hash_text::Args { text: text.to_owned() };
//!     let called = broker.call::<hash_text::Tool>(args).await?;
//!     Ok(called.output.hash)
//! }
//! ```
//!
//! [`include_catalog!`](crate::include_catalog) includes the modules, generated from the reviewed lock: a lock that no
//! longer has a tool, or has it with other arguments, breaks the build of its callers. Calls go through
//! [`core`](crate::core) like the calls of every surface.

use std::sync::atomic::{AtomicU64, Ordering};

use broker_model::json::NoDuplicates;
use bytes::Bytes;
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};

pub(crate) mod error;
mod number;
mod result;

pub use broker_drift::Report;
pub use broker_mcp::Environment;
pub use broker_model::{CallCode, Diagnostic};
pub use error::{CallError, OpenError};
pub use number::Number;
pub use result::RawResult;

pub use crate::app::OpenOptions as Options;
use crate::app::Stack;
use crate::core::Broker as _;
pub use crate::core::{CoreError, StartMode};

use crate::catalog::Catalog;
use crate::core::{
    Account, Args, CallContext, Core, Identity, Operation, Request, RequestId, ResultForm,
    SMALL_BYTES,
};

/// A tool of the lock, as generated. Not meant to be implemented by hand.
pub trait Tool {
    /// Its arguments: one JSON object, shaped as the reviewed schema says. Bounds and formats are not
    /// part of the type; the broker checks them before it sends anything.
    type Args: Serialize;
    /// Its structured result; `()` if the lock has no output schema.
    type Output: DeserializeOwned;
    /// Its path in the tree.
    const PATH: &'static str;
    /// Whether the lock has an output schema.
    const HAS_OUTPUT: bool;
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult<O> {
    /// `structuredContent` as the tool's type; `()` if the lock has no output schema.
    pub output: O,
    /// The complete result as the server sent it.
    pub raw: RawResult,
}

/// A broker in this process. Cheap to clone; all clones share one broker, and [`Broker::close`] ends
/// it.
#[derive(Clone, Debug)]
pub struct Broker {
    core: Core,
    stack: Stack,
    account: Account,
}

impl Broker {
    /// Starts every source of `catalog` and, with [`StartMode::Plain`], waits until each required one was
    /// compared with the lock; that can take as long as the slowest source's `startup_timeout`.
    ///
    /// Must be called within a tokio runtime with IO and time enabled. The runtime must outlive the broker.
    ///
    /// # Errors
    ///
    /// [`OpenError::Diagnostics`] if config or environment cannot be used, [`OpenError::Refused`] if a
    /// source differs from the lock or could not be started; all sources are stopped then.
    pub async fn open(catalog: &'static Catalog, options: Options) -> Result<Self, OpenError> {
        let (core, stack) = crate::app::open(catalog, options).await?;
        let account = core.services().memory().whole_account();
        Ok(Self {
            core,
            stack,
            account,
        })
    }

    /// Calls a tool and waits for its answer, at most as long as the tool's `timeout`. Dropping the
    /// future cancels the call at the server.
    ///
    /// # Errors
    ///
    /// [`CallError::Failed`] with a code of the closed list, [`CallError::Tool`] if the tool reports a
    /// failure, [`CallError::Output`] if its answer does not fit the type; the last two keep the raw
    /// result.
    pub async fn call<T: Tool>(&self, args: T::Args) -> Result<ToolResult<T::Output>, CallError> {
        let raw = self.send(T::PATH, &args).await?;
        if raw.is_error() {
            return Err(CallError::Tool { raw });
        }
        match raw.output(T::HAS_OUTPUT) {
            Ok(output) => Ok(ToolResult { output, raw }),
            Err(message) => Err(CallError::Output { message, raw }),
        }
    }

    /// The core below: listing, describing, health, and calls by path.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// Refuses new calls, waits for those in flight, and stops every source. Idempotent. Without it the
    /// sources end with the process, or when their runtime does.
    pub async fn close(&self) {
        crate::app::close(&self.core).await;
    }

    async fn send(
        &self,
        path: &'static str,
        args: &impl Serialize,
    ) -> Result<RawResult, CallError> {
        static CALLS: AtomicU64 = AtomicU64::new(1);
        let unusable = |error: serde_json::Error| {
            let message = format!("the arguments cannot be written as JSON: {error}");
            CoreError::new(CallCode::ArgsInvalid, message)
                .path(path)
                .maybe_executed(false)
        };
        let bytes = serde_json::to_vec(args).map_err(unusable)?;
        let body = Bytes::from(bytes);
        let args = if body.len() > SMALL_BYTES {
            let at = 0..body.len();
            Args::Unread { body, at }
        } else {
            // An undeclared member may have the name of a declared one. Some readers use the first of the two, some the
            // last, and the validated value must be the value that the server reads.
            let NoDuplicates(value) = serde_json::from_slice(&body).map_err(unusable)?;
            Args::Read { text: body, value }
        };
        let number = CALLS.fetch_add(1, Ordering::Relaxed).to_string();
        let request = Request {
            identity: Identity::local(),
            context: CallContext::new(
                RequestId::new(&["typed-", &number]),
                self.account.clone(),
                ResultForm::Verbatim,
            ),
            path: path.into(),
            operation: Operation::CallTool(args),
        };
        Ok(RawResult::new(self.stack.call(request).await?.result))
    }
}

/// Reads a member that is present, including null: generated types use it to distinguish null from
/// absent.
///
/// # Errors
///
/// The errors of reading the member's type.
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
