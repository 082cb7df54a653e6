//! Trust levels: the exposure of a source's tools that its filter does not name.
//!
//! [`Exposure`] is the only code that decides whether a tool is exposed. Lock, build, start, drift check and
//! [`TrustPolicy`] call it, so that they agree.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Backend;

mod exposure;
mod policy;
mod sensitive;
mod word_list;

pub use exposure::{Exposure, HiddenBy, ItemExposure, ResourceMode};
pub use policy::{NamedTool, TrustError, TrustPolicy};
pub use sensitive::{SensitiveNames, WordError};
pub use word_list::WordList;

/// How far a source is trusted. A level is higher than another one if it is nearer to `trusted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "")
)]
pub enum TrustLevel {
    /// The tools that the filter admits are exposed, without those with a sensitive name.
    Untrusted,
    /// Only tools that a positive pattern of the filter matches are exposed.
    Verified,
    /// The tools that the filter admits are exposed.
    Trusted,
}

impl TrustLevel {
    /// All, the highest first.
    pub const ALL: [Self; 3] = [Self::Trusted, Self::Verified, Self::Untrusted];

    /// The name in configs and locks.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Verified => "verified",
            Self::Trusted => "trusted",
        }
    }

    /// The level of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// Returns the level of a source without a setting: the operator installs and updates a command; the program behind
    /// a URL is changed by others.
    pub const fn default_of(backend: Backend) -> Self {
        match backend {
            Backend::Stdio => Self::Trusted,
            Backend::Http => Self::Untrusted,
        }
    }
}

impl fmt::Display for TrustLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_levels_are_ordered_by_nearness_to_trusted() {
        assert!(TrustLevel::Trusted > TrustLevel::Verified);
        assert!(TrustLevel::Verified > TrustLevel::Untrusted);
        for level in TrustLevel::ALL {
            assert_eq!(TrustLevel::from_name(level.as_str()), Some(level));
            assert_eq!(serde_json::json!(level), level.as_str());
        }
        assert_eq!(TrustLevel::from_name("Trusted"), None);
    }
}
