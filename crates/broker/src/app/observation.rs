//! The observers of a start: the metrics, and the audit log of the config.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use broker_audit::{
    AuditError, AuditKey, AuditLog, AuditSettings, Format, LineCopy, OcsfVersion as AuditOcsf,
    Rotation, SyncMode, Versions,
};
use broker_config::{
    AuditConfig, AuditFormat, AuditIntent, AuditRotation, AuditSync, Config, OcsfVersion, Template,
};
use broker_mcp::Environment;
use broker_metrics::{CatalogDescription, Metrics, SourceDescription, ToolDescription, Transport};
use broker_model::{Backend, Diagnostic, DiagnosticCode};
use broker_observe::{Audit, AuditPolicy, Intent, Meter, Observers};

use super::settings::LoadedConfig;
use super::telemetry;
use crate::catalog::Catalog;

/// Opens the observers that a config asks for.
///
/// # Errors
///
/// The problems of the audit log.
pub(super) fn open(
    catalog: &'static Catalog,
    loaded: &LoadedConfig,
    environment: &Environment,
    surface: Transport,
) -> Result<Observers, Vec<Diagnostic>> {
    let config = &loaded.config;
    let telemetry = telemetry::open(config, environment)?;
    let audit = match &config.audit {
        None => None,
        Some(audit) => Some(Arc::new(open_audit(
            audit,
            catalog,
            (loaded, environment),
            telemetry.copy,
        )?)),
    };
    Ok(Observers {
        meter: config
            .telemetry
            .metrics
            .then(|| meter(catalog, config, surface)),
        tracer: telemetry.tracer,
        export: telemetry.export,
        audit,
        ..Observers::default()
    })
}

/// Returns the digests that are in force with a config.
pub(super) fn versions(catalog: &Catalog, config: &Config) -> Versions {
    let policy = config.access_digest();
    Versions {
        catalog: catalog.catalog_digest.to_owned(),
        policy: policy.map_or_else(String::new, |digest| digest.as_str().to_owned()),
        lock: catalog.root_digest.to_owned(),
    }
}

/// Makes the metrics of a catalog.
pub(crate) fn meter(catalog: &'static Catalog, config: &Config, surface: Transport) -> Arc<Meter> {
    let transport = |path: &str| {
        let mut sources = config.sources();
        let backend = sources.find(|source| source.path.as_str() == path);
        match backend.map(|source| source.backend()) {
            Some(Backend::Http) => Transport::Tcp,
            Some(Backend::Stdio) | None => Transport::Pipe,
        }
    };
    let sources: Vec<_> = catalog
        .sources
        .iter()
        .map(|source| SourceDescription {
            path: source.path,
            transport: transport(source.path),
        })
        .collect();
    let path = |entry| catalog.entry(entry).path;
    let tools: Vec<_> = catalog
        .items
        .iter()
        .map(|item| ToolDescription {
            path: path(item.entry),
            upstream_name: item.id,
            source: item.source,
            kind: item.kind,
        })
        .collect();
    let metrics = Metrics::new(&CatalogDescription {
        version: env!("CARGO_PKG_VERSION"),
        digest: catalog.catalog_digest,
        surface,
        sources: &sources,
        tools: &tools,
    });
    let paths = catalog.items.iter().map(|item| path(item.entry));
    Arc::new(Meter::new(Arc::new(metrics), catalog.catalog_digest, paths))
}

fn open_audit(
    audit: &AuditConfig,
    catalog: &'static Catalog,
    (loaded, environment): (&LoadedConfig, &Environment),
    copy: Option<Arc<dyn LineCopy>>,
) -> Result<Audit, Vec<Diagnostic>> {
    let config = &loaded.config;
    let expand = |key: &str, template: &Template| -> Result<PathBuf, Vec<Diagnostic>> {
        let expanded = template.expand(&|name| environment.get(name).map(str::to_owned));
        let text = expanded.map_err(|missing| {
            let missing = missing.into_iter().map(|variable| {
                let message = format!("the variable `{}` is not set", variable.0);
                let missing = Diagnostic::error(DiagnosticCode::EnvMissing, message);
                config.place(missing.at(format!("/audit/{key}")))
            });
            missing.collect::<Vec<_>>()
        })?;
        Ok(loaded.base.join(text))
    };
    let unusable = |key: &str, message: String| {
        let problem = Diagnostic::error(DiagnosticCode::AuditUnusable, message);
        vec![config.place(problem.at(format!("/audit/{key}")))]
    };
    let mut settings = AuditSettings::new(expand("file", &audit.file)?);
    settings.sync = match audit.sync {
        AuditSync::Batch => SyncMode::Batch,
        AuditSync::None => SyncMode::None,
    };
    settings.rotate = match audit.rotate {
        AuditRotation::Size => Rotation::Size(audit.rotate_bytes as u64),
        AuditRotation::Day => Rotation::Day,
    };
    settings.copy = copy;
    settings.keep = audit.keep;
    settings.format = match (audit.format, audit.ocsf_version) {
        (AuditFormat::Native, _) => Format::Native,
        (AuditFormat::Ocsf, OcsfVersion::V1_8) => Format::Ocsf(AuditOcsf::V1_8),
        (AuditFormat::Ocsf, OcsfVersion::V1_9) => Format::Ocsf(AuditOcsf::V1_9Dev),
    };
    settings.broker_version = env!("CARGO_PKG_VERSION").to_owned();
    if let Some(key_file) = &audit.key_file {
        let key = AuditKey::read(&expand("key_file", key_file)?);
        settings.key = Some(key.map_err(|error| unusable("key_file", error.to_string()))?);
    }
    let versions = Arc::new(versions(catalog, config));
    let log = AuditLog::open(settings, versions.clone()).map_err(|error| {
        let problems = unusable("file", error.to_string());
        match &error {
            AuditError::Io { error, .. } if error.kind() == ErrorKind::StorageFull => {
                let help =
                    "Free space on the file system of `audit.file`, then start the broker again.";
                problems.into_iter().map(|one| one.help(help)).collect()
            }
            _ => problems,
        }
    })?;
    let intent = match audit.intent {
        AuditIntent::Writes => Intent::Writes,
        AuditIntent::All => Intent::All,
    };
    let policy = AuditPolicy {
        is_required: audit.required,
        has_reads: audit.reads,
        intent,
    };
    Ok(Audit::new(log, policy, versions))
}
