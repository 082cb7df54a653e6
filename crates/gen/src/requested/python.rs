//! Names and versions of Python packages, as a command writes them.

use super::Version;

/// `name`, `name[extra]==1.2`, `name>=1`: the normalised name, and the requested version.
pub(super) fn requirement(text: &str) -> Option<(String, Version)> {
    let (name, rest) = name_and_rest(text)?;
    if rest.contains("://") || rest.starts_with('@') {
        return None;
    }
    let rest = rest.split(';').next().unwrap_or_default().trim();
    let version = rest.strip_prefix("===").or_else(|| rest.strip_prefix("=="));
    match version.map(str::trim) {
        Some(version) if is_version(version) => Some((name, Version::Exactly(version.to_owned()))),
        _ => Some((name, Version::Moving(rest.to_owned()))),
    }
}

/// Forms that only uv accepts: `name@1.2`, `name@latest`.
pub(super) fn uv_spec(text: &str) -> Option<(String, Version)> {
    if let Some((name, rest)) = name_and_rest(text)
        && let Some(version) = rest.strip_prefix('@')
        && !version.contains([':', '/'])
    {
        let version = version.trim();
        return Some(if is_version(version) {
            (name, Version::Exactly(version.to_owned()))
        } else {
            (name, Version::Moving(version.to_owned()))
        });
    }
    requirement(text)
}

fn name_and_rest(text: &str) -> Option<(String, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)))
        .unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let edges = |name: &str| {
        let bytes = name.as_bytes();
        bytes
            .first()
            .zip(bytes.last())
            .is_some_and(|(a, b)| a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
    };
    if !edges(name) {
        return None;
    }
    rest = rest.trim_start();
    if let Some(inner) = rest.strip_prefix('[') {
        rest = inner.split_once(']')?.1.trim_start();
    }
    // Text other than a version after the name is an address or a path.
    let fits = rest.is_empty() || rest.starts_with(['=', '<', '>', '!', '~', '@', ';', '(']);
    fits.then(|| (canonical_name(name), rest))
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == 'v')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-+!".contains(&b))
}

/// The normalised form of a name: lower case, and `-` for any run of `-`, `_` and `.`.
pub fn canonical_name(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}
