//! The vectors of queries: made by the models of the catalog's build, and kept for each class of callers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use broker_config::{Config, Embedder, Search};
use broker_embed::{EmbedError, Model, ModelIdentity, Models};
use broker_mcp::Environment;
use broker_model::redact::Redactor;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_search::{Embedding, ModelVectors, Similarity};
use tokio::time::timeout;

use crate::admission::AdmissionClass;
use crate::catalog::{Catalog, ModelTable};

/// The maximum number of vectors that are kept.
const MAX_KEPT: usize = 1024;
/// Maximum number of products of components of a search on a worker of the runtime.
const LONG_SEARCH: usize = 2_000_000;

/// The models of a core.
pub(crate) struct QueryVectors {
    models: Models,
    /// The vectors of the tools by each model.
    tools: Vec<ModelVectors<'static>>,
    /// Whether queries leave this machine.
    is_external: bool,
    timeout: Duration,
    /// Whether the last query got no vector.
    is_failing: AtomicBool,
    kept: Mutex<Kept>,
}

/// A query of the callers of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct QueryKey {
    class: AdmissionClass,
    text: String,
}

/// The vectors that were used last. A vector of one class is not used for another, so that no caller learns from the
/// time of an answer about the searches of callers with other rights.
#[derive(Default)]
struct Kept {
    vectors: HashMap<QueryKey, (u64, usize, Arc<Embedding>)>,
    clock: u64,
}

/// The vector of a query, or the reason why it is absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryVector(State);

#[derive(Clone, Debug, Default)]
enum State {
    /// The broker uses no model.
    #[default]
    NotUsed,
    /// The model gave no vector in time.
    Failed,
    /// The number of the model, and its vector.
    Vector(usize, Arc<Embedding>),
}

impl QueryVector {
    /// Whether a search with this vector takes longer than a worker of the runtime may be occupied.
    pub(crate) fn is_long_search(&self, catalog: &Catalog) -> bool {
        match &self.0 {
            State::Vector(_, query) => query.dimensions() * catalog.items.len() > LONG_SEARCH,
            State::NotUsed | State::Failed => false,
        }
    }

    /// Whether a model is used and gave no vector.
    pub(crate) const fn has_failed(&self) -> bool {
        matches!(self.0, State::Failed)
    }
}

impl QueryVectors {
    /// Opens the models of the catalog's build, unless `chosen` is `BM25`.
    pub(crate) fn open(
        catalog: &Catalog,
        chosen: Option<(Embedder, &str)>,
        config: &Config,
        base: &Path,
        environment: &Environment,
    ) -> Result<Option<Self>, Box<Diagnostic>> {
        let compiled = catalog.search.embedder;
        let built = compiled.map_or(Embedder::Bm25, |table| table.embedder);
        let (chosen, setting) = chosen.unwrap_or((built, ""));
        if chosen != built && chosen != Embedder::Bm25 {
            let message = format!(
                "{setting} is `{}`, and the catalog was built for `{}`",
                chosen.as_str(),
                built.as_str()
            );
            return Err(mismatch(message));
        }
        let (Some(compiled), true) = (compiled, chosen == built) else {
            return Ok(None);
        };
        // A config that is not the compiled-in one has the same embedder: this was checked.
        let search = Search {
            embedder: built,
            ..config.search.clone()
        };
        let lookup = |name: &str| environment.get(name).map(str::to_owned);
        let models = Models::open(&search, base, &lookup).map_err(|error| unavailable(&error))?;
        let opened = models.all();
        if opened.len() != compiled.models.len() {
            let message = format!(
                "the config names {} models, and the catalog was built with the vectors of {}",
                opened.len(),
                compiled.models.len()
            );
            return Err(mismatch(message));
        }
        let mut tools = Vec::new();
        for (model, table) in opened.iter().zip(compiled.models) {
            check(model, table)?;
            let vectors = ModelVectors::new(table.vectors, catalog.items.len() as u32);
            tools.push(vectors.map_err(|error| {
                let message = error.to_string();
                Box::new(Diagnostic::error(DiagnosticCode::LockVersion, message))
            })?);
        }
        Ok(Some(Self {
            models,
            tools,
            is_external: built == Embedder::OpenAi,
            timeout: search.timeout,
            is_failing: AtomicBool::new(false),
            kept: Mutex::default(),
        }))
    }

    /// Whether the last query got no vector.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Returns a redactor that knows the key of an endpoint.
    pub(crate) fn redactor(&self) -> Redactor {
        self.models.redactor()
    }

    /// Returns the similarity of tools to a query with this vector; `None` without one.
    pub(crate) fn similarity<'a>(&'a self, vector: &'a QueryVector) -> Option<Similarity<'a>> {
        match &vector.0 {
            State::Vector(model, query) => {
                let tools = self.tools.get(*model)?;
                Some(Similarity::Model(tools, query))
            }
            State::NotUsed | State::Failed => None,
        }
    }

    /// Returns the vector of a query of callers of a class. `redactor` is asked if queries leave this machine.
    pub(crate) async fn get(
        &self,
        class: AdmissionClass,
        query: &str,
        redactor: impl FnOnce() -> Redactor,
    ) -> QueryVector {
        // A secret that a caller types by mistake does not leave this machine.
        let query = match self.is_external {
            true => redactor().redact(query),
            false => query.to_owned(),
        };
        let key = QueryKey { class, text: query };
        if let Some((model, vector)) = self.kept().find(&key) {
            return QueryVector(State::Vector(model, vector));
        }
        let made = timeout(self.timeout, self.models.query(&key.text)).await;
        let made = match made {
            Ok(Ok((model, vector))) if self.fits(model, &vector) => Ok((model, vector)),
            Ok(Ok((_, vector))) => Err(format!("it gave {} dimensions", vector.dimensions())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no vector within {} ms", self.timeout.as_millis())),
        };
        self.log(made.as_ref().err());
        match made {
            Ok((model, vector)) => {
                let vector = Arc::new(vector);
                self.kept().keep(key, model, Arc::clone(&vector));
                QueryVector(State::Vector(model, vector))
            }
            Err(_) => QueryVector(State::Failed),
        }
    }

    /// Whether a vector has the dimensions of the tool vectors.
    fn fits(&self, model: usize, vector: &Embedding) -> bool {
        let tools = self.tools.get(model);
        tools.is_some_and(|tools| tools.dimensions() == vector.dimensions())
    }

    /// Logs the first failure after a success, and the first success after a failure.
    fn log(&self, failure: Option<&String>) {
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(reason) if !was_failing => {
                tracing::warn!(reason, "words answer searches: the model gave no vector");
            }
            None if was_failing => tracing::info!("the model answers searches again"),
            _ => {}
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Every change leaves valid vectors.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, key: &QueryKey) -> Option<(usize, Arc<Embedding>)> {
        self.clock += 1;
        let (used, model, vector) = self.vectors.get_mut(key)?;
        *used = self.clock;
        Some((*model, Arc::clone(vector)))
    }

    /// Keeps a vector; the one that was used longest ago is forgotten first.
    fn keep(&mut self, key: QueryKey, model: usize, vector: Arc<Embedding>) {
        if self.vectors.len() >= MAX_KEPT {
            let oldest = self.vectors.iter().min_by_key(|(_, (used, ..))| *used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.vectors.remove(&key));
        }
        self.clock += 1;
        self.vectors.insert(key, (self.clock, model, vector));
    }
}

/// Checks that a model is the one that made the vectors of the tools.
fn check(model: &Model, table: &ModelTable) -> Result<(), Box<Diagnostic>> {
    let ModelIdentity { name, files, .. } = model.identity();
    let is_same = match (&files, table.files) {
        (Some(own), Some(compiled)) => own == compiled,
        (None, None) => name == table.name,
        _ => false,
    };
    if is_same {
        return Ok(());
    }
    let digest = |files: Option<&str>| files.map_or_else(String::new, |it| format!(" ({it})"));
    let message = format!(
        "the model `{name}`{} is not `{}`{}, which made the vectors of the catalog",
        digest(files.as_deref()),
        table.name,
        digest(table.files)
    );
    Err(mismatch(message))
}

/// Returns the diagnostic of a model that cannot be used.
fn unavailable(error: &EmbedError) -> Box<Diagnostic> {
    let diagnostic = Diagnostic::error(DiagnosticCode::EmbedderUnavailable, error.to_string());
    Box::new(diagnostic.help(error.remedy()))
}

fn mismatch(message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(DiagnosticCode::EmbedderMismatch, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::access::GroupSet;

    #[test]
    fn vectors_are_kept_by_class_and_the_oldest_is_forgotten() {
        let key = |policy, text: &str| QueryKey {
            class: AdmissionClass::new(policy, GroupSet::default(), None),
            text: text.to_owned(),
        };
        let vector = Arc::new(Embedding::new(&[1.0]).expect("it has a direction"));
        let mut kept = Kept::default();
        for at in 0..MAX_KEPT {
            kept.keep(key(0, &at.to_string()), 0, Arc::clone(&vector));
        }
        assert!(kept.find(&key(1, "0")).is_none());
        assert!(kept.find(&key(0, "0")).is_some());
        kept.keep(key(1, "0"), 0, vector);
        assert_eq!(kept.vectors.len(), MAX_KEPT);
        assert!(kept.find(&key(0, "1")).is_none(), "the oldest");
        assert!(kept.find(&key(0, "0")).is_some());
    }
}
