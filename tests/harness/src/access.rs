//! Tests under rules of access: with the variable [`VARIABLE`], every broker gets rules that allow all tools to one
//! group and no right to anyone else, an audit log and traces, and the clients of this package send the key of that group.
//! [`again`] runs tests of a program a second time in this way.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};

use crate::binaries::config_of;
use crate::faults::scaled;
use crate::load::whole_machine;
use crate::program::Run;

/// Set for tests under rules of access.
pub const VARIABLE: &str = "MCP_BROKER_TEST_ACCESS";
/// The key of the callers, for tests only.
pub const KEY: &str = "mbk_kqwklyfhlzomvdsoalv2dfumpepwnx3p";
const DIGEST: &str = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
/// The head of a request is looked for in so many bytes.
const MAX_HEAD_BYTES: usize = 4 << 10;

/// The number of audit logs.
static LOGS: AtomicUsize = AtomicUsize::new(0);

/// The addresses of the brokers that want the key, each with its number of brokers: one that starts may get the address of
/// one that has just ended.
static ADDRESSES: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Whether these tests run under rules of access.
pub fn is_on() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Adds rules, key, audit log and traces to a config, if these tests run under rules and it has none.
pub fn add(config: &mut Value) {
    if !is_on() || config.get("access").is_some() {
        return;
    }
    config["access"] = json!({
        "groups": ["tests", "others"],
        "rules": [{"allow": ["/**"], "to": ["tests"]}],
        "local": ["tests"],
        "secret": ["tests"],
        "operators": ["tests"],
    });
    config["identities"]["keys"] =
        json!([{"name": "tests", "sha256": DIGEST, "groups": ["tests"]}]);
    if config.get("audit").is_none() {
        // Two brokers cannot write one log.
        let number = LOGS.fetch_add(1, Ordering::Relaxed);
        let file = format!("audit-{}-{number}.jsonl", std::process::id());
        config["audit"] = json!({"file": file, "reads": true});
    }
    if config.get("telemetry").is_none() {
        // No receiver listens: the spans of every call are made, and dropped in the end.
        config["telemetry"] = json!({"otlp": true});
    }
}

/// The address of a broker under rules, and its config, which exists as long as the broker runs.
#[derive(Debug)]
pub(crate) struct Ruled {
    /// The config that was written for it.
    _config: Option<NewConfig>,
    address: String,
}

/// A config in place of another one, removed when dropped.
#[derive(Debug)]
struct NewConfig {
    file: NamedTempFile,
    /// Its folder, if that is not the other one's.
    _folder: Option<TempDir>,
}

impl NewConfig {
    /// Relative paths in it begin at its folder: it lies beside the other one or, since tests write nothing into the
    /// repository, beside links to what that one has beside it.
    fn beside(other: &Path, config: &Value) -> Self {
        let beside = other.parent().expect("a file lies in a folder");
        let links = beside.starts_with(repository()).then(|| {
            let folder = TempDir::new().expect("a folder can be made");
            for entry in fs::read_dir(beside).expect("the folder is readable") {
                let entry = entry.expect("the folder is readable");
                let link = folder.path().join(entry.file_name());
                symlink(entry.path(), link).expect("a link can be made");
            }
            folder
        });
        let folder = links.as_ref().map_or(beside, TempDir::path);
        let file = tempfile::Builder::new().suffix(".json").tempfile_in(folder);
        let file = file.expect("a file can be made");
        fs::write(file.path(), config.to_string()).expect("the file can be written");
        // Some tests start the broker as another user.
        let readable = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        readable(file.path(), 0o644);
        if let Some(links) = &links {
            readable(links.path(), 0o755);
        }
        Self {
            file,
            _folder: links,
        }
    }
}

/// The folder of the repository.
fn repository() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let repository = tests.and_then(Path::parent);
    repository.expect("the harness lies in `tests`")
}

/// Gives rules to a broker that is about to start, if these tests run under rules. A broker with a compiled catalog
/// reads them from its config; `broker-gen serve` has them in a config that was locked with them.
pub(crate) fn prepare(run: Run) -> (Run, Option<Ruled>) {
    if !is_on() {
        return (run, None);
    }
    let words = run.words();
    let name = |word: &String| Some(Path::new(word).file_name()?.to_str()?.to_owned());
    let mut names = words.iter().filter_map(name);
    let program = names.find(|name| name.ends_with("-broker"));
    let given = words.iter().rposition(|word| word.ends_with(".json"));
    let file = match (given, &program) {
        (Some(at), _) => run.current_folder().join(&words[at]),
        (None, Some(program)) => config_of(program),
        (None, None) => panic!("no config is known: {words:?}"),
    };
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {file:?}"));
    let mut config: Value = serde_json::from_str(&text).expect("a config is JSON");
    let (mut run, mut copy) = (run, None);
    if config.get("access").is_none() {
        assert!(
            program.is_some(),
            "the lock of `broker-gen serve` was made without rules: {file:?}"
        );
        add(&mut config);
        let new = NewConfig::beside(&file, &config);
        run = match given {
            Some(at) => run.with_word(at, new.file.path()),
            None => run.args([new.file.path()]),
        };
        copy = Some(new);
    }
    let ruled = Ruled {
        _config: copy,
        address: String::new(),
    };
    (run, Some(ruled))
}

impl Ruled {
    /// Requests to this address have the key from now on; without it, the broker refuses them.
    pub(crate) fn listens(&mut self, address: &str) {
        let without = without_key(address);
        assert!(without.starts_with("HTTP/1.1 401 "), "{without}");
        address.clone_into(&mut self.address);
        listens(address);
    }
}

/// The reply to a call without a key, whatever is known of the address.
fn without_key(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the broker listens");
    let head = format!(
        "POST /meta_tree HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    );
    stream.write_all(head.as_bytes()).expect("the call is sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply comes");
    reply
}

/// Requests to this address have the key, if these tests run under rules; for brokers that a test starts by itself.
pub fn listens(address: &str) {
    if is_on() {
        *addresses().entry(address.to_owned()).or_default() += 1;
    }
}

impl Drop for Ruled {
    fn drop(&mut self) {
        let mut addresses = addresses();
        if let Some(count) = addresses.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&self.address);
            }
        }
    }
}

fn addresses() -> MutexGuard<'static, BTreeMap<String, usize>> {
    ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a request with the key, if the broker at this address wants one and the request has no credential.
/// Bytes that do not begin with a usual head stay as they are.
pub fn with_key<'a>(address: &str, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let head = &bytes[..bytes.len().min(MAX_HEAD_BYTES)];
    let line_end = head.windows(2).position(|pair| pair == b"\r\n");
    let line_end = line_end.filter(|end| head[..*end].ends_with(b" HTTP/1.1"));
    let Some(line_end) = line_end.filter(|_| addresses().contains_key(address)) else {
        return Cow::Borrowed(bytes);
    };
    let all = head.windows(4).position(|four| four == b"\r\n\r\n");
    let lower = head[..all.unwrap_or(head.len())].to_ascii_lowercase();
    let lower = String::from_utf8_lossy(&lower);
    if lower.contains("\r\nauthorization:") || lower.contains("\r\nx-api-key:") {
        return Cow::Borrowed(bytes);
    }
    let (line, rest) = bytes.split_at(line_end);
    let header = format!("\r\nAuthorization: Bearer {KEY}");
    Cow::Owned([line, header.as_bytes(), rest].concat())
}

/// Runs tests of this program again under rules of access: the tests `chosen`. If `MCP_BROKER_ACCESS_TESTS` is more than
/// their number, all tests run whose path contains `part`. The figures of variables apply to the first run only.
pub fn again(part: &str, chosen: &[&str]) {
    if is_on() {
        return;
    }
    let all = scaled("MCP_BROKER_ACCESS_TESTS", chosen.len()) > chosen.len();
    // No other test of this program has a broker beside all of them.
    let _machine = all.then(whole_machine);
    let program = std::env::current_exe().expect("the test has a path");
    let figures = std::env::vars().map(|(name, _)| name);
    let run = figures
        .filter(|name| name.starts_with("MCP_BROKER_"))
        .fold(Run::new(&program), |run, name| run.without(&name))
        .env(VARIABLE, "1");
    let run = match all {
        true => run.args([part]),
        false => run.args(["--exact"]).args(chosen),
    };
    let output = run.output();
    let passed = output.stdout.lines();
    let passed = passed.filter(|line| line.ends_with("... ok")).count();
    assert!(
        output.code == Some(0) && passed >= chosen.len(),
        "{}{}",
        output.stdout,
        output.stderr
    );
}
