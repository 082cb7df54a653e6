//! What a source really runs: which package its command asks for, and which one was found on disk.
//!
//! Pure: a command is read into a [`Request`], and files that package managers leave behind are read
//! out of texts. Looking for those files is the caller's.

use serde_json::{Map, Value};
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

/// Who names a package and its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A registry of npm.
    Npm,
    /// An index of Python packages.
    Pypi,
    /// A registry of container images.
    Oci,
    /// Nobody: a file that the config names.
    File,
}

/// A package that a source runs, as the lock records it. It names no folder of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Who named it.
    pub kind: Kind,
    /// Its name; of a file, the last part of its path.
    pub name: String,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// What its content is known by, the formula first: `sha512-…`, `sha256:…`, `record-sha256:…`,
    /// `git:…`.
    pub integrity: Option<String>,
    /// Whether another one can only come by somebody's hand: the command names this version alone, or runs
    /// what is installed.
    pub pinned: bool,
}

/// What could be told of the package that a source ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The command runs nothing that has a record.
    Nothing,
    /// This one.
    Found(Package),
    /// It could not be looked at, for this reason.
    Unseen(String),
}

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

impl Kind {
    const ALL: [Self; 4] = [Self::Npm, Self::Pypi, Self::Oci, Self::File];

    /// The name in locks and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Oci => "oci",
            Self::File => "file",
        }
    }
}

impl Package {
    /// The lock's member `package`.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("kind".to_owned(), self.kind.as_str().into());
        out.insert("name".to_owned(), self.name.as_str().into());
        out.insert("pinned".to_owned(), self.pinned.into());
        let optional = [("version", &self.version), ("integrity", &self.integrity)];
        for (key, value) in optional {
            if let Some(value) = value {
                out.insert(key.to_owned(), value.as_str().into());
            }
        }
        Value::Object(out)
    }

    /// Reads it back; the error says what is wrong with it.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("the package is no object")?;
        let mut package = Self {
            kind: Kind::File,
            name: String::new(),
            version: None,
            integrity: None,
            pinned: false,
        };
        let mut seen = (false, false, false);
        for (key, value) in members {
            let text = || value.as_str().map(str::to_owned);
            let wrong = || format!("`{key}` of the package is not what it should be");
            match key.as_str() {
                "kind" => {
                    let kind = Kind::ALL.into_iter().find(|kind| *value == kind.as_str());
                    package.kind = kind.ok_or_else(wrong)?;
                    seen.0 = true;
                }
                "name" => {
                    package.name = text().ok_or_else(wrong)?;
                    seen.1 = true;
                }
                "pinned" => {
                    package.pinned = value.as_bool().ok_or_else(wrong)?;
                    seen.2 = true;
                }
                "version" => package.version = Some(text().ok_or_else(wrong)?),
                "integrity" => package.integrity = Some(text().ok_or_else(wrong)?),
                _ => return Err(format!("`{key}` of the package is not known")),
            }
        }
        match seen {
            (true, true, true) => Ok(package),
            _ => Err("the package lacks `kind`, `name` or `pinned`".to_owned()),
        }
    }
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
        let shown = |text: &str| crate::text::shown_line(text, 200);
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

/// `npm package `name` 1.2.3`, for people.
impl std::fmt::Display for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.kind {
            Kind::Npm => "npm package",
            Kind::Pypi => "PyPI package",
            Kind::Oci => "image",
            Kind::File => "file",
        };
        write!(f, "{what} `{}`", crate::text::shown_line(&self.name, 200))?;
        match &self.version {
            Some(version) => write!(f, " {}", crate::text::shown_line(version, 100)),
            None => Ok(()),
        }
    }
}

/// The integrity of a file by its content.
pub fn file_integrity(content: &[u8]) -> String {
    format!("sha256:{}", crate::digest::hex(&Sha256::digest(content)))
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
