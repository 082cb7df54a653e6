//! The source of the broker for a new crate, and the name of the crate.

use std::path::{Component, Path, PathBuf};

use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::Value;

/// The source of `mcp-broker` and `broker-gen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spec {
    /// A version, from cargo's registry.
    Version(String),
    /// A repository, at a revision if one is given.
    Git { url: String, rev: Option<String> },
    /// A folder; a relative one is relative to the new crate.
    Path(String),
}

/// The repository and the revision of this program's source code, if it was built from a working copy with a remote
/// `origin`.
const BUILT_FROM: (Option<&str>, Option<&str>) = (
    option_env!("BROKER_GEN_ORIGIN"),
    option_env!("BROKER_GEN_REVISION"),
);

impl Spec {
    /// Returns the repository and the revision of this program's source code.
    pub(super) fn built_from() -> Result<Self, Box<Diagnostic>> {
        Self::at_revision(BUILT_FROM.0, BUILT_FROM.1)
    }

    fn at_revision(url: Option<&str>, rev: Option<&str>) -> Result<Self, Box<Diagnostic>> {
        let (Some(url), Some(rev)) = (url, rev) else {
            let message = "this broker-gen does not know its repository: it was not built from a clone with a remote `origin`";
            let help = "Name the source of mcp-broker: `--broker https://HOST/OWNER/REPO#REV`, or `--broker FOLDER` with a clone of it.";
            return Err(Box::new(
                Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help),
            ));
        };
        Ok(Self::Git {
            url: url.to_owned(),
            rev: Some(rev.to_owned()),
        })
    }

    /// Parses the argument. A path must be a folder with the broker, relative to the working folder.
    pub(super) fn parse(text: &str, crate_folder: &Path) -> Result<Self, Box<Diagnostic>> {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err(wrong(text, "is empty or has control characters"));
        }
        let folder = Path::new(text);
        if folder.is_dir() {
            if !folder.join("broker-gen/Cargo.toml").is_file() {
                return Err(wrong(text, "is a folder without `broker-gen` in it"));
            }
            return relative_to(folder, crate_folder).map(Self::Path);
        }
        if text.contains("://") || (text.contains('@') && text.contains(':')) {
            let (url, rev) = match text.split_once('#') {
                Some((url, rev)) => (url, Some(rev.to_owned())),
                None => (text, None),
            };
            if rev.as_deref() == Some("") {
                return Err(wrong(text, "has no revision after `#`"));
            }
            return Ok(Self::Git {
                url: url.to_owned(),
                rev,
            });
        }
        if is_version(text) {
            return Ok(Self::Version(text.to_owned()));
        }
        Err(wrong(text, "is not a version, a git URL or a folder"))
    }

    /// The members of a dependency on the package in this folder of the repository.
    pub(super) fn dependency(&self, folder: &str) -> String {
        match self {
            Self::Version(version) => format!("version = {}", quoted(version)),
            Self::Git { url, rev: None } => format!("git = {}", quoted(url)),
            Self::Git {
                url,
                rev: Some(rev),
            } => {
                format!("git = {}, rev = {}", quoted(url), quoted(rev))
            }
            Self::Path(path) => format!("path = {}", quoted(&below(path, folder))),
        }
    }

    /// The command that installs the program of this package.
    pub(super) fn install(&self, package: &str, folder: &str) -> String {
        let from = match self {
            Self::Version(version) => return format!("cargo install --locked {package}@{version}"),
            Self::Git { url, rev } => {
                let rev = rev
                    .as_ref()
                    .map(|rev| format!(" --rev {}", shell_word(rev)));
                format!(
                    "--git {}{} {package}",
                    shell_word(url),
                    rev.unwrap_or_default()
                )
            }
            Self::Path(path) => format!("--path {}", shell_word(&below(path, folder))),
        };
        format!("cargo install --locked {from}")
    }

    /// The source, for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Version(version) => {
                format!(
                    "mcp-broker {version} from the registry (`--broker` takes a git URL or a folder instead)"
                )
            }
            Self::Git { url, rev: None } => {
                format!("mcp-broker from {url}, which `#REV` would pin")
            }
            Self::Git {
                url,
                rev: Some(rev),
            } => format!("mcp-broker from {url} at {rev}"),
            Self::Path(path) => format!("mcp-broker from the folder {path}"),
        }
    }
}

/// The folder's name as a package name, or the reason why it cannot be one.
pub(super) fn package_name(folder: &Path) -> Result<String, Box<Diagnostic>> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let last = tidy(&absolute)
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase());
    let name: String = last
        .unwrap_or_default()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let name = name.trim_matches('-').to_owned();
    let refused = |why: &str| {
        let message = format!(
            "`{}` is not a valid name of a crate: {why}",
            shown_line(&name, 80)
        );
        let help = "Name the folder with letters, digits, `-` and `_`, beginning with a letter.";
        Err(Box::new(
            Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help),
        ))
    };
    // Cargo refuses keywords and names of crates that the generated code uses.
    const TAKEN: [&str; 15] = [
        "alloc",
        "broker-build",
        "broker-gen",
        "build",
        "core",
        "deps",
        "examples",
        "incremental",
        "mcp-broker",
        "proc-macro",
        "serde",
        "serde_json",
        "std",
        "test",
        "toolbox-mcp",
    ];
    match name.chars().next() {
        None => refused("it is empty"),
        Some(first) if !first.is_ascii_alphabetic() => refused("it does not begin with a letter"),
        _ if TAKEN.contains(&name.as_str()) => refused("it is reserved"),
        _ if name.len() > 64 => refused("it is longer than 64 characters"),
        _ if is_keyword(&name) => refused("it is a keyword of Rust"),
        _ => Ok(name),
    }
}

fn is_keyword(name: &str) -> bool {
    syn::parse_str::<syn::Ident>(&name.replace('-', "_")).is_err()
}

fn is_version(text: &str) -> bool {
    let digits = text.trim_start_matches(['=', '^', '~', 'v']);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
        && !text.starts_with('v')
}

fn wrong(text: &str, why: &str) -> Box<Diagnostic> {
    let message = format!("`--broker {}` {why}", shown_line(text, 120));
    let help = "Give a version (`0.1.0`), a git URL (`https://host/owner/repo#REV`), or the folder of mcp-broker.";
    Box::new(Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help))
}

fn below(path: &str, folder: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{path}/{folder}")
    }
}

/// A JSON string is a TOML string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// An absolute path unchanged; a relative one relative to the crate.
fn relative_to(folder: &Path, crate_folder: &Path) -> Result<String, Box<Diagnostic>> {
    let shown = |path: &Path| path.to_str().map(str::to_owned);
    let unreadable = || wrong(&folder.to_string_lossy(), "is a path that is not UTF-8");
    if folder.is_absolute() {
        return shown(folder).ok_or_else(unreadable);
    }
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        tidy(&path)
    };
    let (to, from) = (absolute(folder), absolute(crate_folder));
    let same = to
        .components()
        .zip(from.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = from.components().skip(same).map(|_| Component::ParentDir);
    let down = to.components().skip(same);
    let path: PathBuf = up.chain(down).collect();
    shown(&path).ok_or_else(unreadable)
}

/// Without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broker_spec_is_a_version_a_repository_or_a_folder() {
        let parse = |text: &str| Spec::parse(text, Path::new("new"));
        assert_eq!(parse("0.1.0").unwrap(), Spec::Version("0.1.0".to_owned()));
        let git = parse("https://example.org/a/b#v1").unwrap();
        assert_eq!(
            git.dependency("broker-gen"),
            r#"git = "https://example.org/a/b", rev = "v1""#
        );
        assert_eq!(
            git.install("broker-gen", "broker-gen"),
            "cargo install --locked --git https://example.org/a/b --rev v1 broker-gen"
        );
        assert!(matches!(
            parse("git@example.org:a/b.git").unwrap(),
            Spec::Git { rev: None, .. }
        ));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let path = Spec::parse(root.to_str().unwrap(), Path::new("new")).unwrap();
        assert!(path.dependency("broker-gen").ends_with("/broker-gen\""));
        // The tests of a package run in its folder.
        assert_eq!(
            Spec::parse("..", Path::new("new")).unwrap(),
            Spec::Path("../..".to_owned())
        );
        for wrong in [
            "",
            " ",
            "a\nb",
            "latest",
            "../nowhere",
            "src",
            "https://example.org/a#",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn broker_without_a_spec_is_the_repository_of_this_program() {
        let rev = "0123456789012345678901234567890123456789";
        let spec = Spec::at_revision(Some("https://example.org/a/b"), Some(rev)).unwrap();
        assert_eq!(
            spec.dependency("broker-gen"),
            format!("git = \"https://example.org/a/b\", rev = \"{rev}\"")
        );
        let refused = Spec::at_revision(None, Some(rev)).unwrap_err();
        assert!(refused.remedy().contains("--broker https://"), "{refused}");
    }

    #[test]
    fn package_name_is_derived_from_the_folder() {
        let name = |folder: &str| package_name(Path::new(folder)).ok();
        assert_eq!(name("/x/My Broker.v2/").as_deref(), Some("my-broker-v2"));
        assert_eq!(name("a/../tools_1").as_deref(), Some("tools_1"));
        assert_eq!(name("."), None, "`broker-gen` is taken");
        for wrong in ["/", "1st", "mcp-broker", "broker-build", "fn", "…", "test"] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }
}
