//! Why `connect` failed: the command line or a file of the client, or a write of ours.

use std::path::Path;

/// A failure of `connect`. No variant contains a secret or the text of a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The command line, the environment or the file of the client has to change.
    #[error("{0}")]
    Usage(String),
    /// The system refused to write.
    #[error("{0}")]
    System(String),
}

impl ConnectError {
    /// A file that cannot be written.
    pub(super) fn write(action: &str, file: &Path, error: &std::io::Error) -> Self {
        Self::System(format!("cannot {action} `{}`: {error}", file.display()))
    }
}

/// A usage error.
pub(super) fn usage<T>(message: impl Into<String>) -> Result<T, ConnectError> {
    Err(ConnectError::Usage(message.into()))
}

/// Why the text of a client's file was not changed, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The place as an offset in bytes, if there is one.
    pub(super) at: Option<usize>,
    /// The cause and the remedy.
    pub(super) message: String,
}

impl Refusal {
    /// A refusal at a place.
    pub(super) fn at(at: usize, message: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            message: message.into(),
        }
    }

    /// The message with the file, and with the line and the column (in characters) in `text`.
    pub(super) fn describe(&self, file: &Path, text: &str) -> String {
        let file = file.display();
        let before = self.at.and_then(|at| text.get(..at));
        let Some(before) = before else {
            return format!("`{file}`: {}", self.message);
        };
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[start..].chars().count() + 1;
        format!("`{file}`, line {line}, column {column}: {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_names_line_and_column_in_characters() {
        let text = "a\nä { x";
        let at = text.find('x').unwrap();
        assert_eq!(
            Refusal::at(at, "wrong").describe(Path::new("/f"), text),
            "`/f`, line 2, column 5: wrong"
        );
        let nowhere = Refusal {
            at: None,
            message: "wrong".to_owned(),
        };
        assert_eq!(nowhere.describe(Path::new("/f"), text), "`/f`: wrong");
    }
}
