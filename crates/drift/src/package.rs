//! The package of a source, compared with the one that the lock records.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::class::Class;
use super::classify::relock;
use super::report::{Finding, Report, SourceDrift};
use super::rules::rule;
use broker_model::lock::LockedSource;
use broker_model::lock::Package;

/// The observed package of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenPackage {
    /// The command runs no package.
    Nothing,
    /// The package was found.
    Found(Package),
    /// The package was not found, for this reason.
    Unseen(String),
}

impl Report {
    /// Adds the findings on the current package of a source.
    pub fn add_package(&mut self, locked: &LockedSource, seen: &SeenPackage) {
        let mut found = changes(locked.package.as_ref(), seen);
        if found.is_empty() {
            return;
        }
        for one in &mut found {
            one.remedy = if one.class == Class::Same {
                "none; the next lock records it".to_owned()
            } else {
                format!(
                    "find out why before it runs again; if the change is intended, {}",
                    relock(&locked.path)
                )
            };
        }
        let of_source = |drift: &SourceDrift| drift.source == locked.path;
        match self.sources.iter().position(of_source) {
            Some(at) => {
                // Findings on the package come before those on the server's texts.
                found.append(&mut self.sources[at].findings);
                self.sources[at] = SourceDrift::new(&locked.path, found);
            }
            None => self.sources.push(SourceDrift::new(&locked.path, found)),
        }
    }
}

fn changes(old: Option<&Package>, seen: &SeenPackage) -> Vec<Finding> {
    match (old, seen) {
        (None, SeenPackage::Nothing | SeenPackage::Unseen(_)) => Vec::new(),
        (None, SeenPackage::Found(new)) => vec![Finding {
            pointer: "/package".to_owned(),
            new: Some(json!(new)),
            ..finding(
                "package-unrecorded",
                format!("the package was not recorded; it is the {new}"),
            )
        }],
        (Some(old), SeenPackage::Nothing) => {
            vec![unseen(old, "the package was not found".to_owned())]
        }
        (Some(old), SeenPackage::Unseen(why)) => {
            vec![unseen(old, format!("the package was not found: {why}"))]
        }
        (Some(old), SeenPackage::Found(new)) => compare(old, new).into_iter().collect(),
    }
}

fn compare(old: &Package, new: &Package) -> Option<Finding> {
    let changed = |id, pointer: &str, values: (Value, Value), message: String| {
        let some = |value: Value| Some(value).filter(|value| !value.is_null());
        Some(Finding {
            pointer: format!("/package{pointer}"),
            old: some(values.0),
            new: some(values.1),
            ..finding(id, message)
        })
    };
    if (old.kind, &old.name) != (new.kind, &new.name) {
        let message = format!("the command runs the {new} now; it was the {old}");
        return changed("package-changed", "", (json!(old), json!(new)), message);
    }
    if old.version != new.version {
        let values = (json!(old.version), json!(new.version));
        if is_lower(new.version.as_deref(), old.version.as_deref()) {
            let message = format!("it is the {new} now, a downgrade: the lock has the {old}");
            return changed("package-downgraded", "/version", values, message);
        }
        let message = format!("it is the {new} now; the lock has the {old}");
        return changed("package-version-changed", "/version", values, message);
    }
    match (&old.integrity, &new.integrity) {
        (Some(before), Some(now)) if before == now => None,
        (Some(before), Some(now)) if formula(before) == formula(now) => changed(
            "package-integrity-changed",
            "/integrity",
            (json!(before), json!(now)),
            format!(
                "the {new} has another content than the reviewed one of the same name{}",
                if new.version.is_some() {
                    " and version"
                } else {
                    ""
                }
            ),
        ),
        (Some(before), Some(now)) => Some(unseen(
            old,
            format!(
                "the integrity of the package cannot be compared: the lock has a `{}`, this machine a `{}`",
                formula(before),
                formula(now)
            ),
        )),
        (Some(_), None) => Some(unseen(
            old,
            "the integrity of the package is not recorded on this machine".to_owned(),
        )),
        (None, Some(now)) => changed(
            "package-unrecorded",
            "/integrity",
            (Value::Null, json!(now)),
            format!("the integrity of the {new} was not recorded"),
        ),
        (None, None) => None,
    }
}

/// Whether a version is lower than another one, by the numbers before the first part that is not a number; of equal
/// numbers a pre-release is lower. Other versions have no known order.
fn is_lower(version: Option<&str>, than: Option<&str>) -> bool {
    let (Some(version), Some(than)) = (version, than) else {
        return false;
    };
    let ((numbers, rest), (others, other_rest)) = (numbers(version), numbers(than));
    if numbers.is_empty() || others.is_empty() {
        return false;
    }
    let length = numbers.len().max(others.len());
    let padded = |numbers: &[u64]| {
        let zeros = std::iter::repeat(0);
        numbers
            .iter()
            .copied()
            .chain(zeros)
            .take(length)
            .collect::<Vec<_>>()
    };
    match padded(&numbers).cmp(&padded(&others)) {
        Ordering::Less => true,
        Ordering::Equal => is_pre_release(rest) && other_rest.is_empty(),
        Ordering::Greater => false,
    }
}

/// The numbers at the start of a version, and the rest.
fn numbers(version: &str) -> (Vec<u64>, &str) {
    let mut rest = version.strip_prefix('v').unwrap_or(version);
    let mut numbers = Vec::new();
    loop {
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse() else {
            return (numbers, rest);
        };
        numbers.push(number);
        match rest[end..].strip_prefix('.') {
            Some(after) => rest = after,
            None => return (numbers, &rest[end..]),
        }
    }
}

/// Whether the rest of a version marks a pre-release, as `-beta.1` of npm and `rc1`, `.dev2` of Python do.
fn is_pre_release(rest: &str) -> bool {
    let rest = rest.trim_start_matches(['.', '_']);
    rest.starts_with('-')
        || ["a", "b", "c", "rc", "dev"]
            .iter()
            .any(|word| rest.starts_with(word))
}

/// A package that was not found; this does not mean that it is unchanged.
fn unseen(old: &Package, what: String) -> Finding {
    Finding {
        pointer: "/package".to_owned(),
        old: Some(json!(old)),
        ..finding(
            "package-unseen",
            format!("{what}; it may differ from the {old} of the lock"),
        )
    }
}

fn finding(id: &str, message: String) -> Finding {
    Finding::new(rule(id), message, "")
}

/// The formula of an integrity: the part before its value.
fn formula(integrity: &str) -> &str {
    let end = match integrity.find(':') {
        Some(at) => at,
        // The form of npm, `sha512-…`.
        None => integrity.find('-').unwrap_or(integrity.len()),
    };
    &integrity[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FailOn, FindingSeverity};
    use broker_model::lock::PackageKind;

    fn package(kind: PackageKind, name: &str, version: &str, integrity: &str) -> Package {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Package {
            kind,
            name: name.to_owned(),
            version: some(version),
            integrity: some(integrity),
            pinned: true,
        }
    }

    #[test]
    fn finding_on_a_package_fails_only_if_packages_are_named() {
        let mut report = Report::default();
        let found = vec![finding("package-unseen", "x".to_owned())];
        report.sources.push(SourceDrift::new(
            &broker_model::NodePath::parse("/a").unwrap(),
            found,
        ));
        let breaking = FailOn::new(&[Class::Breaking]);
        assert!(!report.fails(breaking) && !report.fails(FailOn::default()));
        assert!(report.fails(breaking.with_packages(true)));
    }

    #[test]
    fn version_with_lower_numbers_or_a_pre_release_is_lower() {
        let lower = |version, than| is_lower(Some(version), Some(than));
        for (low, high) in [
            ("1.9.9", "1.10.0"),
            ("1.0.0-beta.1", "1.0.0"),
            ("1.0rc1", "1.0"),
            ("1.0.dev2", "1.0"),
            ("2.0", "2.0.1"),
            ("v1.2", "1.3"),
            ("0.30.1", "0.30.2"),
        ] {
            assert!(lower(low, high) && !lower(high, low), "{low} {high}");
        }
        for (one, other) in [
            ("1.0", "1.0.0"),
            ("1.0.post1", "1.0"),
            ("latest", "1.0"),
            ("", ""),
        ] {
            assert!(!lower(one, other), "{one} {other}");
        }
    }

    #[test]
    fn package_change_has_its_rule_and_class() {
        let npm = |version, integrity| package(PackageKind::Npm, "p", version, integrity);
        let old = npm("1.0.0", "sha512-AA==");
        let found = |new: Package| SeenPackage::Found(new);
        let unseen = SeenPackage::Unseen("the cache is gone".to_owned());
        use {Class::*, FindingSeverity::*};
        let rows = [
            (Some(&old), found(old.clone()), None),
            (
                Some(&old),
                found(npm("1.0.0", "sha512-BB==")),
                Some(("package-integrity-changed", Security, Error)),
            ),
            (
                Some(&old),
                found(npm("1.1.0", "sha512-BB==")),
                Some(("package-version-changed", Same, Note)),
            ),
            (
                Some(&old),
                found(npm("0.9.9", "sha512-BB==")),
                Some(("package-downgraded", Same, Warning)),
            ),
            (
                Some(&old),
                found(package(PackageKind::Npm, "q", "1.0.0", "sha512-AA==")),
                Some(("package-changed", Security, Error)),
            ),
            (
                Some(&old),
                found(package(PackageKind::File, "p", "", "sha256:1")),
                Some(("package-changed", Security, Error)),
            ),
            (
                Some(&old),
                found(npm("1.0.0", "sha1-AA==")),
                Some(("package-unseen", Same, Warning)),
            ),
            (
                Some(&old),
                found(npm("1.0.0", "")),
                Some(("package-unseen", Same, Warning)),
            ),
            (
                Some(&old),
                unseen.clone(),
                Some(("package-unseen", Same, Warning)),
            ),
            (
                Some(&old),
                SeenPackage::Nothing,
                Some(("package-unseen", Same, Warning)),
            ),
            (
                None,
                found(old.clone()),
                Some(("package-unrecorded", Same, Note)),
            ),
            (None, unseen, None),
            (None, SeenPackage::Nothing, None),
        ];
        for (old, seen, expected) in rows {
            let found = changes(old, &seen);
            let got = found.first().map(|one| (one.rule, one.class, one.severity));
            assert_eq!(
                (got, found.len()),
                (expected, usize::from(expected.is_some())),
                "{seen:?}"
            );
        }
        let file = |integrity| package(PackageKind::File, "server.py", "", integrity);
        let found = changes(
            Some(&file("sha256:1")),
            &SeenPackage::Found(file("sha256:2")),
        );
        assert_eq!(found[0].rule, "package-integrity-changed");
    }
}
