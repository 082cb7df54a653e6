//! Looks on disk for what a source ran: the package that its command asked for, as the package manager
//! left it. Starts nothing and downloads nothing; what cannot be read is told, never guessed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::provenance::{self, Request, Wanted, without_user};
use broker_drift::SeenPackage;
use broker_drift::{Class, Report};
use broker_mcp::SourceSpec;
use broker_model::config::{Config, Source};
use broker_model::lock::{Lock, LockedSource};
use broker_model::lock::{Package, PackageKind as Kind};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_process::ProcessSpec;

mod npm;
mod pypi;

/// The largest file that is hashed or read.
const LARGEST: usize = 1 << 30;
/// The largest record of a package manager that is read.
const LARGEST_RECORD: usize = 64 << 20;
/// Entries of one folder that are looked at.
const MOST_ENTRIES: usize = 20_000;

/// A package as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Installed {
    name: String,
    version: String,
    integrity: Option<String>,
}

impl Installed {
    fn package(self, kind: Kind, pinned: bool) -> Package {
        Package {
            kind,
            name: self.name,
            version: Some(self.version),
            integrity: self.integrity,
            pinned,
        }
    }
}

/// What a source runs, as far as it can be seen now.
pub(super) fn look(source: &Source, process: &ProcessSpec) -> SeenPackage {
    let Some(Request { word, what }) = provenance::request(&source.command) else {
        return SeenPackage::Nothing;
    };
    if source.is_shell() {
        // It may change the folder or the environment first.
        return SeenPackage::Unseen("a shell runs the command".to_owned());
    }
    let pinned = what.is_pinned();
    let found = match what {
        Wanted::Npm {
            name,
            version,
            specs,
            is_command,
        } => npm::look(&name, &version, &specs, is_command, process)
            .map(|one| one.package(Kind::Npm, pinned)),
        Wanted::Pypi {
            name,
            version,
            runner,
        } => {
            pypi::look(&name, &version, runner, process).map(|one| one.package(Kind::Pypi, pinned))
        }
        Wanted::Image { name, tag, digest } => match digest {
            Some(digest) => Ok(Package {
                kind: Kind::Oci,
                name,
                version: tag,
                integrity: Some(digest),
                pinned,
            }),
            None => Err(format!(
                "the image `{}` is named without a digest, and no daemon is asked",
                shown_line(&name, 200)
            )),
        },
        Wanted::Elsewhere { spec, .. } => Err(format!(
            "`{}` comes from no registry",
            shown_line(&without_user(&spec), 200)
        )),
        Wanted::Module(name) => match pypi::of_module(&name, process) {
            Some(one) => Ok(one.package(Kind::Pypi, pinned)),
            None => return SeenPackage::Nothing,
        },
        Wanted::Script | Wanted::Program => return file(source, process, word),
    };
    match found {
        Ok(package) => SeenPackage::Found(package),
        Err(why) => SeenPackage::Unseen(why),
    }
}

/// Packages that the asked sources' commands leave open; errors with `strict`.
pub(super) fn unpinned(config: &Config, launches: &[SourceSpec], strict: bool) -> Vec<Diagnostic> {
    let asked = launches
        .iter()
        .filter_map(|launch| config.source(&launch.source));
    asked
        .filter_map(|source| {
            let request = provenance::request(&source.command)?;
            let (what, help) = request.what.moving()?;
            let message = format!("`{}` may run something else tomorrow: {what}", source.path);
            let place = source.places.get(request.word).map_or("", String::as_str);
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

/// Warnings of packages that a new lock would take although another one was reviewed under their name.
pub(super) fn swapped(old: &Lock, new: &[LockedSource]) -> Vec<Diagnostic> {
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
            Diagnostic::warning(DiagnosticCode::PackageChanged, message)
        })
        .collect()
}

/// The warning that a package could not be looked at. What the config leaves open was said already.
pub(super) fn unseen(source: &Source, process: &ProcessSpec, why: &str) -> Option<Diagnostic> {
    let request = provenance::request(&source.command)?;
    let open = matches!(
        request.what,
        Wanted::Image { .. } | Wanted::Elsewhere { pinned: false, .. }
    );
    let message = format!(
        "could not look at the package of `{}`: {}",
        source.path,
        process.redactor.redact(why)
    );
    let warning = Diagnostic::warning(DiagnosticCode::PackageUnseen, message);
    (!open).then(|| match request.what.moving() {
        // One version would be looked for alone.
        Some((_, pin)) => warning.help(pin),
        None => warning,
    })
}

/// The file that a word names, or the package that it belongs to. A bare name is looked for in folders
/// of this machine, so the file behind it is not recorded.
fn file(source: &Source, process: &ProcessSpec, word: usize) -> SeenPackage {
    let is_program = word == 0;
    let as_written = written(source, word);
    let path = if is_program {
        match process.program_file() {
            Some(path) => path,
            None => return SeenPackage::Unseen("the program is not there any more".to_owned()),
        }
    } else {
        let Some(argument) = word.checked_sub(1).and_then(|at| process.args.get(at)) else {
            return SeenPackage::Nothing;
        };
        process.cwd.clone().unwrap_or_default().join(argument)
    };
    if let Some(installed) = npm::of_path(&path) {
        return SeenPackage::Found(installed.package(Kind::Npm, true));
    }
    if let Some(installed) = pypi::of_script(&path) {
        return SeenPackage::Found(installed.package(Kind::Pypi, true));
    }
    let name = as_written.rsplit('/').next().unwrap_or_default();
    let named_by_path = !is_program || as_written.contains('/');
    // What a package manager writes to start a package names folders of this machine.
    let is_shim = pypi::lies_in_environment(&path) || npm::is_shim(&path);
    if !named_by_path || name.is_empty() || name.contains("${") || is_shim || !path.is_file() {
        return SeenPackage::Nothing;
    }
    match read(&path, LARGEST) {
        Ok(content) => SeenPackage::Found(Package {
            kind: Kind::File,
            name: name.to_owned(),
            version: None,
            integrity: Some(provenance::file_integrity(&content)),
            pinned: true,
        }),
        Err(why) => SeenPackage::Unseen(why),
    }
}

/// A word of the command as the config has it.
fn written(source: &Source, word: usize) -> &str {
    match &source.command {
        broker_model::config::CommandLine::Direct { program, args, .. } => {
            match word.checked_sub(1) {
                None => program.raw(),
                Some(at) => args.get(at).map_or("", |arg| arg.raw()),
            }
        }
        broker_model::config::CommandLine::Shell { .. } => "",
    }
}

/// The whole file, if it is not too large.
fn read(path: &Path, largest: usize) -> Result<Vec<u8>, String> {
    broker_files::read(path, largest).map_err(|error| {
        let shown = shown_line(&path.to_string_lossy(), 300);
        format!("`{shown}` cannot be read: {error}")
    })
}

/// A text that a package manager left, if it is there and can be read.
fn record(path: &Path) -> Option<String> {
    String::from_utf8(read(path, LARGEST_RECORD).ok()?).ok()
}

/// What lies in a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .take(MOST_ENTRIES)
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

/// A folder that a variable of the source names, else this one below its home.
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
