//! Near-duplicate descriptions of two sources, compared by shared sequences of words.

use std::collections::{BTreeMap, BTreeSet};

use broker_drift::Finding;
use broker_drift::encoded::words;
use broker_model::lock::LockedSource;

use super::rules::rule;
use super::{CrossSourceFinding, excerpt, path_of, quoted};

/// Words of a compared sequence.
const ROW: usize = 3;
/// Shorter descriptions are similar by chance.
const MIN_WORDS: usize = 10;
/// Sequences that are kept of a description: the smallest hashes, as a fair sample.
const SAMPLE: usize = 128;
/// A sequence that more descriptions share is common text, and costly to compare.
const COMMON: usize = 40;
/// Percentage of sequences that two descriptions share.
const ALIKE: usize = 70;

#[derive(Debug)]
struct Sketch {
    tool: (usize, usize),
    rows: BTreeSet<u64>,
}

/// The findings on descriptions across sources: each names the most similar earlier one.
pub(super) fn check(sources: &[LockedSource]) -> Vec<CrossSourceFinding> {
    let sketches = sketches(sources);
    let mut by_row: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut found = Vec::new();
    for (index, sketch) in sketches.iter().enumerate() {
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for row in &sketch.rows {
            let known = by_row.entry(*row).or_default();
            if known.len() < COMMON {
                for other in known.iter() {
                    *shared.entry(*other).or_default() += 1;
                }
                known.push(index);
            }
        }
        let of = |tool: (usize, usize)| &sources[tool.0].exposed[tool.1];
        let best = shared
            .keys()
            .map(|other| (&sketches[*other], likeness(sketch, &sketches[*other])))
            .filter(|(other, likeness)| {
                *likeness >= ALIKE
                    && other.tool.0 != sketch.tool.0
                    && of(other.tool).digest != of(sketch.tool).digest
            })
            .max_by_key(|(other, likeness)| (*likeness, std::cmp::Reverse(other.tool)));
        let Some((other, likeness)) = best else {
            continue;
        };
        let path = path_of(&sources[other.tool.0], of(other.tool));
        let text = description(sources, sketch.tool).unwrap_or_default();
        let end = text.char_indices().nth(80).map_or(text.len(), |(at, _)| at);
        found.push(CrossSourceFinding {
            tool: sketch.tool,
            finding: Finding {
                pointer: "/description".to_owned(),
                new: Some(excerpt(text, 0, end).into()),
                ..Finding::new(
                    rule("near-duplicate-description"),
                    format!("{likeness} % of it is in {} as well", quoted(&path)),
                    "",
                )
            },
        });
    }
    found
}

fn description(sources: &[LockedSource], tool: (usize, usize)) -> Option<&str> {
    sources[tool.0].exposed[tool.1]
        .raw
        .get("description")?
        .as_str()
}

fn sketches(sources: &[LockedSource]) -> Vec<Sketch> {
    let mut sketches = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        for index in 0..source.exposed.len() {
            let Some(text) = description(sources, (number, index)) else {
                continue;
            };
            let words = words(text);
            if words.len() < MIN_WORDS {
                continue;
            }
            let rows: BTreeSet<u64> = words
                .windows(ROW)
                .map(|row| hash(row.iter().map(|word| word.text.as_str())))
                .collect();
            sketches.push(Sketch {
                tool: (number, index),
                rows: rows.into_iter().take(SAMPLE).collect(),
            });
        }
    }
    sketches
}

/// The percentage of the smallest hashes of both that both have.
fn likeness(one: &Sketch, other: &Sketch) -> usize {
    let all: BTreeSet<_> = one.rows.union(&other.rows).take(SAMPLE).collect();
    let both = all
        .iter()
        .filter(|row| one.rows.contains(row) && other.rows.contains(row))
        .count();
    both * 100 / all.len().max(1)
}

/// FNV-1a: the same on every machine, and spread well enough for a sample.
fn hash<'a>(words: impl Iterator<Item = &'a str>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in words {
        for byte in word.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    // Sorted by the high bits; the low bits depend mostly on the last words.
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
