//! Every code has its status, its headers and its shape.

use std::time::Duration;

use super::*;
use broker_core::Claims;

const DIGEST: HeaderValue = HeaderValue::from_static("sha256/1:00");
const COMMON: CommonHeaders<'static> = CommonHeaders {
    digest: DIGEST,
    vary: None,
    resource: None,
};

fn error(code: CallCode) -> Box<CoreError> {
    let mut error = CoreError::new(code, "m");
    error.hint = None;
    Box::new(error)
}

async fn reply(outcome: Result<HttpReply, Refusal>, close: bool) -> (Response<()>, String) {
    let response = respond(outcome, &COMMON, RequestId::new(&["r-1"]), close);
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    (
        Response::from_parts(parts, ()),
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

#[tokio::test]
async fn error_code_has_its_status_and_names_catalog_and_request() {
    let table = [
        (
            400,
            "json_invalid path_invalid path_is_tool path_is_node field_unknown field_invalid header_invalid",
        ),
        (401, "unauthorized"),
        (403, "forbidden host_forbidden origin_forbidden"),
        (404, "path_not_found route_not_found job_not_found"),
        (405, "method_not_allowed"),
        (
            409,
            "tool_withdrawn lock_stale idempotency_mismatch job_not_finished job_finished",
        ),
        (413, "body_too_large"),
        (415, "content_type"),
        (422, "args_invalid not_durable"),
        (429, "overloaded"),
        (500, "internal"),
        (
            502,
            "source_error source_exited source_protocol upstream_http output_too_large job_lost",
        ),
        (
            503,
            "audit_unavailable identity_unavailable source_unavailable starting start_refused shutting_down store_unavailable",
        ),
        (504, "call_timeout"),
    ];
    let mut seen = 0;
    for (status, codes) in table {
        for name in codes.split(' ') {
            let code = *CallCode::ALL
                .iter()
                .find(|code| code.as_str() == name)
                .unwrap();
            let (head, body) = reply(Err(error(code).into()), false).await;
            assert_eq!(head.status(), status, "{name}");
            assert_eq!(
                body,
                format!(
                    r#"{{"error":{{"code":"{name}","message":"m","details":{{"help":"docs/errors.md#{name}"}},"retryable":false,"request_id":"r-1"}}}}"#
                )
            );
            let headers = head.headers();
            assert_eq!(headers["x-catalog-digest"], "sha256/1:00");
            assert_eq!(headers["x-request-id"], "r-1");
            assert_eq!(headers["content-type"], "application/json");
            assert_eq!(
                headers.contains_key("retry-after"),
                matches!(status, 429 | 503),
                "{name}"
            );
            assert_eq!(
                headers.contains_key("www-authenticate"),
                status == 401,
                "{name}"
            );
            let closes = matches!(code, CallCode::BodyTooLarge | CallCode::ShuttingDown);
            assert_eq!(headers.contains_key("connection"), closes, "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, CallCode::ALL.len());
}

#[tokio::test]
async fn error_reply_keeps_every_member_of_core() {
    let mut full = error(CallCode::SourceUnavailable);
    full.hint = Some("h".to_owned());
    full.path = Some("/a".to_owned());
    full.did_you_mean = vec!["/b".to_owned()];
    full.details = Some(serde_json::json!({"cause": "exited"}));
    full.retryable = true;
    full.maybe_executed = Some(false);
    full.retry_after = Some(Duration::from_millis(2001));
    let (head, body) = reply(Err(full.into()), false).await;
    assert_eq!(
        body,
        r#"{"error":{"code":"source_unavailable","message":"m","hint":"h","path":"/a","did_you_mean":["/b"],"details":{"cause":"exited","help":"docs/errors.md#source_unavailable"},"retryable":true,"maybe_executed":false,"request_id":"r-1"}}"#
    );
    assert_eq!(head.headers()["retry-after"], "3");
}

#[tokio::test]
async fn error_of_a_server_keeps_its_text_beside_the_help() {
    let mut error = error(CallCode::SourceError);
    let rpc = r#"{"code":-32000, "message":"m","data":1.50}"#.to_owned();
    error.rpc = Some(serde_json::value::RawValue::from_string(rpc.clone()).unwrap());
    let (_, body) = reply(Err(error.into()), false).await;
    let details = format!(r#""details":{{"rpc":{rpc},"help":"docs/errors.md#source_error"}}"#);
    assert!(body.contains(&details), "{body}");
}

#[tokio::test]
async fn reply_keeps_the_bytes_and_the_etag() {
    let answer = HttpReply {
        status: StatusCode::OK,
        body: Bytes::from_static(b"{\"path\":\"/\"}").into(),
        media: JSON,
        etag: Some("\"abc\"".to_owned()),
    };
    let (head, body) = reply(Ok(answer), true).await;
    assert_eq!(
        (head.status(), body.as_str()),
        (StatusCode::OK, "{\"path\":\"/\"}")
    );
    assert_eq!(head.headers()["etag"], "\"abc\"");
    assert_eq!(head.headers()["connection"], "close");
}

#[test]
fn method_not_allowed_names_the_allowed_one() {
    let refusal = Refusal::new(CallCode::MethodNotAllowed, "m").allow("POST");
    let response = respond(Err(refusal), &COMMON, RequestId::new(&["r"]), false);
    assert_eq!(response.headers()["allow"], "POST");
}

#[test]
fn challenge_of_scope_is_for_callers_with_a_token() {
    let resource = ProtectedResource::with_scope("mcp:read");
    let groups = ["reader".to_owned()];
    let token = Identity::token("https://idp.example", "ada", groups.clone(), Claims::new());
    let key = Identity::key("ada", groups);
    for (caller, code, expected) in [
        (&token, CallCode::Forbidden, true),
        (&token, CallCode::PathNotFound, false),
        (&key, CallCode::Forbidden, false),
        (&Identity::anonymous(), CallCode::Forbidden, false),
    ] {
        let mut headers = HeaderMap::new();
        let refusal = Refusal::from(error(code)).for_caller(caller);
        add_error_headers(&mut headers, &refusal, Some(&resource));
        let challenge = headers.get("www-authenticate");
        assert_eq!(challenge.is_some(), expected, "{caller:?}");
        assert!(challenge.is_none_or(|text| {
            let text = text.to_str().unwrap();
            text.contains(r#"error="insufficient_scope", scope="mcp:read""#)
        }));
    }
}
