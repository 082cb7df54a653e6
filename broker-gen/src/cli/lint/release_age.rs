//! The age of the releases that sources run. The program `npm` reads its cache, or with `--online` asks the registry of its
//! configuration. With `--online` a script asks the index that `pip` or `uv` is configured for; their caches have no times.

use std::collections::BTreeSet;
use std::time::Duration;

use broker_model::lock::{LockedSource, PackageKind};
use broker_model::text;
use broker_model::text::{counted, shown_line};
use broker_process::program;
use jiff::Timestamp;
use serde_json::Value;
use tokio::process::Command;

use crate::cli::output::say;
use crate::cli::working::Working;

/// Asks an index of Python packages.
const PYTHON: &str = include_str!("release_age.py");
/// Maximum number of packages that are asked for.
const MAX_PACKAGES: usize = 50;
/// Maximum size of the times of one package.
const MAX_TIMES_BYTES: u64 = 8 << 20;
const TIMEOUT: Duration = Duration::from_secs(20);
const DAY_SECONDS: i64 = 86_400;

/// Where a release is published.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Registry {
    Npm,
    Python,
}

/// Says for each package of the lock how old its release is, as far as that is known.
pub(in crate::cli) fn say_ages(sources: &[LockedSource], online: bool) {
    let packages = sources.iter().filter_map(|source| source.package.as_ref());
    let releases: BTreeSet<(Registry, &str, &str)> = packages
        .filter_map(|package| {
            let registry = match package.kind {
                PackageKind::Npm => Registry::Npm,
                PackageKind::Pypi if online => Registry::Python,
                PackageKind::Pypi | PackageKind::Oci | PackageKind::File => return None,
            };
            Some((registry, package.name.as_str(), package.version.as_deref()?))
        })
        .filter(|(_, name, version)| !name.starts_with('-') && !version.starts_with('-'))
        .collect();
    for (registry, name, version) in releases.iter().take(MAX_PACKAGES) {
        let release = format!("{}@{}", shown_line(name, 200), shown_line(version, 80));
        let working = Working::begin(format!("asking for the age of `{release}`"));
        let times = match registry {
            Registry::Npm => npm_times(name, online),
            Registry::Python => python_times(name, version),
        };
        drop(working);
        match times.map(|text| age(&text, version, Timestamp::now())) {
            Ok(Some(0)) => say(text!("`{}` was released today", release)),
            Ok(Some(days)) => say(text!(
                "`{}` was released {} ago",
                release,
                counted(days, "day")
            )),
            // A cache need not have it.
            Ok(None) | Err(_) if !online => {}
            Ok(None) => say(text!("`{}`: the registry has no time of it", release)),
            Err(why) => say(text!("`{}`: its age is not known: {}", release, why)),
        }
    }
    if let Some(more @ 1..) = releases.len().checked_sub(MAX_PACKAGES) {
        say(text!(
            "the ages of {} are not asked",
            counted(more, "more package")
        ));
    }
}

/// Reads the times of all releases of an npm package, as JSON text.
fn npm_times(name: &str, online: bool) -> Result<String, String> {
    let command = program::command("npm", |command| {
        command.args(["view", name, "time", "--json"]);
        if !online {
            command.arg("--offline");
        }
    });
    output_of("npm", command)
}

/// Reads the time of a release of a Python package, as JSON text.
fn python_times(name: &str, version: &str) -> Result<String, String> {
    let command = program::command("python3", |command| {
        // The script is isolated from modules in the present folder.
        command.args(["-I", "-c", PYTHON, name, version]);
    });
    output_of("python3", command)
}

/// Runs a program; its output is text. An error does not repeat the output of the program, since the output may name a
/// credential.
fn output_of(name: &str, command: Command) -> Result<String, String> {
    let output = program::run(command, TIMEOUT, MAX_TIMES_BYTES)
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name} printed text that is not UTF-8"))
}

/// The whole days since a release.
fn age(times: &str, version: &str, now: Timestamp) -> Option<usize> {
    let times: Value = serde_json::from_str(times).ok()?;
    let time: Timestamp = times.get(version)?.as_str()?.parse().ok()?;
    let seconds = now.as_second().checked_sub(time.as_second())?;
    usize::try_from(seconds.max(0) / DAY_SECONDS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_of_a_release_is_counted_in_days() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        let times = r#"{"created": "2020-01-01T00:00:00.000Z", "1.2.3": "2026-03-01T12:00:01.500Z", "2.0.0": "2027-01-01T00:00:00Z", "x": 1}"#;
        assert_eq!(age(times, "1.2.3", now), Some(8));
        assert_eq!(age(times, "2.0.0", now), Some(0));
        for version in ["9.9.9", "x"] {
            assert_eq!(age(times, version, now), None, "{version}");
        }
        assert_eq!(age("not JSON", "1.2.3", now), None);
    }
}
