//! The package that a source runs, as the lock records it:
//! `{"integrity"?, "kind", "name", "pinned", "version"?}`.

use serde_json::{Map, Value};

use crate::text::shown_line;

/// The registry of a package's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A package that a source runs, as the lock records it. It names no folder of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The kind of its name.
    pub kind: PackageKind,
    /// Its name; for a file, the last part of its path.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// The integrity of its content, the formula first: `sha512-…`, `sha256:…`, `record-sha256:…`, `git:…`.
    pub integrity: Option<String>,
    /// Whether it can only be replaced by hand: the command names this version alone, or runs an installed
    /// package.
    pub pinned: bool,
}

impl PackageKind {
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
        let members = value.as_object().ok_or("the package is not an object")?;
        let mut package = Self {
            kind: PackageKind::File,
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
                    let kind = PackageKind::ALL
                        .into_iter()
                        .find(|kind| *value == kind.as_str());
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

    #[test]
    fn lock_package_is_read_back_and_other_forms_are_refused() {
        let package = Package {
            kind: PackageKind::Npm,
            name: "p".to_owned(),
            version: Some("1".to_owned()),
            integrity: None,
            pinned: true,
        };
        assert_eq!(Package::from_json(&package.to_json()), Ok(package));
        for wrong in [
            serde_json::json!([]),
            serde_json::json!({"kind": "npm", "name": "p"}),
            serde_json::json!({"kind": "cargo", "name": "p", "pinned": true}),
            serde_json::json!({"kind": "npm", "name": "p", "pinned": true, "path": "/x"}),
            serde_json::json!({"kind": "npm", "name": "p", "pinned": true, "version": 1}),
        ] {
            assert!(Package::from_json(&wrong).is_err(), "{wrong}");
        }
    }
}
