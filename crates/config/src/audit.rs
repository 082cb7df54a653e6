//! The section `audit`: the log of calls that can be verified.

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::template::Template;
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;

const LEVEL: Level = Level::Audit;

/// The log of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The file, relative to the config's folder.
    pub file: Template,
    /// Whether no call is sent without its line in the log.
    pub required: bool,
    /// Whether listings, descriptions and searches have lines.
    pub reads: bool,
    /// The calls that have a line before they are sent.
    pub intent: AuditIntent,
    /// Whether lines are on the disk before a call is sent.
    pub sync: AuditSync,
    /// When a new file begins.
    pub rotate: AuditRotation,
    /// The maximum bytes of a file, for the rotation by size.
    pub rotate_bytes: usize,
    /// The number of earlier files that are kept; `None` keeps all.
    pub keep: Option<usize>,
    /// The file with the key that signs checkpoints, relative to the config's folder.
    pub key_file: Option<Template>,
    /// The form of lines.
    pub format: AuditFormat,
    /// The version of the schema, for the format `ocsf`.
    pub ocsf_version: OcsfVersion,
}

/// The calls that have a line before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditIntent {
    /// Calls that may change something.
    Writes,
    /// Every call.
    All,
}

/// Whether lines are on the disk before a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditSync {
    /// The file is synced after each batch of lines.
    Batch,
    /// The operating system writes lines to the disk later.
    None,
}

/// When a new file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditRotation {
    /// When a file has reached its maximum bytes.
    Size,
    /// With each day, in UTC.
    Day,
}

/// The form of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// The form of `docs/audit-log.md`.
    Native,
    /// The Open Cybersecurity Schema Framework.
    Ocsf,
}

/// A version of the Open Cybersecurity Schema Framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcsfVersion {
    /// 1.8.0.
    V1_8,
    /// 1.9 as it is developed, with the profile `record_integrity`.
    V1_9,
}

/// Reads the section; `None` without a usable file.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<AuditConfig> {
    let members = fields::object(findings, cursor, "an object")?;
    let mut file = None;
    let mut out = AuditConfig {
        file: Template::default(),
        required: keys::key(LEVEL, "required").value(),
        reads: keys::key(LEVEL, "reads").value(),
        intent: AuditIntent::Writes,
        sync: AuditSync::Batch,
        rotate: AuditRotation::Size,
        rotate_bytes: keys::key(LEVEL, "rotate_bytes").value(),
        keep: None,
        key_file: None,
        format: AuditFormat::Native,
        ocsf_version: OcsfVersion::V1_8,
    };
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "file" => file = fields::template(findings, &value),
            "required" => out.required = fields::boolean(findings, &value).unwrap_or(true),
            "reads" => out.reads = fields::boolean(findings, &value).unwrap_or(false),
            key @ "intent" => {
                let intent = keys::choice(findings, &value, LEVEL, key, |name| match name {
                    "writes" => Some(AuditIntent::Writes),
                    "all" => Some(AuditIntent::All),
                    _ => None,
                });
                out.intent = intent.unwrap_or(out.intent);
            }
            key @ "sync" => {
                let sync = keys::choice(findings, &value, LEVEL, key, |name| match name {
                    "batch" => Some(AuditSync::Batch),
                    "none" => Some(AuditSync::None),
                    _ => None,
                });
                out.sync = sync.unwrap_or(out.sync);
            }
            key @ "rotate" => {
                let rotate = keys::choice(findings, &value, LEVEL, key, |name| match name {
                    "size" => Some(AuditRotation::Size),
                    "day" => Some(AuditRotation::Day),
                    _ => None,
                });
                out.rotate = rotate.unwrap_or(out.rotate);
            }
            key @ "rotate_bytes" => {
                let bytes = keys::integer(findings, &value, LEVEL, key);
                out.rotate_bytes = bytes.unwrap_or(out.rotate_bytes);
            }
            key @ "keep" => out.keep = keys::integer(findings, &value, LEVEL, key),
            "key_file" => out.key_file = fields::template(findings, &value),
            key @ "format" => {
                let format = keys::choice(findings, &value, LEVEL, key, |name| match name {
                    "native" => Some(AuditFormat::Native),
                    "ocsf" => Some(AuditFormat::Ocsf),
                    _ => None,
                });
                out.format = format.unwrap_or(out.format);
            }
            key @ "ocsf_version" => {
                let version = keys::choice(findings, &value, LEVEL, key, |name| match name {
                    "1.8.0" => Some(OcsfVersion::V1_8),
                    "1.9-dev" => Some(OcsfVersion::V1_9),
                    _ => None,
                });
                out.ocsf_version = version.unwrap_or(out.ocsf_version);
            }
            unknown => keys::unknown(findings, &value, unknown, LEVEL),
        }
    }
    if cursor.get("file").is_none() {
        let message = "`audit` has no `file`, so that there is no log";
        findings.add(cursor, Diagnostic::error(Code::ConfigShape, message));
    }
    Some(AuditConfig { file: file?, ..out })
}
