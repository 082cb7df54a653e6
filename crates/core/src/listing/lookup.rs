//! Finds the entry at a path, or returns an error that suggests similar paths.

use broker_model::CallCode;
use broker_model::path;
use broker_model::text::shown_line;

use crate::catalog::EntryKind;
use crate::errors::error::CoreError;
use crate::listing::scope::Scope;

/// The maximum number of suggestions in one error.
const MAX_SUGGESTIONS: usize = 3;
/// The maximum number of names that one request compares, over all its paths: unknown paths must stay
/// cheap for every catalog and every request.
pub(crate) const MAX_COMPARED: usize = 4000;
/// Only the beginning of a longer last segment is compared.
const MAX_COMPARED_CHARS: usize = 64;
/// Names below this likeness are not suggested.
const MIN_LIKENESS: f64 = 0.6;

/// The index of the entry that a caller names.
pub(crate) fn resolve(scope: Scope<'_>, text: &str) -> Result<u32, Box<CoreError>> {
    resolve_within(scope, text, &mut { MAX_COMPARED })
}

/// [`resolve`] for one of several paths of a request: suggestions compare at most `budget` names and
/// subtract them from it. When the budget is spent, errors have no suggestions.
pub(crate) fn resolve_within(
    scope: Scope<'_>,
    text: &str,
    budget: &mut usize,
) -> Result<u32, Box<CoreError>> {
    if let Some(at) = scope.catalog.find(text)
        && scope.admits(at)
    {
        return Ok(at);
    }
    let shown = shown_line(text, 120);
    if let Err(rule) = path::check(text) {
        let error = CoreError::new(
            CallCode::PathInvalid,
            format!("`{shown}` is not a path: {rule}"),
        );
        return Err(Box::new(error));
    }
    let mut error = CoreError::new(
        CallCode::PathNotFound,
        format!("no tool or node is at `{shown}`"),
    )
    .path(text);
    error.did_you_mean = nearest(scope, text, budget);
    Err(Box::new(error))
}

/// The error for `meta_tree` on a tool.
pub(crate) fn is_tool(path: &str) -> Box<CoreError> {
    let hint = format!(
        "describe it by `meta_desc` with {{\"path\":\"{path}\"}}, call it by `meta_call` with {{\"path\":\"{path}\",\"args\":{{…}}}}"
    );
    let error = CoreError::new(CallCode::PathIsTool, format!("`{path}` is a tool"));
    Box::new(error.path(path).hint(hint))
}

/// The error for `meta_call` on a node.
pub(crate) fn is_node(path: &str) -> Box<CoreError> {
    let hint = format!(
        "list it by `meta_tree` with {{\"path\":\"{path}\"}}, then call one of its tools by `meta_call`"
    );
    let error = CoreError::new(CallCode::PathIsNode, format!("`{path}` is a node"));
    Box::new(error.path(path).hint(hint))
}

/// At most three paths that may have been meant: names beside it first, then the same or a similar
/// name anywhere.
fn nearest(scope: Scope<'_>, text: &str, budget: &mut usize) -> Vec<String> {
    if *budget == 0 {
        return Vec::new();
    }
    let (parent, wanted) = split(text);
    let wanted: String = wanted.chars().take(MAX_COMPARED_CHARS).collect();
    let mut found: Vec<(f64, &'static str)> = Vec::new();
    let catalog = scope.catalog;
    let mut offer = |at: u32, bonus: f64| {
        let entry = catalog.entry(at);
        let leaf = split(entry.path).1;
        let like = if leaf.eq_ignore_ascii_case(&wanted) {
            1.0
        } else if *budget > 0 && may_be_like(&wanted, leaf) {
            *budget -= 1;
            likeness(&wanted, leaf)
        } else {
            0.0
        };
        if like >= MIN_LIKENESS && scope.admits(at) {
            found.push((like + bonus, entry.path));
        }
    };
    let siblings: &[u32] = match catalog.find(parent).map(|at| &catalog.entry(at).kind) {
        Some(EntryKind::Node { children, .. }) => children,
        _ => &[],
    };
    for child in siblings {
        offer(*child, 1.0);
    }
    for (at, entry) in catalog.entries.iter().enumerate() {
        if entry.path != "/" && split(entry.path).0 != parent {
            offer(at as u32, 0.0);
        }
    }
    found.sort_by(|a, b| {
        // Equal names are ordered by the rest of their paths.
        let whole = |path: &str| strsim::jaro_winkler(text, path);
        b.0.total_cmp(&a.0)
            .then_with(|| whole(b.1).total_cmp(&whole(a.1)))
            .then_with(|| a.1.cmp(b.1))
    });
    let paths = found.into_iter().take(MAX_SUGGESTIONS);
    paths.map(|(_, path)| path.to_owned()).collect()
}

/// Whether names can be similar enough at all: they differ in at least as many characters as in length.
fn may_be_like(wanted: &str, name: &str) -> bool {
    let (short, long) = (wanted.len().min(name.len()), wanted.len().max(name.len()));
    long <= 2 * MAX_COMPARED_CHARS && short as f64 >= MIN_LIKENESS * long as f64
}

/// 1 for equal names, 0 for names with nothing in common; a swap of neighbours is one edit.
fn likeness(wanted: &str, name: &str) -> f64 {
    let longest = wanted.len().max(name.len()).max(1);
    1.0 - strsim::osa_distance(wanted, name) as f64 / longest as f64
}

/// The path above and the last segment.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", leaf)) => ("/", leaf),
        Some((parent, leaf)) => (parent, leaf),
        None => ("/", path),
    }
}
