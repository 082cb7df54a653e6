//! The package that the command of a source requests. Pure: no file is read.

mod command;
mod npm;
pub mod python;

#[cfg(test)]
mod tests;

pub use command::request;

/// The request of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The index of the word that names it; the program is 0.
    pub word: usize,
    /// The requested thing.
    pub what: Requested,
}

/// The thing that a word of a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// An npm package.
    Npm {
        /// With its scope.
        name: String,
        /// The requested version.
        version: Version,
        /// All packages to be installed, as written; empty if another program than npm installs them, or if npm
        /// installs them into another place.
        specs: Vec<String>,
        /// Whether the name is the command as well, so that an installed program of that name is used.
        is_command: bool,
    },
    /// A Python package.
    Pypi {
        /// In the normalised form of an index.
        name: String,
        /// The requested version.
        version: Version,
        /// The program that runs it.
        runner: PythonRunner,
    },
    /// A container image.
    Image {
        /// Without tag and digest.
        name: String,
        /// The tag.
        tag: Option<String>,
        /// `sha256:…`.
        digest: Option<String>,
    },
    /// A source outside registries: a repository, an address, a folder, or a variable.
    Elsewhere {
        /// As written; variables are not expanded.
        spec: String,
        /// Whether it names one commit.
        pinned: bool,
    },
    /// A file that an interpreter runs.
    Script,
    /// A Python module that an interpreter runs.
    Module(String),
    /// The program itself.
    Program,
}

/// The requested version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// Exactly this one.
    Exactly(String),
    /// Any version that matches at the time: a missing version, a tag, a range.
    Moving(String),
}

/// A program that runs a Python package without a permanent installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonRunner {
    /// `uvx`, `uv tool run`.
    Uv,
    /// `pipx run`.
    Pipx,
    /// One of them, with another folder.
    Apart,
}

/// How a version is written without an editor.
const BY_LOCK: &str = "`broker-gen lock --pin` does so for `npx` and `uvx`";

impl Requested {
    /// Whether exactly one version is requested; a file always is.
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Npm { version, .. } | Self::Pypi { version, .. } => version.exact().is_some(),
            Self::Image { digest, .. } => digest.is_some(),
            Self::Elsewhere { pinned, .. } => *pinned,
            Self::Script | Self::Module(_) | Self::Program => true,
        }
    }

    /// The reason why it is not pinned, and the pinned form.
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
                format!("Name one version: `{}@VERSION`; {BY_LOCK}.", shown(name)),
            )),
            Self::Pypi { name, version, .. } => Some((
                format!("the package `{}` {}", shown(name), said(version)),
                format!("Name one version: `{}==VERSION`; {BY_LOCK}.", shown(name)),
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
    /// The requested version.
    pub fn exact(&self) -> Option<&str> {
        match self {
            Self::Exactly(version) => Some(version),
            Self::Moving(_) => None,
        }
    }
}

/// An address without its user name and password.
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

/// Whether this is the full hash of a commit.
fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
