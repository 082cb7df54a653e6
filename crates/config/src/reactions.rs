//! The values of `schema`, `on_text_drift`, `on_unreachable` and `on_drift`, of a source, a tool or the whole config.

use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::{SchemaPolicy, StartDrift, TextDrift, Unreachable};

impl SchemaPolicy {
    pub(super) fn read(findings: &mut Findings<'_>, value: &Cursor<'_>, level: Level) -> Self {
        let from_name = |name: &str| (name == "as_is").then_some(Self::AsIs);
        keys::choice(findings, value, level, "schema", from_name).unwrap_or_default()
    }
}

impl TextDrift {
    pub(super) fn read(
        findings: &mut Findings<'_>,
        value: &Cursor<'_>,
        level: Level,
    ) -> Option<Self> {
        keys::choice(findings, value, level, "on_text_drift", |name| match name {
            "serve" => Some(Self::Serve),
            "withdraw" => Some(Self::Withdraw),
            _ => None,
        })
    }
}

impl Unreachable {
    pub(super) fn read(
        findings: &mut Findings<'_>,
        value: &Cursor<'_>,
        level: Level,
    ) -> Option<Self> {
        keys::choice(
            findings,
            value,
            level,
            "on_unreachable",
            |name| match name {
                "refuse" => Some(Self::Refuse),
                "serve" => Some(Self::Serve),
                _ => None,
            },
        )
    }
}

impl StartDrift {
    pub(super) fn read(
        findings: &mut Findings<'_>,
        value: &Cursor<'_>,
        level: Level,
    ) -> Option<Self> {
        keys::choice(findings, value, level, "on_drift", |name| match name {
            "refuse" => Some(Self::Refuse),
            "withdraw" => Some(Self::Withdraw),
            _ => None,
        })
    }
}
