//! The config that a broker runs with: the compiled-in one, or a file that fits it.

use std::path::{Path, PathBuf};

use broker_mcp::Environment;
use broker_model::config::narrow::{self, KnownTools};
use broker_model::config::{Config, Parsed, Template};
use broker_model::lock::LockedSource;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use serde_json::Value;

use super::failure::Failure;
use crate::catalog::Catalog;
use crate::surface::http::{BadEntry, Gate, Policy};

/// A config, and where its relative paths resolve.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) base: PathBuf,
    pub(super) warnings: Vec<Diagnostic>,
}

impl Settings {
    /// Reads `file`, where given, and holds it against what was compiled in.
    pub(super) fn load(catalog: &Catalog, file: Option<&Path>) -> Result<Self, Failure> {
        let compiled = Config::parse(catalog.config_name, catalog.config.as_bytes())
            .map_err(Failure::Diagnostics)?;
        let Some(file) = file else {
            return Ok(Self {
                config: compiled.config,
                base: PathBuf::from("."),
                warnings: compiled.warnings,
            });
        };
        let name = file.display().to_string();
        let bytes = std::fs::read(file).map_err(|error| {
            let message = format!("cannot read the config: {error}");
            let unreadable = Diagnostic::error(DiagnosticCode::ConfigUnreadable, message);
            Failure::Diagnostics(vec![unreadable.in_file(name.as_str())])
        })?;
        let Parsed { config, warnings } =
            Config::parse(&name, &bytes).map_err(Failure::Diagnostics)?;
        fits(catalog, &compiled.config, &config)?;
        Ok(Self {
            config,
            base: file.parent().unwrap_or(Path::new("")).to_owned(),
            warnings,
        })
    }

    /// What the HTTP surface is to hold to; see [`Settings::gate`].
    pub(super) fn policy(
        &self,
        allow_host: &[String],
        environment: &Environment,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Policy {
        Policy {
            gate: self.gate(allow_host, environment, diagnostics),
            body_bytes: self.config.limits.body_bytes,
        }
    }

    /// The gate of `allowed_hosts`, `--allow-host` and `allowed_origins`. What cannot be used is
    /// added to `diagnostics`, all missing variables included.
    fn gate(
        &self,
        allow_host: &[String],
        environment: &Environment,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Gate {
        let mut expand = |key: &str, templates: &[Template]| -> Vec<String> {
            let mut texts = Vec::new();
            for (index, template) in templates.iter().enumerate() {
                match template.expand(&|name| environment.get(name).map(str::to_owned)) {
                    Ok(text) => texts.push(text),
                    Err(missing) => diagnostics.extend(missing.iter().map(|variable| {
                        let message = format!("the variable `{}` is not set", variable.0);
                        let place = format!("/{key}/{index}");
                        let missing = Diagnostic::error(DiagnosticCode::EnvMissing, message);
                        self.config.place(missing.at(place))
                    })),
                }
            }
            texts
        };
        let mut hosts = expand("allowed_hosts", &self.config.allowed_hosts);
        let origins = expand("allowed_origins", &self.config.allowed_origins);
        let configured = hosts.len();
        hosts.extend_from_slice(allow_host);
        Gate::new(&hosts, &origins).unwrap_or_else(|bad| {
            let diagnostic = unusable(bad, configured);
            diagnostics.push(if diagnostic.pointer.is_some() {
                self.config.place(diagnostic)
            } else {
                diagnostic
            });
            Gate::default()
        })
    }
}

/// Refuses a config that would expose more, or something else, than was compiled in. What it takes
/// away is core's to see.
fn fits(catalog: &Catalog, compiled: &Config, given: &Config) -> Result<(), Failure> {
    let known = |path: &NodePath| known_tools(catalog, path);
    match narrow::compare(compiled, given, &known) {
        Ok(_) => Ok(()),
        Err(diagnostics) => Err(Failure::Diagnostics(diagnostics)),
    }
}

/// What the lock knows of a source; nothing, where the catalog has no such source.
fn known_tools(catalog: &Catalog, path: &NodePath) -> KnownTools {
    let locked = catalog
        .sources
        .iter()
        .find(|source| source.path == path.as_str())
        .and_then(|source| serde_json::from_str::<Value>(catalog.text(source.lock)).ok())
        .and_then(|value| LockedSource::from_json(&value).ok());
    let Some(locked) = locked else {
        return KnownTools::default();
    };
    KnownTools {
        exposed: locked
            .exposed
            .into_iter()
            .map(|tool| tool.upstream_name)
            .collect(),
        hidden: locked.hidden.into_iter().map(|tool| tool.name).collect(),
    }
}

fn unusable(bad: BadEntry, configured: usize) -> Diagnostic {
    let diagnostic = |message: String| Diagnostic::error(DiagnosticCode::ConfigType, message);
    match bad {
        BadEntry::Host(index) if index >= configured => {
            diagnostic("a value of `--allow-host` is not `host` or `host:port`".to_owned())
        }
        BadEntry::Host(index) => diagnostic("the host is not `host` or `host:port`".to_owned())
            .at(format!("/allowed_hosts/{index}")),
        BadEntry::Origin(index) => {
            diagnostic("the origin is not `https://host` or `https://host:port`".to_owned())
                .at(format!("/allowed_origins/{index}"))
        }
    }
}
