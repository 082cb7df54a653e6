//! The second form of a line: an event of the Open Cybersecurity Schema Framework, class API Activity. The whole line in
//! the first form is in `unmapped`, with the chain, so that nothing is lost and every reader takes both forms.

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::line::{Kind, Line};
use crate::settings::OcsfVersion;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    unmapped: Line<'a>,
}

/// Reads the line in an event.
pub(super) fn parse(bytes: &[u8]) -> Option<Line<'_>> {
    let event: Envelope<'_> = serde_json::from_slice(bytes).ok()?;
    Some(event.unmapped)
}

/// An event. `unmapped` is the last member, so that the signature of a checkpoint ends the line.
#[derive(Serialize)]
struct Event<'a> {
    activity_id: u32,
    activity_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_id: Option<u32>,
    actor: Value,
    api: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation_list: Option<Value>,
    category_name: &'static str,
    category_uid: u32,
    class_name: &'static str,
    class_uid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    disposition_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    metadata: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Value>,
    severity_id: u32,
    src_endpoint: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_code: Option<&'a str>,
    status_id: u32,
    time: i64,
    type_uid: u32,
    unmapped: &'a Line<'a>,
}

/// Appends an event.
pub(super) fn write(
    line: &Line<'_>,
    version: OcsfVersion,
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let mut event = event(line, version);
    if version == OcsfVersion::V1_9Dev {
        let fingerprint = fingerprint(line, version)?;
        let list = event.attestation_list.as_mut();
        if let Some(attestation) = list.and_then(|list| list.get_mut(0)) {
            attestation["fingerprint"] = fingerprint;
        }
    }
    serde_json::to_writer(out, &event)
}

/// Returns the fingerprint of an event: of its canonical form (RFC 8785) without the fingerprint and without the signature
/// in `unmapped`, which is over the bytes of the line.
fn fingerprint(line: &Line<'_>, version: OcsfVersion) -> serde_json::Result<Value> {
    let unsigned = Line {
        sig: None,
        ..line.clone()
    };
    // The members of a `Value` are sorted.
    let canonical = serde_json::to_value(event(&unsigned, version))?.to_string();
    let hash = HEXLOWER.encode(digest(&SHA256, canonical.as_bytes()).as_ref());
    Ok(json!({"algorithm_id": 3, "algorithm": "SHA-256", "value": hash}))
}

fn event<'a>(line: &'a Line<'a>, version: OcsfVersion) -> Event<'a> {
    let is_denied = line.outcome.as_deref() == Some("denied");
    let is_call = matches_call(line.kind);
    let code = line.code.as_ref().and_then(|code| code.0.as_deref());
    let uid = |seq: u64| format!("{}/{seq}", line.stream);
    let mut profiles = Vec::new();
    if is_denied {
        profiles.push("security_control");
    }
    let attestation_list = (version == OcsfVersion::V1_9Dev).then(|| {
        profiles.push("record_integrity");
        let mut attestation = json!({"uid": uid(line.seq), "chain_uid": line.stream});
        if line.seq > 1 {
            attestation["prev_event"] = json!({"uid": uid(line.seq - 1), "type_uid": TYPE_UID});
        }
        json!([attestation])
    });
    let mut metadata = json!({
        "product": {"name": "mcp-broker", "vendor_name": "mcp-broker"},
        "sequence": line.seq,
        "uid": uid(line.seq),
        "version": version.as_str(),
    });
    if !profiles.is_empty() {
        metadata["profiles"] = json!(profiles);
    }
    Event {
        activity_id: 99,
        activity_name: if is_call { "Invoke" } else { "Record" },
        action_id: is_denied.then_some(2),
        actor: actor(line),
        api: api(line, is_call),
        attestation_list,
        category_name: "Application Activity",
        category_uid: 6,
        class_name: "API Activity",
        class_uid: 6003,
        disposition_id: is_denied.then_some(2),
        duration: line.ms.map(|ms| ms.round() as u64),
        metadata,
        resources: resources(line),
        severity_id: if is_denied { 2 } else { 1 },
        src_endpoint: match &line.peer {
            Some(peer) if peer.parse::<std::net::IpAddr>().is_ok() => json!({"ip": peer}),
            Some(peer) => json!({"name": peer}),
            None => json!({"name": line.via.as_deref().unwrap_or("mcp-broker")}),
        },
        status_code: code,
        status_id: status_id(line),
        time: millis(&line.at),
        type_uid: TYPE_UID,
        unmapped: line,
    }
}

/// The type of every event: the class, and the activity 99.
const TYPE_UID: u32 = 600_399;

/// Whether a line is about a call.
const fn matches_call(kind: Kind) -> bool {
    match kind {
        Kind::CallBegin | Kind::CallEnd => true,
        Kind::Start
        | Kind::Stop
        | Kind::Checkpoint
        | Kind::IdentifyFailed
        | Kind::Read
        | Kind::Limited
        | Kind::JobClaimed
        | Kind::JobEnded
        | Kind::Withdrawn
        | Kind::Restored
        | Kind::SourceDown
        | Kind::SourceUp
        | Kind::Drift
        | Kind::Reload
        | Kind::KeysChanged
        | Kind::Deleted
        | Kind::Gap => false,
    }
}

/// Success, failure, or unknown for a call that has begun.
fn status_id(line: &Line<'_>) -> u32 {
    if line.kind == Kind::CallBegin {
        return 0;
    }
    if line.kind == Kind::IdentifyFailed {
        return 2;
    }
    match line.outcome.as_deref() {
        None | Some("ok" | "accepted" | "succeeded") => 1,
        Some(_) => 2,
    }
}

fn actor(line: &Line<'_>) -> Value {
    let Some(actor) = &line.actor else {
        return json!({"app_name": "mcp-broker"});
    };
    let groups: Vec<Value> = actor
        .groups
        .iter()
        .map(|group| json!({"name": group}))
        .collect();
    let mut user = json!({"uid": actor.subject});
    if !groups.is_empty() {
        user["groups"] = groups.into();
    }
    json!({"user": user})
}

fn api(line: &Line<'_>, is_call: bool) -> Value {
    let target = line.target.as_deref();
    let kind = target.and_then(|target| target.kind.as_deref());
    let operation = match kind {
        Some("resource") if is_call => "resources/read".to_owned(),
        Some("prompt") if is_call => "prompts/get".to_owned(),
        _ if is_call => "tools/call".to_owned(),
        _ if line.method.is_some() => line.method.as_deref().unwrap_or_default().to_owned(),
        _ => serde_json::to_value(line.kind)
            .ok()
            .and_then(|kind| Some(format!("audit/{}", kind.as_str()?)))
            .unwrap_or_default(),
    };
    let mut api = json!({"operation": operation});
    if let Some(id) = &line.request_id {
        api["request"] = json!({"uid": id});
    }
    if let Some(source) = target.and_then(|target| target.source.as_deref()) {
        api["service"] = json!({"name": source});
    }
    api
}

fn resources(line: &Line<'_>) -> Option<Value> {
    let target = line.target.as_deref()?;
    let kind = target.kind.as_deref().unwrap_or("tool");
    let mut resource = json!({"uid": target.path, "type": format!("mcp_{kind}")});
    if let Some(tool) = &target.tool {
        resource["name"] = json!(tool);
    }
    if let Some(digest) = &target.digest {
        resource["data"] = json!({"digest": digest});
    }
    Some(json!([resource]))
}

/// Returns the milliseconds since 1970 of a time of a line.
fn millis(at: &str) -> i64 {
    use broker_model::utc::UtcTime;

    let whole = at
        .get(..19)
        .and_then(|whole| UtcTime::parse(&format!("{whole}Z")));
    let since = whole.and_then(|whole| {
        let time = whole.to_system_time();
        time.duration_since(std::time::SystemTime::UNIX_EPOCH).ok()
    });
    let millis: u64 = at
        .get(20..23)
        .and_then(|part| part.parse().ok())
        .unwrap_or(0);
    let seconds = since.map_or(0, |since| since.as_secs());
    i64::try_from(seconds * 1000 + millis).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_an_event_is_in_milliseconds() {
        assert_eq!(millis("2000-02-29T23:59:59.042Z"), 951_868_799_042);
        assert_eq!(millis("none"), 0);
    }
}
