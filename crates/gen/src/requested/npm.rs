//! Names and versions of npm packages, as a command writes them.

use super::Version;

/// `name`, `name@1.2.3`, `@scope/name@^1`: the name and the requested version. `None` for a source outside
/// registries.
pub(super) fn spec(text: &str) -> Option<(String, Version)> {
    let at = text
        .char_indices()
        .skip(1)
        .find(|(_, c)| *c == '@')
        .map(|(at, _)| at);
    let (name, version) = match at {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    if !is_name(name) || version.contains([':', '/']) || name.ends_with(".tgz") {
        return None;
    }
    let bare = version.trim_start_matches('=').trim_start_matches('v');
    let version = if is_exact(bare) {
        Version::Exactly(bare.to_owned())
    } else {
        Version::Moving(version.to_owned())
    };
    Some((name.to_owned(), version))
}

fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain)
    };
    match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| part(scope) && part(name)),
        None => part(name),
    }
}

fn is_exact(version: &str) -> bool {
    let (numbers, rest) = match version.find(['-', '+']) {
        Some(at) => (&version[..at], &version[at + 1..]),
        None => (version, "0"),
    };
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-+".contains(&b);
    numbers.split('.').count() == 3
        && numbers.split('.').all(number)
        && !rest.is_empty()
        && rest.bytes().all(plain)
}
