//! The config and the lock beside a broker: whether its build used them. Cargo compares times, so a build takes no
//! notice of files that were replaced by older ones.

use std::path::{Path, PathBuf};

use broker_files::read;
use broker_model::text::shell_word;
use broker_model::{Diagnostic, DiagnosticCode, lock};
use serde::Deserialize;

use super::settings::LoadedConfig;
use crate::catalog::Catalog;

/// The folder of builds that Cargo makes beside a package.
const TARGET: &str = "target";

/// The members of a lock that are compared.
#[derive(Deserialize)]
struct Head {
    root_digest: String,
    #[serde(rename = "lock_version")]
    _version: u64,
}

/// Compares the compiled-in config and lock with the files: with the given config and its lock, or with a config of the
/// compiled-in name in the working folder, beside the program, or in the package of a build. A given config itself is
/// compared when it is read. `None` without a difference and without such files.
pub(super) fn mismatch(catalog: &Catalog, given: Option<&Path>) -> Option<Diagnostic> {
    let (config, head) = match given {
        Some(config) => (config.to_owned(), head_beside(config)?),
        None => {
            let mut places = places()
                .into_iter()
                .map(|folder| folder.join(catalog.config_name));
            places.find_map(|config| head_beside(&config).map(|head| (config, head)))?
        }
    };
    let what = match (
        head.root_digest == catalog.root_digest,
        given.is_some() || is_compiled(catalog, &config),
    ) {
        (true, true) => return None,
        (true, false) => "the config",
        (false, true) => "the lock",
        (false, false) => "the config, and its lock,",
    };
    let message = format!(
        "{what} beside this broker is not the compiled-in one, which is served; the lock there is {}, the compiled-in one {}",
        head.root_digest, catalog.root_digest
    );
    let files = [&config, &lock_file(&config)];
    let files = files.map(|file| shell_word(&file.to_string_lossy()));
    let help = format!(
        "build again: `touch {} && cargo build`, since Cargo takes no notice of a file that is older than its build",
        files.join(" ")
    );
    let problem = Diagnostic::warning(DiagnosticCode::LockMismatch, message).help(help);
    Some(problem.in_file(config.display().to_string()))
}

/// Returns the folders that may contain the config of the build.
fn places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::new()];
    // Its own path is only a hint here.
    if let Ok(program) = std::env::current_exe() {
        places.extend(program.parent().map(Path::to_owned));
        let folders = program.ancestors().filter(|one| one.ends_with(TARGET));
        places.extend(folders.filter_map(|one| one.parent().map(Path::to_owned)));
    }
    places
}

/// Reads the compared members of the lock of a config; `None` without a lock, or for a file of another program.
fn head_beside(config: &Path) -> Option<Head> {
    let bytes = read(&lock_file(config), lock::MAX_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Whether a config is the compiled-in one. An invalid config is another one.
fn is_compiled(catalog: &Catalog, file: &Path) -> bool {
    LoadedConfig::read(file).is_ok_and(|read| read.config.compiled_text() == catalog.config)
}

/// The lock of a config.
fn lock_file(config: &Path) -> PathBuf {
    let stem = config.file_stem().unwrap_or_default().to_string_lossy();
    config.with_file_name(format!("{stem}.lock.json"))
}
