//! Models on this machine, in the files that Hugging Face uses. A model computes on a thread that it starts.

mod folder;
mod network;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use broker_model::text::shown_line;
use broker_search::Embedding;
use serde::Deserialize;
use tokenizers::{Tokenizer, TruncationParams};
use tokio::sync::oneshot;

use crate::{EmbedError, ModelIdentity, TextKind};
use broker_files::{Lookup, find_model};
use folder::{Files, settings};
use network::{Network, Pooling};

/// Maximum number of jobs that wait for a model.
const MAX_WAITING: usize = 32;
/// The text that finds out the dimensions of a model.
const PROBE: &str = "file";
/// Maximum length of a prefix, in bytes.
const MAX_PREFIX_BYTES: usize = 1000;

/// A model whose thread runs until it is dropped.
#[derive(Debug)]
pub struct LocalModel {
    identity: ModelIdentity,
    dimensions: usize,
    jobs: SyncSender<Job>,
}

/// Texts to embed.
#[derive(Debug)]
struct Job {
    texts: Vec<String>,
    kind: TextKind,
    reply: oneshot::Sender<Result<Vec<Embedding>, EmbedError>>,
}

/// The data of the thread of a model.
struct Loaded {
    name: String,
    network: Network,
    tokenizer: Tokenizer,
    pooling: Pooling,
    /// The prefix of a query.
    query_prefix: String,
    /// The prefix of a document.
    document_prefix: String,
}

#[derive(Default, Deserialize)]
struct Prompts {
    #[serde(default)]
    prompts: BTreeMap<String, Option<String>>,
}

impl LocalModel {
    /// Finds and loads a model. Blocks for the time that its files take; starts a thread.
    pub(crate) fn open(name: &str, base: &Path, lookup: Lookup<'_>) -> Result<Self, EmbedError> {
        let folder = find_model(name, base, lookup)?;
        let failed = |reason: String| EmbedError::Model {
            name: shown_line(name, 200),
            reason,
        };
        let of_thread = name.to_owned();
        let (jobs, waiting) = sync_channel(MAX_WAITING);
        let (opened, result) = std::sync::mpsc::channel();
        // A library that panics on hostile files ends this thread, not the program.
        let work = move || match Loaded::open(&of_thread, &folder) {
            Ok((loaded, identity, dimensions)) => {
                if opened.send(Ok((identity, dimensions))).is_ok() {
                    loaded.work(&waiting);
                }
            }
            Err(reason) => drop(opened.send(Err(reason))),
        };
        let thread = thread::Builder::new().name("broker-embed".to_owned());
        thread
            .spawn(work)
            .map_err(|error| failed(error.to_string()))?;
        let unreadable = || Err("its files cannot be read".to_owned());
        let (identity, dimensions) = result
            .recv()
            .unwrap_or_else(|_| unreadable())
            .map_err(failed)?;
        Ok(Self {
            identity,
            dimensions,
            jobs,
        })
    }

    pub(crate) const fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    pub(crate) const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Computes the vectors of texts, in their order. A caller that leaves cancels what has not begun.
    pub(crate) async fn embed(
        &self,
        texts: Vec<String>,
        kind: TextKind,
    ) -> Result<Vec<Embedding>, EmbedError> {
        let (reply, answer) = oneshot::channel();
        let job = Job { texts, kind, reply };
        match self.jobs.try_send(job) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(self.ended())),
            Err(TrySendError::Full(_)) => Err(EmbedError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(self.ended()),
        }
    }

    fn ended(&self) -> EmbedError {
        EmbedError::Model {
            name: self.identity.name.clone(),
            reason: "its thread has ended".to_owned(),
        }
    }
}

impl Loaded {
    /// Reads a model, and finds out its dimensions.
    fn open(name: &str, folder: &Path) -> Result<(Self, ModelIdentity, usize), String> {
        let mut files = Files::read(folder)?;
        let identity = |pooling: &str, files: &Files| ModelIdentity {
            name: name.to_owned(),
            files: Some(files.digest()),
            pooling: pooling.to_owned(),
        };
        let pooling = Pooling::read(&files)?;
        let identity = identity(pooling.as_str(), &files);
        let prompts = settings::<Prompts>(
            "config_sentence_transformers.json",
            files.prompts.as_deref(),
        )?;
        let prompts = prompts.unwrap_or_default().prompts;
        let prefix = |names: &[&str]| {
            let found = names.iter().find_map(|name| prompts.get(*name)?.clone());
            let prefix = found.unwrap_or_default();
            match prefix.len() <= MAX_PREFIX_BYTES {
                true => Ok(prefix),
                false => Err(
                    "`config_sentence_transformers.json` has a prompt that is too long".to_owned(),
                ),
            }
        };
        let (query_prefix, document_prefix) =
            (prefix(&["query"])?, prefix(&["document", "passage"])?);
        let (network, parts) = Network::load(&mut files)?;
        let of_tokenizer = |error: tokenizers::Error| {
            format!("`tokenizer.json`: {}", shown_line(&error.to_string(), 300))
        };
        let mut tokenizer = Tokenizer::from_bytes(&files.tokenizer).map_err(of_tokenizer)?;
        let truncation = TruncationParams {
            max_length: parts,
            ..TruncationParams::default()
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(of_tokenizer)?;
        tokenizer.with_padding(None);
        let loaded = Self {
            name: name.to_owned(),
            network,
            tokenizer,
            pooling,
            query_prefix,
            document_prefix,
        };
        let probe = loaded.embed(PROBE, TextKind::Query)?;
        Ok((loaded, identity, probe.dimensions()))
    }

    /// Embeds until the model is dropped.
    fn work(&self, waiting: &Receiver<Job>) {
        while let Ok(job) = waiting.recv() {
            let mut vectors = Ok(Vec::with_capacity(job.texts.len()));
            for text in &job.texts {
                // The caller has left, for example after a timeout.
                if job.reply.is_closed() {
                    break;
                }
                match (self.embed(text, job.kind), &mut vectors) {
                    (Ok(vector), Ok(vectors)) => vectors.push(vector),
                    (Err(reason), _) => {
                        let name = self.name.clone();
                        vectors = Err(EmbedError::Model { name, reason });
                        break;
                    }
                    (Ok(_), Err(_)) => break,
                }
            }
            drop(job.reply.send(vectors));
        }
    }

    fn embed(&self, text: &str, kind: TextKind) -> Result<Embedding, String> {
        let prefix = match kind {
            TextKind::Query => &self.query_prefix,
            TextKind::Document => &self.document_prefix,
        };
        let with_marks = !matches!(self.network, Network::Table(_));
        let encoded = self
            .tokenizer
            .encode_fast(format!("{prefix}{text}"), with_marks)
            .map_err(|error| shown_line(&error.to_string(), 200))?;
        let vector = self.network.embed(encoded.get_ids(), self.pooling)?;
        Embedding::new(&vector).ok_or_else(|| "a text has a vector without a direction".to_owned())
    }
}
