//! Finds the package that a source ran on disk, in the folders of its package manager. Starts no server and downloads
//! no package. A package that cannot be read is reported, never guessed.

use std::fs;
use std::path::{Path, PathBuf};

use broker_build::requested::{self, Request, Requested, without_user};
use broker_config::{CommandLine, Config, Source};
use broker_drift::SeenPackage;
use broker_drift::{Class, Report};
use broker_model::lock::{Lock, LockedSource};
use broker_model::lock::{Package, PackageKind};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use broker_process::ProcessSpec;

mod npm;
mod pypi;
pub mod records;

/// Maximum size of a hashed file.
const MAX_FILE_BYTES: usize = 1 << 30;
/// Maximum size of a package manager's record.
const MAX_RECORD_BYTES: usize = 64 << 20;
/// Maximum number of entries of a folder that are read.
const MAX_ENTRIES: usize = 20_000;

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Installed {
    name: String,
    version: String,
    integrity: Option<String>,
}

impl Installed {
    fn package(self, kind: PackageKind, pinned: bool) -> Package {
        Package {
            kind,
            name: self.name,
            version: Some(self.version),
            integrity: self.integrity,
            pinned,
        }
    }
}

/// The package that a source runs, as far as it can be determined now.
pub fn look(source: &Source, process: &ProcessSpec) -> SeenPackage {
    let Some(Request { word, what }) = request_of(source) else {
        return SeenPackage::Nothing;
    };
    if process.shell {
        // The shell may change the folder or the environment first.
        return SeenPackage::Unseen("a shell runs the command".to_owned());
    }
    let pinned = what.is_pinned();
    let found = match what {
        Requested::Npm {
            name,
            version,
            specs,
            is_command,
        } => npm::look(&name, &version, &specs, is_command, process)
            .map(|one| one.package(PackageKind::Npm, pinned)),
        Requested::Pypi {
            name,
            version,
            runner,
        } => pypi::look(&name, &version, runner, process)
            .map(|one| one.package(PackageKind::Pypi, pinned)),
        Requested::Image { name, tag, digest } => match digest {
            Some(digest) => Ok(Package {
                kind: PackageKind::Oci,
                name,
                version: tag,
                integrity: Some(digest),
                pinned,
            }),
            None => Err(format!(
                "the image `{}` has no digest, and the container daemon is not queried",
                shown_line(&name, 200)
            )),
        },
        Requested::Elsewhere { spec, .. } => Err(format!(
            "`{}` comes from no registry",
            shown_line(&without_user(&spec), 200)
        )),
        Requested::Module(name) => match pypi::find_by_module(&name, process) {
            Some(one) => Ok(one.package(PackageKind::Pypi, pinned)),
            None => return SeenPackage::Nothing,
        },
        Requested::Script | Requested::Program => return file(source, process, word),
    };
    match found {
        Ok(package) => SeenPackage::Found(package),
        Err(why) => SeenPackage::Unseen(why),
    }
}

/// The packages that the commands of the sources do not pin; errors with `strict`.
pub fn unpinned<'p>(
    config: &Config,
    sources: impl Iterator<Item = &'p NodePath>,
    strict: bool,
) -> Vec<Diagnostic> {
    let asked = sources.filter_map(|path| config.source(path));
    asked
        .filter_map(|source| {
            let request = request_of(source)?;
            let (what, help) = request.what.moving()?;
            let message = format!("`{}` may run another version later: {what}", source.path);
            let places = &source.process()?.places;
            let place = places.get(request.word).map_or("", String::as_str);
            let code = DiagnosticCode::PackageUnpinned;
            let problem = if strict {
                Diagnostic::error(code, message)
            } else {
                Diagnostic::warning(code, message)
            };
            let pointer = format!("{}{place}", source.pointer);
            Some(config.place(problem.help(help).at(pointer)))
        })
        .collect()
}

/// The packages that a new lock would record in place of a reviewed one: the source, and a warning.
pub fn swapped(old: &Lock, new: &[LockedSource]) -> Vec<(NodePath, Diagnostic)> {
    let mut found = Report::default();
    for source in new {
        let package = source.package.clone().map(SeenPackage::Found);
        if let (Some(before), Some(now)) = (old.source(source.path.as_str()), package) {
            found.add_package(before, &now);
        }
    }
    let sources = found.sources.iter();
    let alarming = sources.filter(|drift| drift.class == Class::Security);
    alarming
        .flat_map(|drift| {
            drift
                .findings
                .iter()
                .map(|finding| (&drift.source, finding))
        })
        .map(|(source, finding)| {
            let message = format!("`{source}`: {}", finding.message);
            let warning = Diagnostic::warning(DiagnosticCode::PackageChanged, message);
            (source.clone(), warning)
        })
        .collect()
}

/// The warning that a package was not found. An unpinned package was already reported.
pub fn unseen(source: &Source, process: &ProcessSpec, why: &str) -> Option<Diagnostic> {
    let request = request_of(source)?;
    let open = matches!(
        request.what,
        Requested::Image { .. } | Requested::Elsewhere { pinned: false, .. }
    );
    let message = format!(
        "the package of `{}` was not found: {}",
        source.path,
        process.redactor.redact(why)
    );
    let warning = Diagnostic::warning(DiagnosticCode::PackageUnseen, message);
    (!open).then(|| match request.what.moving() {
        // Only one version can be found by its name.
        Some((_, pin)) => warning.help(pin),
        None => warning,
    })
}

/// The file that a word names, or the package that contains it. A bare name is looked up in folders of
/// this machine, so its file is not recorded.
fn file(source: &Source, process: &ProcessSpec, word: usize) -> SeenPackage {
    let is_program = word == 0;
    let as_written = written(source, word);
    let path = if is_program {
        match process.program_file() {
            Some(path) => path,
            None => return SeenPackage::Unseen("the program no longer exists".to_owned()),
        }
    } else {
        let Some(argument) = word.checked_sub(1).and_then(|at| process.args.get(at)) else {
            return SeenPackage::Nothing;
        };
        process.cwd.clone().unwrap_or_default().join(argument)
    };
    if let Some(installed) = npm::find_by_path(&path) {
        return SeenPackage::Found(installed.package(PackageKind::Npm, true));
    }
    if let Some(installed) = pypi::find_by_script(&path) {
        return SeenPackage::Found(installed.package(PackageKind::Pypi, true));
    }
    let name = as_written.rsplit('/').next().unwrap_or_default();
    let named_by_path = !is_program || as_written.contains('/');
    // A launcher script of a package manager contains folders of this machine.
    let is_shim = pypi::lies_in_environment(&path) || npm::is_shim(&path);
    if !named_by_path || name.is_empty() || name.contains("${") || is_shim || !path.is_file() {
        return SeenPackage::Nothing;
    }
    match read(&path, MAX_FILE_BYTES) {
        Ok(content) => SeenPackage::Found(Package {
            kind: PackageKind::File,
            name: name.to_owned(),
            version: None,
            integrity: Some(records::file_integrity(&content)),
            pinned: true,
        }),
        Err(why) => SeenPackage::Unseen(why),
    }
}

/// The package that the command of a source asks for.
fn request_of(source: &Source) -> Option<Request> {
    requested::request(&source.process()?.command)
}

/// A word of the command as written in the config.
fn written(source: &Source, word: usize) -> &str {
    match source.process().map(|process| &process.command) {
        Some(CommandLine::Direct { program, args, .. }) => match word.checked_sub(1) {
            None => program.raw(),
            Some(at) => args.get(at).map_or("", |arg| arg.raw()),
        },
        Some(CommandLine::Shell { .. }) | None => "",
    }
}

/// The whole file, if it is not too large.
fn read(path: &Path, largest: usize) -> Result<Vec<u8>, String> {
    broker_files::read(path, largest).map_err(|error| {
        let shown = shown_line(&path.to_string_lossy(), 300);
        format!("`{shown}` cannot be read: {error}")
    })
}

/// A record of a package manager, if it exists and can be read.
fn record(path: &Path) -> Option<String> {
    String::from_utf8(read(path, MAX_RECORD_BYTES).ok()?).ok()
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .take(MAX_ENTRIES)
        .collect();
    found.sort_unstable();
    found
}

/// The last part of a path, as text.
fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// The folder that a variable of the source names, else this one below its home folder.
fn folder(process: &ProcessSpec, variables: &[(&str, &str)], below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| process.env.get(name).filter(|value| !value.is_empty());
    let named = variables
        .iter()
        .find_map(|(name, below)| Some(Path::new(set(name)?).join(below)));
    let base = process.cwd.clone().unwrap_or_default();
    named
        .or_else(|| Some(Path::new(set("HOME")?).join(below_home)))
        .map(|folder| base.join(folder))
}
