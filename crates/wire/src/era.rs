//! The era of a request, and the checks of its `_meta`. Each message of a connection may be of either
//! era.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::members::valid_string;
use crate::protocol::{
    INVALID_PARAMS, LEGACY_LATEST, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_PROTOCOL_VERSION,
    MODERN, UNSUPPORTED_VERSION, legacy_revision,
};
use crate::{Era, JsonMembers, LogLevel, RpcError};

/// The revisions that `server/discover` and the error for another revision list.
pub const SUPPORTED: [&str; 1] = [MODERN];

/// Revisions with batches.
const BATCHING: [&str; 2] = ["2025-03-26", "2024-11-05"];

/// `_meta` of a request, read once for all that depends on it.
#[derive(Debug)]
pub enum Meta<'a> {
    /// The request lacks it.
    Absent,
    /// It is an object.
    Members(JsonMembers<'a>),
    /// It is another value.
    Other,
}

impl<'a> Meta<'a> {
    /// Reads `_meta` of the params of a message that was read as JSON.
    pub fn read(params: &JsonMembers<'a>) -> Self {
        match params.given("_meta") {
            None => Self::Absent,
            Some(raw) => JsonMembers::from_valid(raw).map_or(Self::Other, Self::Members),
        }
    }

    /// Returns its members, `None` if the request lacks `_meta`.
    pub fn members(&self) -> Result<Option<&JsonMembers<'a>>, RpcError> {
        match self {
            Self::Absent => Ok(None),
            Self::Members(members) => Ok(Some(members)),
            Self::Other => Err(wrong("`_meta` must be an object".to_owned())),
        }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        match self {
            Self::Members(members) => members.get(name),
            Self::Absent | Self::Other => None,
        }
    }

    /// Returns the era of its request. A modern request is checked for all required members.
    pub fn era(&self) -> Result<Era, RpcError> {
        self.members()?;
        if !self.describes_itself() {
            return Ok(Era::Legacy);
        }
        let Some(version) = self.named_revision() else {
            return Err(wrong(format!(
                "`_meta` needs `{META_PROTOCOL_VERSION}`, a string"
            )));
        };
        let capabilities = self.get(META_CLIENT_CAPABILITIES);
        if !capabilities.is_some_and(|raw| raw.starts_with('{')) {
            return Err(wrong(format!(
                "`_meta` needs `{META_CLIENT_CAPABILITIES}`, an object, which may be empty"
            )));
        }
        if !SUPPORTED.contains(&&*version) {
            let message =
                "this protocol version is not supported in requests that describe themselves";
            let data = json!({ "supported": SUPPORTED, "requested": version });
            return Err(RpcError::new(UNSUPPORTED_VERSION, message).data(data));
        }
        if self.get(META_LOG_LEVEL).is_some() && self.log_level().is_none() {
            return Err(wrong(format!("`{META_LOG_LEVEL}` is not a log level")));
        }
        Ok(Era::Modern)
    }

    /// Whether its request describes itself: it has one of the members that only modern requests have.
    pub fn describes_itself(&self) -> bool {
        self.get(META_PROTOCOL_VERSION)
            .or_else(|| self.get(META_CLIENT_CAPABILITIES))
            .is_some()
    }

    /// Returns the revision that it names.
    pub fn named_revision(&self) -> Option<Cow<'a, str>> {
        valid_string(self.get(META_PROTOCOL_VERSION)?)
    }

    /// Returns the log level that it asks for.
    pub fn log_level(&self) -> Option<LogLevel> {
        LogLevel::from_json(self.get(META_LOG_LEVEL)?)
    }
}

fn wrong(message: String) -> RpcError {
    RpcError::new(INVALID_PARAMS, message)
}

/// Returns the revision in the answer to `initialize`: the requested one, else the latest one.
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
        let params = JsonMembers::parse(&text).unwrap();
        Meta::read(&params).era().map_err(|error| error.code)
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
            let params = JsonMembers::parse(&params).unwrap();
            let error = Meta::read(&params).era().unwrap_err();
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
