//! Reads the text of a scrape strictly: a line that is not as the formats say fails the test.

use std::collections::{BTreeMap, BTreeSet};

/// A scrape that was read.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    /// Each series with its value.
    pub(crate) series: BTreeMap<Series, f64>,
    /// The type of each family, by its name in the text.
    pub(crate) types: BTreeMap<String, String>,
}

/// The name of a series, and its labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Scrape {
    /// Reads a text.
    pub(crate) fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        let (mut helped, mut family) = (BTreeSet::new(), String::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a text");
                assert!(help.ends_with('.'), "{line}");
                assert!(helped.insert(name.to_owned()), "a second head: {line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert!(helped.contains(name), "a type without help: {line}");
                name.clone_into(&mut family);
                scrape.types.insert(name.to_owned(), kind.to_owned());
            } else if let Some(unit) = line.strip_prefix("# UNIT ") {
                let (name, unit) = unit.split_once(' ').expect("a unit");
                assert_eq!(name, family);
                assert!(name.ends_with(&format!("_{unit}")), "{line}");
            } else if line != "# EOF" {
                let (series, value) = Series::read(line);
                assert!(
                    series.name.starts_with(&family),
                    "not of its family: {line}"
                );
                let value = value.parse().expect("a number");
                let is_new = scrape.series.insert(series, value).is_none();
                assert!(is_new, "a second series: {line}");
            }
        }
        scrape.check_histograms();
        scrape
    }

    /// Checks that the buckets of each histogram grow up to its count.
    fn check_histograms(&self) {
        let mut buckets: BTreeMap<Series, Vec<(f64, f64)>> = BTreeMap::new();
        for (series, value) in &self.series {
            let mut series = series.clone();
            if let Some(bound) = series.labels.remove("le") {
                let bound = bound.replace("+Inf", "inf").parse().expect("a bound");
                series.name = series.name.replace("_bucket", "_count");
                buckets.entry(series).or_default().push((bound, *value));
            }
        }
        for (series, mut buckets) in buckets {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(
                buckets.is_sorted_by(|one, other| one.1 <= other.1),
                "{series:?}"
            );
            let last = buckets.last().copied();
            assert_eq!(last, Some((f64::INFINITY, self.series[&series])));
        }
    }

    /// Returns the value of a series as a test names it: `name{label="value"}`.
    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        let (series, _) = Series::read(&format!("{series} 0"));
        self.series.get(&series).copied()
    }

    /// Returns the number of series with this value of any label.
    pub(crate) fn with_value(&self, value: &str) -> usize {
        let has = |series: &&Series| series.labels.values().any(|label| label == value);
        self.series.keys().filter(has).count()
    }
}

impl Series {
    /// Reads the line of a sample: the series, and the value as text.
    fn read(line: &str) -> (Self, &str) {
        let name_end = line.find(['{', ' ']).expect("a value");
        let (name, mut rest) = line.split_at(name_end);
        let mut labels = BTreeMap::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            while !rest.starts_with('}') {
                let (key, after) = rest.split_once("=\"").expect("a label");
                let (value, after) = value_of_label(after);
                assert!(!value.is_empty(), "a label without a value: {line}");
                let is_new = labels.insert(key.to_owned(), value).is_none();
                assert!(is_new, "a label twice: {line}");
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            rest = &rest[1..];
        }
        let value = rest.strip_prefix(' ').expect("a value");
        let name = name.to_owned();
        (Self { name, labels }, value)
    }
}

/// Reads the value of a label up to its quote, and returns the rest of the line behind it.
fn value_of_label(text: &str) -> (String, &str) {
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, char) in text.char_indices() {
        match (is_escaped, char) {
            (false, '"') => return (value, &text[at + 1..]),
            (false, '\\') => {
                is_escaped = true;
                continue;
            }
            (true, 'n') => value.push('\n'),
            (_, char) => value.push(char),
        }
        is_escaped = false;
    }
    panic!("a label without an end: {text}");
}
