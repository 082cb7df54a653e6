//! Embedding models: a vector for a text, whose direction says what the text is about.
//!
//! [`Models::open`] opens what a config names: one or two models on this machine (feature `hf`), or an endpoint with the
//! embeddings API of OpenAI. The generator makes the tool vectors with them, and the broker makes the query vectors.
//!
//! - **A model that runs here** computes on a thread that it starts, so that no worker of the runtime is occupied. Its
//!   files are read once, with bounds, and never downloaded.
//! - **An endpoint** gets the key of `OPENAI_API_KEY` and texts, over TLS unless it is on this machine. No redirect is
//!   followed. Answers are bounded, and an answer that is not one vector for each text is an error.

#![forbid(unsafe_code)]

mod endpoint;
mod error;
#[cfg(feature = "hf")]
mod hf;
#[cfg(feature = "hf")]
mod language;
mod open;

pub use endpoint::{Endpoint, MAX_BATCH};
pub use error::EmbedError;
pub use open::{Model, Models};

/// Whether this program can run models on this machine.
pub const HAS_LOCAL_MODELS: bool = cfg!(feature = "hf");

/// The role of a text. Some models read a different prefix before each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// The text of a search.
    Query,
    /// The text of a tool.
    Document,
}

/// A model, as the vectors of a lock name it. Vectors of different models cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The name in the config.
    pub name: String,
    /// The digest of its files; `None` for an endpoint, whose files are unknown.
    pub files: Option<String>,
    /// The way to make one vector from the vectors of a text's parts: `mean`, `cls`, `max`, or `endpoint`.
    pub pooling: String,
}
