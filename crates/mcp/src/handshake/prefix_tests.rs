//! Text that a process writes before its first answer, without a line end.

use broker_model::SourceCause;
use broker_wire::Era;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::Pipes;
use crate::session::Session;
use crate::test_spec::scripted_source;

/// Serves as a legacy server that writes a text before its answers: the first one for its first answer, and so on.
async fn serve(pipes: Pipes, prefixes: &'static [&'static str], id: Option<u64>) -> i32 {
    let mut lines = BufReader::new(pipes.input).lines();
    let (mut output, mut prefixes) = (pipes.output, prefixes.iter());
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let id = id.map_or(request["id"].clone(), Value::from);
        let answer = match request["method"].as_str() {
            Some("initialize") => {
                let info = json!({"name": "s", "version": "1"});
                json!({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}})
            }
            Some("server/discover") => {
                json!({"id": id, "error": {"code": -32601, "message": "no"}})
            }
            _ => continue,
        };
        let prefix = prefixes.next().copied().unwrap_or_default();
        let line = format!("{prefix}{answer}\n");
        if output.write_all(line.as_bytes()).await.is_err() {
            return 0;
        }
    }
    0
}

/// Opens a session with such a server.
async fn open(
    era: Era,
    prefixes: &'static [&'static str],
    id: Option<u64>,
) -> Result<Session, crate::SourceFailure> {
    let mut spec = scripted_source(move |pipes| serve(pipes, prefixes, id));
    spec.timing.probe = std::time::Duration::from_secs(1);
    Session::open(&spec, Some(era)).await
}

#[tokio::test(start_paused = true)]
async fn text_before_the_first_answer_of_a_process_is_skipped() {
    for (name, prefix) in [
        ("banner", &["Starting… "][..]),
        ("bracket", &["[info] ready: "]),
        ("escape", &["\u{1b}[2K\r"]),
    ] {
        for era in [Era::Legacy, Era::Modern] {
            let session = open(era, prefix, None).await.unwrap();
            assert_eq!(session.era(), Era::Legacy, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn text_before_another_answer_is_not_skipped_and_named_in_the_error() {
    static LONG: std::sync::LazyLock<&'static [&'static str]> = std::sync::LazyLock::new(|| {
        let prefix: &'static str = Box::leak("x".repeat(1024).into_boxed_str());
        Box::leak(vec![prefix].into_boxed_slice())
    });
    for (name, era, prefixes, id) in [
        ("second", Era::Modern, &["", "noise "][..], None),
        ("other-id", Era::Legacy, &["noise "], Some(77)),
        ("brace", Era::Legacy, &["noise {} "], None),
        ("long", Era::Legacy, *LONG, None),
    ] {
        let failure = open(era, prefixes, id).await.unwrap_err();
        assert_eq!(failure.cause, SourceCause::StartupTimeout, "{name}");
        let shown = failure.to_string();
        assert!(shown.contains("a line that is not a message: "), "{shown}");
    }
}
