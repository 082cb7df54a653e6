//! Params and results in the forms of adapters.

use broker_wire::JsonMembers;
use broker_wire::write::Text;
use bytes::Bytes;
use serde_json::Value;

use super::command_call::read_mode;
use super::*;
use crate::params::Params;
use broker_core::{CallMode, Charge, CoreError};
use broker_model::CallCode;

fn command() -> ResultForm {
    let raw = Bytes::from_static(br#"{"stage":"s","command":"c"}"#);
    let params = Params::read(&raw).expect("an object");
    ResultForm::Command(CommandCall::read(&params).expect("valid").0)
}

fn with_status() -> ResultForm {
    ResultForm::WithStatus(CommandCall::from_path("/s/c"))
}

fn converted(form: &ResultForm, result: &str) -> Result<Value, Value> {
    let text = Text::from(result.as_bytes().to_vec());
    match form.converted(&text, Charge::default()) {
        Ok(text) => Ok(serde_json::from_slice(text.as_ref()).expect("JSON")),
        Err(error) => {
            assert_eq!(error.code, COMMAND_FAILED);
            Err(error.data.expect("data"))
        }
    }
}

const TEXTS: &str = r#"{"content":[{"type":"text","text":"a\nb"},{"type":"image","data":"AAAA"},{"type":"text","text":"c"}],"structuredContent":{"n":1.00},"status":"of the server"}"#;

#[test]
fn result_of_the_specification_gets_the_members_of_a_command() {
    let got = converted(&with_status(), TEXTS).expect("a result");
    let mut expected: Value = serde_json::from_str(TEXTS).expect("JSON");
    expected["status"] = json!("ok");
    expected["stdout"] = json!("a\nb\nc");
    expected["exit_code"] = json!(0);
    assert_eq!(got, expected);
    let failed = r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#;
    assert_eq!(
        converted(&with_status(), failed),
        converted(&command(), failed)
    );
    assert_eq!(
        CommandCall::from_path("/a/b/c"),
        CommandCall {
            stage: "a/b".to_owned(),
            command: "c".to_owned()
        }
    );
}

#[test]
fn images_and_links_of_a_command_are_kept_with_its_content() {
    const CONTENT: &str = r#"[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"a"},{"type":"resource_link","uri":"x://1","name":"one"}]"#;
    let content: Value = serde_json::from_str(CONTENT).expect("JSON");
    let result = format!(r#"{{"content":{CONTENT}}}"#);
    let got = converted(&command(), &result).expect("a result");
    let expected = json!({"content": content, "status": "ok", "stdout": "a", "exit_code": 0});
    assert_eq!(got, expected);
    assert_eq!(
        converted(&with_status(), &result).expect("a result"),
        expected
    );
    let failed = format!(r#"{{"content":{CONTENT},"isError":true}}"#);
    let data = converted(&command(), &failed).expect_err("an error");
    assert_eq!((&data["content"], &data["stdout"]), (&content, &json!("a")));
}

#[test]
fn command_has_its_output_and_a_failed_one_is_an_error() {
    let got = converted(&command(), TEXTS);
    let mut expected = json!({"status": "ok", "stdout": "a\nb\nc", "exit_code": 0, "structuredContent": {"n": 1.0}});
    let whole: Value = serde_json::from_str(TEXTS).expect("JSON");
    expected["content"] = whole["content"].clone();
    assert_eq!(got, Ok(expected));
    let failed = converted(
        &command(),
        r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#,
    );
    let expected =
        json!({"stage": "s", "command": "c", "exit_code": 1, "stdout": "no", "stderr": "no"});
    assert_eq!(failed, Err(expected));
    assert!(converted(&command(), "[]").is_err());
}

#[test]
fn streams_and_exit_code_of_the_structured_content_are_those_of_the_command() {
    const STREAMS: &str = r#"{"stdout":"out","stderr":"warning","exit_code":3}"#;
    let structured: Value = serde_json::from_str(STREAMS).expect("JSON");
    let result = |more: &str, streams: &str| {
        format!(
            r#"{{"content":[{{"type":"text","text":"t"}}],"structuredContent":{streams}{more}}}"#
        )
    };
    let ended = json!({"status": "ok", "stdout": "out", "stderr": "warning", "exit_code": 3, "structuredContent": structured});
    assert_eq!(
        converted(&command(), &result("", STREAMS)),
        Ok(ended.clone())
    );
    let mut with_content = ended;
    with_content["content"] = json!([{"type": "text", "text": "t"}]);
    assert_eq!(
        converted(&with_status(), &result("", STREAMS)),
        Ok(with_content)
    );
    let failed = converted(&command(), &result(r#","isError":true"#, STREAMS));
    let expected = json!({
        "stage": "s", "command": "c", "stdout": "out", "stderr": "warning", "exit_code": 3, "structuredContent": structured,
    });
    assert_eq!(failed, Err(expected));
    // Members of other types are not the streams of a command, and no failure has the exit code 0.
    let other = r#"{"stdout":1,"stderr":null,"exit_code":"0"}"#;
    let got = converted(&command(), &result("", other)).expect("a result");
    assert_eq!(
        (&got["stdout"], got.get("stderr"), &got["exit_code"]),
        (&json!("t"), None, &json!(0))
    );
    let zero = result(r#","isError":true"#, r#"{"exit_code":0}"#);
    assert_eq!(
        converted(&command(), &zero).expect_err("it failed")["exit_code"],
        1
    );
}

#[test]
fn refusal_of_arguments_is_invalid_params_and_another_one_a_failed_command() {
    let refusal = |code| {
        let error = CoreError::new(code, "m");
        let error_of = |form: ResultForm| form.refusal(&error, "r");
        assert_eq!(error_of(command()).data, error_of(with_status()).data);
        error_of(command())
    };
    assert_eq!(refusal(CallCode::ArgsInvalid).code, -32602);
    let other = refusal(CallCode::SourceUnavailable);
    let data = other.data.expect("data");
    assert_eq!(
        (other.code, &data["exit_code"], &data["stderr"]),
        (-32000, &json!(1), &json!("m"))
    );
    assert_eq!(data["error"]["code"], "source_unavailable");
}

#[test]
fn params_of_a_command_are_read_or_refused() {
    let read = |text: &'static str| {
        let raw = Bytes::from_static(text.as_bytes());
        let params = Params::read(&raw).expect("an object");
        CommandCall::read(&params)
            .map(|(_, args)| args)
            .map_err(|error| error.message)
    };
    assert_eq!(read(r#"{"command":"c"}"#), Ok(Bytes::from_static(b"{}")));
    assert_eq!(
        read(r#"{"command":"c","args":{"a":1},"mode":"sync"}"#),
        Ok(Bytes::from_static(br#"{"a":1}"#))
    );
    for (wrong, part) in [
        ("{}", "`command` is missing"),
        (r#"{"command":""}"#, "`command` is missing"),
        (r#"{"command":1}"#, "`command` must be a string"),
        (r#"{"command":"c","stage":[]}"#, "`stage` must be a string"),
        (r#"{"command":"c","args":[]}"#, "`args` must be an object"),
    ] {
        let message = read(wrong).expect_err(wrong);
        assert!(message.contains(part), "{wrong}: {message}");
    }
    let mode = |text: &str, has_jobs| {
        let members = JsonMembers::parse(text).expect("an object");
        read_mode(&members, has_jobs)
    };
    let asks_for_job = r#"{"mode":"async"}"#;
    assert_eq!(mode(asks_for_job, true), Ok(Some(CallMode::Async)));
    let refused = mode(asks_for_job, false).expect_err("jobs are off");
    assert_eq!(refused.data, Some(json!({"code": "not_durable"})));
    assert_eq!(mode("{}", false), Ok(None));
    assert_eq!(mode(r#"{"mode":"sync"}"#, false), Ok(Some(CallMode::Sync)));
    let wrong = mode(r#"{"mode":"later"}"#, true).expect_err("unknown");
    assert!(
        wrong.message.contains("`mode` must be"),
        "{}",
        wrong.message
    );
}

#[test]
fn methods_of_adapters_exist_in_their_dialects_only() {
    assert_eq!(Dialect::Standard.method("listTools"), None);
    for dialect in [Dialect::Aliases, Dialect::Simple] {
        assert_eq!(
            dialect.method("status/report"),
            Some(AdapterMethod::StatusReport)
        );
        assert_eq!(dialect.method("tools/list"), None);
    }
}
