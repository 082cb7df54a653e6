//! Reads the input of a verb: the config, the lock beside it, and the launch settings of its sources.

use std::path::PathBuf;

use broker_build::build_script::parse_config;
use broker_build::lock_file;
use broker_config::{Config, Source};
use broker_mcp::{ConcurrencyLimits, Environment, SourceSpec, resolve};
use broker_model::lock::Lock;
use broker_model::trust::Exposure;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use broker_review::lock_file::{LockFile, read_lock};

use super::ConfigArgs;

/// A config, its file, and the launch settings of the selected sources.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) config: Config,
    pub(super) lock_path: PathBuf,
    /// In tree order; only the sources that `--source` names, if it is given.
    pub(super) specs: Vec<SourceSpec>,
    /// The selected sources that cannot be launched here, each with the reasons: a variable is not set.
    pub(super) unresolved: Vec<(NodePath, Vec<Diagnostic>)>,
    /// The limits that all launches share.
    pub(super) concurrency: ConcurrencyLimits,
}

/// A config and the launch settings of the selected sources, or why a source cannot be launched.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) config: Config,
    pub(super) lock_path: PathBuf,
    /// In tree order; only the sources that `--source` names, if it is given.
    pub(super) specs: Vec<(NodePath, Result<SourceSpec, Vec<Diagnostic>>)>,
    concurrency: ConcurrencyLimits,
}

impl Selection {
    /// Reads the config and expands the variables of its sources. Warnings are printed. Also returns a
    /// problem for each `--source` that is not in the config.
    pub(super) fn read(args: &ConfigArgs) -> Result<(Self, Vec<Diagnostic>), Vec<Diagnostic>> {
        let shown = args.file.config.to_string_lossy();
        let parsed = parse_config(&args.file.config, &shown)?;
        super::output::diagnostics(&parsed.warnings);
        let config = parsed.config;

        let mut problems = Vec::new();
        for name in &args.sources {
            if !config.sources().any(|source| source.path.as_str() == name) {
                let known: Vec<_> = config
                    .sources()
                    .map(|source| format!("`{}`", source.path))
                    .collect();
                let message = format!("`--source {name}` is not a source of the config");
                problems.push(
                    Diagnostic::error(DiagnosticCode::PathInvalid, message)
                        .help(format!("The sources are {}.", known.join(", "))),
                );
            }
        }
        let environment = Environment::capture().with(args.variables.clone());
        let base = config.base(&args.file.config);
        let wanted = |source: &&Source| {
            args.sources.is_empty() || args.sources.iter().any(|name| name == source.path.as_str())
        };
        let concurrency = ConcurrencyLimits::new();
        let specs = config.sources().filter(wanted).map(|source| {
            let spec = resolve(source, &config.limits, &environment, &base, &concurrency);
            let spec = spec.map_err(|problems| {
                let problems = problems.into_iter();
                problems.map(|problem| config.place(problem)).collect()
            });
            (source.path.clone(), spec)
        });
        let specs = specs.collect();
        let selection = Self {
            lock_path: lock_file(&args.file.config),
            config,
            specs,
            concurrency,
        };
        Ok((selection, problems))
    }

    /// From now on, compares the names of a source's tools with the version of the sensitive-word list in its lock.
    pub(super) fn use_word_lists_of(&mut self, lock: &Lock) {
        self.config.use_word_lists_of(lock);
        for spec in self
            .specs
            .iter_mut()
            .filter_map(|(_, spec)| spec.as_mut().ok())
        {
            spec.exposure = exposure_of(&self.config, spec);
        }
    }
}

/// Returns the exposure of a source in the config. It decides which part of its listing is read.
fn exposure_of(config: &Config, spec: &SourceSpec) -> Exposure {
    let source = config.source(&spec.source);
    source.map_or_else(|| spec.exposure.clone(), |source| source.exposure.clone())
}

impl Input {
    /// Reads the config and expands the variables of its sources. Warnings are printed.
    pub(super) fn read(args: &ConfigArgs) -> Result<Self, Vec<Diagnostic>> {
        let (selection, problems) = Selection::read(args)?;
        let (mut specs, mut unresolved) = (Vec::new(), Vec::new());
        for (path, spec) in selection.specs {
            match spec {
                Ok(spec) => specs.push(spec),
                Err(found) => unresolved.push((path, found)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            lock_path: selection.lock_path,
            config: selection.config,
            specs,
            unresolved,
            concurrency: selection.concurrency,
        })
    }

    /// From now on, compares the names of a source's tools with the version of the sensitive-word list in its lock.
    pub(super) fn use_word_lists_of(&mut self, lock: &Lock) {
        self.config.use_word_lists_of(lock);
        for spec in &mut self.specs {
            spec.exposure = exposure_of(&self.config, spec);
        }
    }

    /// The launch settings of a selected source.
    pub(super) fn spec(&self, source: &NodePath) -> Option<&SourceSpec> {
        self.specs.iter().find(|spec| spec.source == *source)
    }

    /// Returns the paths of the selected sources that can be launched.
    pub(super) fn launched(&self) -> impl Iterator<Item = &NodePath> {
        self.specs.iter().map(|spec| &spec.source)
    }

    /// Reads the lock; `lock_missing` if the file is missing.
    pub(super) fn read_lock(&self) -> Result<LockFile, Vec<Diagnostic>> {
        read_lock(&self.lock_path)
    }
}
