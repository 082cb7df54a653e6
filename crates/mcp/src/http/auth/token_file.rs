//! A token in a file that another program replaces.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use tokio::time::timeout;

use super::{FETCH_TIMEOUT, FileStamp, MAX_TOKEN_BYTES, Token};
use crate::failure::SourceFailure;

/// The minimum time between two looks at the file.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A file with a token.
#[derive(Clone, Debug)]
pub(super) struct TokenFile {
    path: Arc<PathBuf>,
    /// Its path, for messages.
    shown: String,
}

impl TokenFile {
    pub(super) fn new(path: &Path, redactor: &Redactor) -> Self {
        Self {
            path: Arc::new(path.to_owned()),
            shown: shown_line(&redactor.redact(&path.to_string_lossy()), 300),
        }
    }

    /// Reads the token.
    pub(super) async fn read(&self) -> Result<(Token, FileStamp), SourceFailure> {
        let file = self.clone();
        self.in_time(move || file.read_now()).await
    }

    /// Reads the token if the file is not the one with this stamp.
    pub(super) async fn read_if_changed(
        &self,
        before: FileStamp,
    ) -> Result<Option<(Token, FileStamp)>, SourceFailure> {
        let file = self.clone();
        let read = move || match FileStamp::read(&file.path) {
            Some(stamp) if stamp == before => Ok(None),
            _ => file.read_now().map(Some),
        };
        self.in_time(read).await
    }

    fn read_now(&self) -> Result<(Token, FileStamp), SourceFailure> {
        // Before it is read: a change meanwhile is found by the next look.
        let stamp = FileStamp::read(&self.path);
        let text = broker_files::read_text(&self.path, MAX_TOKEN_BYTES);
        let text = text.map_err(|error| self.refused(format_args!("cannot be read: {error}")))?;
        let text = broker_files::without_byte_order_mark(&text);
        let token = Token::new(text).map_err(|reason| self.refused(format_args!("{reason}")))?;
        let stamp = stamp.ok_or_else(|| self.refused(format_args!("was replaced meanwhile")))?;
        Ok((token, stamp))
    }

    /// Runs `read` on a thread that may wait for a file system.
    async fn in_time<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, SourceFailure> + Send + 'static,
    ) -> Result<T, SourceFailure> {
        match timeout(FETCH_TIMEOUT, tokio::task::spawn_blocking(read)).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(self.refused(format_args!("cannot be read: the broker is ending"))),
            Err(_) => {
                let (shown, seconds) = (&self.shown, FETCH_TIMEOUT.as_secs());
                let message = format!("`token_file` `{shown}` was not read within {seconds} s");
                Err(SourceFailure::new(SourceCause::Unreachable, message))
            }
        }
    }

    fn refused(&self, reason: std::fmt::Arguments<'_>) -> SourceFailure {
        let message = format!("`token_file` `{}` {reason}", self.shown);
        SourceFailure::new(SourceCause::NeedsAuth, message)
    }
}
