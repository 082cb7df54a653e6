//! The drift classes: their names, and the reaction of a start and of a running broker to each. The severities of
//! findings.

use serde::Serialize;

/// The class of a difference, from harmless to worst; `added` and `unchecked` are outside this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("enum" = Self::ALL.map(Self::as_str)))
)]
pub enum Class {
    /// A new upstream tool that the config would expose; never exposed.
    Added,
    /// No reviewed content changed.
    Same,
    /// Bytes changed, and the meaning is proven the same.
    Equivalent,
    /// A text for models changed; the reviewed text is served.
    Text,
    /// The schema changed, and every call and result of the lock is proven still valid.
    Compatible,
    /// Neither proven nor disproven.
    Unknown,
    /// Calls or results of the lock are no longer valid.
    Breaking,
    /// Less safe than reviewed.
    Security,
    /// No longer listed by a source that answered.
    Gone,
    /// The source could not be started or listed; it has not drifted.
    Unchecked,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "")
)]
pub enum FindingSeverity {
    /// Information.
    Note,
    /// Should be reviewed.
    Warning,
    /// Needs a decision.
    Error,
}

impl Class {
    /// All, in the order of the summary.
    pub const ALL: [Self; 10] = [
        Self::Same,
        Self::Equivalent,
        Self::Text,
        Self::Compatible,
        Self::Unknown,
        Self::Breaking,
        Self::Security,
        Self::Gone,
        Self::Added,
        Self::Unchecked,
    ];

    /// The name in reports and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Same => "same",
            Self::Equivalent => "equivalent",
            Self::Text => "text",
            Self::Compatible => "compatible",
            Self::Unknown => "unknown",
            Self::Breaking => "breaking",
            Self::Security => "security",
            Self::Gone => "gone",
            Self::Unchecked => "unchecked",
        }
    }

    /// The meaning of the class, and the reaction of a running broker, in one sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Added => "A new tool: not exposed before it is reviewed, and not a failure.",
            Self::Same => "No reviewed content changed: the tool is served.",
            Self::Equivalent => {
                "The bytes changed and the meaning is proven the same: a plain start refuses, a running broker keeps serving it."
            }
            Self::Text => {
                "A text changed: a plain start refuses, a running broker serves the tool with the reviewed text, or withdraws it if `on_text_drift` says so."
            }
            Self::Compatible => {
                "Every valid call and result of the lock is proven still valid: a plain start refuses, a running broker serves the tool with the reviewed schema."
            }
            Self::Unknown => {
                "Neither a proof nor a counterexample was found: a plain start refuses, a running broker withdraws the tool."
            }
            Self::Breaking => {
                "Valid calls or results of the lock are no longer valid: a plain start refuses, a running broker withdraws the tool."
            }
            Self::Security => {
                "Less safe than reviewed: a plain start refuses, a running broker withdraws the tool, or the source if the source changed."
            }
            Self::Gone => {
                "No longer listed: a plain start refuses, a running broker withdraws the tool."
            }
            Self::Unchecked => {
                "The source could not be started or listed: a plain start refuses, a running broker keeps its tools listed and tries again."
            }
        }
    }

    /// Whether a running broker withdraws a tool of this class.
    pub const fn withdraws(self) -> bool {
        match self {
            Self::Unknown | Self::Breaking | Self::Security | Self::Gone => true,
            Self::Same
            | Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Added
            | Self::Unchecked => false,
        }
    }

    /// Whether a finding of this class on a source takes its session out of use.
    pub const fn withdraws_source(self) -> bool {
        match self {
            Self::Security | Self::Unchecked => true,
            Self::Same
            | Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Unknown
            | Self::Breaking
            | Self::Gone
            | Self::Added => false,
        }
    }

    /// Whether a finding of this class on a source withdraws all of its tools. A source that did not answer keeps its
    /// tools.
    pub const fn withdraws_tools_of_source(self) -> bool {
        match self {
            Self::Security => true,
            Self::Same
            | Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Unknown
            | Self::Breaking
            | Self::Gone
            | Self::Added
            | Self::Unchecked => false,
        }
    }

    /// Whether a tool or source of this class was not compared: only one side has it, or the source did not answer.
    pub(crate) const fn is_not_compared(self) -> bool {
        match self {
            Self::Gone | Self::Added | Self::Unchecked => true,
            Self::Same
            | Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Unknown
            | Self::Breaking
            | Self::Security => false,
        }
    }

    /// The class of a change that its rule gives this one, if every value is proven to be valid still: the walk compared
    /// places that the proof did not need.
    pub(crate) const fn if_proven(self) -> Self {
        match self {
            Self::Unknown | Self::Breaking => Self::Compatible,
            Self::Same
            | Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Security
            | Self::Gone
            | Self::Added
            | Self::Unchecked => self,
        }
    }

    /// Whether `--fail-on` can name it.
    pub const fn can_fail(self) -> bool {
        match self {
            Self::Same | Self::Unchecked => false,
            Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Unknown
            | Self::Breaking
            | Self::Security
            | Self::Gone
            | Self::Added => true,
        }
    }

    /// Whether it refuses a plain start and fails a check. A source that was not checked does as well.
    pub const fn refuses(self) -> bool {
        match self {
            Self::Same | Self::Added => false,
            Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Unknown
            | Self::Breaking
            | Self::Security
            | Self::Gone
            | Self::Unchecked => true,
        }
    }

    /// Whether a rule of this class reports a difference, rather than a missing comparison.
    pub(crate) const fn is_drift(self) -> bool {
        match self {
            Self::Unchecked => false,
            Self::Same
            | Self::Equivalent
            | Self::Text
            | Self::Compatible
            | Self::Unknown
            | Self::Breaking
            | Self::Security
            | Self::Gone
            | Self::Added => true,
        }
    }
}

impl FindingSeverity {
    /// `note`, `warning` or `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_in_the_list_once_and_decides_consistently() {
        let position = |class: Class| match class {
            Class::Same => 0,
            Class::Equivalent => 1,
            Class::Text => 2,
            Class::Compatible => 3,
            Class::Unknown => 4,
            Class::Breaking => 5,
            Class::Security => 6,
            Class::Gone => 7,
            Class::Added => 8,
            Class::Unchecked => 9,
        };
        for (at, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(position(class), at, "{class:?}");
            // A class that withdraws also refuses a start, and a proof never makes a class worse.
            assert!(class.refuses() || !class.withdraws(), "{class:?}");
            assert!(class.refuses() || !class.withdraws_source(), "{class:?}");
            assert!(
                class.withdraws_source() || !class.withdraws_tools_of_source(),
                "{class:?}"
            );
            assert!(class.if_proven() <= class, "{class:?}");
            // A class that refuses a start can be named, except the class of a source that was not compared.
            let is_compared = class != Class::Unchecked;
            assert!(
                class.can_fail() || !(class.refuses() && is_compared),
                "{class:?}"
            );
        }
        // A new class needs a position above, and with it a place in the list.
        assert_eq!(Class::ALL.len(), 1 + position(Class::Unchecked));
    }
}
