//! Attributes, the resource and the scope of messages.

use std::time::{Duration, SystemTime};

use broker_observe::CONVENTIONS;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// The name of the scope of everything that is sent.
const SCOPE: &str = "mcp-broker";

/// Returns an attribute with a text.
pub(crate) fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

/// Returns an attribute with a number.
pub(crate) fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Returns the scope. It names the conventions that names and attributes follow.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        attributes: vec![text(
            "mcp_broker.conventions",
            format!("semantic-conventions-genai {CONVENTIONS}"),
        )],
        ..InstrumentationScope::default()
    }
}

/// Returns the resource.
pub(crate) fn resource(attributes: &[(String, String)]) -> Resource {
    Resource {
        attributes: attributes
            .iter()
            .map(|(key, value)| text(key, value))
            .collect(),
        ..Resource::default()
    }
}

/// Returns a time in nanoseconds since 1970.
pub(crate) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    whole_nanos(since.unwrap_or_default())
}

fn whole_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
