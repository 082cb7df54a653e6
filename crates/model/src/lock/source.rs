//! One source in the lock, as the catalog has it.

use serde_json::{Map, Value, json};

use super::wire::SourceWire;
use super::{LockedSource, MIN_LOCK_VERSION, SourceSettings};
use crate::digest::Digest;
use crate::trust::TrustLevel;

impl LockedSource {
    /// Returns the trust level at the time of the lock. A lock of version 1 has only sources of the default level.
    pub fn trust_level(&self) -> TrustLevel {
        let settings = self.settings.as_ref();
        settings.map_or(
            TrustLevel::default_of(self.backend),
            SourceSettings::trust_level,
        )
    }

    /// The subject of audits of the source itself: its name and its instructions.
    pub fn own_digest(&self) -> Digest {
        let name = self.server_info.get("name").cloned();
        let instructions = self.instructions.as_deref().map(Value::from);
        let members = [("name", name), ("instructions", instructions)];
        let said: Map<_, _> = members
            .into_iter()
            .filter_map(|(member, value)| Some((member.to_owned(), value?)))
            .collect();
        Digest::from_member("source", &Value::Object(said))
    }

    /// Returns its element of the lock's `sources` for a catalog: without the members of version 2, since a broker does
    /// not read them. It includes the parts that are left out, so that a broker does not report them as new.
    pub fn to_json(&self) -> Value {
        json!(SourceWire::new(self, MIN_LOCK_VERSION).with_left_out(self))
    }

    /// Reads the JSON text of a compiled-in source. Its digests are not verified: the build did that.
    pub fn from_compiled(text: &str) -> serde_json::Result<Self> {
        let document = crate::json::parse(text).map_err(serde::de::Error::custom)?;
        serde_json::from_value(document).map(SourceWire::unchecked)
    }
}
