//! One session with a scripted server: eras, listing, calls, faults, stopping.

use std::time::Duration;

use tokio::time::Instant;

use super::common::{ServerFixture, WAIT_TIMEOUT, eventually, is_alive};
use broker_mcp::{CallEvent, CallEvents, CallFailure, ServerCall, Session, WantedEvents};
use broker_model::SourceCause;
use broker_wire::Era;

pub(crate) async fn open(launch: &broker_mcp::SourceSpec) -> Session {
    Session::open(launch, None).await.expect("it opens")
}

async fn call(session: &Session, args: &str) -> Result<String, CallFailure> {
    let result = session
        .call(ServerCall::new("echo", args.as_bytes()), WAIT_TIMEOUT)
        .await?;
    Ok(String::from_utf8(result.result.to_vec()).expect("results are UTF-8"))
}

const HI: &str = r#"{"content":[{"type":"text","text":"hi"}]}"#;

fn names(snapshot: &broker_model::Snapshot) -> Vec<&str> {
    snapshot
        .tools
        .iter()
        .map(broker_model::snapshot::ListedTool::name)
        .collect()
}

#[tokio::test]
async fn session_with_a_legacy_server_lists_and_calls() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server("")).await;
    assert_eq!(session.era(), Era::Legacy);
    let snapshot = session.snapshot().await.unwrap();
    assert_eq!(snapshot.protocol_version, "2025-06-18");
    assert_eq!(snapshot.server_info["name"], "sh");
    assert_eq!(names(&snapshot), ["echo", "other"]);
    assert_eq!(call(&session, "{\n\"a\":1}").await.unwrap(), HI);
    session.stop().await;
    let log = fixture.read("log");
    let lines: Vec<_> = log.lines().collect();
    assert!(lines[0].contains("server/discover") && lines[0].contains("2026-07-28"));
    assert!(lines[1].contains(r#""initialize""#) && lines[1].contains(r#""capabilities":{}"#));
    assert!(lines[2].contains("notifications/initialized"));
    assert!(lines[4].contains(r#""arguments":{ "a":1}"#), "{}", lines[4]);
}

#[tokio::test]
async fn progress_reaches_only_the_sink_of_its_call_before_the_result() {
    let fixture = ServerFixture::new();
    let progress = |token: &str, members: &str| {
        format!(
            "say \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"method\\\":\\\"notifications/progress\\\",\\\"params\\\":{{\\\"progressToken\\\":{token},{members}}}}}\"\n"
        )
    };
    let lines = [
        progress(
            "$id",
            r#"\"progress\":1,\"total\":2.5,\"message\":\"half\""#,
        ),
        // No call has this token, and no sink takes what is not progress.
        progress("999", r#"\"progress\":7"#),
        progress("$id", r#"\"progress\":\"x\""#),
        progress("$id", r#"\"progress\":2"#),
        progress("$id", r#"\"progress\":3"#),
    ];
    let script = format!("call() {{\n{}ok '{HI}'\n}}", lines.concat());
    let session = open(&fixture.server(&script)).await;
    // There is room for two notifications; further ones are dropped.
    let wants = WantedEvents {
        progress: true,
        log: None,
    };
    let (sink, mut received) = CallEvents::new(2, wants);
    let asked = ServerCall {
        events: Some(&sink),
        meta: Some(r#"{"x/y":"z"}"#),
        ..ServerCall::new("echo", b"{}")
    };
    session.call(asked, WAIT_TIMEOUT).await.unwrap();
    let shown = |event: CallEvent| {
        let CallEvent::Progress(progress) = event else {
            panic!("the server sends no log message");
        };
        let total = progress.total.map(|total| total.to_string());
        (progress.progress.to_string(), total, progress.message)
    };
    let first = shown(received.try_recv().unwrap());
    let half = (Some("2.5".to_owned()), Some("half".to_owned()));
    assert_eq!(first, ("1".to_owned(), half.0, half.1));
    let second = shown(received.try_recv().unwrap());
    assert_eq!(second, ("2".to_owned(), None, None));
    assert!(received.try_recv().is_none());
    // A call without a sink asks for nothing, and what is sent nevertheless goes nowhere.
    assert_eq!(call(&session, "{}").await.unwrap(), HI);
    assert!(received.try_recv().is_none());
    session.stop().await;
    let log = fixture.read("log");
    let calls: Vec<_> = log
        .lines()
        .filter(|line| line.contains("tools/call"))
        .collect();
    assert!(
        calls[0].contains(r#""_meta":{"x/y":"z","progressToken":"#),
        "{}",
        calls[0]
    );
    assert!(!calls[1].contains("_meta"), "{}", calls[1]);
}

#[tokio::test]
async fn session_with_a_modern_server_sends_meta_and_subscribes() {
    let fixture = ServerFixture::new();
    let launch = fixture.server(
        "discover() { modern; }\ncall() { ok '{\"resultType\":\"complete\",\"content\":[]}'; }",
    );
    let session = open(&launch).await;
    assert_eq!(session.era(), Era::Modern);
    assert_eq!(names(&session.snapshot().await.unwrap()), ["echo", "other"]);
    let result = call(&session, "{}").await.unwrap();
    assert_eq!(result, r#"{"resultType":"complete","content":[]}"#);
    session.stop().await;
    let log = fixture.read("log");
    assert!(!log.contains("initialize"));
    assert!(
        log.lines()
            .any(|line| line.contains("subscriptions/listen"))
    );
    for line in log.lines() {
        assert!(
            line.contains("io.modelcontextprotocol/protocolVersion"),
            "{line}"
        );
    }
}

#[tokio::test]
async fn handshake_tries_the_era_of_the_lock_first() {
    let fixture = ServerFixture::new();
    let session = Session::open(&fixture.server(""), Some(Era::Legacy))
        .await
        .unwrap();
    session.stop().await;
    assert!(!fixture.read("log").contains("server/discover"));

    let fixture = ServerFixture::new();
    let launch = fixture.server("discover() { modern; }\ninit() { err -32601 gone; }");
    let session = Session::open(&launch, Some(Era::Legacy)).await.unwrap();
    assert_eq!(session.era(), Era::Modern);
    session.stop().await;
}

#[tokio::test]
async fn handshake_after_a_death_at_the_probe_starts_the_server_again() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server("discover() { exit 7; }")).await;
    assert_eq!(session.era(), Era::Legacy);
    session.stop().await;
    assert_eq!(fixture.read("log").matches("server/discover").count(), 1);
}

#[tokio::test]
async fn handshake_with_a_silent_probe_asks_in_the_other_era_too() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.server("discover() { :; }");
    launch.timing.probe = Duration::from_millis(50);
    let session = open(&launch).await;
    assert_eq!(session.era(), Era::Legacy);
    session.stop().await;
    assert!(
        !fixture.read("log").contains("notifications/cancelled"),
        "an opening is never cancelled"
    );
}

#[tokio::test]
async fn handshake_follows_the_first_conclusive_answer() {
    let fixture = ServerFixture::new();
    // Silent until it is asked in the legacy era, and then it answers the first question.
    let mut launch = fixture.server("discover() { first=$id; }\ninit() { id=$first; modern; }");
    launch.timing.probe = Duration::from_millis(50);
    let session = open(&launch).await;
    assert_eq!(session.era(), Era::Modern);
    session.stop().await;
}

#[tokio::test]
async fn exit_before_the_handshake_is_reported_with_code_and_stderr() {
    let fixture = ServerFixture::new();
    let failure = Session::open(&fixture.launch("echo 'no key given' >&2; exit 3"), None)
        .await
        .unwrap_err();
    assert_eq!(failure.cause, SourceCause::ExitBeforeReady);
    assert_eq!(failure.exit.unwrap().code, Some(3));
    assert_eq!(failure.stderr, ["no key given"]);
    assert!(failure.message.contains("exited with code 3"), "{failure}");
}

#[tokio::test]
async fn exit_0_before_the_handshake_suggests_another_transport() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.launch("exit 0");
    launch.withheld = vec!["SOME_TOKEN".to_owned()];
    let failure = Session::open(&launch, None).await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::ExitBeforeReady);
    assert!(
        failure
            .message
            .starts_with("exited 0 without speaking MCP; is it a stdio server?")
    );
    assert!(failure.message.contains("`SOME_TOKEN`"), "{failure}");
}

#[tokio::test]
async fn handshake_without_an_answer_ends_the_server_at_the_timeout() {
    let fixture = ServerFixture::new();
    let mut launch =
        fixture.launch("echo $$ > $DIR/pid; trap '' TERM; while :; do read -r x; done");
    launch.startup_timeout = Duration::from_millis(200);
    let failure = Session::open(&launch, None).await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::StartupTimeout);
    assert!(!is_alive(&fixture.read("pid")));
}

#[tokio::test]
async fn list_continues_after_an_empty_cursor() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server(
        r#"list() { case $line in
            *'"cursor":"2"'*) ok '{"tools":[{"name":"c"}]}';;
            *'"cursor":""'*) ok '{"tools":[{"name":"b"}],"nextCursor":"2"}';;
            *) ok '{"tools":[{"name":"a"}],"nextCursor":""}';;
        esac; }"#,
    ))
    .await;
    assert_eq!(names(&session.snapshot().await.unwrap()), ["a", "b", "c"]);
    session.stop().await;
}

#[tokio::test]
async fn list_whose_cursor_comes_again_ends_with_a_warning() {
    let fixture = ServerFixture::new();
    let session =
        open(&fixture.server(r#"list() { ok '{"tools":[],"nextCursor":"again"}'; }"#)).await;
    let snapshot = session.snapshot().await.unwrap();
    assert_eq!(
        snapshot.warnings,
        ["the tool list ends at a cursor that was seen before: `again`"]
    );
    session.stop().await;
}

#[tokio::test]
async fn list_without_method_or_capability_is_empty() {
    for script in [
        "list() { err -32601 none; }",
        "caps='{}'\nlist() { err -32601 none; }",
    ] {
        let fixture = ServerFixture::new();
        let session = open(&fixture.server(script)).await;
        assert!(session.snapshot().await.unwrap().tools.is_empty());
        session.stop().await;
    }
}

#[tokio::test]
async fn exit_during_calls_fails_each_with_the_same_cause() {
    let fixture = ServerFixture::new();
    // The sleeper keeps stdout open, so the end of the process is what counts.
    let launch = fixture.server("n=0\ncall() { n=$((n+1)); [ $n = 3 ] || return; echo last words >&2; sleep 60 & kill -SEGV $$; }");
    let session = open(&launch).await;
    let start = Instant::now();
    let calls = tokio::join!(
        call(&session, "{}"),
        call(&session, "{}"),
        call(&session, "{}")
    );
    assert!(start.elapsed() < WAIT_TIMEOUT / 2);
    for result in [calls.0, calls.1, calls.2] {
        let Err(CallFailure::Exited {
            failure,
            maybe_executed: true,
        }) = result
        else {
            panic!("{result:?}")
        };
        assert_eq!(failure.cause, SourceCause::Exited);
        assert_eq!(failure.exit.unwrap().signal, Some(11));
        assert_eq!(failure.stderr, ["last words"]);
    }
    session.stop().await;
}

#[tokio::test]
async fn call_timeout_applies_while_the_write_is_blocked() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server("other() { sleep 60; }")).await;
    let big = format!("{{\"x\":\"{}\"}}", "x".repeat(4 << 20));
    let timeout = Duration::from_millis(200);
    let (stuck, behind) = tokio::join!(
        session.call(ServerCall::new("echo", big.as_bytes()), timeout),
        session.call(ServerCall::new("echo", b"{}"), timeout)
    );
    assert!(
        matches!(
            stuck,
            Err(CallFailure::Timeout {
                maybe_executed: true,
                ..
            })
        ),
        "{stuck:?}"
    );
    assert!(
        matches!(
            behind,
            Err(CallFailure::Timeout {
                maybe_executed: false,
                ..
            })
        ),
        "{behind:?}"
    );
    session.stop().await;
}

#[tokio::test]
async fn answers_are_read_while_the_server_does_not_read() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.server(
        r#"call() { printf '{"jsonrpc":"2.0","id":%s,"result":{"x":"' $id; head -c 3000000 /dev/zero | tr '\0' x; say '"}}'; }"#,
    );
    launch.line_bytes = 8 << 20;
    let session = open(&launch).await;
    let big = format!("{{\"x\":\"{}\"}}", "y".repeat(300_000));
    let calls = tokio::join!(
        call(&session, &big),
        call(&session, &big),
        call(&session, &big)
    );
    for result in [calls.0, calls.1, calls.2] {
        assert_eq!(result.unwrap().len(), 3_000_000 + r#"{"x":""}"#.len());
    }
    session.stop().await;
}

#[tokio::test]
async fn noise_on_stdout_is_skipped_and_server_requests_are_answered() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server(
        r#"call() { say 'Listening…'; say '{"level":"info"}'; say '{"jsonrpc":"2.0","id":"s","method":"ping"}'; say '{"jsonrpc":"2.0","id":9,"method":"roots/list"}'; ok '{}'; }"#,
    ))
    .await;
    assert_eq!(call(&session, "{}").await.unwrap(), "{}");
    eventually("both requests are answered", || {
        fixture.read("log").contains("-32601")
    })
    .await;
    session.stop().await;
    let log = fixture.read("log");
    let answers: Vec<_> = log
        .lines()
        .skip_while(|line| !line.contains("tools/call"))
        .skip(1)
        .collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[0].contains(r#""id":"s","result":{}"#));
    assert!(answers[1].contains(r#""id":9,"error""#));
}

#[tokio::test]
async fn answer_over_the_line_limit_fails_only_its_call() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server(
        r#"call() { case $line in *big*) printf '{"result":"'; head -c 2000000 /dev/zero | tr '\0' x; say "\",\"id\":$id}";; *) ok '{}';; esac; }"#,
    ))
    .await;
    let (big, small) = tokio::join!(call(&session, r#"{"big":1}"#), call(&session, "{}"));
    assert!(
        matches!(big, Err(CallFailure::OutputTooLarge { limit }) if limit == 1 << 20),
        "{big:?}"
    );
    assert_eq!(small.unwrap(), "{}");
    session.stop().await;
}

#[tokio::test]
async fn answer_without_a_final_newline_is_delivered() {
    let fixture = ServerFixture::new();
    let launch = fixture.server(
        r#"call() { printf '{"jsonrpc":"2.0","id":%s,"result":{"last":1}}' "$id"; exit 0; }"#,
    );
    let session = open(&launch).await;
    assert_eq!(call(&session, "{}").await.unwrap(), r#"{"last":1}"#);
    session.stop().await;
}

#[tokio::test]
async fn answer_that_is_invalid_fails_its_call_at_once() {
    let check = async |reply: &str, part: &str| {
        let fixture = ServerFixture::new();
        let session = open(&fixture.server(&format!("call() {{ say \"{reply}\"; }}"))).await;
        let failure = call(&session, "{}").await.unwrap_err();
        assert!(format!("{failure:?}").contains(part), "{failure:?}");
        session.stop().await;
    };
    check(
        r#"{\"id\":$id,\"result\":{},\"error\":{\"code\":1}}"#,
        "both `result` and `error`",
    )
    .await;
    check(
        r#"{\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"bad\"}}"#,
        "code: -32602",
    )
    .await;
    check(r#"{\"id\":$id,\"result\":[]}"#, "not an object").await;
    check(
        r#"{\"id\":$id,\"result\":{\"resultType\":\"input_required\"}}"#,
        "not complete",
    )
    .await;
}

#[tokio::test]
async fn call_over_the_limit_and_queue_is_refused_at_once() {
    let fixture = ServerFixture::new();
    let mut launch = fixture.server("call() { :; }");
    (launch.max_in_flight, launch.queue) = (2, 3);
    let session = std::sync::Arc::new(open(&launch).await);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let session = session.clone();
        let timeout = Duration::from_millis(300);
        calls.spawn(async move {
            session
                .call(ServerCall::new("echo", b"{}"), timeout)
                .await
                .unwrap_err()
        });
    }
    let failures = calls.join_all().await;
    let count =
        |wanted: &dyn Fn(&CallFailure) -> bool| failures.iter().filter(|f| wanted(f)).count();
    assert_eq!(count(&|f| matches!(f, CallFailure::Overloaded(_))), 3);
    assert_eq!(count(&|f| matches!(f, CallFailure::Timeout { .. })), 5);
    // Places come free as calls are given up, so more than two may have been sent in the end.
    assert!(
        count(&|f| matches!(
            f,
            CallFailure::Timeout {
                maybe_executed: true,
                ..
            }
        )) >= 2
    );
    let session = std::sync::Arc::into_inner(session).unwrap();
    session.stop().await;
}

#[tokio::test]
async fn grandchild_in_the_group_ends_after_a_clean_exit() {
    let fixture = ServerFixture::new();
    let session = open(&fixture.server("sleep 300 & echo $! > $DIR/grandchild")).await;
    let grandchild = fixture.read("grandchild");
    assert!(is_alive(&grandchild));
    session.stop().await;
    assert!(!is_alive(&grandchild));
}

#[tokio::test]
async fn server_that_ignores_end_of_input_and_sigterm_is_killed() {
    let fixture = ServerFixture::new();
    let launch =
        fixture.server("trap '' TERM; echo $$ > $DIR/pid\nafter() { while :; do sleep 1; done; }");
    let session = open(&launch).await;
    let start = Instant::now();
    session.stop().await;
    assert!(!is_alive(&fixture.read("pid")));
    assert!(start.elapsed() >= launch.timing.close_grace + launch.timing.term_grace);
}

#[tokio::test]
async fn session_that_is_dropped_ends_its_processes() {
    let fixture = ServerFixture::new();
    let session =
        open(&fixture.server("sleep 300 & echo $! > $DIR/grandchild; echo $$ > $DIR/pid")).await;
    drop(session);
    eventually("both are gone", || {
        !is_alive(&fixture.read("pid")) && !is_alive(&fixture.read("grandchild"))
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn library_adopts_no_orphans_and_reaps_no_children_of_its_host() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a child of the host, which the spawner does not know"
    )]
    let mut of_host = std::process::Command::new("sh")
        .args(["-c", "exit 3"])
        .spawn()
        .unwrap();
    let fixture = ServerFixture::new();
    let session = open(&fixture.server("(sleep 300 & echo $! > $DIR/daemon)")).await;
    assert_eq!(call(&session, "{}").await.unwrap(), HI);
    assert_eq!(rustix::process::child_subreaper().unwrap(), None);
    session.stop().await;
    assert!(!is_alive(&fixture.read("daemon")));
    assert_eq!(of_host.wait().unwrap().code(), Some(3));
}
