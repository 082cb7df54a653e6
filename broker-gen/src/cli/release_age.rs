//! The age of the releases that sources run, from the `npm` program: it reads its cache, or with `--online` asks the
//! registry of its configuration. No program of Python prints the time of a release.

use std::collections::BTreeSet;
use std::time::Duration;

use broker_model::lock::{LockedSource, PackageKind};
use broker_model::text;
use broker_model::text::{counted, shown_line};
use jiff::Timestamp;
use serde_json::Value;

use super::output::say;
use super::program;

/// Maximum number of packages for which `npm` is asked.
const MAX_PACKAGES: usize = 50;
/// Maximum size of the times of one package.
const MAX_TIMES_BYTES: u64 = 8 << 20;
const NPM_TIMEOUT: Duration = Duration::from_secs(20);
const DAY_SECONDS: i64 = 86_400;

/// Says for each npm package of the lock how old its release is, as far as that is known.
pub(super) fn say_ages(sources: &[LockedSource], online: bool) {
    let packages = sources.iter().filter_map(|source| source.package.as_ref());
    let of_npm = packages.filter(|package| package.kind == PackageKind::Npm);
    let releases: BTreeSet<(&str, &str)> = of_npm
        .filter_map(|package| Some((package.name.as_str(), package.version.as_deref()?)))
        .filter(|(name, _)| !name.starts_with('-'))
        .collect();
    for (name, version) in releases.iter().take(MAX_PACKAGES) {
        let release = format!("{}@{}", shown_line(name, 200), shown_line(version, 80));
        match times(name, online).map(|text| age(&text, version, Timestamp::now())) {
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

/// The times of all releases of a package, as JSON text.
fn times(name: &str, online: bool) -> Result<String, String> {
    let command = program::command("npm", |command| {
        command.args(["view", name, "time", "--json"]);
        if !online {
            command.arg("--offline");
        }
    });
    let output = program::run(command, NPM_TIMEOUT, MAX_TIMES_BYTES)
        .map_err(|error| format!("npm cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("npm ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "npm printed text that is not UTF-8".to_owned())
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
