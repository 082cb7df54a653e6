//! The stored bounds in `bounds.tsv`: reads them, compares figures with them, and writes them again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use crate::Path;

/// The deviation from a bound that is accepted, in percent.
const TOLERANCE: u64 = 5;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Allocations,
    Bytes,
    /// Instructions without optimisation.
    DevInstructions,
    /// Instructions of the profile `release`.
    ReleaseInstructions,
}

/// Figures of one call on a path.
pub type Figures = BTreeMap<(&'static str, Unit), u64>;

impl Unit {
    const ALL: [Self; 4] = [
        Self::Allocations,
        Self::Bytes,
        Self::DevInstructions,
        Self::ReleaseInstructions,
    ];

    /// Its name in the bounds.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocations => "allocations",
            Self::Bytes => "bytes",
            Self::DevInstructions => "dev instructions",
            Self::ReleaseInstructions => "release instructions",
        }
    }
}

/// Compares `figures`, which a program built by `compiler` took, with the bounds. With `UPDATE_EXPECT=1` it
/// stores them instead.
///
/// # Errors
///
/// All figures that are too high or too low, with `command`, which renews the bounds.
pub fn check(figures: &Figures, compiler: &str, command: &str) -> Result<(), String> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("bounds.tsv");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let (stored_compiler, mut bounds) = read(&text);
    if env::var_os("UPDATE_EXPECT").is_some() {
        bounds.extend(figures);
        return fs::write(&file, written(&bounds, compiler)).map_err(|error| error.to_string());
    }
    let wrong = compare(figures, &bounds);
    if wrong.is_empty() {
        return Ok(());
    }
    let wrong = wrong.join("\n");
    Err(format!(
        "{wrong}\nThe bounds in tests/hot_path/bounds.tsv are those of {stored_compiler}, the figures those of {compiler}. `UPDATE_EXPECT=1 {command}` stores the figures."
    ))
}

/// A line for each figure that is not within the tolerance of its bound.
fn compare(figures: &Figures, bounds: &Figures) -> Vec<String> {
    let mut wrong = Vec::new();
    for (&(path, unit), &figure) in figures {
        let unit_name = unit.name();
        let Some(&bound) = bounds.get(&(path, unit)) else {
            wrong.push(format!(
                "{path}: {figure} {unit_name} for a call, and no bound"
            ));
            continue;
        };
        let advice = if 100 * figure > (100 + TOLERANCE) * bound {
            "find the cause, or raise the bound in a separate commit that says why"
        } else if 100 * figure < (100 - TOLERANCE) * bound {
            "lower the bound"
        } else {
            continue;
        };
        let change = 100.0 * (figure as f64 / bound as f64 - 1.0);
        wrong.push(format!(
            "{path}: {figure} {unit_name} for a call, the bound is {bound} ({change:+.1} %): {advice}"
        ));
    }
    wrong
}

/// The compiler and the bounds of a file.
fn read(text: &str) -> (&str, Figures) {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let compiler = lines.next().unwrap_or("no compiler");
    let mut bounds = Figures::new();
    for line in lines {
        let mut cells = line.split('\t');
        let Some(path) = cells.next().and_then(Path::named) else {
            continue;
        };
        for (unit, cell) in Unit::ALL.into_iter().zip(cells) {
            if let Ok(bound) = cell.parse() {
                bounds.insert((path.name(), unit), bound);
            }
        }
    }
    (compiler, bounds)
}

fn written(bounds: &Figures, compiler: &str) -> String {
    let mut text =
        format!("# The cost of one call. CONTRIBUTING.md says how to renew it.\n{compiler}\npath");
    for unit in Unit::ALL {
        text.push('\t');
        text.push_str(unit.name());
    }
    text.push('\n');
    for path in Path::ALL.map(Path::name) {
        text.push_str(path);
        for unit in Unit::ALL {
            match bounds.get(&(path, unit)) {
                Some(bound) => write!(text, "\t{bound}").expect("writing to memory cannot fail"),
                None => text.push_str("\t-"),
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(path: Path, allocations: u64) -> Figures {
        Figures::from([((path.name(), Unit::Allocations), allocations)])
    }

    #[test]
    fn bounds_are_read_back_as_written() {
        let mut bounds = figures(Path::HttpTree, 40);
        bounds.insert((Path::StdioLargeCall.name(), Unit::ReleaseInstructions), 7);
        let text = written(&bounds, "rustc 1.95.0");
        assert_eq!(read(&text), ("rustc 1.95.0", bounds));
    }

    #[test]
    fn figure_over_five_percent_from_its_bound_is_reported_with_both() {
        let bounds = figures(Path::HttpTree, 40);
        for within in [38, 40, 42] {
            let found = compare(&figures(Path::HttpTree, within), &bounds);
            assert!(found.is_empty(), "{found:?}");
        }
        for (figure, text) in [
            (
                43,
                "http meta_tree: 43 allocations for a call, the bound is 40 (+7.5 %): find the cause",
            ),
            (
                37,
                "http meta_tree: 37 allocations for a call, the bound is 40 (-7.5 %): lower the bound",
            ),
        ] {
            let found = compare(&figures(Path::HttpTree, figure), &bounds);
            assert!(found.len() == 1 && found[0].starts_with(text), "{found:?}");
        }
        let unknown = compare(&figures(Path::HttpDesc, 1), &bounds);
        assert!(unknown[0].ends_with("no bound"), "{unknown:?}");
    }
}
