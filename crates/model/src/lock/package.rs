//! The package that a source runs, as the lock records it.

use serde::{Deserialize, Serialize};

use crate::text::shown_line;

/// The registry of a package's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "")
)]
pub enum PackageKind {
    /// A registry of npm.
    Npm,
    /// An index of Python packages.
    Pypi,
    /// A registry of container images.
    Oci,
    /// No registry: a file that the config names.
    File,
}

/// A package that a source ran.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Package {
    /// The integrity of its content, the formula first: `sha512-…`, `sha256:…`, `record-sha256:…`, `git:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// The kind of the name.
    pub kind: PackageKind,
    /// Its name; for a file, the last part of its path.
    pub name: String,
    /// Whether it can only be replaced by hand: the command names this version alone, or runs an installed
    /// package.
    pub pinned: bool,
    /// Its version, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl PackageKind {
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

/// `npm package `name` 1.2.3`, for people.
impl std::fmt::Display for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.kind {
            PackageKind::Npm => "npm package",
            PackageKind::Pypi => "PyPI package",
            PackageKind::Oci => "image",
            PackageKind::File => "file",
        };
        write!(f, "{what} `{}`", shown_line(&self.name, 200))?;
        match &self.version {
            Some(version) => write!(f, " {}", shown_line(version, 100)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn lock_package_is_read_back_and_other_forms_are_refused() {
        let package = Package {
            kind: PackageKind::Npm,
            name: "p".to_owned(),
            version: Some("1".to_owned()),
            integrity: None,
            pinned: true,
        };
        let written = json!({"kind": "npm", "name": "p", "pinned": true, "version": "1"});
        assert_eq!(json!(package), written);
        assert_eq!(from_value::<Package>(written).unwrap(), package);
        for wrong in [
            json!([]),
            json!({"kind": "npm", "name": "p"}),
            json!({"kind": "cargo", "name": "p", "pinned": true}),
            json!({"kind": "npm", "name": "p", "pinned": true, "path": "/x"}),
            json!({"kind": "npm", "name": "p", "pinned": true, "version": 1}),
        ] {
            assert!(from_value::<Package>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
