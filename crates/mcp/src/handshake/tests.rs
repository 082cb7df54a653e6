//! The outcome of an opening request for each answer to it.

use super::*;
use broker_wire::protocol::LEGACY;
use serde_json::json;

fn bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn kind(answer: &ProbeOutcome) -> &'static str {
    match answer {
        ProbeOutcome::Negotiated(_) => "agreed",
        ProbeOutcome::Other(_) => "other",
        ProbeOutcome::Repeat(_) => "repeat",
        ProbeOutcome::Died(_) => "died",
        ProbeOutcome::Transient(_) => "transient",
        ProbeOutcome::Refused(_) => "refused",
    }
}

#[test]
fn handshake_error_with_a_modern_code_means_a_modern_server() {
    let redactor = Redactor::default();
    let check = |error: Value, expected: &str| {
        let answer = read_error(Era::Modern, &bytes(&error), &redactor);
        assert_eq!(kind(&answer), expected, "{error}");
    };
    for code in [-32601, -32602, -32603, -32000, 0, 7] {
        check(json!({"code": code, "message": "x"}), "other");
    }
    check(json!({"code": -32020, "message": "x"}), "refused");
    check(json!({"code": -32021, "message": "x"}), "refused");
    check(json!({"code": -32022, "message": "x"}), "refused");
    check(
        json!({"code": -32022, "data": {"supported": ["2099-01-01"]}}),
        "refused",
    );
    check(
        json!({"code": -32022, "data": {"supported": ["2099-01-01", "2025-06-18"]}}),
        "other",
    );
    check(
        json!({"code": -32022, "data": {"supported": ["2025-06-18", MODERN]}}),
        "repeat",
    );
    check(json!("text"), "other");
}

#[test]
fn handshake_result_that_is_invalid_leads_to_the_other_era() {
    let redactor = Redactor::default();
    let discovery = |value: Value| read_discovery(&bytes(&value), &redactor);
    let ProbeOutcome::Negotiated(negotiated) = discovery(
        json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}},
        "instructions": "hi", "_meta": {META_SERVER_INFO: {"name": "n"}}}),
    ) else {
        panic!("not agreed")
    };
    assert_eq!(negotiated.server_info, json!({"name": "n"}));
    assert_eq!(negotiated.instructions.as_deref(), Some("hi"));
    assert_eq!(kind(&discovery(json!({}))), "other");
    assert_eq!(kind(&discovery(json!([]))), "other");
    assert!(!is_readable(
        format!("{{\"a\":[{}1]}}", r#"{"":0},"#.repeat(40_000)).as_bytes()
    ));
    assert!(!is_readable(&vec![b' '; MAX_ANSWER_BYTES + 1]));
    assert_eq!(
        kind(&discovery(json!({"supportedVersions": ["2025-11-25"]}))),
        "other"
    );
    assert_eq!(
        kind(&discovery(json!({"supportedVersions": ["2030-01-01"]}))),
        "refused"
    );
    let legacy = |value: Value| read_initialization(&bytes(&value), &redactor);
    for version in LEGACY {
        assert_eq!(kind(&legacy(json!({"protocolVersion": version}))), "agreed");
    }
    assert_eq!(kind(&legacy(json!({"protocolVersion": MODERN}))), "refused");
    assert_eq!(kind(&legacy(json!({}))), "refused");
}

#[test]
fn status_that_may_pass_is_no_answer_in_the_known_era() {
    let refusal = |status: u16, retry_after: Option<u64>| HttpRefusal {
        status,
        failure: refused("x"),
        retry_after: retry_after.map(Duration::from_secs),
        begun: false,
        rpc_error: None,
    };
    for (status, wait, of_known, of_other, unknown) in [
        (500, None, "transient", "other", "other"),
        (503, Some(3), "transient", "transient", "refused"),
        (599, None, "transient", "other", "other"),
        (429, Some(5), "transient", "transient", "refused"),
        (404, None, "other", "other", "other"),
        (401, None, "other", "other", "other"),
    ] {
        for era in [Era::Modern, Era::Legacy] {
            let outcome = |known| kind(&read_refusal(era, known, refusal(status, wait)));
            assert_eq!(outcome(Some(era)), of_known, "{status}");
            assert_eq!(outcome(Some(era.other())), of_other, "{status}");
            assert_eq!(outcome(None), unknown, "{status}");
        }
    }
    for (code, is_answer) in [
        (-32601, true),
        (-32602, true),
        (-32022, true),
        (-32603, false),
        (-32000, false),
    ] {
        let error = bytes(&json!({"code": code, "message": "x"}));
        assert_eq!(is_about_method(&error), is_answer, "{code}");
    }
    assert!(!is_about_method(&bytes(&json!("text"))));
}

#[test]
fn connection_that_breaks_off_is_no_answer_in_the_known_era() {
    let end = |era, known, begun| {
        let failure = SourceFailure::new(SourceCause::Unreachable, "x");
        kind(&read_end(era, known, failure, begun))
    };
    for era in [Era::Modern, Era::Legacy] {
        assert_eq!(end(era, Some(era), true), "transient");
        assert_eq!(end(era, Some(era), false), "refused");
    }
    assert_eq!(end(Era::Modern, Some(Era::Legacy), true), "other");
    assert_eq!(end(Era::Modern, None, true), "other");
    assert_eq!(end(Era::Legacy, None, true), "refused");
}
