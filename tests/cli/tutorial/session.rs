//! One shell for the whole page: folder, variables and background processes stay from block to block.
//! It writes only into a temporary folder and the target folder, and its processes end with it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use harness::{Run, binary, children_of, is_alive, wait_until};
use tempfile::TempDir;

use super::root;
use super::stable::stable;

/// The timeout of one block, including builds.
const WAIT_TIMEOUT: Duration = Duration::from_secs(900);

/// A shell that ends at the first command that fails.
#[derive(Debug)]
pub(crate) struct Session {
    shell: Child,
    stdin: ChildStdin,
    /// One line for each successful block: the page's `$work`.
    answers: Receiver<String>,
    folder: TempDir,
    port: u16,
    blocks: usize,
    programs: &'static [&'static str],
}

impl Session {
    /// In the folder of the repository, without a network and with the crates that `cargo test` built.
    /// The page builds these `programs`, which are removed at the end.
    pub(crate) fn start(programs: &'static [&'static str]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let tools = folder.path().join("tools");
        let scratch = folder.path().join("tmp");
        for folder in [&tools, &scratch] {
            fs::create_dir(folder).expect("it is new");
        }
        cargo_that_knows_what_is_built(&tools.join("cargo"));
        let path = std::env::var("PATH").unwrap_or_default();
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();

        #[expect(
            clippy::disallowed_methods,
            reason = "a test runs the commands of a page"
        )]
        let mut command = Command::new("sh");
        for name in [
            "CI",
            "MCP_BROKER_CONFIG",
            "MCP_BROKER_LOCKED",
            "MCP_BROKER_SECRET",
            "ZONE",
        ] {
            command.env_remove(name);
        }
        let mut shell = command
            .current_dir(root())
            .env("PATH", format!("{}:{path}", tools.display()))
            .env("TMPDIR", &scratch)
            .env("PORT", port.to_string())
            .env("no_proxy", "127.0.0.1")
            .env("CARGO_TARGET_DIR", target())
            .env("CARGO_NET_OFFLINE", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        let stdin = shell.stdin.take().expect("stdin is piped");
        let lines = BufReader::new(shell.stdout.take().expect("stdout is piped")).lines();
        let (send, answers) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut session = Self {
            shell,
            stdin,
            answers,
            folder,
            port,
            blocks: 0,
            programs,
        };
        // If the test is killed, its end of the pipe closes, and the shell ends all processes.
        session.send("set -eu; trap 'kill 0' EXIT; trap 'exit 1' PIPE");
        session
    }

    /// Runs a block. Returns its output in the stable form, as an error if a command failed.
    pub(crate) fn run(&mut self, block: &str) -> Result<String, String> {
        // Each block has separate files: background processes may still have the previous ones open.
        self.blocks += 1;
        let at = |name: &str| self.folder.path().join(format!("{name}-{}", self.blocks));
        let (script, printed) = (at("block"), at("printed"));
        fs::write(&script, block).expect("the block can be written");
        self.send(&format!(
            ". '{}' < /dev/null > '{}' 2>&1; printf '%s\\n' \"${{work:-}}\"",
            script.display(),
            printed.display()
        ));
        let answer = self.answers.recv_timeout(WAIT_TIMEOUT);
        let bytes = fs::read(&printed).expect("the shell made the file");
        let text = String::from_utf8_lossy(&bytes);
        let repo = root().to_str().expect("UTF-8");
        match answer {
            Ok(work) => Ok(stable(&text, repo, &work, self.port)),
            Err(_) => Err(text.into_owned()),
        }
    }

    /// Writes a file of the page, relative to the folder of the shell.
    pub(crate) fn write(&mut self, name: &str, text: &str) {
        let draft = self.folder.path().join("file");
        fs::write(&draft, text).expect("the file can be written");
        let copy = format!(
            "mkdir -p \"$(dirname '{name}')\"\ncp '{}' '{name}'\n",
            draft.display()
        );
        let said = self.run(&copy);
        assert_eq!(said.as_deref(), Ok(""), "{name}");
    }

    /// The page must have ended the processes that it started.
    pub(crate) fn end(self) {
        let shell = self.shell.id();
        wait_until("every process of the page has ended", || {
            children_of(shell).is_empty()
        });
    }

    fn send(&mut self, line: &str) {
        // A shell that has ended does not answer, which is noticed there.
        let _ = writeln!(self.stdin, "{line}");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let group = self.shell.id();
        // Servers have separate groups and end with their broker.
        let _ = Run::new(Path::new("/bin/sh"))
            .args(["-c", &format!("kill -s KILL -- -{group}")])
            .output();
        let _ = self.shell.wait();
        for program in self.programs {
            // Built into a shared folder: removes its files.
            let _ = fs::remove_file(target().join("debug").join(program));
        }
    }
}

/// The folder of this build, `target` or another.
fn target() -> PathBuf {
    let program = binary("broker-gen");
    let profile = program.parent().expect("a profile");
    profile.parent().expect("the target folder").to_owned()
}

/// Creates a `cargo` that uses the `broker-gen` of `cargo test`: built alone, it would be compiled
/// again with fewer features of the same crates. It forwards all other commands.
fn cargo_that_knows_what_is_built(place: &Path) {
    let built = if cfg!(debug_assertions) {
        "[ \"$*\" = 'build --locked -p broker-gen' ] && exit 0\n"
    } else {
        ""
    };
    // Those of the test would run build scripts again.
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names =
        names.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
    let unset = names.collect::<Vec<_>>().join(" ");
    let script = format!(
        "#!/bin/sh\nunset {unset}\n{built}exec '{}' \"$@\"\n",
        env!("CARGO")
    );
    fs::write(place, script).expect("it can be written");
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn tutorial_session_shares_a_shell_and_ends_at_a_failure() {
    let mut session = Session::start(&[]);
    let pid = session.run("x=1; cd /; sleep 1000 & echo $!\n");
    let pid = pid.expect("it goes well").trim().parse().expect("a number");
    assert_eq!(session.run("echo $x; pwd\n").as_deref(), Ok("1\n/\n"));
    assert!(is_alive(pid), "it runs in the background");
    let failed = session.run("echo a; false\necho b\n");
    assert_eq!(failed, Err("a\n".to_owned()));
    wait_until("the background process ends", || !is_alive(pid));
}
