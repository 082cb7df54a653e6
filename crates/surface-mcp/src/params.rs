//! The params of a request.

use broker_wire::era::Meta;
use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::{JsonMembers, RpcError};
use bytes::Bytes;

/// The maximum number of members of params; the protocol has far fewer. Members of arguments do not count.
const MAX_MEMBERS: usize = 64;
/// The maximum bytes of `_meta`, with the members that only the broker reads.
const MAX_META_BYTES: usize = 64 << 10;

/// The params for an `initialize` without params. The revision is [`SIMPLE_REVISION`](crate::adapter::SIMPLE_REVISION).
const SIMPLEST_INITIALIZE: &[u8] = br#"{"protocolVersion":"2025-06-18"}"#;

/// The params of a request.
#[derive(Debug)]
pub(super) struct Params<'a> {
    /// One JSON object.
    pub(super) raw: &'a Bytes,
    pub(super) members: JsonMembers<'a>,
    pub(super) meta: Meta<'a>,
}

impl<'a> Params<'a> {
    /// Reads the params of a message that was read as JSON: an object without duplicate names.
    pub(super) fn read(raw: &'a Bytes) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let text = std::str::from_utf8(raw).ok();
        let members = text.and_then(JsonMembers::from_valid);
        let members = members.ok_or_else(|| wrong("`params` must be an object"))?;
        if members.len() > MAX_MEMBERS {
            return Err(wrong(&format!(
                "`params` has more than {MAX_MEMBERS} members"
            )));
        }
        if members
            .get("_meta")
            .is_some_and(|meta| meta.len() > MAX_META_BYTES)
        {
            return Err(wrong(&format!(
                "`_meta` has more than {MAX_META_BYTES} bytes"
            )));
        }
        if let Some(name) = members.first_duplicate() {
            let name = broker_model::text::shown_line(name, 80);
            return Err(wrong(&format!("`params` has `{name}` twice")));
        }
        let meta = Meta::read(&members);
        Ok(Self { raw, members, meta })
    }

    /// Returns the params for a request without params.
    pub(super) const fn none() -> Bytes {
        Bytes::from_static(b"{}")
    }
}

/// Returns the params of a request; for an `initialize` without any, the params of the simplest clients.
pub(super) fn given(method: &str, raw: Bytes) -> Bytes {
    match method == "initialize" && is_empty_object(&raw) {
        true => Bytes::from_static(SIMPLEST_INITIALIZE),
        false => raw,
    }
}

/// Whether a JSON text is an object without members.
pub(super) fn is_empty_object(raw: &[u8]) -> bool {
    let inner = raw.trim_ascii().strip_prefix(b"{");
    let inner = inner.and_then(|raw| raw.strip_suffix(b"}"));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}
