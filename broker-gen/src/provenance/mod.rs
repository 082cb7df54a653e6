//! What a source really runs: which package its command asks for, and which one was found on disk.
//!
//! Pure: a command is read into a [`Request`], and files that package managers leave behind are read
//! out of texts. Looking for those files is the caller's.

use sha2::{Digest as _, Sha256};

mod command;
pub mod npm;
mod options;
pub mod python;

#[cfg(test)]
mod tests;

pub use command::request;

/// The longest name, version or integrity that is taken from a file.
const LONGEST: usize = 512;

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The word of the command that names it; the program is 0.
    pub word: usize,
    /// What it names.
    pub what: Wanted,
}

/// What a word of a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A package of npm.
    Npm {
        /// With its scope.
        name: String,
        /// Which one.
        version: Version,
        /// Everything that is to be installed, as written; empty where another program than npm does it, or
        /// npm does it in a place of the command's own.
        specs: Vec<String>,
        /// Whether the name is the command as well, so that an installed program of that name will do.
        is_command: bool,
    },
    /// A package of Python.
    Pypi {
        /// As an index spells it.
        name: String,
        /// Which one.
        version: Version,
        /// What runs it.
        runner: PythonRunner,
    },
    /// A container image.
    Image {
        /// Without tag and digest.
        name: String,
        /// What stands after the colon.
        tag: Option<String>,
        /// `sha256:…`.
        digest: Option<String>,
    },
    /// Something that no registry has: a repository, an address, a folder, or what a variable names.
    Elsewhere {
        /// As written; variables are not expanded.
        spec: String,
        /// Whether it names one commit.
        pinned: bool,
    },
    /// A file that an interpreter runs.
    Script,
    /// A module that an interpreter of Python runs.
    Module(String),
    /// The program itself.
    Program,
}

/// Which version a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// This one alone.
    Exactly(String),
    /// Whatever this stands for at the time: nothing, a tag, a range.
    Moving(String),
}

/// What runs a package of Python without installing it for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonRunner {
    /// `uvx`, `uv tool run`.
    Uv,
    /// `pipx run`.
    Pipx,
    /// One of them, in a place of the command's own.
    Apart,
}

impl Wanted {
    /// Whether one version alone is asked for; a file is what it is.
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Npm { version, .. } | Self::Pypi { version, .. } => version.exact().is_some(),
            Self::Image { digest, .. } => digest.is_some(),
            Self::Elsewhere { pinned, .. } => *pinned,
            Self::Script | Self::Module(_) | Self::Program => true,
        }
    }

    /// Why it is not pinned, and how it would be.
    pub fn moving(&self) -> Option<(String, String)> {
        let shown = |text: &str| broker_model::text::shown_line(text, 200);
        let said = |version: &Version| match version {
            Version::Moving(text) if !text.is_empty() => {
                format!("asks for `{}`, which is not one version", shown(text))
            }
            _ => "names no version".to_owned(),
        };
        match self {
            _ if self.is_pinned() => None,
            Self::Npm { name, version, .. } => Some((
                format!("the package `{}` {}", shown(name), said(version)),
                format!("Name one version: `{}@VERSION`.", shown(name)),
            )),
            Self::Pypi { name, version, .. } => Some((
                format!("the package `{}` {}", shown(name), said(version)),
                format!("Name one version: `{}==VERSION`.", shown(name)),
            )),
            Self::Image { name, tag, .. } => Some((
                match tag {
                    Some(tag) => format!(
                        "the image `{}` is named by the tag `{}`, which can be moved",
                        shown(name),
                        shown(tag)
                    ),
                    None => format!("the image `{}` is named without a digest", shown(name)),
                },
                format!("Name it by its digest: `{}@sha256:…`.", shown(name)),
            )),
            Self::Elsewhere { spec, .. } => Some((
                format!(
                    "`{}` names no version or commit",
                    shown(&without_user(spec))
                ),
                "Name a release by its version, or one commit of 40 digits.".to_owned(),
            )),
            Self::Script | Self::Module(_) | Self::Program => None,
        }
    }
}

impl Version {
    /// The one that is asked for.
    pub fn exact(&self) -> Option<&str> {
        match self {
            Self::Exactly(version) => Some(version),
            Self::Moving(_) => None,
        }
    }
}

/// The integrity of a file by its content.
pub fn file_integrity(content: &[u8]) -> String {
    format!(
        "sha256:{}",
        broker_model::digest::hex(&Sha256::digest(content))
    )
}

/// A text from a file, if it is one that a lock may hold: short, and nothing but visible ASCII.
fn plain(text: &str) -> Option<String> {
    let fits =
        !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned())
}

/// An address without a name and a password in it.
pub fn without_user(spec: &str) -> String {
    let Some((scheme, rest)) = spec.split_once("://") else {
        return spec.to_owned();
    };
    let host = rest.split('/').next().unwrap_or(rest);
    match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://…@{}", &rest[user.len() + 1..]),
        None => spec.to_owned(),
    }
}

/// Whether this is the whole hash of a commit.
fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
