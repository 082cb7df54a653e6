//! Lines of the audit log as log records.

use std::time::SystemTime;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use serde::Deserialize;

use crate::attributes::{nanos, number, resource, scope, text};

/// The name of the event.
const EVENT: &str = "mcp_broker.audit";

/// A line.
#[derive(Debug)]
pub(crate) struct AuditLine {
    pub(crate) text: Box<str>,
    pub(crate) at: SystemTime,
}

/// The members of a line that are repeated as attributes. Events of OCSF do not have them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    seq: Option<i64>,
    kind: Option<String>,
    trace_id: Option<String>,
}

/// Returns the request that exports lines.
pub(crate) fn request(
    lines: &[AuditLine],
    attributes: &[(String, String)],
) -> ExportLogsServiceRequest {
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(resource(attributes)),
            scope_logs: vec![ScopeLogs {
                scope: Some(scope()),
                log_records: lines.iter().map(record).collect(),
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    }
}

fn record(line: &AuditLine) -> LogRecord {
    let members: Members = serde_json::from_str(&line.text).unwrap_or_default();
    let mut attributes = Vec::new();
    attributes.extend(members.seq.map(|seq| number("mcp_broker.audit.seq", seq)));
    attributes.extend(members.kind.map(|kind| text("mcp_broker.audit.kind", kind)));
    let trace_id = members.trace_id.as_deref().and_then(bytes_of);
    LogRecord {
        time_unix_nano: nanos(line.at),
        observed_time_unix_nano: nanos(line.at),
        severity_number: SeverityNumber::Info.into(),
        severity_text: "INFO".to_owned(),
        body: Some(AnyValue {
            value: Some(Value::StringValue(line.text.as_ref().to_owned())),
        }),
        attributes,
        trace_id: trace_id.unwrap_or_default(),
        event_name: EVENT.to_owned(),
        ..LogRecord::default()
    }
}

/// Returns the bytes of a trace id.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = (0..digits.len()).step_by(2);
    let bytes = pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
    bytes
        .collect::<Option<Vec<u8>>>()
        .filter(|bytes| bytes.len() == 16)
}
