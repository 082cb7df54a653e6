//! A finding about a source, and the codes that only an exam finds. Causes of a failed start and
//! problems of variables keep their usual codes.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Information; no action needed.
    Note,
    /// The source works, but action is recommended.
    Warning,
    /// The source does not work, or a plain start refuses it.
    Error,
}

impl Severity {
    /// Returns the name in the report.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The codes that only an exam finds; `docs/doctor.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    RuntimeMissing,
    PackageMissing,
    VariableMissing,
    CertificateUntrusted,
    NetworkDown,
    PortTaken,
    UsageText,
    TerminalWanted,
    StdoutNoise,
    TextRepaired,
    TransportDeprecated,
    SlowStart,
    DidNotEnd,
    ContainerInit,
    VariableWithheld,
    CacheUnwritable,
    LeftOut,
    OddListing,
    Drift,
}

impl Code {
    /// All of them, in the order of the documentation.
    #[cfg(test)]
    const ALL: [Self; 19] = [
        Self::RuntimeMissing,
        Self::PackageMissing,
        Self::VariableMissing,
        Self::CertificateUntrusted,
        Self::NetworkDown,
        Self::PortTaken,
        Self::UsageText,
        Self::TerminalWanted,
        Self::StdoutNoise,
        Self::TextRepaired,
        Self::TransportDeprecated,
        Self::SlowStart,
        Self::DidNotEnd,
        Self::ContainerInit,
        Self::VariableWithheld,
        Self::CacheUnwritable,
        Self::LeftOut,
        Self::OddListing,
        Self::Drift,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::RuntimeMissing => "runtime_missing",
            Self::PackageMissing => "package_missing",
            Self::VariableMissing => "variable_missing",
            Self::CertificateUntrusted => "certificate_untrusted",
            Self::NetworkDown => "network_down",
            Self::PortTaken => "port_taken",
            Self::UsageText => "usage_text",
            Self::TerminalWanted => "terminal_wanted",
            Self::StdoutNoise => "stdout_noise",
            Self::TextRepaired => "text_repaired",
            Self::TransportDeprecated => "transport_deprecated",
            Self::SlowStart => "slow_start",
            Self::DidNotEnd => "did_not_end",
            Self::ContainerInit => "container_init",
            Self::VariableWithheld => "variable_withheld",
            Self::CacheUnwritable => "cache_unwritable",
            Self::LeftOut => "left_out",
            Self::OddListing => "odd_listing",
            Self::Drift => "drift",
        }
    }
}

/// A finding about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Stable, lower snake_case.
    pub(crate) code: &'static str,
    /// Why the source is not ready, if the finding is about that.
    pub(crate) cause: Option<&'static str>,
    pub(crate) severity: Severity,
    /// The problem: a lowercase fragment.
    pub(crate) message: String,
    /// Evidence: lines of stderr and stdout, and places of differences.
    pub(crate) details: Vec<String>,
    /// The remedy.
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn new(
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
    fn doctor_codes_are_all_documented() {
        let page = include_str!("../../../docs/doctor.md");
        for code in Code::ALL {
            let row = format!("\n| `{}` |", code.as_str());
            assert!(page.contains(&row), "{}", code.as_str());
        }
    }
}
