//! The repository and the revision of a working copy, read from the files of git without running git. The build
//! script of `broker-gen` includes this file; so do its tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The maximum size of a file of git that is read.
const MAX_BYTES: u64 = 4 << 20;

/// Where a working copy comes from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The URL of the remote `origin`, without a user, with `https`.
    pub(crate) url: Option<String>,
    /// The commit that is checked out.
    pub(crate) revision: Option<String>,
    /// The files that change when one of them changes.
    pub(crate) watched: Vec<PathBuf>,
}

/// Reads the working copy at `root`; everything is absent if it is not one.
pub(crate) fn read(root: &Path) -> Origin {
    let mut origin = Origin::default();
    let Some(folder) = git_folder(root, &mut origin.watched) else {
        return origin;
    };
    // A worktree has its HEAD, and shares config and branches.
    let common = match text(&folder.join("commondir")) {
        Some(common) => folder.join(common.trim()),
        None => folder.clone(),
    };
    let config = common.join("config");
    origin.url = text(&config)
        .as_deref()
        .and_then(remote_url)
        .and_then(|url| public_url(&url).or_else(|| url_of_cargo(root, &url)));
    watch(&mut origin.watched, config);
    let head = folder.join("HEAD");
    origin.revision = text(&head).and_then(|head| match head.trim().strip_prefix("ref:") {
        Some(branch) => branch_revision(&common, branch.trim(), &mut origin.watched),
        None => revision(&head),
    });
    watch(&mut origin.watched, head);
    origin
}

/// The folder of git: `.git`, or the folder that a file of this name has.
fn git_folder(root: &Path, watched: &mut Vec<PathBuf>) -> Option<PathBuf> {
    let path = root.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let found = text(&path)?;
    watch(watched, path);
    let folder = found.trim().strip_prefix("gitdir:")?.trim();
    Some(root.join(folder))
}

/// The commit of a branch: in its file, or in the list of packed ones.
fn branch_revision(common: &Path, branch: &str, watched: &mut Vec<PathBuf>) -> Option<String> {
    let is_plain = |part: &str| !part.is_empty() && part != ".." && part != ".";
    if !branch.starts_with("refs/") || !branch.split('/').all(is_plain) {
        return None;
    }
    let packed = common.join("packed-refs");
    let file = common.join(branch);
    if let Some(found) = text(&file) {
        watch(watched, file);
        return revision(&found);
    }
    // The next commit makes the file.
    if let Some(folder) = file.parent() {
        watch(watched, folder.to_owned());
    }
    let list = text(&packed)?;
    watch(watched, packed);
    let line = list
        .lines()
        .filter(|line| !line.starts_with(['#', '^']))
        .find_map(|line| line.strip_suffix(branch)?.strip_suffix(' '))?;
    revision(line)
}

/// The URL of the remote `origin` in a config of git.
fn remote_url(config: &str) -> Option<String> {
    let (mut inside, mut url) = (false, None);
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line.starts_with("[remote \"origin\"]");
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("url")
        {
            url = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    url
}

/// The URL for other machines: `https`, without user, password, port of ssh and query. `None` for a folder and
/// for anything that is not a URL.
pub(crate) fn public_url(url: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%+:[]".contains(c);
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest.to_owned()),
        // `git@host:owner/repo`; a colon behind a slash belongs to a path.
        None => {
            let (host, path) = url.split_once(':')?;
            if host.is_empty() || host.contains('/') {
                return None;
            }
            (
                "ssh".to_owned(),
                format!("{host}/{}", path.trim_start_matches('/')),
            )
        }
    };
    let (authority, path) = rest.split_once('/')?;
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match scheme.as_str() {
        "https" | "http" => host,
        "ssh" | "git" | "git+ssh" | "ssh+git" => host.split(':').next().unwrap_or_default(),
        _ => return None,
    };
    let has_port = match host.rsplit_once(':') {
        Some((_, port)) => port.bytes().all(|byte| byte.is_ascii_digit()) || host.ends_with(']'),
        None => true,
    };
    let scheme = if scheme == "http" { "http" } else { "https" };
    let path = path.trim_matches('/');
    let url = format!("{scheme}://{host}/{path}");
    (has_port && !host.is_empty() && !path.is_empty() && url.chars().all(is_plain)).then_some(url)
}

/// The URL of a checkout of cargo, whose origin is a folder of cargo: cargo notes the URL beside the commits
/// that it fetched.
fn url_of_cargo(root: &Path, url: &str) -> Option<String> {
    let folder = url.strip_prefix("file://").unwrap_or(url);
    let is_of_cargo = |path: &Path, part: &str| {
        path.components()
            .zip(path.components().skip(1))
            .any(|(a, b)| a.as_os_str() == "git" && b.as_os_str() == part)
    };
    if !is_of_cargo(root, "checkouts") || !is_of_cargo(Path::new(folder), "db") {
        return None;
    }
    let fetched = text(&Path::new(folder).join("FETCH_HEAD"))?;
    public_url(fetched.lines().next()?.split_whitespace().last()?)
}

/// A full commit id.
fn revision(text: &str) -> Option<String> {
    let id = text.trim();
    let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_ascii_lowercase())
}

fn watch(watched: &mut Vec<PathBuf>, path: PathBuf) {
    // Cargo would run the script at every build if the file did not exist.
    if path.exists() {
        watched.push(path);
    }
}

fn text(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    fs::read_to_string(path).ok()
}
