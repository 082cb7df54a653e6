//! The token that all links of a source share.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError, RwLock};

use broker_model::redact::{Redactor, Secret};
use http::header::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::failure::SourceFailure;

/// Maximum bytes of a token, and of the file or the output that has it.
pub(super) const MAX_TOKEN_BYTES: usize = 8 << 10;

/// An access token. `Debug` does not show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) secret: Secret,
    header: HeaderValue,
}

impl Token {
    /// Reads the token in `text`; an error says why it is not usable.
    pub(super) fn new(text: &str) -> Result<Self, &'static str> {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Err("has no token");
        }
        if text.len() > MAX_TOKEN_BYTES {
            return Err("has a token of more than 8192 bytes");
        }
        let invalid = "has a character other than visible ASCII in the token; the scheme `Bearer` does not belong there";
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid);
        }
        let mut header = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| invalid)?;
        header.set_sensitive(true);
        Ok(Self {
            secret: Secret::new(text),
            header,
        })
    }

    /// Returns the value of `Authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

/// The token that all links of a source share. `Debug` does not show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenCache(pub(super) Arc<Cached>);

#[derive(Debug, Default)]
pub(super) struct Cached {
    /// Locked while a token is fetched.
    pub(super) state: Arc<Mutex<CacheState>>,
    /// The number of fetches that have ended.
    pub(super) fetches: AtomicU64,
    /// Masks the secrets of the config, the current token and the one before it; absent before the first token.
    pub(super) redactor: RwLock<Option<Redactor>>,
    /// The token that the server refused last.
    refused: SyncMutex<Option<Token>>,
}

#[derive(Debug, Default)]
pub(super) struct CacheState {
    pub(super) held: Option<HeldToken>,
    /// The outcome of the last fetch.
    pub(super) outcome: Option<Result<Token, SourceFailure>>,
    /// The last token. It stays here after the cache has dropped the token.
    pub(super) last: Option<Token>,
}

#[derive(Debug)]
pub(super) struct HeldToken {
    pub(super) token: Token,
    /// It is not sent from this time on.
    pub(super) expires: Option<Instant>,
    /// For a token of a file: the file, and the time of the last look at it.
    pub(super) file: Option<(FileStamp, Instant)>,
}

impl TokenCache {
    /// Masks the secrets of the config, the current token and the one before it; `None` before the first token.
    pub(crate) fn redactor(&self) -> Option<Redactor> {
        let redactor = self.0.redactor.read();
        redactor.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the last fetch gave no token.
    pub(super) async fn fetch_failed(&self) -> bool {
        let state = self.0.state.lock().await;
        matches!(state.outcome, Some(Err(_)))
    }

    /// Notes that the server refused a token.
    pub(super) fn note_refusal(&self, token: &Token) {
        let refused = self.0.refused.lock();
        *refused.unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
    }

    /// Returns the token that the server refused last.
    pub(super) fn refused(&self) -> Option<Token> {
        let refused = self.0.refused.lock();
        refused.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl HeldToken {
    pub(super) fn is_usable(&self, refused: Option<&Token>, now: Instant) -> bool {
        refused != Some(&self.token) && self.expires.is_none_or(|expires| now < expires)
    }
}

/// The properties of a file that change when it is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    place: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn read(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            place: (metadata.dev(), metadata.ino()),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}
