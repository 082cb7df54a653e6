//! The file of vectors, `<config stem>.vectors`: the vector of each text of the tools by the models of the config. A
//! build reads it, without embedding texts itself.
//!
//! ```json
//! {"vectors_version": 1, "embedder": "HF", "digest": "sha256/1:…", "models": [
//!   {"name": "…", "files": "sha256:…", "pooling": "mean", "dimensions": 384, "texts": {"sha256/1:…": "…"}}]}
//! ```
//! `texts` has a vector for the digest of each text: a signed byte for each component, in Base64. `digest` covers the
//! rest of the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use broker_config::{Config, Embedder};
use broker_model::digest::Digest;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode};
use broker_search::{Document, Embedding, MAX_DIMENSIONS, vector_bytes};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::embedder_table::{EmbedderTable, ModelTable};
use crate::plan::Plan;
use crate::search_documents::search_documents;

#[cfg(test)]
mod tests;

/// The version of the file.
const VERSION: u32 = 1;
/// Maximum size: above the size of the vectors of 10 000 tools.
pub const MAX_BYTES: usize = 256 << 20;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VectorsFile {
    vectors_version: u32,
    embedder: String,
    digest: String,
    pub models: Vec<ModelVectors>,
}

/// The vectors by one model.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ModelVectors {
    /// Its name in the config.
    pub name: String,
    /// The digest of its files; `None` for an endpoint.
    pub files: Option<String>,
    /// How the vectors of the parts of a text become one.
    pub pooling: String,
    /// The number of components.
    pub dimensions: usize,
    /// The components in Base64, by the digest of the text.
    pub texts: BTreeMap<String, String>,
}

/// `<config stem>.vectors`, in the folder of the config.
pub fn vectors_file(config: &Path) -> PathBuf {
    let stem = config.file_stem().unwrap_or_default().to_string_lossy();
    config.with_file_name(format!("{stem}.vectors"))
}

/// Returns the digest of a text. The file names the text by it.
pub fn text_digest(text: &str) -> String {
    Digest::new("mcp-broker:text:1", &json!(text))
        .as_str()
        .to_owned()
}

/// The texts of tools that are embedded, by their digests.
pub fn embedded_texts(plan: &Plan<'_>) -> BTreeMap<String, String> {
    let documents = search_documents(plan);
    let texts = documents.iter().flat_map(texts);
    texts.map(|text| (text_digest(&text), text)).collect()
}

/// Returns the text of a tool, and the text of its hints.
fn texts(document: &Document<'_>) -> impl Iterator<Item = String> + use<> {
    [Some(document.embedded_text()), document.embedded_hints()]
        .into_iter()
        .flatten()
}

/// The vectors of the tools of a plan; `None` for the embedder `BM25`. `file` is the config, and `shown` its name in
/// messages.
///
/// # Errors
///
/// `vectors_stale` unless the file has exactly the texts of the plan, by the models of the config.
pub fn load(
    config: &Config,
    plan: &Plan<'_>,
    file: &Path,
    shown: &str,
) -> Result<Option<EmbedderTable>, Vec<Diagnostic>> {
    if config.search.embedder == Embedder::Bm25 {
        return Ok(None);
    }
    let shown = vectors_file(Path::new(shown))
        .to_string_lossy()
        .into_owned();
    let stale = |reason: String| {
        let message = format!("the vectors `{shown}` {reason}");
        vec![Diagnostic::error(DiagnosticCode::VectorsStale, message)]
    };
    let text = broker_files::read_text(&vectors_file(file), MAX_BYTES)
        .map_err(|error| stale(format!("cannot be read: {error}")))?;
    let content = VectorsFile::parse(&text).map_err(stale)?;
    content.table(config, plan).map(Some).map_err(stale)
}

impl VectorsFile {
    /// The file of these models.
    pub fn new(embedder: Embedder, models: Vec<ModelVectors>) -> Self {
        let mut file = Self {
            vectors_version: VERSION,
            embedder: embedder.as_str().to_owned(),
            digest: String::new(),
            models,
        };
        file.digest = file.covered();
        file
    }

    /// Reads the file. The reason of an error continues "the vectors …".
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Self = serde_json::from_str(text)
            .map_err(|error| format!("are not valid: {}", shown_line(&error.to_string(), 200)))?;
        if file.vectors_version != VERSION {
            return Err(format!(
                "have the version {}, not {VERSION}",
                file.vectors_version
            ));
        }
        match file.digest == file.covered() {
            true => Ok(file),
            false => Err("were edited: their digest is another one".to_owned()),
        }
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("its members always serialize");
        text.push('\n');
        text
    }

    /// The digest of everything but the digest.
    fn covered(&self) -> String {
        let covered = json!({
            "vectors_version": self.vectors_version,
            "embedder": self.embedder,
            "models": self.models,
        });
        Digest::new("mcp-broker:vectors:1", &covered)
            .as_str()
            .to_owned()
    }

    /// The vectors of the tools of a plan.
    fn table(&self, config: &Config, plan: &Plan<'_>) -> Result<EmbedderTable, String> {
        let search = &config.search;
        if self.embedder != search.embedder.as_str() {
            return Err(format!(
                "are those of the embedder `{}`, and the config has `{}`",
                shown_line(&self.embedder, 40),
                search.embedder.as_str()
            ));
        }
        let names = match search.embedder {
            Embedder::OpenAi => vec![Some(search.openai_model.as_str())],
            Embedder::Hf | Embedder::Bm25 => {
                let second = search.hf_multilingual_model.as_deref().map(Some);
                [Some(search.hf_model.as_deref()), second]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        };
        if self.models.len() != names.len() {
            return Err(format!(
                "are those of {}, and the config names {}",
                counted(self.models.len(), "model"),
                names.len()
            ));
        }
        let wanted = embedded_texts(plan);
        for (model, name) in self.models.iter().zip(names) {
            // A variable may have named the model.
            if name.is_some_and(|name| name != model.name) {
                return Err(format!(
                    "are those of the model `{}`, and the config names `{}`",
                    shown_line(&model.name, 100),
                    name.unwrap_or_default()
                ));
            }
            model.check_texts(&wanted)?;
        }
        let documents = search_documents(plan);
        let models = self.models.iter().map(|model| model.table(&documents));
        Ok(EmbedderTable {
            digest: self.digest.clone(),
            embedder: search.embedder,
            models: models.collect::<Result<_, _>>()?,
        })
    }
}

impl ModelVectors {
    /// Refuses texts that are missing, and texts that no tool has.
    fn check_texts(&self, wanted: &BTreeMap<String, String>) -> Result<(), String> {
        let mut missing = wanted
            .iter()
            .filter(|(digest, _)| !self.texts.contains_key(*digest));
        if let Some((_, text)) = missing.next() {
            return Err(format!(
                "lack {} by the model `{}`, for example that of `{}`",
                counted(missing.count() + 1, "text"),
                shown_line(&self.name, 100),
                shown_line(text, 100)
            ));
        }
        match self.texts.len() - wanted.len() {
            0 => Ok(()),
            more => Err(format!("have {} that no tool has", counted(more, "text"))),
        }
    }

    /// The vectors of documents.
    fn table(&self, documents: &[Document<'_>]) -> Result<ModelTable, String> {
        if !(1..=MAX_DIMENSIONS).contains(&self.dimensions) {
            return Err(format!("have {} dimensions", self.dimensions));
        }
        let vectors = documents.iter().map(|document| {
            let mut vectors = texts(document).map(|text| self.vector(&text_digest(&text)));
            let own = vectors.next().transpose()?.flatten();
            let hints = vectors.next().transpose()?.flatten();
            Ok(match (own, hints) {
                (Some(own), Some(hints)) => Some(own.between(&hints)),
                (own, hints) => own.or(hints),
            })
        });
        let vectors: Vec<_> = vectors.collect::<Result<_, String>>()?;
        Ok(ModelTable {
            name: self.name.clone(),
            files: self.files.clone(),
            dimensions: self.dimensions as u32,
            vectors: vector_bytes(self.dimensions, &vectors),
        })
    }

    /// The vector of a text that the file has; `None` if it has no direction.
    fn vector(&self, digest: &str) -> Result<Option<Embedding>, String> {
        let written = self.texts.get(digest).map_or("", String::as_str);
        let bytes = BASE64.decode(written.as_bytes());
        let bytes = bytes.ok().filter(|bytes| bytes.len() == self.dimensions);
        let bytes =
            bytes.ok_or_else(|| format!("have a vector without {} components", self.dimensions))?;
        let components: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte as i8)).collect();
        Ok(Embedding::new(&components))
    }
}

/// A vector as the file has it.
pub fn written(vector: &Embedding) -> String {
    let bytes: Vec<u8> = vector.stored().into_iter().map(|it| it as u8).collect();
    BASE64.encode(&bytes)
}
