//! The secret of the callers: read once from one of three places, checked, and never shown.

use std::env::VarError;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use broker_config::ADAPTER_SECRET_VARIABLE;
use broker_model::redact::Secret;
use broker_model::{Diagnostic, DiagnosticCode};

/// The variable that may contain the secret. The allow-list of children's variables does not include
/// it.
pub(crate) const VARIABLE: &str = "MCP_BROKER_SECRET";
/// The variables that may contain it, in order of precedence. A simple MCP adapter uses the second name.
const VARIABLES: [&str; 2] = [VARIABLE, ADAPTER_SECRET_VARIABLE];
/// A shorter secret gets a warning.
const MIN_GOOD_CHARS: usize = 16;
/// The maximum length of a secret file.
const MAX_FILE_BYTES: usize = 64 << 10;

/// Returns the first of the variables that is set, and its value. A second one with another value is a warning.
///
/// # Errors
///
/// The name of a variable that is not UTF-8: to treat it as unset would open the broker.
pub(crate) fn read_environment(
    lookup: impl Fn(&'static str) -> Result<String, VarError>,
) -> Result<Option<(&'static str, String)>, &'static str> {
    let mut set = Vec::new();
    for name in VARIABLES {
        match lookup(name) {
            Ok(text) => set.push((name, text)),
            Err(VarError::NotPresent) => {}
            Err(VarError::NotUnicode(_)) => return Err(name),
        }
    }
    if let [(own, value), (other, ignored)] = &set[..]
        && value != ignored
    {
        tracing::warn!("`{own}` and `{other}` differ; `{own}` counts");
    }
    Ok(set.into_iter().next())
}

/// Returns the values of all variables. They must not be shown even where no secret is needed.
pub(crate) fn values_to_hide() -> impl Iterator<Item = Secret> {
    let values = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    values.map(Secret::new)
}

/// The three possible places of the secret.
#[derive(Debug, Default)]
pub(crate) struct SecretSources<'a> {
    /// The third argument.
    pub(crate) argument: Option<&'a str>,
    /// `--secret-file`.
    pub(crate) file: Option<&'a Path>,
    /// A variable: its name and its value.
    pub(crate) variable: Option<(&'static str, &'a str)>,
}

/// An optional secret, with warnings and diagnostics.
#[derive(Debug, Default)]
pub(crate) struct LoadedSecret {
    pub(crate) secret: Option<Secret>,
    pub(crate) warnings: Vec<String>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Why a given secret cannot be used. No variant contains its text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    /// More than one was given.
    #[error("the secret is given more than once: {0}; keep one")]
    Several(String),
    /// The file cannot be read.
    #[error("cannot read the secret file `{file}`: {reason}")]
    Unreadable {
        /// As the user named it.
        file: String,
        /// The error of the system.
        reason: String,
    },
    /// It cannot be used.
    #[error("{0}")]
    Unusable(Box<Diagnostic>),
}

/// Reads the secret from the place where it is given.
pub(crate) fn load(places: &SecretSources<'_>) -> Result<LoadedSecret, SecretError> {
    let given: Vec<String> = [
        places.argument.map(|_| "the third argument".to_owned()),
        places.file.map(|_| "`--secret-file`".to_owned()),
        places
            .variable
            .map(|(name, _)| format!("the variable `{name}`")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if given.len() > 1 {
        return Err(SecretError::Several(given.join(", ")));
    }
    let mut loaded = LoadedSecret::default();
    if let Some(text) = places.argument {
        loaded.warnings.push(format!(
            "the secret is an argument, so every user of this machine can see it in the process table; use `{VARIABLE}` or `--secret-file`"
        ));
        loaded.secret = Some(check(text, &given[0])?);
    } else if let Some(file) = places.file {
        let (text, diagnostic) = read(file)?;
        loaded.diagnostics.extend(diagnostic);
        loaded.secret = Some(check(&text, &given[0])?);
    } else if let Some((_, text)) = places.variable {
        loaded.secret = Some(check(text, &given[0])?);
    }
    let is_short = |secret: &Secret| secret.expose().chars().count() < MIN_GOOD_CHARS;
    if loaded.secret.as_ref().is_some_and(is_short) {
        loaded.warnings.push(format!(
            "the secret has under {MIN_GOOD_CHARS} characters, so that it can be guessed; make one with `openssl rand -hex 32`"
        ));
    }
    Ok(loaded)
}

fn read(file: &Path) -> Result<(String, Option<Diagnostic>), SecretError> {
    let shown = file.display().to_string();
    let unreadable = |reason: String| SecretError::Unreadable {
        file: shown.clone(),
        reason,
    };
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?;
    // A shell creates a pipe for `<(command)`.
    let text = broker_files::read_text_or_pipe(file, MAX_FILE_BYTES)
        .map_err(|error| unreadable(error.to_string()))?;
    // Editors and `echo` end a file with a newline. It is not part of the secret.
    let text = text.trim_end_matches(['\n', '\r']);
    let text = broker_files::without_byte_order_mark(text).to_owned();
    let mode = metadata.permissions().mode() & 0o777;
    let warning = (mode & 0o077 != 0).then(|| {
        Diagnostic::warning(
            DiagnosticCode::SecretPermissions,
            format!("the secret file has mode {mode:04o}, so others can read it"),
        )
        .in_file(shown.as_str())
    });
    Ok((text, warning))
}

/// The text as a secret, unless it cannot be one; `place` says in the error where it was given.
pub(crate) fn check(text: &str, place: &str) -> Result<Secret, SecretError> {
    let unusable = |code, message: String| {
        Err(SecretError::Unusable(Box::new(Diagnostic::error(
            code, message,
        ))))
    };
    if text.trim().is_empty() {
        return unusable(
            DiagnosticCode::SecretEmpty,
            format!("the secret from {place} is empty"),
        );
    }
    if text.contains("${") {
        return unusable(
            DiagnosticCode::SecretUnexpanded,
            format!("the secret from {place} holds a literal `${{`"),
        );
    }
    if text.chars().any(char::is_control) || text.trim() != text {
        return unusable(
            DiagnosticCode::EnvValue,
            format!(
                "the secret from {place} contains a control character, or begins or ends with a space; an HTTP header cannot carry it"
            ),
        );
    }
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(file.path(), permissions).unwrap();
        file
    }

    fn code(error: SecretError) -> DiagnosticCode {
        match error {
            SecretError::Unusable(diagnostic) => diagnostic.code,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn secret_is_accepted_from_only_one_place() {
        assert!(load(&SecretSources::default()).unwrap().secret.is_none());
        let loaded = load(&SecretSources {
            argument: Some("s3cret"),
            ..SecretSources::default()
        })
        .unwrap();
        assert_eq!(loaded.secret.unwrap().expose(), "s3cret");
        assert!(loaded.warnings[0].contains("process table"));
        let loaded = load(&SecretSources {
            variable: Some((VARIABLE, "s3cret")),
            ..SecretSources::default()
        })
        .unwrap();
        assert_eq!((loaded.warnings.len(), loaded.diagnostics.len()), (1, 0));
        assert!(loaded.warnings[0].contains("under 16 characters"));
        let loaded = load(&SecretSources {
            variable: Some((VARIABLE, "sixteen-or-more-s3crets")),
            ..SecretSources::default()
        })
        .unwrap();
        assert_eq!((loaded.warnings.len(), loaded.diagnostics.len()), (0, 0));
        let two = SecretSources {
            argument: Some("a"),
            variable: Some((VARIABLE, "b")),
            ..SecretSources::default()
        };
        assert!(matches!(load(&two), Err(SecretError::Several(_))));
    }

    #[test]
    fn secret_is_read_of_the_first_variable_that_is_set() {
        let lookup = |set: &'static [(&str, &str)]| {
            read_environment(move |name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map_or(
                    Err(VarError::NotPresent),
                    |(_, text)| Ok((*text).to_owned()),
                )
            })
        };
        assert_eq!(lookup(&[]), Ok(None));
        let other = lookup(&[("ZYRA_API_KEY", "b")]);
        assert_eq!(other, Ok(Some(("ZYRA_API_KEY", "b".to_owned()))));
        let both = lookup(&[("ZYRA_API_KEY", "b"), (VARIABLE, "a")]);
        assert_eq!(both, Ok(Some((VARIABLE, "a".to_owned()))));
        let unreadable = read_environment(|_| Err(VarError::NotUnicode("\u{0}".into())));
        assert_eq!(unreadable, Err(VARIABLE));
    }

    #[test]
    fn secret_file_that_others_can_read_gives_a_warning() {
        let private = file("s3cret\n", 0o600);
        let loaded = load(&SecretSources {
            file: Some(private.path()),
            ..SecretSources::default()
        })
        .unwrap();
        assert_eq!(loaded.secret.unwrap().expose(), "s3cret");
        assert!(loaded.diagnostics.is_empty());
        let of_windows = file("\u{feff}s3cret\r\n", 0o600);
        let loaded = load(&SecretSources {
            file: Some(of_windows.path()),
            ..SecretSources::default()
        })
        .unwrap();
        assert_eq!(loaded.secret.unwrap().expose(), "s3cret");
        let open = file("s3cret", 0o644);
        let loaded = load(&SecretSources {
            file: Some(open.path()),
            ..SecretSources::default()
        })
        .unwrap();
        assert_eq!(
            loaded.diagnostics[0].code,
            DiagnosticCode::SecretPermissions
        );
        assert!(!loaded.diagnostics[0].is_error());
        let missing = SecretSources {
            file: Some(Path::new("/nonexistent/secret")),
            ..SecretSources::default()
        };
        assert!(matches!(
            load(&missing),
            Err(SecretError::Unreadable { .. })
        ));
    }

    #[test]
    fn secret_empty_or_not_expanded_is_refused() {
        for (text, expected) in [
            ("", DiagnosticCode::SecretEmpty),
            (" \t", DiagnosticCode::SecretEmpty),
            ("s3cret${TOKEN}", DiagnosticCode::SecretUnexpanded),
            ("s3cret\nb", DiagnosticCode::EnvValue),
            (" s3cret", DiagnosticCode::EnvValue),
        ] {
            let error = load(&SecretSources {
                variable: Some((VARIABLE, text)),
                ..SecretSources::default()
            })
            .unwrap_err();
            assert!(!error.to_string().contains("s3cret"));
            assert_eq!(code(error), expected, "{text:?}");
        }
        let blank = file("\n", 0o600);
        let error = load(&SecretSources {
            file: Some(blank.path()),
            ..SecretSources::default()
        })
        .unwrap_err();
        assert_eq!(code(error), DiagnosticCode::SecretEmpty);
    }
}
