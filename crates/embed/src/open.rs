//! Opens the models that a config names.

use std::path::Path;
use std::time::Duration;

use broker_config::{Embedder, OPENAI_KEY_VARIABLE, Search};
use broker_model::redact::Redactor;
use broker_search::Embedding;
use tokio::time::{sleep, timeout};

#[cfg(doc)]
use crate::MAX_BATCH;
use crate::{EmbedError, Endpoint, ModelIdentity, TextKind};

/// Maximum time for a batch of documents.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of attempts for a batch that the endpoint does not take for now.
const ATTEMPTS: usize = 4;
/// Maximum time between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The models of a config.
#[derive(Debug)]
pub struct Models {
    models: Vec<Model>,
}

/// A model.
#[derive(Debug)]
pub enum Model {
    /// One that runs on this machine.
    #[cfg(feature = "hf")]
    Local(crate::hf::LocalModel),
    /// One behind an endpoint.
    Endpoint(Box<Endpoint>),
}

impl Models {
    /// Opens the models of the embedder of a config; `BM25` has no models. Reads the files of local models, so that it
    /// is not for a worker of the runtime; does not send a request.
    ///
    /// `base` is the folder for relative paths, and `lookup` reads variables.
    pub fn open(
        search: &Search,
        base: &Path,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, EmbedError> {
        let models = match search.embedder {
            Embedder::Bm25 => Vec::new(),
            Embedder::OpenAi => {
                let (base, key) = (lookup("OPENAI_BASE_URL"), lookup(OPENAI_KEY_VARIABLE));
                let model = &search.openai_model;
                let endpoint = Endpoint::new(model, base.as_deref(), key.as_deref())?;
                vec![Model::Endpoint(Box::new(endpoint))]
            }
            Embedder::Hf => {
                let set = broker_files::model_of_variable(lookup);
                let first = set.or_else(|| search.hf_model.clone());
                let first = first.ok_or(EmbedError::NoModelName)?;
                let names = [Some(first), search.hf_multilingual_model.clone()];
                let names = names.into_iter().flatten();
                names
                    .map(|name| local(&name, base, lookup))
                    .collect::<Result<_, _>>()?
            }
        };
        Ok(Self { models })
    }

    /// Returns the models, the first one first.
    pub fn all(&self) -> &[Model] {
        &self.models
    }

    /// Returns a redactor that knows the key of an endpoint.
    pub fn redactor(&self) -> Redactor {
        self.models
            .iter()
            .fold(Redactor::default(), |known, model| match model {
                Model::Endpoint(endpoint) => known.merge(endpoint.redactor()),
                #[cfg(feature = "hf")]
                Model::Local(_) => known,
            })
    }

    /// Returns the index of the model that embeds a query, and the vector.
    pub async fn query(&self, query: &str) -> Result<(usize, Embedding), EmbedError> {
        // Only models on this machine are two.
        #[cfg(feature = "hf")]
        let is_second = self.models.len() > 1 && crate::language::is_other_language(query);
        #[cfg(not(feature = "hf"))]
        let is_second = false;
        let at = usize::from(is_second);
        let model = self.models.get(at).ok_or(EmbedError::NoModelName)?;
        let mut vectors = model.embed(vec![query.to_owned()], TextKind::Query).await?;
        match vectors.pop() {
            Some(vector) => Ok((at, vector)),
            None => Err(EmbedError::Busy),
        }
    }
}

#[cfg(feature = "hf")]
fn local(
    name: &str,
    base: &Path,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Model, EmbedError> {
    crate::hf::LocalModel::open(name, base, lookup).map(Model::Local)
}

#[cfg(not(feature = "hf"))]
const fn local(_: &str, _: &Path, _: &dyn Fn(&str) -> Option<String>) -> Result<Model, EmbedError> {
    Err(EmbedError::NoLocalModels)
}

impl Model {
    /// Returns its identity in the vectors of a lock.
    pub fn identity(&self) -> ModelIdentity {
        match self {
            #[cfg(feature = "hf")]
            Self::Local(model) => model.identity().clone(),
            Self::Endpoint(endpoint) => ModelIdentity {
                name: endpoint.model().to_owned(),
                files: None,
                pooling: "endpoint".to_owned(),
            },
        }
    }

    /// Returns the dimensions of its vectors, if they are known before the first text.
    pub const fn dimensions(&self) -> Option<usize> {
        match self {
            #[cfg(feature = "hf")]
            Self::Local(model) => Some(model.dimensions()),
            Self::Endpoint(_) => None,
        }
    }

    /// Computes the vectors of at most [`MAX_BATCH`] texts of tools, in their order. An endpoint that asks for a pause
    /// gets one of at most a minute, three times.
    pub async fn documents(&self, texts: Vec<String>) -> Result<Vec<Embedding>, EmbedError> {
        let mut attempt = 1;
        loop {
            let embedded = self.embed(texts.clone(), TextKind::Document);
            let late = || {
                let (count, seconds) = (texts.len(), BATCH_TIMEOUT.as_secs());
                let reason = format!("the vectors of {count} texts took longer than {seconds} s");
                Err(EmbedError::Settings(reason))
            };
            match timeout(BATCH_TIMEOUT, embedded)
                .await
                .unwrap_or_else(|_| late())
            {
                Err(EmbedError::Endpoint {
                    retry_after: Some(pause),
                    ..
                }) if attempt < ATTEMPTS => {
                    attempt += 1;
                    sleep(pause.min(MAX_PAUSE)).await;
                }
                result => return result,
            }
        }
    }

    async fn embed(
        &self,
        texts: Vec<String>,
        kind: TextKind,
    ) -> Result<Vec<Embedding>, EmbedError> {
        match self {
            #[cfg(feature = "hf")]
            Self::Local(model) => model.embed(texts, kind).await,
            Self::Endpoint(endpoint) => {
                let _ = kind;
                endpoint.embed(&texts).await
            }
        }
    }
}
