//! npm packages on disk: in the cache of `npx`, in a project's `node_modules`, around a program.

use std::fs;
use std::path::{Path, PathBuf};

use broker_build::requested::Version;
use broker_model::text::shown_line;
use broker_process::ProcessSpec;

use super::{Installed, folder, record};
use crate::provenance::records::npm;

/// npm's record of installed packages.
const HIDDEN_LOCK: &str = ".package-lock.json";

/// The package that `npx` runs: from the project of the source, else from the cache.
pub(super) fn look(
    name: &str,
    version: &Version,
    specs: &[String],
    is_command: bool,
    process: &ProcessSpec,
) -> Result<Installed, String> {
    if specs.is_empty() {
        return Err(
            "only packages in the default place of `npx` and `npm exec` are searched".to_owned(),
        );
    }
    let fits = |one: &Installed| version.exact().is_none_or(|exact| one.version == exact);
    let open = matches!(version, Version::Moving(text) if text.is_empty());
    if let Some(modules) = project(process) {
        let program = modules.join(".bin").join(name);
        let as_program = || find_by_path(&program).filter(|_| open && is_command);
        let as_package = || {
            let exact = version.exact().is_some();
            find_in_folder(&modules, name).filter(|one| (open || exact) && fits(one))
        };
        if let Some(found) = as_program().or_else(as_package) {
            return Ok(found);
        }
    }
    let cache = cache(process).ok_or("the place of npm's cache is unknown")?;
    let modules = cache
        .join("_npx")
        .join(npm::npx_folder(specs))
        .join("node_modules");
    match find_in_folder(&modules, name) {
        Some(found) if fits(&found) => Ok(found),
        Some(found) => Err(format!(
            "the cache of npm has the version {} instead",
            shown_line(&found.version, 100)
        )),
        None => Err(format!(
            "the cache of npm does not have `{}`",
            shown_line(name, 200)
        )),
    }
}

/// Finds the package that contains the file at this path; symbolic links are followed.
pub(super) fn find_by_path(path: &Path) -> Option<Installed> {
    let path = fs::canonicalize(path).ok()?;
    let is_modules = |folder: &&Path| super::name_of(folder) == "node_modules";
    let inner = path.ancestors().skip(1).find(is_modules)?;
    let mut below = path
        .strip_prefix(inner)
        .ok()?
        .iter()
        .filter_map(|part| part.to_str());
    let mut name = below.next()?.to_owned();
    if name.starts_with('.') {
        return None;
    }
    if name.starts_with('@') {
        name = format!("{name}/{}", below.next()?);
    }
    // Packages can be nested; the outermost folder has the record.
    for modules in path.ancestors().filter(is_modules) {
        let Some(lock) = record(&modules.join(HIDDEN_LOCK)) else {
            continue;
        };
        let key = inner.strip_prefix(modules.parent()?).ok()?.join(&name);
        if let Some((version, integrity)) = npm::installed(&lock, key.to_str()?) {
            return Some(Installed {
                name,
                version,
                integrity,
            });
        }
    }
    // A global folder has no record, and the package's own file has no integrity.
    let (found, version) = npm::manifest(&record(&inner.join(&name).join("package.json"))?)?;
    (found == name).then_some(Installed {
        name,
        version,
        integrity: None,
    })
}

/// Whether a package manager generated a program of `node_modules` for this machine.
pub(super) fn is_shim(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().collect();
    parts
        .windows(2)
        .any(|pair| pair[0] == "node_modules" && pair[1] == ".bin")
}

fn find_in_folder(modules: &Path, name: &str) -> Option<Installed> {
    let lock = record(&modules.join(HIDDEN_LOCK))?;
    let (version, integrity) = npm::installed(&lock, &format!("node_modules/{name}"))?;
    Some(Installed {
        name: name.to_owned(),
        version,
        integrity,
    })
}

/// The `node_modules` of the project of a source: in the nearest folder that has one.
fn project(process: &ProcessSpec) -> Option<PathBuf> {
    let start = process.cwd.as_deref()?;
    let is_project = |folder: &&Path| {
        folder.join("package.json").is_file() || folder.join("node_modules").is_dir()
    };
    let found = start.ancestors().find(is_project)?;
    Some(found.join("node_modules"))
}

/// The cache folder that npm would use for this source.
fn cache(process: &ProcessSpec) -> Option<PathBuf> {
    let variables = [("npm_config_cache", ""), ("NPM_CONFIG_CACHE", "")];
    let set = |(name, _): &(&str, &str)| process.env.contains_key(*name);
    if !variables.iter().any(set)
        && let Some(said) = configured(process)
    {
        return Some(said);
    }
    folder(process, &variables, ".npm")
}

/// The cache setting of the user's `.npmrc`.
fn configured(process: &ProcessSpec) -> Option<PathBuf> {
    let home = process.env.get("HOME")?;
    let text = record(&Path::new(home).join(".npmrc"))?;
    let line = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "cache").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let line = line.replace("${HOME}", home);
    let below_home = line
        .strip_prefix("~/")
        .map(|rest| Path::new(home).join(rest));
    Some(below_home.unwrap_or_else(|| PathBuf::from(&line)))
}
