//! `vectors`: makes the missing vectors of the texts of locked tools. `lock` does it as its last step.

use std::collections::BTreeMap;
use std::path::Path;

use broker_build::build_script;
use broker_build::plan::{self, Plan};
use broker_build::vectors_file::{self, ModelVectors, VectorsFile, embedded_texts, written};
use broker_config::{Config, Embedder};
use broker_embed::{EmbedError, MAX_BATCH, Model, ModelIdentity, Models};
use broker_model::exit::Exit;
use broker_model::text::counted;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::whole_file::{turn_if_unchanged, write_whole};
use clap::Args;

use super::output::{self, say};
use super::unattended;
use super::working::Working;

#[derive(Debug, Args)]
pub(super) struct VectorsArgs {
    #[command(flatten)]
    file: super::ConfigFile,
}

pub(super) async fn run(args: &VectorsArgs) -> Exit {
    match vectors(&args.file.config).await {
        Ok(()) => Exit::Ok,
        Err(problems) => {
            let exit = output::diagnostics(&problems);
            unattended::say_reason();
            exit
        }
    }
}

async fn vectors(file: &Path) -> Result<(), Vec<Diagnostic>> {
    let (config, lock) = build_script::read(file, &file.to_string_lossy())?;
    let plan = plan::plan(&config, &lock.sources)?;
    if unattended::is_unattended() {
        // A CI run compares, as with `lock`.
        let found = vectors_file::load(&config, &plan, file, &file.to_string_lossy());
        return found.map(|_| ());
    }
    let Some(models) = open(&config, file)? else {
        say("the embedder is `BM25`, which needs no file of vectors");
        return Ok(());
    };
    update(&config, &plan, &models, file).await
}

/// Opens the models of a config; `None` for the embedder `BM25`. Does not send requests.
pub(super) fn open(config: &Config, file: &Path) -> Result<Option<Models>, Vec<Diagnostic>> {
    if config.search.embedder == Embedder::Bm25 {
        return Ok(None);
    }
    let base = config.base(file);
    let lookup = |name: &str| std::env::var(name).ok();
    let models = Models::open(&config.search, &base, &lookup);
    models.map(Some).map_err(|error| unavailable(&error))
}

/// Makes the vectors that the file lacks, and writes it if it changes.
pub(super) async fn update(
    config: &Config,
    plan: &Plan<'_>,
    models: &Models,
    file: &Path,
) -> Result<(), Vec<Diagnostic>> {
    let path = vectors_file::vectors_file(file);
    let before = broker_files::read(&path, vectors_file::MAX_BYTES).ok();
    let old = before.as_deref();
    let old = old.and_then(|bytes| VectorsFile::parse(std::str::from_utf8(bytes).ok()?).ok());
    let old = old.map_or_else(Vec::new, |file| file.models);
    let texts = embedded_texts(plan);
    let (mut made, mut problem) = (Vec::new(), None);
    for model in models.all() {
        let mut vectors = known(&old, &model.identity(), &texts);
        let result = match &problem {
            None => embed(model, &mut vectors, &texts).await,
            Some(_) => Ok(()),
        };
        problem = problem.or(result.err());
        made.push(vectors);
    }
    let text = VectorsFile::new(config.search.embedder, made).to_text();
    let shown = path.display();
    if broker_files::holds(&path, text.as_bytes()) {
        if problem.is_none() {
            say(text!("{} is up to date", shown));
        }
    } else {
        let _turn = turn_if_unchanged(&path, before.as_deref(), vectors_file::MAX_BYTES)?;
        // Vectors that were made before a failure are kept, so that they are not made again.
        write_whole(&path, text.as_bytes()).map_err(|error| {
            let message = format!("`{shown}` cannot be written: {error}");
            vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
        })?;
        if problem.is_none() {
            say(text!("wrote {}: commit it with the lock", shown));
        }
    }
    problem.map_or(Ok(()), |problem| Err(unavailable(&problem)))
}

/// The vectors of an older file that this model made, of texts that tools have.
fn known(
    old: &[ModelVectors],
    identity: &ModelIdentity,
    texts: &BTreeMap<String, String>,
) -> ModelVectors {
    let made_by = |vectors: &&ModelVectors| {
        vectors.files == identity.files
            && vectors.pooling == identity.pooling
            && (vectors.files.is_some() || vectors.name == identity.name)
    };
    let (mut kept, mut dimensions) = (BTreeMap::new(), 0);
    if let Some(vectors) = old.iter().find(made_by) {
        kept.clone_from(&vectors.texts);
        kept.retain(|digest, _| texts.contains_key(digest));
        dimensions = vectors.dimensions;
    }
    ModelVectors {
        name: identity.name.clone(),
        files: identity.files.clone(),
        pooling: identity.pooling.clone(),
        dimensions,
        texts: kept,
    }
}

/// Embeds the texts that have no vector.
async fn embed(
    model: &Model,
    vectors: &mut ModelVectors,
    texts: &BTreeMap<String, String>,
) -> Result<(), EmbedError> {
    let missing = texts
        .iter()
        .filter(|(digest, _)| !vectors.texts.contains_key(*digest));
    let missing: Vec<_> = missing
        .map(|(digest, text)| (digest.clone(), text.clone()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let count = counted(missing.len(), "text");
    match model {
        Model::Endpoint(endpoint) => say(text!("sends {} to {}", count, endpoint.host())),
        #[cfg(feature = "hf")]
        Model::Local(_) => say(text!("embeds {} with {}", count, vectors.name)),
    }
    let _working = Working::begin(format!("making the vectors of {count}"));
    for batch in missing.chunks(MAX_BATCH) {
        let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
        let made = model.documents(texts).await?;
        for ((digest, _), vector) in batch.iter().zip(made) {
            if vectors.texts.is_empty() {
                vectors.dimensions = vector.dimensions();
            }
            if vector.dimensions() != vectors.dimensions {
                return Err(EmbedError::Settings(format!(
                    "the model `{}` gives {} dimensions now, and gave {} before: remove the file of vectors to make all again",
                    vectors.name,
                    vector.dimensions(),
                    vectors.dimensions
                )));
            }
            vectors.texts.insert(digest.clone(), written(&vector));
        }
    }
    Ok(())
}

/// The diagnostics of a model that cannot be used.
pub(super) fn unavailable(error: &EmbedError) -> Vec<Diagnostic> {
    let problem = Diagnostic::error(DiagnosticCode::EmbedderUnavailable, error.to_string());
    vec![problem.help(error.remedy())]
}
