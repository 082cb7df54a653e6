//! Why a model cannot be used, or gave no vector.

use std::time::Duration;

/// The reason why a vector is absent. Texts of servers and files are shown in one line, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The program was built without local models.
    #[error("this program cannot run models: it was built without the feature `hf`")]
    NoLocalModels,
    /// The config names no model.
    #[error(
        "the embedder `HF` needs a model: neither `search.hf_model` nor MCP_BROKER_HF_MODEL names one"
    )]
    NoModelName,
    /// No folder has the model.
    #[error(transparent)]
    ModelMissing(#[from] broker_files::ModelNotFound),
    /// A file of the model cannot be used.
    #[error("the model `{name}` cannot be used: {reason}")]
    Model {
        /// The name.
        name: String,
        /// The file, and its problem.
        reason: String,
    },
    /// The settings of the endpoint cannot be used.
    #[error("{0}")]
    Settings(String),
    /// The endpoint answered no vectors.
    #[error("the endpoint {host}: {reason}")]
    Endpoint {
        /// Its host.
        host: String,
        /// The problem.
        reason: String,
        /// The pause without requests that it asks for.
        retry_after: Option<Duration>,
    },
    /// As many texts wait as may wait.
    #[error("too many texts wait for the model")]
    Busy,
}

impl EmbedError {
    /// Returns the remedy, in one sentence.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NoLocalModels => {
                "Build with the feature: `cargo build --release --locked --features hf`, for the broker and for broker-gen."
            }
            Self::NoModelName => {
                "Write the folder of a model, or its name in the cache of Hugging Face, into `search.hf_model`."
            }
            Self::ModelMissing(_) => {
                "Nothing is downloaded: install it with `hf download NAME`, or name the folder that has it."
            }
            Self::Model { .. } => {
                "Download the model again, or choose a BERT, XLM-RoBERTa or model2vec model with `model.safetensors`."
            }
            Self::Settings(_) => "Correct the variable or the member that the message names.",
            Self::Endpoint { .. } => {
                "Check OPENAI_BASE_URL, OPENAI_API_KEY and `search.openai_model`, then run the command again: vectors that were made are kept."
            }
            Self::Busy => "Try again later.",
        }
    }
}
