//! A replay as text and as JSON.

use std::fmt::Write as _;

use broker_model::text::{counted, shown_line};
use serde_json::Value;

use super::{Replay, Verdict};

/// The maximum characters of a value.
const MAX_CHARS: usize = 200;

impl Verdict {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Hide => "hide",
            Self::Narrow => "narrow",
            Self::Unknown => "unknown",
            Self::Same => "same",
        }
    }
}

impl Replay {
    /// Returns the report as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the report as text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for one in &self.findings {
            // Writing to a text does not fail.
            let _ = writeln!(
                text,
                "{}: {} by {}, {} from line {} on: {}",
                one.verdict.as_str(),
                shown_line(&one.path, MAX_CHARS),
                shown_line(&one.caller, MAX_CHARS),
                counted(one.count as usize, "call"),
                one.first,
                shown_line(&one.reason, MAX_CHARS),
            );
        }
        if self.findings_left_out > 0 {
            let _ = writeln!(
                text,
                "and {} more",
                counted(self.findings_left_out as usize, "call")
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {}", shown_line(note, 500));
        }
        if self.unreadable > 0 {
            let _ = writeln!(
                text,
                "note: {} cannot be read",
                counted(self.unreadable as usize, "line")
            );
        }
        if self.changes > 0 {
            let changes = counted(self.changes as usize, "change");
            let _ = writeln!(
                text,
                "log: CHANGED, {changes}; run `mcp-broker audit verify`"
            );
        }
        let _ = writeln!(
            text,
            "{}: {} refused, {} hidden, {} narrowed, {} unknown, {} as before; {} refused already then",
            counted(self.calls as usize, "recorded call"),
            self.refuse,
            self.hide,
            self.narrow,
            self.unknown,
            self.same,
            self.refused_before
        );
        text
    }
}
