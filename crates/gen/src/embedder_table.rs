//! The vectors of the tools in a catalog.

use broker_config::Embedder;

/// The vectors of the tools of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderTable {
    /// The digest of the file.
    pub digest: String,
    /// The embedder that made them.
    pub embedder: Embedder,
    /// One model or two.
    pub models: Vec<ModelTable>,
}

/// The vectors of the tools of a plan by one model, in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTable {
    /// Its name in the config.
    pub name: String,
    /// The digest of its files; `None` for an endpoint.
    pub files: Option<String>,
    /// The number of components.
    pub dimensions: u32,
    /// The bytes of a [`broker_search::ModelVectors`].
    pub vectors: Vec<u8>,
}
