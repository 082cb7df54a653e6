//! Compares `Cargo.lock` with the dated copy of security advisories in `advisories.toml`, offline, and `deny.toml` with the
//! lists of these tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use semver::{Version, VersionReq};
use toml::{Table, Value};

use super::dependencies::{LICENCES, TWICE};
use crate::workspace;

/// Advisories that apply to a crate of `Cargo.lock`, each with the reason why it is used nevertheless.
const ACCEPTED: [(&str, &str); 1] = [(
    "RUSTSEC-2024-0436",
    "paste is not maintained any more; it is a macro of the crates of candle, runs in the compiler only, and has no known \
     vulnerability",
)];
/// A copy that is older is reported.
const MAX_AGE_DAYS: i64 = 90;

/// An advisory of the copy.
#[derive(Debug)]
struct Advisory {
    id: String,
    package: String,
    is_withdrawn: bool,
    /// Versions to which it does not apply.
    unaffected: Vec<VersionReq>,
}

impl Advisory {
    fn read(row: &Value) -> Self {
        let text = |name: &str| row[name].as_str().expect("a text").to_owned();
        let ranges = |name: &str| texts(row.get(name));
        let unaffected = ranges("patched").into_iter().chain(ranges("unaffected"));
        let read = |range: String| {
            VersionReq::parse(&range).unwrap_or_else(|error| panic!("{range}: {error}"))
        };
        Self {
            id: text("id"),
            package: text("package"),
            is_withdrawn: row.get("withdrawn").is_some(),
            unaffected: unaffected.map(read).collect(),
        }
    }

    /// Whether it applies to a version: one that is neither patched nor unaffected.
    fn applies_to(&self, version: &Version) -> bool {
        !self.is_withdrawn && !self.unaffected.iter().any(|range| range.matches(version))
    }
}

/// The texts of a list, which may be absent.
fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items
        .map(|item| item.as_str().expect("a text").to_owned())
        .collect()
}

fn read(file: &str) -> Table {
    let text = fs::read_to_string(workspace().join(file)).expect("the file can be read");
    text.parse().expect("the file is TOML")
}

/// The advisories of a copy.
fn advisories(copy: &Table) -> Vec<Advisory> {
    let rows = copy["advisory"].as_array().expect("rows");
    rows.iter().map(Advisory::read).collect()
}

/// The versions of each crate of a lock that is not part of the workspace.
fn crates(lock: &Table) -> BTreeMap<String, BTreeSet<Version>> {
    let mut all: BTreeMap<String, BTreeSet<Version>> = BTreeMap::new();
    for package in lock["package"].as_array().expect("packages") {
        if package.get("source").is_some() {
            let text = |name: &str| package[name].as_str().expect("a text");
            let version = Version::parse(text("version")).expect("a version");
            all.entry(text("name").to_owned())
                .or_default()
                .insert(version);
        }
    }
    all
}

/// The numbers of the advisories that apply to a crate of a lock, each with crate and version.
fn applicable(lock: &Table, advisories: &[Advisory]) -> BTreeMap<String, String> {
    let crates = crates(lock);
    let mut found = BTreeMap::new();
    for advisory in advisories {
        for version in crates.get(&advisory.package).into_iter().flatten() {
            if advisory.applies_to(version) {
                found.insert(
                    advisory.id.clone(),
                    format!("{} {version}", advisory.package),
                );
            }
        }
    }
    found
}

/// The number of days from 1970-01-01 to a date such as `2026-10-02`.
fn day(date: &str) -> i64 {
    let parts: Vec<i64> = date
        .split('-')
        .map(|part| part.parse().expect("a number"))
        .collect();
    let [year, month, day] = parts[..] else {
        panic!("a date: {date}");
    };
    // The year begins in March, so that the day of a leap year is its last one.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469
}

/// The warning about a copy of this date.
fn warning(newest: &str, today: i64) -> Option<String> {
    let age = today - day(newest);
    (age > MAX_AGE_DAYS).then(|| {
        format!(
            "warning: the newest advisory in tests/repository/advisories.toml is {age} days old; renew the copy as its header says, \
             or run `cargo deny check`"
        )
    })
}

#[test]
fn crates_have_no_known_vulnerability() {
    let copy = read("tests/repository/advisories.toml");
    let lock = read("Cargo.lock");
    let found = applicable(&lock, &advisories(&copy));
    let accepted: BTreeSet<_> = ACCEPTED.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(
        found.keys().cloned().collect::<BTreeSet<_>>(),
        accepted,
        "advisories that apply, and those that are accepted: {found:#?}"
    );
    let today = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let today = i64::try_from(today.as_secs() / 86_400).expect("a day");
    if let Some(warning) = warning(copy["newest"].as_str().expect("a date"), today) {
        // Not by a macro: the runner hides what a test prints that passes.
        writeln!(std::io::stderr(), "{warning}").expect("standard error is open");
    }
}

#[test]
fn advisories_were_looked_up_for_every_crate_or_it_is_named() {
    let copy = read("tests/repository/advisories.toml");
    let names = |list: &str| texts(copy.get(list)).into_iter().collect::<BTreeSet<_>>();
    let (looked_up, not) = (names("looked_up"), names("not_looked_up"));
    assert!(looked_up.is_disjoint(&not));
    let known: BTreeSet<_> = looked_up.union(&not).cloned().collect();
    let used: BTreeSet<_> = crates(&read("Cargo.lock")).into_keys().collect();
    let new: Vec<_> = used.difference(&known).collect();
    let gone: Vec<_> = known.difference(&used).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "look these crates up, or add them to `not_looked_up` of tests/repository/advisories.toml: {new:?}; remove {gone:?}"
    );
    for advisory in advisories(&copy) {
        assert!(looked_up.contains(&advisory.package), "{}", advisory.id);
    }
}

#[test]
fn advisory_applies_to_versions_outside_its_ranges_only() {
    let row: Table = "id = \"X-1\"\npackage = \"invented\"\npatched = [\">= 1.2.3\", \"^0.9.5\"]\nunaffected = [\"< 0.5.0\"]"
        .parse()
        .expect("it is TOML");
    let mut advisory = Advisory::read(&Value::Table(row));
    let applies = |advisory: &Advisory, version| {
        advisory.applies_to(&Version::parse(version).expect(version))
    };
    for version in ["0.5.0", "0.9.4", "0.10.0", "1.0.0", "1.2.2", "1.2.3-rc.1"] {
        assert!(applies(&advisory, version), "{version}");
    }
    for version in ["0.4.9", "0.9.5", "0.9.9", "1.2.3", "2.0.0"] {
        assert!(!applies(&advisory, version), "{version}");
    }
    advisory.is_withdrawn = true;
    assert!(!applies(&advisory, "1.0.0"));
}

#[test]
fn vulnerable_crate_of_a_lock_is_found_in_each_of_its_versions() {
    let copy: Table =
        "[[advisory]]\nid = \"X-1\"\npackage = \"invented\"\npatched = [\">= 1.2.3\"]"
            .parse()
            .expect("it is TOML");
    let lock = |version: &str, source: &str| -> Table {
        let other = "[[package]]\nname = \"invented\"\nversion = \"2.0.0\"\nsource = \"s\"\n";
        let package = format!("[[package]]\nname = \"invented\"\nversion = \"{version}\"\n");
        format!("{other}{package}{source}")
            .parse()
            .expect("it is TOML")
    };
    let found = |lock| applicable(&lock, &advisories(&copy));
    let expected = BTreeMap::from([("X-1".to_owned(), "invented 1.2.2".to_owned())]);
    assert_eq!(found(lock("1.2.2", "source = \"s\"")), expected);
    assert!(found(lock("1.2.3", "source = \"s\"")).is_empty());
    // A package of the workspace may have the name of a published crate.
    assert!(found(lock("1.2.2", "")).is_empty());
}

#[test]
fn old_copy_of_the_advisories_is_a_warning() {
    assert_eq!((day("1970-01-01"), day("2000-03-01")), (0, 11_017));
    let today = day("2026-12-31");
    assert_eq!(warning("2026-10-02", today), None);
    let old = warning("2026-10-01", today).expect("91 days");
    assert!(old.contains(" 91 days old"), "{old}");
}

#[test]
fn deny_toml_has_the_lists_of_the_offline_checks() {
    let deny = read("deny.toml");
    let named = |list: &Value, key: &str| -> BTreeSet<String> {
        let items = list.as_array().expect("a list").iter();
        let text = |item: &Value| item[key].as_str().expect("a text").to_owned();
        items.map(text).collect()
    };
    let ours = |list: &[(&str, &str)]| -> BTreeSet<String> {
        list.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    assert_eq!(named(&deny["advisories"]["ignore"], "id"), ours(&ACCEPTED));
    let skipped = named(&deny["bans"]["skip"], "crate");
    assert_eq!(skipped, ours(&TWICE));
    assert_eq!(texts(deny["licenses"].get("allow")), LICENCES);
}
