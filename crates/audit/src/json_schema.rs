//! The JSON Schema of a line, made from two tables: the members, and the members of each kind.

use serde_json::{Map, Value, json};

use crate::facts::{MAX_NAMES, MAX_SHOWN};
use crate::line::{Kind, VERSION};

/// The members that every line has.
const COMMON: [&str; 8] = [
    "v", "seq", "prev", "at", "stream", "kind", "catalog", "policy",
];

/// The members of a kind besides [`COMMON`]: those that each line has, and those that a line may have.
const fn members_of(kind: Kind) -> (&'static [&'static str], &'static [&'static str]) {
    const CALL: &[&str] = &["actor", "via", "request_id", "target", "rule", "args"];
    match kind {
        Kind::Start => (&["code", "broker"], &["lock"]),
        Kind::Stop => (&[], &[]),
        Kind::Checkpoint => (&[], &["key_id", "sig"]),
        Kind::IdentifyFailed => (&["code", "peer", "count"], &[]),
        Kind::CallBegin => (CALL, &["peer", "trace_id", "parent"]),
        Kind::CallEnd => (
            &[
                "actor",
                "via",
                "request_id",
                "target",
                "rule",
                "args",
                "outcome",
                "code",
                "ms",
                "sent",
                "maybe_executed",
            ],
            &["peer", "trace_id", "begin", "result", "parent"],
        ),
        Kind::Read => (
            &["method", "outcome", "code", "actor", "via", "paths", "ms"],
            &["peer"],
        ),
        Kind::Limited => (&["actor", "count"], &[]),
        Kind::JobClaimed => (&["actor", "parent", "target"], &[]),
        Kind::JobEnded => (
            &[
                "actor",
                "parent",
                "target",
                "outcome",
                "code",
                "maybe_executed",
            ],
            &[],
        ),
        Kind::Restored | Kind::SourceUp => (&["target"], &[]),
        Kind::Withdrawn | Kind::SourceDown => (&["code", "target"], &[]),
        Kind::Drift => (&["target", "class", "finding"], &["found"]),
        Kind::Reload => (&["outcome", "code"], &["lock"]),
        Kind::KeysChanged => (&["names", "count"], &[]),
        Kind::Deleted => (&["deleted"], &[]),
        Kind::Gap => (&["code"], &["count", "torn"]),
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 19] = [
        Self::Start,
        Self::Stop,
        Self::Checkpoint,
        Self::IdentifyFailed,
        Self::CallBegin,
        Self::CallEnd,
        Self::Read,
        Self::Limited,
        Self::JobClaimed,
        Self::JobEnded,
        Self::Withdrawn,
        Self::Restored,
        Self::SourceDown,
        Self::SourceUp,
        Self::Drift,
        Self::Reload,
        Self::KeysChanged,
        Self::Deleted,
        Self::Gap,
    ];
}

/// Returns the schema of a line in the first form: for each kind its members, and no others.
pub fn json_schema() -> Value {
    let kinds = Kind::ALL.into_iter().map(|kind| {
        let (required, optional) = members_of(kind);
        let names = COMMON.iter().chain(required).chain(optional);
        let mut properties: Map<String, Value> = names
            .map(|name| {
                (
                    (*name).to_owned(),
                    json!({"$ref": format!("#/definitions/{name}")}),
                )
            })
            .collect();
        properties.insert("kind".to_owned(), json!({"const": kind}));
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
            "required": COMMON.iter().chain(required).collect::<Vec<_>>(),
        })
    });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Audit line",
        "description": "A line of the audit log of mcp-broker.",
        "oneOf": kinds.collect::<Vec<_>>(),
        "definitions": definitions(),
    })
}

/// The schemas of the members.
fn definitions() -> Value {
    let hash = json!({"type": "string", "pattern": "^[0-9a-f]{64}$"});
    let digest = json!({"type": "string", "pattern": "^sha256/1:[0-9a-f]{64}$"});
    let digest_or_none = json!({"type": "string", "pattern": "^(sha256/1:[0-9a-f]{64})?$"});
    let count = json!({"type": "integer", "minimum": 0});
    let names = json!({"type": "array", "maxItems": MAX_NAMES, "items": {"type": "string"}});
    let object = |properties: Value, required: &[&str]| {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
            "required": required,
        })
    };
    let scalar = json!({"type": ["string", "number", "boolean", "null"], "maxLength": 200});
    json!({
        "v": {"const": VERSION, "description": "The version of the form."},
        "seq": {"type": "integer", "minimum": 1, "description": "The number of the line, from 1."},
        "prev": described(&hash, "The SHA-256 of the bytes of the line before, zeros in the first line."),
        "at": {
            "type": "string",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$",
            "description": "The time, in UTC.",
        },
        "stream": {"type": "string", "description": "The id of the log."},
        "kind": {"enum": Kind::ALL, "description": "The event."},
        "begin": {"type": "integer", "minimum": 1, "description": "The number of the begin line."},
        "method": {"type": "string", "description": "The meta-tool or the method of MCP."},
        "outcome": {
            "enum": [
                "ok", "tool_error", "accepted", "failed", "denied", "refused", "cancelled", "abandoned",
                "succeeded", "canceled", "lost",
            ],
            "description": "The outcome of a call, a listing or a reload, or the state in which a job ended.",
        },
        "code": {"type": ["string", "null"], "description": "The code of an error, or the reason of an event."},
        "actor": described(
            &object(
                json!({
                    "subject": {"type": "string"},
                    "kind": {"enum": ["anonymous", "local", "secret", "key", "jwt"]},
                    "groups": names,
                    "key": {"type": "string"},
                    "act": names,
                }),
                &["subject", "kind", "groups"],
            ),
            "The caller.",
        ),
        "via": {"type": "string", "description": "The surface."},
        "peer": {"type": "string", "description": "The address of the caller."},
        "request_id": {"type": "string", "description": "The id in the ordinary log."},
        "trace_id": {"type": "string", "description": "The id of the trace."},
        "parent": described(
            &object(json!({"job": {"type": "string"}}), &["job"]),
            "The job that a call became or is part of.",
        ),
        "target": described(
            &object(
                json!({
                    "path": {"type": "string"},
                    "source": {"type": "string"},
                    "tool": {"type": "string"},
                    "kind": {"enum": ["tool", "prompt", "template", "resource"]},
                    "digest": digest,
                }),
                &["path"],
            ),
            "The item or the source.",
        ),
        "paths": described(&names, "The paths of a listing or a description."),
        "rule": {"type": ["integer", "null"], "minimum": 0, "description": "The number of the access rule that decided."},
        "args": described(
            &object(
                json!({
                    "bytes": count,
                    "hmac": {"type": "string"},
                    "shown": {"type": "object", "maxProperties": MAX_SHOWN, "additionalProperties": scalar},
                }),
                &["bytes"],
            ),
            "The arguments, without values except those that the config names.",
        ),
        "result": described(
            &object(json!({"bytes": count, "is_error": {"type": "boolean"}}), &["bytes", "is_error"]),
            "The result, without its content.",
        ),
        "ms": {"type": "number", "minimum": 0, "description": "The milliseconds of the call."},
        "sent": {"type": "boolean", "description": "Whether a byte was sent to the server."},
        "maybe_executed": {"type": "boolean", "description": "Whether the server may have executed the call."},
        "class": {"type": "string", "description": "The class of a difference."},
        "finding": {"type": "string", "description": "The rule that found a difference."},
        "found": {"type": "string", "description": "The digest that the server sends now."},
        "names": described(
            &object(json!({"added": names, "removed": names}), &["added", "removed"]),
            "Names of keys and issuers.",
        ),
        "count": described(&count, "A number of events."),
        "torn": described(
            &object(json!({"bytes": count, "hash": hash}), &["bytes", "hash"]),
            "The end of a file that is not a line.",
        ),
        "deleted": described(
            &object(
                json!({"file": {"type": "string"}, "first": count, "last": count, "hash": hash}),
                &["file", "first", "last", "hash"],
            ),
            "The file that was removed.",
        ),
        "broker": {"type": "string", "description": "The version of the broker."},
        "lock": described(&digest, "The root digest of the lock of the catalog."),
        "catalog": described(&digest_or_none, "The digest of the catalog."),
        "policy": described(&digest_or_none, "The digest of the access rules; empty without rules."),
        "key_id": {"type": "string", "description": "The id of the key of the signature."},
        "sig": {"type": "string", "description": "The signature, over the bytes before this member."},
    })
}

fn described(schema: &Value, text: &str) -> Value {
    let mut schema = schema.clone();
    schema["description"] = text.into();
    schema
}
