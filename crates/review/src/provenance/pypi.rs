//! Python packages on disk: in the environments of `uvx` and `pipx run`, and around a program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use broker_build::requested::python::canonical_name;
use broker_build::requested::{PythonRunner, Version};
use broker_model::text::shown_line;
use broker_process::ProcessSpec;

use super::{Installed, entries, folder, name_of, read, record};
use crate::provenance::records::python::{self, same_version};

/// Maximum bytes of a script that are read for its interpreter.
const HEAD: usize = 1 << 20;
/// Maximum size of a pointer file in uv's cache.
const MAX_POINTER_BYTES: usize = 1 << 20;

/// The package that `uvx` or `pipx run` runs.
pub(super) fn look(
    name: &str,
    version: &Version,
    runner: PythonRunner,
    process: &ProcessSpec,
) -> Result<Installed, String> {
    if runner == PythonRunner::Apart {
        return Err("the command sets a cache or a folder".to_owned());
    }
    let uv = folder(
        process,
        &[("UV_CACHE_DIR", ""), ("XDG_CACHE_HOME", "uv")],
        ".cache/uv",
    );
    let mut places = Vec::new();
    if runner == PythonRunner::Pipx {
        places.extend(pipx_environments(process));
    }
    // A current pipx delegates to uv if uv is installed.
    if let Some(uv) = &uv {
        places.extend(uv_environments(uv));
    }
    let latest = matches!(version, Version::Moving(text) if text == "latest");
    if runner == PythonRunner::Uv && !latest {
        let variables = [("UV_TOOL_DIR", ""), ("XDG_DATA_HOME", "uv/tools")];
        let tools = folder(process, &variables, ".local/share/uv/tools");
        places.extend(tools.map(|tools| tools.join(name)));
    }
    let fits = |found: &Dist| match version {
        Version::Exactly(exact) => same_version(&found.version, exact),
        Version::Moving(_) => true,
    };
    let found: Vec<Dist> = places
        .iter()
        .flat_map(|environment| dists(environment))
        .filter(|dist| dist.name == name && fits(dist))
        .collect();
    let versions: BTreeSet<&str> = found.iter().map(|dist| dist.version.as_str()).collect();
    let Some(first) = found.first() else {
        return Err(format!("no environment has `{}`", shown_line(name, 200)));
    };
    if versions.len() > 1 {
        let versions: Vec<_> = versions
            .into_iter()
            .map(|one| shown_line(one, 60))
            .collect();
        return Err(format!(
            "the versions {} of `{}` are installed, and it is unknown which one ran",
            versions.join(", "),
            shown_line(name, 200)
        ));
    }
    let archived = uv.and_then(|uv| archive(&uv, &first.name, &first.version));
    let integrity = first.direct().or(archived).or_else(|| {
        let records: BTreeSet<_> = found.iter().map(Dist::record).collect();
        // Two contents with one version: either may have run.
        records.into_iter().reduce(|_, _| None).flatten()
    });
    Ok(first.installed(integrity))
}

/// Finds the package whose entry point this program is.
pub(super) fn find_by_script(path: &Path) -> Option<Installed> {
    let environment = environment_of(path)?;
    let is_it = |dist: &Dist| {
        let points = record(&dist.folder.join("entry_points.txt"));
        points.is_some_and(|points| python::has_script(&points, name_of(path)))
    };
    let dist = dists(&environment).into_iter().find(is_it)?;
    Some(dist.installed(dist.direct().or_else(|| dist.record())))
}

/// Finds the package of this name in the environment of a source's interpreter.
pub(super) fn find_by_module(name: &str, process: &ProcessSpec) -> Option<Installed> {
    let program = process.program_file()?;
    let environment = above_bin(&program)?;
    let name = canonical_name(name);
    let dist = dists(&environment)
        .into_iter()
        .find(|dist| dist.name == name)?;
    Some(dist.installed(dist.direct().or_else(|| dist.record())))
}

/// Returns the environment of a script: the one that contains it, else its interpreter's
/// environment.
fn environment_of(path: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok()?;
    if let Some(environment) = above_bin(path).or_else(|| above_bin(&real)) {
        return Some(environment);
    }
    let head = read(&real, HEAD).ok()?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let interpreter = std::str::from_utf8(line)
        .ok()?
        .strip_prefix("#!")?
        .split_whitespace()
        .next()?;
    name_of(Path::new(interpreter))
        .starts_with("python")
        .then(|| above_bin(Path::new(interpreter)))?
}

/// Whether a file is among the generated programs of an environment.
pub(super) fn lies_in_environment(path: &Path) -> bool {
    above_bin(path).is_some() || fs::canonicalize(path).is_ok_and(|real| above_bin(&real).is_some())
}

/// The environment whose `bin` contains a file.
fn above_bin(file: &Path) -> Option<PathBuf> {
    let environment = file.parent()?.parent()?;
    environment
        .join("pyvenv.cfg")
        .is_file()
        .then(|| environment.to_owned())
}

/// One installed package: its `.dist-info`.
struct Dist {
    folder: PathBuf,
    name: String,
    version: String,
}

impl Dist {
    fn installed(&self, integrity: Option<String>) -> Installed {
        Installed {
            name: self.name.clone(),
            version: self.version.clone(),
            integrity,
        }
    }

    fn record(&self) -> Option<String> {
        python::record_integrity(&record(&self.folder.join("RECORD"))?)
    }

    fn direct(&self) -> Option<String> {
        python::direct_url(&record(&self.folder.join("direct_url.json"))?)
    }
}

fn dists(environment: &Path) -> Vec<Dist> {
    let versions = entries(&environment.join("lib")).into_iter();
    let packages = versions
        .filter(|folder| name_of(folder).starts_with("python"))
        .flat_map(|folder| entries(&folder.join("site-packages")));
    packages
        .filter_map(|folder| {
            let (name, version) = python::dist_info(name_of(&folder))?;
            Some(Dist {
                folder,
                name,
                version,
            })
        })
        .collect()
}

/// `environments-v2/INTERPRETER/RESOLUTION` in uv's cache.
fn uv_environments(cache: &Path) -> Vec<PathBuf> {
    let generations = entries(cache).into_iter();
    generations
        .filter(|folder| name_of(folder).starts_with("environments-v"))
        .flat_map(|folder| entries(&folder))
        .flat_map(|folder| entries(&folder))
        .filter(|folder| folder.is_dir())
        .collect()
}

fn pipx_environments(process: &ProcessSpec) -> Vec<PathBuf> {
    let places = [
        folder(
            process,
            &[("PIPX_HOME", ".cache"), ("XDG_CACHE_HOME", "pipx")],
            ".cache/pipx",
        ),
        folder(process, &[], "Library/Caches/pipx"),
        folder(process, &[], ".local/pipx/.cache"),
        folder(process, &[], ".local/share/pipx/.cache"),
    ];
    places
        .into_iter()
        .flatten()
        .flat_map(|folder| entries(&folder))
        .collect()
}

/// The hash of this version's archive in uv's cache, if there is exactly one archive.
fn archive(cache: &Path, name: &str, version: &str) -> Option<String> {
    let mut hashes = BTreeSet::new();
    for generation in entries(cache) {
        let kind = name_of(&generation);
        let (wheels, sources) = (kind.starts_with("wheels-v"), kind.starts_with("sdists-v"));
        if !wheels && !sources {
            continue;
        }
        // `pypi/NAME`, or `index/HASH/NAME` for another index.
        let indexes = entries(&generation.join("index")).into_iter();
        for index in indexes.chain([generation.join("pypi")]) {
            for entry in entries(&index.join(name)) {
                let file = name_of(&entry);
                let pointer = if sources {
                    same_version(file, version).then(|| entry.join("revision.http"))
                } else {
                    let stem = file.strip_suffix(".http");
                    let of_file = stem.and_then(|stem| stem.split_once('-'));
                    of_file
                        .filter(|(of, _)| same_version(of, version))
                        .map(|_| entry.clone())
                };
                let bytes = pointer.and_then(|pointer| read(&pointer, MAX_POINTER_BYTES).ok());
                hashes.extend(bytes.and_then(|bytes| python::cached_archive(&bytes)));
            }
        }
    }
    // Several archives of one version: the installed one is unknown.
    (hashes.len() == 1).then(|| hashes.pop_first()).flatten()
}
