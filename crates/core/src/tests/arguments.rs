//! Arguments that are converted, and arguments that are too long to be read in place.

use broker_memory::{ChargeError, MemoryBudget};
use broker_model::CallCode;
use bytes::Bytes;
use serde_json::{Value, json};

use super::fixture::{CALLER, Fixture, catalog, context, fixture_over, request};
use crate::call::arguments::memory_error_for_request;
use crate::catalog::{Catalog, Item, Span};
use crate::{Args, Broker as _, CoreError, Operation, Outcome, Request};

/// The catalog of the fixture, whose tools take an integer.
fn integers() -> &'static Catalog {
    let base = catalog();
    let schema = r#"{"properties":{"count":{"type":"integer"}}}"#;
    let args_schema = Span {
        at: base.blob.len() as u32,
        len: schema.len() as u32,
    };
    let items = base.items.iter().map(|item| Item {
        args_schema,
        ..*item
    });
    let items: Vec<_> = items.collect();
    Box::leak(Box::new(Catalog {
        blob: format!("{}{schema}", base.blob).leak(),
        items: items.leak(),
        ..*base
    }))
}

fn fixture(coerce: bool) -> Fixture {
    let rules = json!([{"allow": ["/**"], "to": ["*"]}]);
    let broker = fixture_over(integers(), rules, [json!({"coerce": coerce}), json!({})]);
    broker.matches(0);
    broker.matches(1);
    broker
}

/// Calls a tool with this text of arguments, read before or not; returns the outcome and the texts that were sent.
async fn call(
    broker: &Fixture,
    text: &str,
    is_read: bool,
) -> (Result<Outcome, Box<CoreError>>, Vec<String>) {
    let value: Value = serde_json::from_str(text).expect("JSON");
    let bytes = Bytes::from(text.to_owned());
    let args = match is_read {
        true => Args::Read { text: bytes, value },
        false => Args::Unread {
            at: 0..bytes.len(),
            body: bytes,
        },
    };
    broker.sources[0].answer(Ok("{}"));
    let request = Request {
        operation: Operation::CallTool(args),
        ..request(&CALLER, context(&broker.core), "/a/echo", json!({}))
    };
    let outcome = broker.core.call(request).await;
    let seen = broker.sources[0].seen().into_iter();
    (outcome, seen.map(|call| call.args).collect())
}

#[tokio::test]
async fn arguments_are_converted_only_if_the_config_allows_it_and_with_a_warning() {
    for is_read in [true, false] {
        let (outcome, sent) = call(&fixture(false), r#"{"count":"1"}"#, is_read).await;
        assert_eq!(outcome.unwrap_err().code, CallCode::ArgsInvalid);
        assert_eq!(sent, [""; 0]);
        let (outcome, sent) = call(&fixture(true), r#"{"count":"1"}"#, is_read).await;
        let warnings = outcome.unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains("`/count` to an integer"),
            "{warnings:?}"
        );
        assert_eq!(sent, [r#"{"count":1}"#]);
        let (outcome, sent) = call(&fixture(true), r#"{"count":1}"#, is_read).await;
        assert_eq!(outcome.unwrap().warnings, [""; 0]);
        assert_eq!(sent, [r#"{"count":1}"#]);
    }
}

#[tokio::test]
async fn long_arguments_are_sent_up_to_the_maximum_number_of_values() {
    for (values, code) in [(1000, None), (1_000_001, Some(CallCode::ArgsInvalid))] {
        let text = format!(r#"{{"count":1,"list":[{}0]}}"#, "0,".repeat(values));
        let (outcome, sent) = call(&fixture(false), &text, false).await;
        assert_eq!(outcome.err().map(|error| error.code), code);
        assert_eq!(sent.len(), usize::from(code.is_none()));
    }
}

#[test]
fn request_that_fits_the_limit_of_a_caller_may_be_sent_again() {
    let account = MemoryBudget::new(1 << 20).account();
    let limit = account.request_limit();
    for (needed, code) in [
        (limit, CallCode::Overloaded),
        (limit + 1, CallCode::BodyTooLarge),
    ] {
        let error = memory_error_for_request(ChargeError::Caller, needed, &account);
        assert_eq!((error.code, error.maybe_executed), (code, Some(false)));
    }
}
