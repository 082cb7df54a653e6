//! Commands that print tokens.

use std::io::Read as _;
use std::path::PathBuf;

use broker_model::SourceCause;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tokio::task::{JoinHandle, spawn_blocking};

use super::super::FETCH_TIMEOUT;
use super::*;

async fn server() -> TestServer {
    TestServer::answering(|_| Answer::of(200, "{}")).await
}

/// The failure of a request whose token a script prints.
async fn failure(script: &str) -> SourceFailure {
    let server = server().await;
    let linked = Linked::new(&source(&server, Some(command(script)))).await;
    let failure = linked.post().await.unwrap_err();
    assert!(server.requests().is_empty());
    failure
}

#[tokio::test]
async fn token_command_prints_the_token_or_an_object() {
    for (script, token) in [
        ("printf ' t0ken\\n'", "t0ken"),
        ("printf '{\"access_token\":\"t0ken-2\"}'", "t0ken-2"),
        (
            "printf '{\"access_token\":\"t0ken-3\",\"token_type\":\"bearer\",\"expires_in\":60}\\n'",
            "t0ken-3",
        ),
        // Its input is closed.
        ("cat; printf t0ken-4", "t0ken-4"),
    ] {
        let server = server().await;
        let linked = Linked::new(&source(&server, Some(command(script)))).await;
        assert_eq!(linked.status().await, 200);
        assert_eq!(linked.status().await, 200);
        let bearer = format!("Bearer {token}");
        assert_eq!(server.authorizations(), [&bearer[..], &bearer[..]]);
    }
}

#[tokio::test]
async fn token_command_runs_again_when_the_token_expires() {
    let folder = TempDir::new().unwrap();
    let script = format!(
        "echo >>{0}; printf '{{\"access_token\":\"t0ken-%s\",\"expires_in\":100}}' $(wc -l <{0})",
        folder.path().join("runs").display()
    );
    let server = server().await;
    let linked = Linked::new(&source(&server, Some(command(&script)))).await;
    assert_eq!(linked.status().await, 200);
    pass(Duration::from_secs(45)).await;
    assert_eq!(linked.status().await, 200);
    // A tenth of the lifetime before its end.
    pass(Duration::from_secs(45)).await;
    assert_eq!(linked.status().await, 200);
    let bearer = ["Bearer t0ken-1", "Bearer t0ken-1", "Bearer t0ken-2"];
    assert_eq!(server.authorizations(), bearer);
}

#[tokio::test]
async fn token_command_that_fails_needs_auth_and_shows_its_output() {
    for (script, message) in [
        (
            "echo no session >&2; exit 3",
            "`token_command` exited with code 3; its last line on stderr: no session",
        ),
        ("kill -9 $$", "`token_command` was killed by signal 9"),
        ("exit 0", "the output of `token_command` has no token"),
        (
            "head -c 8193 /dev/zero | tr '\\0' t",
            "`token_command` printed more than 8192 bytes",
        ),
        (
            "printf '\\377'",
            "the output of `token_command` is not UTF-8",
        ),
        (
            "printf '{\"token\":\"c4nary\"}'",
            "the output of `token_command` has no `access_token`",
        ),
        (
            "printf 'c4nary c4nary'",
            "the output of `token_command` has a character other than visible ASCII in the token; the scheme `Bearer` does not belong there",
        ),
    ] {
        let failure = failure(script).await;
        assert_eq!(failure.cause, SourceCause::NeedsAuth, "{script}");
        assert_eq!(failure.message, message, "{script}");
    }
}

#[tokio::test]
async fn token_command_that_floods_its_output_is_ended() {
    let failure = failure("yes c4nary").await;
    assert_eq!(failure.cause, SourceCause::NeedsAuth);
    assert!(!failure.message.contains("c4nary"), "{failure}");
}

#[tokio::test]
async fn token_command_that_does_not_exist_is_not_found() {
    let AuthSpec::TokenCommand(mut process) = command("") else {
        panic!("a command")
    };
    process.program = "/no/such/program".to_owned();
    let server = server().await;
    let linked = Linked::new(&source(&server, Some(AuthSpec::TokenCommand(process)))).await;
    let failure = linked.post().await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::SpawnNotFound);
    let message = &failure.message;
    assert!(
        message.starts_with("`token_command` was not started: "),
        "{message}"
    );
}

/// A pipe that the processes of a script hold open.
struct HeldPipe {
    _folder: TempDir,
    path: PathBuf,
}

impl HeldPipe {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Self {
            _folder: folder,
            path,
        }
    }

    /// A script that opens the pipe, also for all that it starts.
    fn script(&self, rest: &str) -> String {
        format!("exec 3>{}; {rest}", self.path.display())
    }

    /// Waits until the pipe was opened; the task ends when all processes that hold it have ended.
    async fn opened(&self) -> JoinHandle<()> {
        let path = self.path.clone();
        let file = spawn_blocking(|| std::fs::File::open(path)).await.unwrap();
        let mut file = file.unwrap();
        spawn_blocking(move || {
            let mut text = Vec::new();
            file.read_to_end(&mut text).unwrap();
        })
    }
}

#[tokio::test]
async fn token_command_that_hangs_is_ended_with_its_descendants() {
    let (pipe, server) = (HeldPipe::new(), server().await);
    let script = pipe.script("sleep 600 & (sleep 600); echo t0ken");
    let linked = Arc::new(Linked::new(&source(&server, Some(command(&script)))).await);
    let posted = tokio::spawn({
        let linked = linked.clone();
        async move { linked.post().await.map(|_| ()) }
    });
    let ended = pipe.opened().await;
    pass(FETCH_TIMEOUT).await;
    let failure = posted.await.unwrap().unwrap_err();
    assert_eq!(failure.cause, SourceCause::Unreachable);
    assert_eq!(failure.message, "`token_command` did not end within 10 s");
    ended.await.unwrap();
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn descendants_of_a_token_command_end_with_it() {
    let (pipe, server) = (HeldPipe::new(), server().await);
    // The descendant also keeps the output open.
    let script = pipe.script("sleep 600 & echo t0ken");
    let linked = Linked::new(&source(&server, Some(command(&script)))).await;
    let (status, ended) = tokio::join!(linked.status(), pipe.opened());
    assert_eq!(status, 200);
    ended.await.unwrap();
}

#[tokio::test]
async fn token_command_is_ended_when_its_link_is_dropped() {
    let (pipe, server) = (HeldPipe::new(), server().await);
    let script = pipe.script("sleep 600; echo t0ken");
    let linked = Linked::new(&source(&server, Some(command(&script)))).await;
    let ended = tokio::select! {
        posted = linked.post() => panic!("the command has ended: {posted:?}"),
        ended = pipe.opened() => ended,
    };
    // The request was cancelled, and the command runs on for others.
    let tasks = linked.tasks.clone();
    drop(linked);
    ended.await.unwrap();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test]
async fn token_command_goes_on_when_its_request_is_cancelled() {
    let (pipe, server) = (HeldPipe::new(), server().await);
    let folder = TempDir::new().unwrap();
    let gate = folder.path().join("gate");
    mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let script = pipe.script(&format!("cat {}; echo t0ken", gate.display()));
    let linked = Linked::new(&source(&server, Some(command(&script)))).await;
    let _ended = tokio::select! {
        posted = linked.post() => panic!("the command has ended: {posted:?}"),
        ended = pipe.opened() => ended,
    };
    let opened = spawn_blocking(move || std::fs::File::options().write(true).open(gate));
    drop(opened.await.unwrap().unwrap());
    assert_eq!(linked.status().await, 200);
}

#[tokio::test]
async fn stderr_of_a_token_command_is_that_of_the_source_without_the_token() {
    let server = server().await;
    let script = format!("echo got c4nary with {} >&2; echo c4nary", KEY.1);
    let linked = Linked::new(&source(&server, Some(command(&script)))).await;
    assert_eq!(linked.status().await, 200);
    assert_eq!(linked.tail.lines(9), ["got •••• with ••••"]);
    let server = TestServer::answering(|_| Answer::of(200, "{}")).await;
    let script = "echo c4nary; echo printed c4nary >&2; exit 1";
    let linked = Linked::new(&source(&server, Some(command(script)))).await;
    let failure = linked.post().await.unwrap_err();
    assert_eq!(failure.stderr, ["printed ••••"]);
    assert_eq!(linked.tail.lines(9), ["printed ••••"]);
}
