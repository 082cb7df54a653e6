//! The files of a model, read once with bounds.

use std::path::Path;

use broker_files::ReadError;
use broker_model::text::shown_line;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// Maximum bytes of a file of settings.
const MAX_SETTINGS_BYTES: usize = 1 << 20;
/// Maximum bytes of `tokenizer.json`.
const MAX_TOKENIZER_BYTES: usize = 64 << 20;
/// Maximum bytes of `model.safetensors`.
const MAX_TENSOR_BYTES: usize = 4 << 30;
/// The modules of `modules.json` that are computed here.
const KNOWN_MODULES: [&str; 4] = ["Transformer", "Pooling", "Normalize", "StaticEmbedding"];

/// The files of a model.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) config: Vec<u8>,
    pub(super) tokenizer: Vec<u8>,
    pub(super) tensors: Vec<u8>,
    /// `1_Pooling/config.json`.
    pub(super) pooling: Option<Vec<u8>>,
    /// `sentence_bert_config.json`.
    pub(super) sentence: Option<Vec<u8>>,
    /// `config_sentence_transformers.json`.
    pub(super) prompts: Option<Vec<u8>>,
    /// `modules.json`.
    modules: Option<Vec<u8>>,
}

/// An element of `modules.json`.
#[derive(Deserialize)]
struct Module {
    r#type: String,
}

impl Files {
    /// Reads the files of a folder. The reason of an error names the file.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let required = |name: &str, max| {
            let found = broker_files::read(&folder.join(name), max);
            found.map_err(|error| format!("`{name}`: {error}"))
        };
        let optional = |name: &str| match broker_files::read(&folder.join(name), MAX_SETTINGS_BYTES)
        {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if ReadError::is_not_found(&error) => Ok(None),
            Err(error) => Err(format!("`{name}`: {error}")),
        };
        let files = Self {
            config: required("config.json", MAX_SETTINGS_BYTES)?,
            tokenizer: required("tokenizer.json", MAX_TOKENIZER_BYTES)?,
            tensors: required("model.safetensors", MAX_TENSOR_BYTES)?,
            pooling: optional("1_Pooling/config.json")?,
            sentence: optional("sentence_bert_config.json")?,
            prompts: optional("config_sentence_transformers.json")?,
            modules: optional("modules.json")?,
        };
        files.check_modules()?;
        Ok(files)
    }

    /// Refuses models whose vectors need more than this program computes.
    fn check_modules(&self) -> Result<(), String> {
        let modules: Option<Vec<Module>> = settings("modules.json", self.modules.as_deref())?;
        for module in modules.iter().flatten() {
            let name = module.r#type.rsplit('.').next().unwrap_or_default();
            if !KNOWN_MODULES.contains(&name) {
                let name = shown_line(name, 40);
                return Err(format!(
                    "`modules.json` has the module `{name}`, which is not supported"
                ));
            }
        }
        Ok(())
    }

    /// Returns the digest of all files that decide a vector.
    pub(super) fn digest(&self) -> String {
        let files = [
            Some(&self.config),
            Some(&self.tokenizer),
            Some(&self.tensors),
            self.pooling.as_ref(),
            self.sentence.as_ref(),
            self.prompts.as_ref(),
            self.modules.as_ref(),
        ];
        let mut all = Sha256::new();
        for file in files {
            match file {
                Some(bytes) => all.update(Sha256::digest(bytes)),
                // No file has a digest of zeros.
                None => all.update([0; 32]),
            }
        }
        format!("sha256:{}", broker_model::digest::hex(&all.finalize()))
    }
}

/// Returns the content of a file of settings; `None` without the file.
pub(super) fn settings<T: DeserializeOwned>(
    name: &str,
    bytes: Option<&[u8]>,
) -> Result<Option<T>, String> {
    let read = |bytes| serde_json::from_slice(bytes).map_err(|error| (name, error));
    let read = bytes.map(read).transpose();
    read.map_err(|(name, error)| format!("`{name}`: {}", shown_line(&error.to_string(), 200)))
}
