//! Runs a short-lived program that is not a server, git or a broker's `--version`, and returns its output,
//! with bounds on time and output, and never through a shell.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use broker_model::text::shown_line;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::orphans::claim;

/// A lock in git may be large.
const MAX_GIT_BYTES: u64 = 256 << 20;
const GIT_TIMEOUT: Duration = Duration::from_secs(60);
/// The variables that select git's repository. Git sets them for hooks, and they would replace the repository of the
/// folder.
const GIT_DISCOVERY: [&str; 10] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_SHALLOW_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

/// The exit status and the output of a program.
#[derive(Debug)]
pub struct ProgramOutput {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// The folder of a file, as the working folder of a program.
pub fn folder_of(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Runs git on the repository of a folder, and returns its output, or its error message, safe to show.
pub fn git(args: &[&str], folder: &Path) -> Result<String, String> {
    let output = run(git_command(args, folder), GIT_TIMEOUT, MAX_GIT_BYTES)
        .map_err(|error| format!("git cannot be run: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(match said.trim() {
            "" => format!("git ended with {}", output.status),
            said => format!("git said: {}", shown_line(said, 300)),
        });
    }
    String::from_utf8(output.stdout).map_err(|_| "git printed text that is not UTF-8".to_owned())
}

/// The command of git on the repository of a folder.
pub fn git_command(args: &[&str], folder: &Path) -> Command {
    command("git", |command| {
        command.args(args).current_dir(folder);
        for variable in GIT_DISCOVERY {
            command.env_remove(variable);
        }
    })
}

/// A command without standard input that dies with the waiting thread.
pub fn command(program: impl AsRef<std::ffi::OsStr>, with: impl FnOnce(&mut Command)) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "not a server: the thread that starts it waits for it"
    )]
    let mut command = Command::new(program);
    with(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs it to its end, with these bounds on its time and on the bytes of each output.
pub fn run(mut command: Command, limit: Duration, most: u64) -> io::Result<ProgramOutput> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // Claimed, so that the thread that reaps orphans under a guard leaves it to this function.
        let (mut child, _claim) = claim(|| command.spawn())?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let whole = async {
            let (stdout, stderr) = tokio::join!(read(stdout, most), read(stderr, most));
            let (stdout, stderr) = (stdout?, stderr?);
            let status = child.wait().await?;
            io::Result::Ok(ProgramOutput {
                status,
                stdout,
                stderr,
            })
        };
        let late = |_| {
            let message = format!("it did not end within {} s", limit.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, message)
        };
        tokio::time::timeout(limit, whole).await.map_err(late)?
    })
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > most {
        return Err(io::Error::other("it prints too much"));
    }
    Ok(bytes)
}
