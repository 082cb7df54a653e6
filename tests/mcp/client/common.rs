//! Small scripted servers for the client's tests: a POSIX shell loop whose answers are functions
//! that each test replaces. Knows nothing of what is tested.

use std::path::{Path, PathBuf};
use std::time::Duration;

use broker_mcp::{Endpoint, SourceSpec, Timing};
use broker_process::ProcessSpec;

use super::shell;

/// The longest that anything in a test may take.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A legacy server with two tools; every line it reads goes to `$LOG`.
const SERVER: &str = r#"
id=
say() { printf '%s\n' "$1"; }
ok() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
err() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":$1,\"message\":\"$2\"}}"; }
tools='{"name":"echo","inputSchema":{"type":"object"}},{"name":"other","inputSchema":{"type":"object"}}'
caps='{"tools":{"listChanged":true}}'
discover() { err -32601 'no such method'; }
init() { ok "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":$caps,\"serverInfo\":{\"name\":\"sh\"}}"; }
list() { ok "{\"tools\":[$tools]}"; }
call() { ok '{"content":[{"type":"text","text":"hi"}]}'; }
other() { :; }
after() { :; }
modern() { ok "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":$caps,\"ttlMs\":0,\"cacheScope\":\"public\"}"; }
"#;

const LOOP: &str = r#"
while IFS= read -r line; do
  [ -n "$LOG" ] && printf '%s\n' "$line" >> "$LOG"
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) discover;;
    *'"initialize"'*) init;;
    *'"tools/list"'*) list;;
    *'"tools/call"'*) call;;
    *) other;;
  esac
done
after
"#;

/// A folder for one test, with what its servers wrote down.
pub(crate) struct ServerFixture {
    folder: tempfile::TempDir,
}

impl ServerFixture {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder for the test"),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The input of the server, and other text that was written to `name`.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// A server whose functions are replaced by those in `script`.
    pub(crate) fn server(&self, script: &str) -> SourceSpec {
        self.launch(&format!("{SERVER}\n{script}\n{LOOP}"))
    }

    /// Any shell script.
    pub(crate) fn launch(&self, script: &str) -> SourceSpec {
        let name = |path: &Path| path.to_str().expect("the name is UTF-8").to_owned();
        let (log, dir) = (name(&self.file("log")), name(self.folder()));
        let timing = Timing {
            close_grace: Duration::from_millis(300),
            term_grace: Duration::from_millis(300),
            second_list: Duration::from_millis(20),
            backoff: Duration::from_millis(20),
            backoff_cap: Duration::from_millis(100),
            ..Timing::default()
        };
        shell::launch(
            script,
            &[("LOG", &log), ("DIR", &dir)],
            WAIT_TIMEOUT,
            timing,
        )
    }
}

/// The process that a source is.
pub(crate) fn process(spec: &SourceSpec) -> &ProcessSpec {
    spec.endpoint.process().expect("the source is a process")
}

/// The same, to change it.
pub(crate) fn process_mut(spec: &mut SourceSpec) -> &mut ProcessSpec {
    match &mut spec.endpoint {
        Endpoint::Process(process) => process,
        Endpoint::Http(_) | Endpoint::Unavailable(_) => panic!("the source is a process"),
    }
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(WAIT_TIMEOUT, waiting).await.is_ok(),
        "{what}"
    );
}

/// Whether a process with this id is alive, other than as a zombie.
pub(crate) fn is_alive(pid: &str) -> bool {
    if pid.trim().is_empty() {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next())
        .is_some_and(|state| state != "Z" && state != "X")
}
