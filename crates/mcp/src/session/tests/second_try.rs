//! The second try of a start, over scripted servers with a paused clock: in which era, after which time, and which
//! failure is named.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker_model::SourceCause;
use broker_wire::Era;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::{Instant, sleep};

use super::*;
use crate::EraHint;
use crate::Pipes;
use crate::test_spec::scripted_source;

/// What a process does with the opening request.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Ends with this code after this many seconds.
    Exit(u64, i32),
    /// Answers `initialize`, and refuses other methods.
    Legacy,
    /// Refuses every method.
    Refuse,
    Hang,
}

/// The methods that the processes were asked for, with the time since the start; one list for each process.
type Asked = Arc<Mutex<Vec<Vec<(String, u64)>>>>;

async fn serve(pipes: Pipes, act: Act, asked: Asked, began: Instant) -> i32 {
    let at = {
        let mut asked = asked.lock().unwrap();
        asked.push(Vec::new());
        asked.len() - 1
    };
    let (mut lines, mut output) = (BufReader::new(pipes.input).lines(), pipes.output);
    while let Ok(Some(line)) = lines.next_line().await {
        let line: Value = serde_json::from_str(&line).unwrap();
        let method = line["method"].as_str().unwrap_or_default().to_owned();
        let seconds = began.elapsed().as_secs();
        asked.lock().unwrap()[at].push((method.clone(), seconds));
        let reply = match act {
            Act::Exit(after, code) => {
                sleep(Duration::from_secs(after)).await;
                return code;
            }
            Act::Hang => continue,
            Act::Legacy if method == "initialize" => {
                json!({"result": {"protocolVersion": "2025-06-18", "capabilities": {}}})
            }
            Act::Legacy | Act::Refuse => json!({"error": {"code": -32601, "message": "no"}}),
        };
        let mut reply = reply;
        reply["jsonrpc"] = "2.0".into();
        reply["id"] = line["id"].clone();
        if !line["id"].is_null() {
            let sent = output.write_all(format!("{reply}\n").as_bytes()).await;
            if sent.is_err() {
                break;
            }
        }
    }
    0
}

/// Opens a session with a program whose processes act so, one after the other. Returns also what they were asked, and
/// the seconds that the start took.
async fn open(
    acts: &'static [Act],
    hint: EraHint,
    change: impl FnOnce(&mut SourceSpec),
) -> (Result<Session, SourceFailure>, Vec<Vec<(String, u64)>>, u64) {
    let asked = Asked::default();
    let (seen, began) = (asked.clone(), Instant::now());
    let mut spec = scripted_source(move |pipes| {
        let at = seen.lock().unwrap().len();
        let act = *acts
            .get(at)
            .unwrap_or_else(|| panic!("process {at} was started"));
        serve(pipes, act, seen.clone(), began)
    });
    spec.timing.second_try = Duration::from_secs(2);
    change(&mut spec);
    let opened = Session::open(&spec, hint).await;
    let asked = asked.lock().unwrap().clone();
    (opened, asked, began.elapsed().as_secs())
}

fn once(method: &str, seconds: u64) -> Vec<(String, u64)> {
    vec![(method.to_owned(), seconds)]
}

#[tokio::test(start_paused = true)]
async fn start_that_crashes_once_is_tried_again_in_the_known_era() {
    let acts = &[Act::Exit(1, 7), Act::Legacy];
    let hint = EraHint::known(Era::Legacy);
    let (session, asked, _) = open(acts, hint, |_| ()).await;
    assert_eq!(session.unwrap().era(), Era::Legacy);
    assert_eq!(asked[0], once("initialize", 0));
    // One second until the crash, and two of pause.
    assert_eq!(asked[1][0], ("initialize".to_owned(), 3));
}

#[tokio::test(start_paused = true)]
async fn start_that_crashes_twice_fails_with_the_exit_of_the_known_era() {
    for (era, method) in [
        (Era::Legacy, "initialize"),
        (Era::Modern, "server/discover"),
    ] {
        let acts = &[Act::Exit(0, 7), Act::Exit(0, 7)];
        let (failed, asked, _) = open(acts, EraHint::known(era), |_| ()).await;
        let failure = failed.unwrap_err();
        assert_eq!(failure.cause, SourceCause::ExitBeforeReady);
        assert_eq!(failure.exit.unwrap().code, Some(7));
        assert_eq!(
            failure.message,
            "the server's process exited with code 7 before it answered"
        );
        assert_eq!(asked, [once(method, 0), once(method, 2)]);
    }
}

#[tokio::test(start_paused = true)]
async fn other_era_is_asked_only_after_an_answer() {
    let acts = &[Act::Exit(0, 7), Act::Legacy];
    let hint = EraHint::known(Era::Modern);
    let (session, asked, _) = open(acts, hint, |_| ()).await;
    assert_eq!(session.unwrap().era(), Era::Legacy);
    let methods = |at: usize| -> Vec<&str> {
        asked[at]
            .iter()
            .map(|(method, _)| method.as_str())
            .collect()
    };
    assert_eq!(methods(0), ["server/discover"]);
    assert_eq!(methods(1)[..2], ["server/discover", "initialize"]);

    let acts = &[Act::Exit(0, 7), Act::Refuse];
    let (failed, _, _) = open(acts, hint, |_| ()).await;
    let failure = failed.unwrap_err();
    assert_eq!(failure.cause, SourceCause::HandshakeFailed);
    for part in [
        "-32601",
        "before that, a first try failed: ",
        "exited with code 7",
    ] {
        assert!(failure.message.contains(part), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn startup_timeout_holds_for_both_tries_together() {
    // The default of scripted sources is 20 seconds.
    let hint = EraHint::known(Era::Legacy);
    let acts = &[Act::Exit(15, 7), Act::Hang];
    let (failed, asked, took) = open(acts, hint, |_| ()).await;
    let failure = failed.unwrap_err();
    assert_eq!((asked.len(), took), (2, 20));
    assert_eq!(failure.cause, SourceCause::ExitBeforeReady);
    for part in [
        "exited with code 7",
        "a second try got no answer within 20 s",
    ] {
        assert!(failure.message.contains(part), "{failure}");
    }
    // There is no second try if the pause outlasts the time.
    let acts = &[Act::Exit(18, 7)];
    let (failed, asked, took) = open(acts, hint, |_| ()).await;
    assert_eq!(failed.unwrap_err().cause, SourceCause::ExitBeforeReady);
    assert_eq!((asked.len(), took), (1, 18));
    let long = |spec: &mut SourceSpec| spec.timing.second_try = Duration::MAX;
    let (failed, asked, took) = open(&[Act::Exit(0, 7)], hint, long).await;
    assert_eq!(failed.unwrap_err().cause, SourceCause::ExitBeforeReady);
    assert_eq!((asked.len(), took), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn crash_in_both_eras_is_named_by_the_first_if_none_is_known() {
    let acts = &[Act::Exit(0, 7), Act::Exit(0, 9)];
    let (failed, asked, _) = open(acts, EraHint::default(), |_| ()).await;
    assert_eq!(failed.unwrap_err().exit.unwrap().code, Some(7));
    assert_eq!(asked, [once("server/discover", 0), once("initialize", 0)]);

    let acts = &[Act::Exit(0, 7), Act::Refuse];
    let (failed, _, _) = open(acts, EraHint::default(), |_| ()).await;
    let failure = failed.unwrap_err();
    for part in [
        "-32601",
        "before that, a first try failed: ",
        "exited with code 7",
    ] {
        assert!(failure.message.contains(part), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn newest_era_is_asked_first_and_the_known_one_after_a_crash() {
    let acts = &[Act::Exit(0, 7), Act::Legacy];
    let hint = EraHint::newest(Some(Era::Legacy));
    let (session, asked, _) = open(acts, hint, |_| ()).await;
    assert_eq!(session.unwrap().era(), Era::Legacy);
    assert_eq!(asked[0], once("server/discover", 0));
    assert_eq!(asked[1][0].0, "initialize");
}
