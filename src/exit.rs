//! The exit codes, in one place, with their precedence where several apply.

use std::process::ExitCode;

use broker_model::{Diagnostic, DiagnosticCode};

/// How a process of ours ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Fine, a drained shutdown included.
    Fine = 0,
    /// A failure of ours.
    Failure = 1,
    /// Usage, config or environment.
    Usage = 2,
    /// Drift.
    Drift = 3,
    /// A source could not be started or checked.
    Source = 4,
    /// The lock is missing, damaged, stale or of another version.
    Lock = 5,
    /// The address cannot be bound.
    Bind = 7,
    /// Interrupted a second time.
    Interrupted = 130,
}

/// What wins where several apply; whatever is not listed wins by being worse than all.
const PRECEDENCE: [Exit; 4] = [Exit::Usage, Exit::Lock, Exit::Source, Exit::Drift];

impl Exit {
    /// The one that is reported of several; fine where there are none.
    pub(crate) fn of_all(exits: impl IntoIterator<Item = Self>) -> Self {
        let rank = |exit: &Self| match exit {
            Self::Fine => usize::MAX,
            other => PRECEDENCE
                .iter()
                .position(|known| known == other)
                .map_or(0, |at| at + 1),
        };
        exits.into_iter().min_by_key(rank).unwrap_or(Self::Fine)
    }

    /// What diagnostics make of a run; warnings make nothing.
    pub(crate) fn of_diagnostics(diagnostics: &[Diagnostic]) -> Self {
        let errors = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.is_error());
        Self::of_all(errors.map(|diagnostic| Self::of_code(diagnostic.code)))
    }

    fn of_code(code: DiagnosticCode) -> Self {
        use DiagnosticCode as D;
        match code {
            D::LockMissing | D::LockCorrupt | D::LockVersion | D::LockStale | D::LockOrphan => {
                Self::Lock
            }
            D::SourceFailed
            | D::SourceUnstable
            | D::SchemaInvalid
            | D::SchemaRef
            | D::SchemaCycle
            | D::SchemaLimit
            | D::SchemaPattern
            | D::SchemaDialect
            | D::NumberRange
            | D::ToolInvalid => Self::Source,
            D::FileWrite => Self::Failure,
            // Everything else is the operator's to mend: config, environment, address, secret.
            _ => Self::Usage,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_at_once_are_2_5_4_6_3() {
        use Exit::{Drift, Failure, Fine, Lock, Source, Usage};
        for (several, one) in [
            (&[][..], Fine),
            (&[Fine, Drift], Drift),
            (&[Drift, Source], Source),
            (&[Source, Lock, Drift], Lock),
            (&[Drift, Lock, Source, Usage], Usage),
            (&[Usage, Failure], Failure),
        ] {
            assert_eq!(Exit::of_all(several.iter().copied()), one, "{several:?}");
        }
    }

    #[test]
    fn diagnostics_have_their_exit() {
        for (code, exit) in [
            (DiagnosticCode::ConfigSyntax, Exit::Usage),
            (DiagnosticCode::BindOpen, Exit::Usage),
            (DiagnosticCode::EnvMissing, Exit::Usage),
            (DiagnosticCode::LockWiden, Exit::Usage),
            (DiagnosticCode::LockMismatch, Exit::Usage),
            (DiagnosticCode::LockStale, Exit::Lock),
            (DiagnosticCode::SchemaRef, Exit::Source),
        ] {
            assert_eq!(
                Exit::of_diagnostics(&[Diagnostic::error(code, "m")]),
                exit,
                "{code}"
            );
            assert_eq!(
                Exit::of_diagnostics(&[Diagnostic::warning(code, "m")]),
                Exit::Fine
            );
        }
    }
}
