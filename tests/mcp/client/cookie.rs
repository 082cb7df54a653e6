//! The cookie in the environment of a server: by it the stop of the server finds processes that left
//! its group, and no process of another program.

use std::process::{Child, Command};

use super::common::{ServerFixture, eventually, process_mut};
use super::session::open;

const VARIABLE: &str = "MCP_BROKER_COOKIE";

/// A process outside the group of any server, with this cookie.
fn sleeper(cookie: &str) -> Child {
    #[expect(
        clippy::disallowed_methods,
        reason = "a process that the spawner does not know"
    )]
    let mut command = Command::new("sleep");
    let started = command.arg("1000").env(VARIABLE, cookie).spawn();
    started.expect("sleep exists")
}

/// Every program numbers its servers from zero, so that only the random part tells them apart.
#[tokio::test]
async fn stop_of_a_server_ends_processes_with_its_random_cookie_only() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.server("printf %s \"$MCP_BROKER_COOKIE\" > $DIR/cookie");
    process_mut(&mut launch)
        .env
        .insert(VARIABLE.to_owned(), "given".to_owned());
    let session = open(&launch).await;
    let cookie = fixture.read("cookie");
    let (random, number) = cookie.split_once('-').unwrap();
    let is_random = random.len() == 32 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_random && number.parse::<u64>().is_ok(), "{cookie}");

    let other_program = "0123456789abcdef0123456789abcdef";
    assert_ne!(random, other_program);
    let mut spared = [
        sleeper(&format!("{other_program}-{number}")),
        sleeper(&format!("-{number}")),
        sleeper(&format!("given-{number}")),
    ];
    let mut ended = sleeper(&cookie);
    session.stop().await;
    eventually("the process with the cookie has ended", || {
        ended.try_wait().unwrap().is_some()
    })
    .await;
    let spared = spared.each_mut().map(|process| {
        let ended = process.try_wait().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        ended
    });
    assert_eq!(spared, [None; 3]);
}
