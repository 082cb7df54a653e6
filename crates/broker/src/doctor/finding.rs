//! One thing that is to be said of a source, and the codes of what only an examination can find. Causes
//! of a failed start and problems of variables keep the codes that they have everywhere.

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Worth knowing; nothing has to be done.
    Note,
    /// It works, and something should be done.
    Warning,
    /// It does not work, or a plain start refuses it.
    Error,
}

impl Severity {
    /// The name in the report.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What only an examination finds; `docs/doctor.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    RuntimeMissing,
    PackageMissing,
    VariableMissing,
    NetworkDown,
    PortTaken,
    UsageText,
    TerminalWanted,
    StdoutNoise,
    TextRepaired,
    SlowStart,
    Drift,
}

impl Code {
    /// All of them, in the order of the documentation.
    #[cfg(test)]
    const ALL: [Self; 11] = [
        Self::RuntimeMissing,
        Self::PackageMissing,
        Self::VariableMissing,
        Self::NetworkDown,
        Self::PortTaken,
        Self::UsageText,
        Self::TerminalWanted,
        Self::StdoutNoise,
        Self::TextRepaired,
        Self::SlowStart,
        Self::Drift,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::RuntimeMissing => "runtime_missing",
            Self::PackageMissing => "package_missing",
            Self::VariableMissing => "variable_missing",
            Self::NetworkDown => "network_down",
            Self::PortTaken => "port_taken",
            Self::UsageText => "usage_text",
            Self::TerminalWanted => "terminal_wanted",
            Self::StdoutNoise => "stdout_noise",
            Self::TextRepaired => "text_repaired",
            Self::SlowStart => "slow_start",
            Self::Drift => "drift",
        }
    }
}

/// One thing that is to be said of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Stable, lower snake_case.
    pub(super) code: &'static str,
    /// Why the source is not ready, where that is what it is about.
    pub(super) cause: Option<&'static str>,
    pub(super) severity: Severity,
    /// What is wrong: a lowercase fragment.
    pub(super) message: String,
    /// Lines that show it: stderr, stdout, places of a difference.
    pub(super) details: Vec<String>,
    /// What to do about it.
    pub(super) remedy: String,
}

impl Finding {
    pub(super) fn new(
        code: Code,
        severity: Severity,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            code: code.as_str(),
            cause: None,
            severity,
            message: message.into(),
            details: Vec::new(),
            remedy: remedy.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_doctor_is_documented() {
        let page = include_str!("../../../../docs/doctor.md");
        for code in Code::ALL {
            let row = format!("\n| `{}` |", code.as_str());
            assert!(page.contains(&row), "{}", code.as_str());
        }
    }
}
