//! Exit codes of both binaries, and their precedence when several apply.

use crate::codes::DiagnosticCode;
use crate::diagnostic::Diagnostic;

/// The exit code of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: success.
    Ok,
    /// 1: an internal failure, or a problem that `doctor` or `status` found.
    Failure,
    /// 2: usage, config or environment; also a collision of paths and a filter without a match.
    Usage,
    /// 3: drift.
    Drift,
    /// 4: a source could not be started or checked, or no source was checked; also an unstable source and a schema that
    /// `lock` refuses.
    Unchecked,
    /// 5: the lock is missing, damaged, stale or of another version, an
    /// audit is missing, or generated code is stale.
    Lock,
    /// 6: the lint found text that must not be locked.
    Lint,
    /// 7: the address cannot be bound.
    Bind,
    /// 8: partly done: something was left out, and the rest was done.
    Partial,
    /// 9: the job failed.
    JobFailed,
    /// 14: the job is lost.
    JobLost,
    /// 15: the job was cancelled.
    JobCanceled,
    /// 130: interrupted twice.
    Interrupted,
}

impl Exit {
    /// All, in the order of their codes.
    pub const ALL: [Self; 13] = [
        Self::Ok,
        Self::Failure,
        Self::Usage,
        Self::Drift,
        Self::Unchecked,
        Self::Lock,
        Self::Lint,
        Self::Bind,
        Self::Partial,
        Self::JobFailed,
        Self::JobLost,
        Self::JobCanceled,
        Self::Interrupted,
    ];

    /// The meaning, for `docs/errors.md`.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "success; also a broker that was asked to stop and drained",
            Self::Failure => "an internal failure; also a problem that `doctor` or `status` found",
            Self::Usage => {
                "usage, config or environment; also a collision of paths, a filter that matches nothing, an open bind"
            }
            Self::Drift => "drift",
            Self::Unchecked => {
                "a source could not be started or checked, or nothing was checked; also an unstable source and a refused schema"
            }
            Self::Lock => {
                "the lock is missing, damaged, stale or of another version, or leaves out a part that no entry accepts; a required audit is missing, or generated code is stale"
            }
            Self::Lint => {
                "the lint found text that must not be locked; with `--strict`, also text that needs a review"
            }
            Self::Bind => "the address cannot be bound",
            Self::Partial => {
                "partly done: `lock` left something out that is not accepted, and wrote the rest"
            }
            Self::JobFailed => "`jobs wait`: the job failed",
            Self::JobLost => {
                "`jobs wait`: the job is lost, so that it is not known whether its call was executed"
            }
            Self::JobCanceled => "`jobs wait`: the job was cancelled",
            Self::Interrupted => "interrupted twice; `doctor` and verbs that launch servers: once",
        }
    }

    /// The process's exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Drift => 3,
            Self::Unchecked => 4,
            Self::Lock => 5,
            Self::Lint => 6,
            Self::Bind => 7,
            Self::Partial => 8,
            Self::JobFailed => 9,
            Self::JobLost => 14,
            Self::JobCanceled => 15,
            Self::Interrupted => 130,
        }
    }

    /// The code that is reported when both apply: 2, 5, 4, 6, 3, 8 in that order, then the rest.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        const ORDER: [Exit; 13] = [
            Exit::Interrupted,
            Exit::Usage,
            Exit::Lock,
            Exit::Unchecked,
            Exit::Lint,
            Exit::Drift,
            Exit::Partial,
            Exit::Bind,
            Exit::Failure,
            Exit::JobLost,
            Exit::JobFailed,
            Exit::JobCanceled,
            Exit::Ok,
        ];
        let rank = |exit| ORDER.iter().position(|known| *known == exit);
        if rank(self) <= rank(other) {
            self
        } else {
            other
        }
    }

    /// The exit of these diagnostics; warnings do not count.
    pub fn from_diagnostics<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>) -> Self {
        diagnostics
            .into_iter()
            .filter(|d| d.is_error())
            .fold(Self::Ok, |exit, d| exit.or(Self::from_code(d.code)))
    }

    /// The exit of an error with this code. Each code is decided here.
    const fn from_code(code: DiagnosticCode) -> Self {
        use DiagnosticCode as Code;
        match code {
            Code::LockMissing
            | Code::LockCorrupt
            | Code::LockVersion
            | Code::LockStale
            | Code::LockOrphan
            | Code::MergeConflict
            | Code::VectorsStale
            | Code::AuditMissing
            | Code::Violation
            | Code::AuditByAuthor
            | Code::AuthorsUnknown
            | Code::HintUnaudited
            | Code::LeftOutUnaccepted
            | Code::GeneratedStale
            | Code::CatalogMissing
            | Code::CatalogDamaged => Self::Lock,
            Code::SchemaInvalid
            | Code::SchemaRef
            | Code::SchemaCycle
            | Code::SchemaLimit
            | Code::SchemaPattern
            | Code::SchemaDialect
            | Code::SourceSecret
            | Code::SourceUnstable
            | Code::SourceFailed
            | Code::EmbedderUnavailable
            | Code::BinaryUnchecked => Self::Unchecked,
            Code::LintRefused => Self::Lint,
            Code::FileWrite => Self::Failure,
            Code::AuditUnusable
            | Code::JobsUnusable
            | Code::TelemetryUnusable
            | Code::ConfigUnreadable
            | Code::ConfigSyntax
            | Code::ConfigEncoding
            | Code::ConfigShape
            | Code::ConfigSize
            | Code::ConfigUnknownKey
            | Code::ConfigDupKey
            | Code::ConfigType
            | Code::ConfigRange
            | Code::ConfigSourceKind
            | Code::UrlInvalid
            | Code::PlainHttp
            | Code::NotSupportedYet
            | Code::KeyIgnored
            | Code::CatalogsFull
            | Code::RuntimeUnusable
            | Code::OwnBroker
            | Code::TimeoutUnit
            | Code::ClientValue
            | Code::LiteralSecret
            | Code::EnvMissing
            | Code::EnvSyntax
            | Code::EnvValue
            | Code::TextVariable
            | Code::ShellPlace
            | Code::PathInvalid
            | Code::PathDup
            | Code::PathParent
            | Code::PathCase
            | Code::NameClash
            | Code::LeafClash
            | Code::FlatNameClash
            | Code::ItemClash
            | Code::AliasNeeded
            | Code::GlobSyntax
            | Code::FilterEmpty
            | Code::TrustEmpty
            | Code::AccessGroupUnknown
            | Code::AccessNoMatch
            | Code::AccessArgsUnknownProperty
            | Code::AccessArgsNever
            | Code::AccessArgsInvalid
            | Code::AccessRuleDead
            | Code::AccessToolUnreachable
            | Code::OverrideUnknown
            | Code::AuditPointer
            | Code::ExampleInvalid
            | Code::BindOpen
            | Code::ServeOpen
            | Code::SecretPermissions
            | Code::SecretEmpty
            | Code::SecretUnexpanded
            | Code::MergeUnreadable
            | Code::LockMismatch
            | Code::LockWiden
            | Code::EmbedderMismatch
            | Code::SchemaRead
            | Code::SchemaUnlisted
            | Code::PackageUnpinned
            | Code::PackageChanged
            | Code::PackageUnseen
            | Code::DidNotEnd
            | Code::ContainerInit
            | Code::VariableWithheld
            | Code::MachineText
            | Code::AuditsUnreadable
            | Code::AuditsSyntax
            | Code::AuditsUnknownKey
            | Code::AuditsValue
            | Code::HintUnreviewed
            | Code::HintStale
            | Code::HintRefused
            | Code::MovedRefused
            | Code::ViolationUnmatched
            | Code::AuditStale
            | Code::WriteRefused
            | Code::WhoMissing
            | Code::TerminalNeeded
            | Code::BaselineUnreadable
            | Code::FileExists
            | Code::ImportSyntax
            | Code::ImportServers => Self::Usage,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_has_a_place_in_the_order() {
        for exit in Exit::ALL {
            assert_eq!(exit.or(exit), exit);
            assert_eq!(
                exit.or(Exit::Ok),
                exit,
                "an exit without a place is the last one"
            );
            assert_eq!(exit.or(Exit::Interrupted), Exit::Interrupted);
        }
    }

    #[test]
    fn exit_code_of_several_is_the_first_of_2_5_4_6_3_8() {
        let order = [
            Exit::Usage,
            Exit::Lock,
            Exit::Unchecked,
            Exit::Lint,
            Exit::Drift,
            Exit::Partial,
            Exit::Ok,
        ];
        for (index, worse) in order.iter().enumerate() {
            for better in &order[index..] {
                assert_eq!((worse.or(*better), better.or(*worse)), (*worse, *worse));
            }
        }
    }

    #[test]
    fn exit_code_is_derived_from_diagnostics() {
        let exit = |codes: &[DiagnosticCode]| {
            let list: Vec<_> = codes
                .iter()
                .map(|code| Diagnostic::error(*code, "x"))
                .collect();
            Exit::from_diagnostics(&list).code()
        };
        assert_eq!(exit(&[]), 0);
        assert_eq!(
            exit(&[DiagnosticCode::LockStale, DiagnosticCode::SourceUnstable]),
            5
        );
        assert_eq!(exit(&[DiagnosticCode::SchemaRef]), 4);
        assert_eq!(exit(&[DiagnosticCode::LintRefused]), 6);
        for usage in [
            DiagnosticCode::LeafClash,
            DiagnosticCode::FlatNameClash,
            DiagnosticCode::FilterEmpty,
            DiagnosticCode::BindOpen,
            DiagnosticCode::LockWiden,
            DiagnosticCode::LockMismatch,
        ] {
            assert_eq!(exit(&[DiagnosticCode::LockMissing, usage]), 2);
        }
        assert_eq!(
            Exit::from_diagnostics(&[Diagnostic::warning(DiagnosticCode::FilterEmpty, "x")]),
            Exit::Ok
        );
    }
}
