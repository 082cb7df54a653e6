//! Versions of Python packages, and the files of pip, pipx and uv.

use broker_build::requested::python::canonical_name;
use broker_model::digest::hex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::plain;

/// Whether two forms of a version are equal: `2025.08.4` is `2025.8.4`, `6.0` is `6.0.0`.
pub fn same_version(a: &str, b: &str) -> bool {
    canonical_version(a) == canonical_version(b)
}

fn canonical_version(version: &str) -> String {
    let version = version.trim_start_matches(['v', 'V']).to_ascii_lowercase();
    let (release, local) = version.split_once('+').unwrap_or((&version, ""));
    let number = |part: &str| match part.trim_start_matches('0') {
        "" if part.bytes().all(|b| b == b'0') => "0".to_owned(),
        trimmed if part.bytes().all(|b| b.is_ascii_digit()) => trimmed.to_owned(),
        _ => part.to_owned(),
    };
    let mut parts: Vec<String> = release.split(['.', '-', '_']).map(number).collect();
    while parts.len() > 1 && parts.last().is_some_and(|part| part == "0") {
        parts.pop();
    }
    format!("{}+{local}", parts.join("."))
}

/// Name and version of the package whose `.dist-info` folder has this name.
pub fn dist_info(folder: &str) -> Option<(String, String)> {
    let (name, version) = folder.strip_suffix(".dist-info")?.split_once('-')?;
    Some((canonical_name(&plain(name)?), plain(version)?))
}

/// The hash of a `RECORD`'s lines about the package's files, as `record-sha256:…`: every file with its hash,
/// without lines that the installer writes and that differ between machines. `None` if no line is left.
pub fn record_integrity(record: &str) -> Option<String> {
    let written_by_installer = |path: &str| {
        let name = path.split_once(".dist-info/").map_or("", |(_, name)| name);
        matches!(
            name,
            "INSTALLER"
                | "REQUESTED"
                | "RECORD"
                | "direct_url.json"
                | "uv_cache.json"
                | "uv_build.json"
        )
    };
    let mut lines: Vec<&str> = record
        .lines()
        .map(str::trim)
        .filter(|line| {
            let path = line.trim_start_matches('"');
            let path = path.split([',', '"']).next().unwrap_or_default();
            // Scripts outside the package contain the folder of the interpreter.
            let outside = path.starts_with("..") || path.starts_with('/');
            let hashed =
                line.contains(",sha256=") || line.contains(",sha384=") || line.contains(",sha512=");
            hashed && !outside && !path.ends_with(".pyc") && !written_by_installer(path)
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    lines.sort_unstable();
    Some(format!(
        "record-sha256:{}",
        hex(&Sha256::digest(lines.join("\n")))
    ))
}

/// The data of `direct_url.json` on a package that is not from an index: a commit, or the hash of an archive.
pub fn direct_url(text: &str) -> Option<String> {
    let document: Value = serde_json::from_str(text).ok()?;
    if let Some(commit) = document.pointer("/vcs_info/commit_id") {
        return plain(&format!("git:{}", commit.as_str()?));
    }
    let archive = document.get("archive_info")?;
    let hash = archive
        .pointer("/hashes/sha256")
        .and_then(Value::as_str)
        .or_else(|| {
            let hash = archive.get("hash").and_then(Value::as_str)?;
            hash.strip_prefix("sha256=")
        })?;
    plain(&format!("sha256:{hash}"))
}

/// Returns the archive's hash in a pointer file of uv's cache (`wheels-v*/…/VERSION-TAGS.http`,
/// `sdists-v*/…/revision.http`). The file is binary: the formula's name, then 64 digits.
pub fn cached_archive(bytes: &[u8]) -> Option<String> {
    let mark = b"Sha256";
    let starts = bytes
        .windows(mark.len())
        .enumerate()
        .filter(|(_, window)| window == mark);
    starts.map(|(at, _)| at + mark.len()).find_map(|from| {
        // One or two bytes contain the length of the text.
        [2, 1, 0].into_iter().find_map(|skip| {
            let digits = bytes.get(from + skip..from + skip + 64)?;
            let is_hex = digits
                .iter()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            is_hex.then(|| format!("sha256:{}", String::from_utf8_lossy(digits)))
        })
    })
}

/// Whether an `entry_points.txt` has this program.
pub fn has_script(entry_points: &str, name: &str) -> bool {
    let mut inside = false;
    entry_points.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            inside = matches!(line, "[console_scripts]" | "[gui_scripts]");
            return false;
        }
        inside
            && line
                .split_once('=')
                .is_some_and(|(key, _)| key.trim() == name)
    })
}
