//! Names of npm packages, and the files of npm.

use serde_json::Value;
use sha2::{Digest as _, Sha512};

use super::{Version, plain};
use broker_model::digest::hex;

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

/// Returns the name of npx's folder for these packages, below `_npx` in npm's cache.
pub fn npx_folder(specs: &[String]) -> String {
    let mut sorted: Vec<&str> = specs.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    hex(&Sha512::digest(sorted.join("\n"))[..8])
}

/// Version and integrity of one entry of `node_modules/.package-lock.json`, `node_modules/NAME`.
/// `None` if the file has no such entry, or if it is a link to a folder.
pub fn installed(hidden_lock: &str, key: &str) -> Option<(String, Option<String>)> {
    let lock: Value = serde_json::from_str(hidden_lock).ok()?;
    let entry = lock.get("packages")?.get(key)?;
    if entry.get("link").is_some() {
        return None;
    }
    let text = |key: &str| entry.get(key).and_then(Value::as_str).and_then(plain);
    Some((text("version")?, text("integrity")))
}

/// Name and version in a `package.json`.
pub fn manifest(text: &str) -> Option<(String, String)> {
    let manifest: Value = serde_json::from_str(text).ok()?;
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).and_then(plain);
    Some((text("name")?, text("version")?))
}
