//! The files of npm.

use broker_model::digest::hex;
use serde_json::Value;
use sha2::{Digest as _, Sha512};

use super::plain;

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
