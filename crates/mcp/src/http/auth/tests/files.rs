//! Tokens in files.

use std::fs;
use std::path::Path;

use broker_model::SourceCause;
use tempfile::TempDir;

use super::super::another_token;
use super::super::token_file::LOOK_INTERVAL;
use super::*;

fn token_file(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("token")
}

fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}

#[tokio::test]
async fn token_file_that_is_replaced_is_read_again() {
    let (folder, server) = (TempDir::new().unwrap(), TestServer::answering(accept).await);
    let path = token_file(&folder);
    fs::write(&path, " first\r\n").unwrap();
    let linked = Linked::new(&source(&server, Some(AuthSpec::TokenFile(path.clone())))).await;
    assert_eq!(linked.status().await, 200);
    replace(&path, "second");
    pass(LOOK_INTERVAL).await;
    assert_eq!(linked.status().await, 200);
    // Also one that is written in place, with the mark of an editor.
    fs::write(&path, "\u{feff}third!").unwrap();
    pass(LOOK_INTERVAL).await;
    assert_eq!(linked.status().await, 200);
    assert_eq!(
        server.authorizations(),
        ["Bearer first", "Bearer second", "Bearer third!"]
    );
    assert_eq!(server.requests()[0].header(KEY.0), Some(KEY.1));
}

fn accept(_: &Request) -> Answer {
    Answer::of(200, "{}")
}

#[tokio::test]
async fn token_file_is_read_at_once_after_a_refusal() {
    let folder = TempDir::new().unwrap();
    let path = token_file(&folder);
    fs::write(&path, "old").unwrap();
    let written = path.clone();
    let server = TestServer::answering(move |request| match request.authorization() {
        "Bearer new" => Answer::of(200, "{}"),
        _ => {
            fs::write(&written, "new").unwrap();
            Answer::of(401, "")
        }
    })
    .await;
    let linked = Linked::new(&source(&server, Some(AuthSpec::TokenFile(path)))).await;
    assert_eq!(linked.status().await, 200);
    assert_eq!(server.authorizations(), ["Bearer old", "Bearer new"]);
}

#[tokio::test]
async fn token_file_with_the_refused_token_is_not_sent_again() {
    let folder = TempDir::new().unwrap();
    let path = token_file(&folder);
    fs::write(&path, "old").unwrap();
    let server = TestServer::answering(|_| Answer::of(401, "")).await;
    let linked = Linked::new(&source(&server, Some(AuthSpec::TokenFile(path)))).await;
    assert_eq!(linked.status().await, 401);
    assert_eq!(server.authorizations(), ["Bearer old"]);
}

#[tokio::test]
async fn token_file_that_is_being_written_keeps_the_token_before() {
    let (folder, server) = (TempDir::new().unwrap(), TestServer::answering(accept).await);
    let path = token_file(&folder);
    fs::write(&path, "first").unwrap();
    let linked = Linked::new(&source(&server, Some(AuthSpec::TokenFile(path.clone())))).await;
    assert_eq!(linked.status().await, 200);
    fs::write(&path, "").unwrap();
    pass(LOOK_INTERVAL).await;
    assert_eq!(linked.status().await, 200);
    fs::write(&path, "second").unwrap();
    pass(LOOK_INTERVAL).await;
    assert_eq!(linked.status().await, 200);
    assert_eq!(
        server.authorizations(),
        ["Bearer first", "Bearer first", "Bearer second"]
    );
}

#[tokio::test]
async fn token_file_that_cannot_be_used_needs_auth() {
    let (folder, server) = (TempDir::new().unwrap(), TestServer::answering(accept).await);
    let path = token_file(&folder);
    let linked =
        async || Linked::new(&source(&server, Some(AuthSpec::TokenFile(path.clone())))).await;
    let failure = linked().await.post().await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::NeedsAuth);
    assert!(failure.message.contains("No such file"), "{failure}");
    let long = "t".repeat(8193);
    for text in [
        "",
        " \n\t",
        "c4nary two",
        "c4nary\u{e9}",
        "c4nary\u{1}",
        &long,
    ] {
        fs::write(&path, text).unwrap();
        let failure = linked().await.post().await.unwrap_err();
        assert_eq!(failure.cause, SourceCause::NeedsAuth, "{text:?}");
        let names_file = failure.message.starts_with("`token_file` `");
        assert!(
            names_file && !failure.message.contains("c4nary"),
            "{failure}"
        );
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let failure = linked().await.post().await.unwrap_err();
    assert!(failure.message.contains("it is a folder"), "{failure}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn token_of_the_longest_file_is_sent() {
    let (folder, server) = (TempDir::new().unwrap(), TestServer::answering(accept).await);
    let (path, token) = (token_file(&folder), "t".repeat(8192));
    fs::write(&path, &token).unwrap();
    let linked = Linked::new(&source(&server, Some(AuthSpec::TokenFile(path)))).await;
    assert_eq!(linked.status().await, 200);
    assert_eq!(server.authorizations(), [format!("Bearer {token}")]);
}

#[tokio::test]
async fn source_waits_until_its_file_has_another_token_than_the_refused_one() {
    // Also after a refusal for a missing scope, which replaces no token.
    for (status, challenge) in [(401, ""), (403, "Bearer error=\"insufficient_scope\"")] {
        let folder = TempDir::new().unwrap();
        let path = token_file(&folder);
        fs::write(&path, "refused").unwrap();
        let server = TestServer::answering(move |_| {
            Answer::of(status, "").with("WWW-Authenticate", challenge)
        })
        .await;
        let spec = source(&server, Some(AuthSpec::TokenFile(path.clone())));
        let linked = Linked::new(&spec).await;
        assert_ne!(linked.status().await, 200);
        let opening = Opening {
            tail: &linked.tail,
            counters: &Arc::default(),
            tasks: &linked.tasks,
            stop_deadline: &StopDeadline::never(),
            second_try: false,
        };
        let Endpoint::Http(http) = &spec.endpoint else {
            panic!("a source with a URL")
        };
        let mut waiting = std::pin::pin!(another_token(http, &spec, &opening, 1));
        let early = tokio::time::timeout(3 * LOOK_INTERVAL, &mut waiting).await;
        assert!(early.is_err(), "the token is the refused one");
        replace(&path, "another");
        waiting.await;
    }
}
