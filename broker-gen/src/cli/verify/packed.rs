//! The parts of a packed broker: its catalog must be the one that config and lock give, its runtime the one that was packed,
//! or the one that is named. They are compared before the broker is run.

use std::path::Path;

use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use mcp_broker::packed::{self, PackedParts};

use crate::cli::pack::{self, MAX_RUNTIME_BYTES};

/// The maximum length of a shown path.
const MAX_SHOWN: usize = 200;

/// Compares a packed broker with the bytes of the expected catalog. Returns the digest of its runtime; `None` for a broker
/// that was compiled.
pub(super) fn check(
    binary: &Path,
    runtime: Option<&Path>,
    catalog: &[u8],
) -> Result<Option<String>, Box<Diagnostic>> {
    let shown = shown_line(&binary.to_string_lossy(), MAX_SHOWN);
    // A link is followed, as when the broker is run.
    let bytes = broker_files::read(binary, MAX_RUNTIME_BYTES).map_err(|error| {
        let message = format!("`{shown}` cannot be read: {error}");
        Box::new(Diagnostic::error(DiagnosticCode::BinaryUnchecked, message))
    })?;
    let parts = packed::parts(&bytes).map_err(|error| {
        let message = format!("`{shown}`: {error}");
        Box::new(Diagnostic::error(DiagnosticCode::CatalogDamaged, message))
    })?;
    match (parts, runtime) {
        (Some(parts), _) => compare(&shown, parts, runtime, catalog).map(Some),
        (None, None) => Ok(None),
        (None, Some(_)) => {
            let message = format!("`{shown}` is not a packed broker, so that it has no runtime");
            Err(Box::new(Diagnostic::error(
                DiagnosticCode::RuntimeUnusable,
                message,
            )))
        }
    }
}

fn compare(
    shown: &str,
    parts: PackedParts<'_>,
    runtime: Option<&Path>,
    catalog: &[u8],
) -> Result<String, Box<Diagnostic>> {
    if !parts.has_its_runtime {
        let message = format!(
            "the runtime of `{shown}` was changed after it was packed: its SHA-256 is {}",
            packed::sha256_text(parts.runtime)
        );
        return Err(Box::new(Diagnostic::error(
            DiagnosticCode::CatalogDamaged,
            message,
        )));
    }
    if let Some(file) = runtime {
        let expected = pack::read_runtime(file)?;
        let expected = pack::without_catalog(&expected, file)?;
        if expected != parts.runtime {
            let message = format!(
                "the runtime of `{shown}` has the SHA-256 {}, and `{}` has {}",
                packed::sha256_text(parts.runtime),
                shown_line(&file.to_string_lossy(), MAX_SHOWN),
                packed::sha256_text(expected)
            );
            return Err(Box::new(Diagnostic::error(
                DiagnosticCode::RuntimeUnusable,
                message,
            )));
        }
    }
    if parts.catalog != catalog {
        let message = format!("`{shown}` has another catalog than config and lock give");
        let help = "Pack it again with this config and lock.";
        let problem = Diagnostic::error(DiagnosticCode::GeneratedStale, message).help(help);
        return Err(Box::new(problem));
    }
    Ok(packed::sha256_text(parts.runtime))
}
