//! The era of a request, and the checks of its `_meta`. Each message of a connection may be of either
//! era.

use serde_json::{Value, json};

use crate::protocol::{
    INVALID_PARAMS, LEGACY_LATEST, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_PROTOCOL_VERSION,
    MODERN, UNSUPPORTED_VERSION, legacy_revision,
};
use crate::{Era, JsonMembers, LogLevel, RpcError};

/// The revisions that `server/discover` and the error for another revision list.
pub const SUPPORTED: [&str; 1] = [MODERN];

/// Revisions with batches.
const BATCHING: [&str; 2] = ["2025-03-26", "2024-11-05"];

/// The era of a request with these params. A modern request is checked for all required members.
pub fn of_request(params: &JsonMembers<'_>) -> Result<Era, RpcError> {
    let wrong = |message: String| RpcError::new(INVALID_PARAMS, message);
    let Some(meta) = params.given("_meta") else {
        return Ok(Era::Legacy);
    };
    let meta =
        JsonMembers::parse(meta).map_err(|_| wrong("`_meta` must be an object".to_owned()))?;
    let version = meta.get(META_PROTOCOL_VERSION);
    let capabilities = meta.get(META_CLIENT_CAPABILITIES);
    if version.is_none() && capabilities.is_none() {
        return Ok(Era::Legacy);
    }
    let text = |raw: &str| serde_json::from_str::<String>(raw).ok();
    let Some(version) = version.and_then(text) else {
        return Err(wrong(format!(
            "`_meta` needs `{META_PROTOCOL_VERSION}`, a string"
        )));
    };
    if !capabilities.is_some_and(|raw| raw.starts_with('{')) {
        return Err(wrong(format!(
            "`_meta` needs `{META_CLIENT_CAPABILITIES}`, an object, which may be empty"
        )));
    }
    if !SUPPORTED.contains(&version.as_str()) {
        let message = "this protocol version is not supported in requests that describe themselves";
        let data = json!({ "supported": SUPPORTED, "requested": version });
        return Err(RpcError::new(UNSUPPORTED_VERSION, message).data(data));
    }
    match meta.get(META_LOG_LEVEL).map(text) {
        Some(level) if level.as_deref().and_then(LogLevel::parse).is_none() => {
            Err(wrong(format!("`{META_LOG_LEVEL}` is not a log level")))
        }
        _ => Ok(Era::Modern),
    }
}

/// The log level that `meta`, the members of a checked `_meta`, asks for.
pub fn log_level(meta: &JsonMembers<'_>) -> Option<LogLevel> {
    meta.get(META_LOG_LEVEL).and_then(LogLevel::from_json)
}

/// Whether a request with these params describes itself: `_meta` has one of the members that only modern
/// requests have.
pub fn describes_itself(params: &JsonMembers<'_>) -> bool {
    let meta = params.given("_meta").map(JsonMembers::parse);
    meta.and_then(Result::ok).is_some_and(|meta| {
        meta.get(META_PROTOCOL_VERSION)
            .or_else(|| meta.get(META_CLIENT_CAPABILITIES))
            .is_some()
    })
}

/// The revision that `_meta` of these params names.
pub fn named_revision(params: &JsonMembers<'_>) -> Option<String> {
    let meta = JsonMembers::parse(params.given("_meta")?).ok()?;
    serde_json::from_str(meta.get(META_PROTOCOL_VERSION)?).ok()
}

/// The revision in the answer to `initialize`: the requested one, else the latest one.
pub fn negotiate(params: &JsonMembers<'_>) -> Result<&'static str, RpcError> {
    let asked = params
        .given("protocolVersion")
        .and_then(|raw| serde_json::from_str::<Value>(raw).ok());
    let Some(Value::String(asked)) = asked else {
        let message = "`protocolVersion` must be a string";
        return Err(RpcError::new(INVALID_PARAMS, message));
    };
    Ok(legacy_revision(&asked).unwrap_or(LEGACY_LATEST))
}

/// Whether a connection of this negotiated revision may send batches.
pub fn takes_batches(revision: Option<&str>) -> bool {
    revision.is_some_and(|revision| BATCHING.contains(&revision))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LEGACY;

    fn era(params: &Value) -> Result<Era, i64> {
        let text = params.to_string();
        of_request(&JsonMembers::parse(&text).unwrap()).map_err(|error| error.code)
    }

    fn meta(version: Value, capabilities: Value) -> Value {
        json!({"_meta": {META_PROTOCOL_VERSION: version, META_CLIENT_CAPABILITIES: capabilities}})
    }

    #[test]
    fn era_of_a_request_is_modern_by_its_meta() {
        assert_eq!(era(&json!({})), Ok(Era::Legacy));
        assert_eq!(era(&json!({"_meta": null})), Ok(Era::Legacy));
        assert_eq!(
            era(&json!({"_meta": {"progressToken": 1}})),
            Ok(Era::Legacy)
        );
        assert_eq!(era(&meta(json!(MODERN), json!({}))), Ok(Era::Modern));
    }

    #[test]
    fn modern_meta_missing_or_wrong_is_refused() {
        for params in [
            json!({"_meta": 1}),
            json!({"_meta": {META_PROTOCOL_VERSION: MODERN}}),
            json!({"_meta": {META_CLIENT_CAPABILITIES: {}}}),
            meta(json!(1), json!({})),
            meta(json!(MODERN), json!([])),
            meta(json!(MODERN), json!(null)),
        ] {
            assert_eq!(era(&params), Err(INVALID_PARAMS), "{params}");
        }
        let mut params = meta(json!(MODERN), json!({}));
        params["_meta"][META_LOG_LEVEL] = json!("loud");
        assert_eq!(era(&params), Err(INVALID_PARAMS));
        for version in ["2025-11-25", "2030-01-01", ""] {
            let params = meta(json!(version), json!({})).to_string();
            let error = of_request(&JsonMembers::parse(&params).unwrap()).unwrap_err();
            assert_eq!(error.code, UNSUPPORTED_VERSION, "{version}");
            let data = json!({"supported": [MODERN], "requested": version});
            assert_eq!(error.data, Some(data));
        }
    }

    #[test]
    fn initialize_gets_its_revision_or_the_latest() {
        let negotiated = |version: Value| {
            let params = json!({ "protocolVersion": version }).to_string();
            negotiate(&JsonMembers::parse(&params).unwrap()).map_err(|error| error.code)
        };
        for revision in LEGACY {
            assert_eq!(negotiated(json!(revision)), Ok(revision));
        }
        assert_eq!(negotiated(json!("2026-07-28")), Ok(LEGACY_LATEST));
        assert_eq!(negotiated(json!("1.0")), Ok(LEGACY_LATEST));
        assert_eq!(negotiated(json!(1)), Err(INVALID_PARAMS));
        assert!(takes_batches(Some("2025-03-26")) && !takes_batches(Some("2025-06-18")));
    }
}
