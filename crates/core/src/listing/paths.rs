//! Finds the entry at a path, or returns an error with similar paths and the entries of the nearest node.

use broker_model::CallCode;
use broker_model::look::nfkc;
use broker_model::path::{self, MAX_PATH_BYTES, is_segment_char};
use broker_model::text::shown_line;
use serde_json::{Value, json};

use crate::catalog::EntryKind;
use crate::errors::error::CoreError;
use crate::listing::nearest::{self, Budget};
use crate::listing::scope::Scope;

/// The maximum number of a node's entries in one error.
const MAX_LISTED_ENTRIES: usize = 20;

/// Returns the index of the entry that a caller names.
pub(crate) fn resolve(scope: Scope<'_>, text: &str) -> Result<u32, Box<CoreError>> {
    resolve_within(scope, text, &mut Budget::default())
}

/// Acts as [`resolve`] for one of several paths of a request: suggestions take from the budget. When it is spent,
/// errors have no suggestions.
pub(crate) fn resolve_within(
    scope: Scope<'_>,
    text: &str,
    budget: &mut Budget,
) -> Result<u32, Box<CoreError>> {
    if let Some(at) = scope.catalog.find(text) {
        if scope.admits(at) {
            return Ok(at);
        }
        if scope.caller.is_informed_of(scope.view, scope.catalog, at) {
            let message = format!("the caller may not use `{text}`");
            return Err(Box::new(
                CoreError::new(CallCode::Forbidden, message).path(text),
            ));
        }
    }
    let shown = shown_line(text, 120);
    let error = match path::check(text) {
        Ok(()) => {
            let message = format!("no tool or node is at `{shown}`");
            let error = CoreError::new(CallCode::PathNotFound, message).path(text);
            with_candidates(scope, error, text, budget)
        }
        Err(rule) => {
            let message = format!("`{shown}` is not a path: {rule}");
            let error = CoreError::new(CallCode::PathInvalid, message);
            match corrected(text) {
                Some(path) => with_candidates(scope, error, &path, budget),
                None => error,
            }
        }
    };
    Err(Box::new(error))
}

/// Returns the error for `meta_tree` on a tool.
pub(crate) fn is_tool(path: &str) -> Box<CoreError> {
    let hint = format!(
        "describe it by `meta_desc` with {{\"path\":\"{path}\"}}, call it by `meta_call` with {{\"path\":\"{path}\",\"args\":{{…}}}}"
    );
    let error = CoreError::new(CallCode::PathIsTool, format!("`{path}` is a tool"));
    Box::new(error.path(path).hint(hint))
}

/// Returns the error for `meta_call` on a node.
pub(crate) fn is_node(scope: Scope<'_>, at: u32) -> Box<CoreError> {
    let path = scope.catalog.entry(at).path;
    let hint = format!(
        "list it by `meta_tree` with {{\"path\":\"{path}\"}}, then call one of its tools by `meta_call`"
    );
    let error = CoreError::new(CallCode::PathIsNode, format!("`{path}` is a node"));
    Box::new(error.path(path).hint(hint).details(entries_of(scope, at)))
}

/// Adds the paths that may have been meant, and the entries of the nearest node above the path.
fn with_candidates(
    scope: Scope<'_>,
    mut error: CoreError,
    path: &str,
    budget: &mut Budget,
) -> CoreError {
    let exact = scope.catalog.find(path).filter(|at| scope.admits(*at));
    error.did_you_mean = match exact {
        Some(_) => vec![path.to_owned()],
        None => match root_below(scope, path) {
            Some(root) => vec![root.to_owned()],
            None => nearest::nearest(scope, path, budget),
        },
    };
    let mut hints = Vec::new();
    if !error.did_you_mean.is_empty() {
        hints.push("`did_you_mean` has the nearest paths.".to_owned());
    }
    if exact.is_none()
        && let Some(node) = node_above(scope, path)
        && !budget.listed.contains(&node)
    {
        budget.listed.push(node);
        error.details = Some(entries_of(scope, node));
        let node = scope.catalog.entry(node).path;
        hints.push(format!("`details.children` has the entries of `{node}`."));
    }
    if hints.is_empty() {
        return error;
    }
    error.hint(hints.join(" "))
}

/// Returns the path of the entry that a caller is restricted to, if `path` is above it.
fn root_below(scope: Scope<'_>, path: &str) -> Option<&'static str> {
    let root = scope.caller.subtree()?.path;
    let rest = root.strip_prefix(path.trim_end_matches('/'))?;
    rest.starts_with('/').then_some(root)
}

/// Returns the nearest node above a path that exists for the caller.
fn node_above(scope: Scope<'_>, path: &str) -> Option<u32> {
    let mut below = path;
    while below != "/" {
        below = nearest::split(below).0;
        let found = scope.catalog.find(below).filter(|at| scope.admits(*at));
        if let Some(at) = found
            && let EntryKind::Node { .. } = scope.catalog.entry(at).kind
        {
            return Some(at);
        }
    }
    None
}

/// Returns the paths directly below a node, at most [`MAX_LISTED_ENTRIES`].
fn entries_of(scope: Scope<'_>, node: u32) -> Value {
    let entry = scope.catalog.entry(node);
    let children = match entry.kind {
        EntryKind::Node { children, .. } => children,
        EntryKind::Item(_) => &[],
    };
    let mut admitted = children.iter().filter(|child| scope.admits(**child));
    let listed: Vec<_> = admitted
        .by_ref()
        .take(MAX_LISTED_ENTRIES)
        .map(|child| scope.catalog.entry(*child).path)
        .collect();
    let mut details = json!({"node": entry.path, "children": listed});
    if let more @ 1.. = admitted.count() {
        details["more"] = more.into();
    }
    details
}

/// Returns the path that a text outside the grammar may mean: absolute, in the form NFKC, without empty segments, and
/// with a separator instead of each other character. `None` without a guess.
fn corrected(text: &str) -> Option<String> {
    if text.len() > MAX_PATH_BYTES {
        return None;
    }
    let text = nfkc(text.trim());
    let mut path = String::with_capacity(text.len() + 1);
    for segment in text.split(['/', '\\']) {
        let segment = segment.trim_matches('.');
        if segment.is_empty() {
            continue;
        }
        path.push('/');
        let chars = segment.chars();
        path.extend(chars.map(|c| if is_segment_char(c) { c } else { '_' }));
    }
    if path.is_empty() {
        path.push('/');
    }
    path::check(&path).ok().map(|()| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_outside_the_grammar_is_corrected_if_it_can_be_guessed() {
        for (text, path) in [
            ("a/b", "/a/b"),
            ("/a/", "/a"),
            ("//a//b", "/a/b"),
            ("", "/"),
            (" /a b ", "/a_b"),
            ("a\\b", "/a/b"),
            ("./a/../b", "/a/b"),
            ("/cafe\u{301}/ｒead", "/café/read"),
            ("查询/天气 1", "/查询/天气_1"),
        ] {
            assert_eq!(corrected(text).as_deref(), Some(path), "{text}");
        }
        let long = format!("a/{}", "b".repeat(MAX_PATH_BYTES));
        let segment = "a".repeat(200);
        assert_eq!((corrected(&long), corrected(&segment)), (None, None));
    }
}
