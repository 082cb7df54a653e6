//! Values that a schema may accept, built from its constants and bounds and from those of the schema on the
//! other side, so that values at the boundaries of their difference are among them.
//!
//! Candidates need not be valid: every value is validated before it is shown.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::limits::{Bound, Limits, SAFE_INTEGER};
use super::node::{Conjunction, Node};
use super::samples;
use super::types::Type;
use super::view::{Side, View};

/// Values for one place.
const MAX_VALUES: usize = 3000;
/// Maximum number of subschemas from which one search takes values.
const MAX_ASKED: u32 = 5_000;
/// Maximum number of values of one search.
const MAX_MADE: usize = 60_000;
/// Maximum nesting of a value.
const MAX_DEPTH: usize = 12;
/// Maximum number of characters, items or members of one value.
const MAX_COUNT: u64 = 300;
/// A member that no schema declares.
const STRANGER: &str = "undeclared";

/// Makes values of `writer`, with boundary values from `reader`.
#[derive(Debug)]
pub(super) struct Candidates {
    side: Side,
    view: View,
    asked: Cell<u32>,
    made: Cell<usize>,
}

impl Candidates {
    pub(super) const fn new(side: Side, view: View) -> Self {
        Self {
            side,
            view,
            asked: Cell::new(0),
            made: Cell::new(0),
        }
    }

    /// The first is the simplest.
    pub(super) fn find(
        &self,
        writer: &Conjunction<'_>,
        reader: Option<&Conjunction<'_>>,
        depth: usize,
    ) -> Vec<Value> {
        let mut out = Vec::new();
        self.collect(writer, reader, depth, 3, &mut out);
        self.made.set(self.made.get() + out.len());
        let mut seen = BTreeSet::new();
        out.retain(|value| seen.insert(value.to_string()));
        out
    }

    fn collect(
        &self,
        writer: &Conjunction<'_>,
        reader: Option<&Conjunction<'_>>,
        depth: usize,
        choices: usize,
        out: &mut Vec<Value>,
    ) {
        if depth > MAX_DEPTH || out.len() >= MAX_VALUES || writer.is_nothing() {
            return;
        }
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() > MAX_ASKED || self.made.get() > MAX_MADE {
            return;
        }
        if writer.is_anything() {
            let to = reader.map(Conjunction::read);
            out.extend([
                json!("text"),
                json!(1),
                json!(true),
                json!({}),
                json!([]),
                json!(1.5),
                Value::Null,
            ]);
            out.extend(to.map(|to| hints(&to, 0)).unwrap_or_default());
            return;
        }
        let from = writer.read();
        if from.never {
            return;
        }
        if let Some(group) = from.groups.first().filter(|_| choices > 0) {
            let mut branches: Vec<Vec<Value>> = Vec::new();
            for branch in 0..group.branches.len().min(32) {
                let mut values = Vec::new();
                let taken = writer.choosing(group, branch);
                self.collect(&taken, reader, depth, choices - 1, &mut values);
                branches.push(values);
            }
            // The simplest value of each branch comes first.
            out.extend(branches.iter().filter_map(|values| values.first().cloned()));
            out.extend(
                branches
                    .into_iter()
                    .flat_map(|values| values.into_iter().skip(1)),
            );
            return;
        }
        let to = reader.map(Conjunction::read);
        let hints = to.as_ref().map(|to| hints(to, 0)).unwrap_or_default();
        if let Some(values) = &from.values {
            out.extend(values.iter().take(100).map(|value| (*value).clone()));
            return;
        }
        for one in preferred(&from) {
            match one {
                Type::Null => out.push(Value::Null),
                Type::Boolean => out.extend([json!(true), json!(false)]),
                Type::Integer => integers(&from, to.as_ref(), self.view, out),
                Type::Fraction => fractions(&from, to.as_ref(), out),
                Type::String => strings(&from, to.as_ref(), &hints, out),
                Type::Array => self.arrays(&from, to.as_ref(), depth, out),
                Type::Object => self.objects(&from, to.as_ref(), depth, out),
            }
        }
        out.extend(
            hints
                .into_iter()
                .filter(|value| from.types.has_type_of(value)),
        );
    }

    fn arrays(&self, from: &Node<'_>, to: Option<&Node<'_>>, depth: usize, out: &mut Vec<Value>) {
        let (min, max) = from.limits.counts[1];
        let min = min.max(
            from.prefix
                .len()
                .try_into()
                .unwrap_or(0)
                .min(max.unwrap_or(u64::MAX)),
        );
        if min > MAX_COUNT {
            return;
        }
        let place = |node: &Node<'_>, index: usize| -> Vec<Value> {
            let mine = node.prefix.get(index).unwrap_or(&node.rest);
            let theirs = to.map(|to| to.prefix.get(index).unwrap_or(&to.rest));
            self.find(mine, theirs, depth + 1)
        };
        let rest = place(from, from.prefix.len());
        let firsts: Vec<Vec<Value>> = (0..from.prefix.len())
            .map(|index| place(from, index))
            .collect();
        let of_length = |count: u64, shift: usize| -> Option<Value> {
            (0..usize::try_from(count).ok()?)
                .map(|index| match firsts.get(index) {
                    Some(values) => values.first().cloned(),
                    None if from.unique => rest.get(index - firsts.len() + shift).cloned(),
                    None => rest.get(shift).cloned(),
                })
                .collect::<Option<Vec<_>>>()
                .map(Value::Array)
        };
        let mut counts = BTreeSet::from([min, min + 1, 0]);
        counts.extend(max);
        if let Some(to) = to {
            let (low, high) = to.limits.counts[1];
            counts.extend([low.saturating_sub(1), low]);
            counts.extend(high.into_iter().flat_map(|high| [high, high + 1]));
        }
        let fits = |count: &u64| *count >= min && max.is_none_or(|max| *count <= max);
        let counts: Vec<u64> = counts.into_iter().filter(fits).collect();
        out.extend(
            counts
                .iter()
                .filter(|count| **count <= MAX_COUNT)
                .filter_map(|count| of_length(*count, 0)),
        );
        for (index, values) in firsts.iter().enumerate() {
            for value in values.iter().skip(1) {
                if let Some(Value::Array(mut items)) = of_length(min.max(index as u64 + 1), 0) {
                    items[index] = value.clone();
                    out.push(items.into());
                }
            }
        }
        let count = min.max(firsts.len() as u64 + 1);
        if fits(&count) {
            for shift in 0..rest.len().min(MAX_VALUES) {
                out.extend(of_length(count, shift));
            }
            // Two of a kind, if the reader requires different ones.
            if let (Some(one), false) = (rest.first(), from.unique) {
                out.push(json!([one, one]));
            }
        }
    }

    fn objects(&self, from: &Node<'_>, to: Option<&Node<'_>>, depth: usize, out: &mut Vec<Value>) {
        let undeclared = self.view.writes_undeclared(from);
        let theirs = |name: &str| to.map(|to| to.properties.get(name).unwrap_or(&to.additional));
        let mut least = Map::new();
        let mut values: Vec<(&str, Vec<Value>)> = Vec::new();
        for (name, schema) in &from.properties {
            values.push((*name, self.find(schema, theirs(name), depth + 1)));
        }
        for name in &from.required {
            let first = match values.iter().find(|(known, _)| known == name) {
                Some((_, values)) => values.first().cloned(),
                None => self
                    .find(&from.additional, theirs(name), depth + 1)
                    .into_iter()
                    .next(),
            };
            match first {
                Some(value) => least.insert((*name).to_owned(), value),
                None => return,
            };
        }
        let (min, max) = from.limits.counts[2];
        let mut full = least.clone();
        for (name, values) in &values {
            if let Some(value) = values.first().filter(|_| !full.contains_key(*name)) {
                full.insert((*name).to_owned(), value.clone());
            }
        }
        let with = |base: &Map<String, Value>, name: &str, value: &Value| {
            let mut object = base.clone();
            object.insert(name.to_owned(), value.clone());
            Value::Object(object)
        };
        if (least.len() as u64) < min && (full.len() as u64) < min {
            self.strangers(from, to, min, &mut full, depth);
        }
        let base = if (least.len() as u64) < min {
            &full
        } else {
            &least
        };
        out.push(base.clone().into());
        // A result may have members that neither side declares, if the live object is open.
        if undeclared || self.side == Side::Output {
            let names = to
                .filter(|_| undeclared)
                .into_iter()
                .flat_map(|to| to.properties.keys().copied());
            let names = names.filter(|name| !from.properties.contains_key(name));
            for name in names.chain([STRANGER]) {
                for value in self
                    .find(&from.additional, theirs(name), depth + 1)
                    .iter()
                    .take(40)
                {
                    out.push(with(base, name, value));
                }
            }
            let wanted = to
                .and_then(|to| to.limits.counts[2].1)
                .map_or(0, |most| most + 1);
            let mut many = base.clone();
            self.strangers(from, to, wanted.min(MAX_COUNT), &mut many, depth);
            out.push(many.into());
        }
        // One change per value, on the simplest and on the fullest object, simple edits first.
        let most = values
            .iter()
            .map(|(_, values)| values.len())
            .max()
            .unwrap_or(0);
        for index in 0..most {
            for (name, values) in &values {
                if out.len() >= MAX_VALUES {
                    return;
                }
                if let Some(value) = values.get(index) {
                    out.push(with(base, name, value));
                    if depth == 0 && base.len() < full.len() && index < 12 {
                        out.push(with(&full, name, value));
                    }
                }
            }
        }
        if max.is_none_or(|max| full.len() as u64 <= max) {
            out.push(full.into());
        }
    }

    /// Adds undeclared members until there are `wanted`.
    fn strangers(
        &self,
        from: &Node<'_>,
        to: Option<&Node<'_>>,
        wanted: u64,
        into: &mut Map<String, Value>,
        depth: usize,
    ) {
        let values = self.find(&from.additional, to.map(|to| &to.additional), depth + 1);
        let Some(value) = values.first() else {
            return;
        };
        let mut index = 0;
        while (into.len() as u64) < wanted.min(MAX_COUNT) {
            into.insert(format!("{STRANGER}{index}"), value.clone());
            index += 1;
        }
    }
}

/// Types in the order of their simplest values.
fn preferred(from: &Node<'_>) -> Vec<Type> {
    let order = [
        Type::String,
        Type::Integer,
        Type::Fraction,
        Type::Boolean,
        Type::Object,
        Type::Array,
        Type::Null,
    ];
    order
        .into_iter()
        .filter(|one| from.types.has(*one))
        .collect()
}

/// Constants of the other side, including its alternatives.
fn hints(to: &Node<'_>, depth: usize) -> Vec<Value> {
    let listed = to.values.iter().flatten().take(50);
    let mut out: Vec<Value> = listed.map(|value| (*value).clone()).collect();
    if depth < 2 {
        for branch in to.groups.iter().flat_map(|group| &group.branches) {
            out.extend(hints(&Conjunction::new(branch.clone()).read(), depth + 1));
        }
    }
    out.truncate(200);
    out
}

fn ends(limits: &Limits) -> Vec<i128> {
    let end = |bound: &Option<Bound>| {
        bound.as_ref().and_then(|bound| {
            let float = bound.value.as_f64()?;
            #[expect(clippy::cast_possible_truncation, reason = "only a place to look at")]
            bound
                .value
                .as_i128()
                .or_else(|| (float.abs() < 9e15).then_some(float as i128))
        })
    };
    [end(&limits.lower), end(&limits.upper)]
        .into_iter()
        .flatten()
        .collect()
}

fn integers(from: &Node<'_>, to: Option<&Node<'_>>, view: View, out: &mut Vec<Value>) {
    let mut edges = vec![1, 0, 2, -1, 10, 100, 1_000_000];
    for end in ends(&from.limits)
        .into_iter()
        .chain(to.map(|to| ends(&to.limits)).unwrap_or_default())
    {
        edges.extend([end, end - 1, end + 1]);
    }
    let steps = from.multiples.iter().filter_map(|step| step.as_i128());
    for step in steps {
        edges.extend([step, step * 2, step * 3, -step]);
    }
    if view == View::Strict {
        edges.extend([SAFE_INTEGER + 2, -SAFE_INTEGER - 2]);
    } else {
        edges.extend([SAFE_INTEGER, -SAFE_INTEGER]);
        edges.retain(|edge| edge.abs() <= SAFE_INTEGER);
    }
    let range = from.limits.integers();
    let inside = |value: &i128| {
        range.is_none_or(|(low, high)| {
            low.is_none_or(|low| *value >= low) && high.is_none_or(|high| *value <= high)
        })
    };
    let values = edges
        .into_iter()
        .filter(inside)
        .filter_map(|edge| i64::try_from(edge).ok());
    out.extend(values.map(Value::from));
}

fn fractions(from: &Node<'_>, to: Option<&Node<'_>>, out: &mut Vec<Value>) {
    let mut edges = vec![0.5, 1.5, -0.5, 1e6 + 0.5];
    for bounds in [Some(from), to]
        .into_iter()
        .flatten()
        .map(|node| &node.limits)
    {
        for bound in [&bounds.lower, &bounds.upper].into_iter().flatten() {
            let end = bound.value.as_f64().unwrap_or(0.0);
            edges.extend([end, end + 0.5, end - 0.5, end + 0.01, end - 0.01]);
        }
    }
    out.extend(
        edges
            .into_iter()
            .filter(|edge| edge.fract() != 0.0)
            .map(|edge| json!(edge)),
    );
}

fn strings(from: &Node<'_>, to: Option<&Node<'_>>, hints: &[Value], out: &mut Vec<Value>) {
    let (min, max) = from.limits.counts[0];
    let fits = |text: &str| {
        let length = text.chars().count() as u64;
        length >= min && max.is_none_or(|max| length <= max)
    };
    let mut texts: Vec<String> = from
        .patterns
        .iter()
        .flat_map(|pattern| samples::from_pattern(pattern))
        .collect();
    texts.extend(
        [
            "text",
            "a",
            "",
            "1",
            "1.5",
            "true",
            "null",
            "https://example.org/",
            "2026-01-01",
            " ",
            "\u{e9}\n-",
            "UPPER",
        ]
        .map(str::to_owned),
    );
    texts.extend(
        to.into_iter()
            .flat_map(|to| &to.patterns)
            .flat_map(|pattern| samples::from_pattern(pattern)),
    );
    let mut counts = vec![min, min + 1];
    counts.extend(max);
    if let Some(to) = to {
        let (low, high) = to.limits.counts[0];
        counts.extend([low.saturating_sub(1), low]);
        counts.extend(high.into_iter().flat_map(|high| [high, high + 1]));
    }
    for count in counts {
        if let Some(count) = usize::try_from(count).ok().filter(|count| *count <= 10_000) {
            texts.push("a".repeat(count));
        }
    }
    out.extend(texts.into_iter().filter(|text| fits(text)).map(Value::from));
    // A value next to each constant of the other side.
    for text in hints.iter().filter_map(Value::as_str).take(3) {
        out.push(format!("{text}x").into());
    }
}
