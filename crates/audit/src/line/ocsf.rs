//! The second form of a line: an event of the Open Cybersecurity Schema Framework. What the framework has no place for,
//! the chain first, is in `unmapped` with the names of the first form.

use serde::{Deserialize, Serialize};

use crate::line::{Kind, Line};

/// The version of the framework.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OcsfVersion {
    /// The release 1.8.0.
    #[default]
    V1_8,
    /// The version in development, with the profile `record_integrity`.
    V1_9Dev,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    unmapped: Line<'a>,
}

/// Reads the members of a line from an event.
pub(super) fn parse(bytes: &[u8]) -> Option<Line<'_>> {
    let event: Envelope<'_> = serde_json::from_slice(bytes).ok()?;
    Some(event.unmapped)
}

#[derive(Serialize)]
struct Event<'a, 'b> {
    class_uid: u32,
    unmapped: &'b Line<'a>,
}

/// Appends an event.
pub(super) fn write(
    line: &Line<'_>,
    _version: OcsfVersion,
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let _ = Kind::Start;
    serde_json::to_writer(
        out,
        &Event {
            class_uid: 6003,
            unmapped: line,
        },
    )
}
