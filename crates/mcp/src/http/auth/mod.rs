//! The access token of a source: where it comes from, and when it is replaced.
//!
//! All links of a source share one token. It is fetched when it is missing, when it is about to expire, and when the
//! server refuses it; requests that need a new one at the same time wait for one fetch.

mod challenge;
mod client_credentials;
mod grant;
mod replacement;
mod token_command;
mod token_file;

#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::redact::Redactor;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::spec::{AuthSpec, HttpSpec};
use super::token_cache::{CacheState, FileStamp, HeldToken, MAX_TOKEN_BYTES, Token, TokenCache};
use crate::failure::SourceFailure;
use crate::opening::Opening;
use crate::spec::SourceSpec;
pub(super) use challenge::{Challenge, is_refusal};
use client_credentials::TokenEndpoint;
use grant::Grant;
pub(crate) use replacement::another_token;
use token_command::TokenCommand;
use token_file::TokenFile;

/// Maximum time to get a token.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// A token is replaced a tenth of its lifetime before it expires, and at most this time.
const MAX_EXPIRY_MARGIN: Duration = Duration::from_secs(60);

/// The origin of the tokens of one link. Dropping it ends a fetch under way.
#[derive(Debug)]
pub(super) struct TokenSource {
    fetcher: Arc<Fetcher>,
    tasks: TaskTracker,
    dropped: CancellationToken,
    _drop: DropGuard,
}

#[derive(Debug)]
struct Fetcher {
    origin: TokenOrigin,
    cache: TokenCache,
    /// Masks the secrets of the config.
    redactor: Redactor,
    source: String,
}

#[derive(Debug)]
enum TokenOrigin {
    File(TokenFile),
    Command(Box<TokenCommand>),
    Endpoint(Box<TokenEndpoint>),
}

impl TokenSource {
    /// Does not fetch a token. Fails if the token endpoint cannot be used.
    pub(super) async fn new(
        auth: &AuthSpec,
        http: &HttpSpec,
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let origin = match auth {
            AuthSpec::TokenFile(path) => TokenOrigin::File(TokenFile::new(path, &spec.redactor)),
            AuthSpec::TokenCommand(process) => {
                let command = TokenCommand::new(process, spec.timing, opening);
                TokenOrigin::Command(Box::new(command))
            }
            AuthSpec::ClientCredentials(client) => {
                let endpoint = TokenEndpoint::new(client, http, spec).await?;
                TokenOrigin::Endpoint(Box::new(endpoint))
            }
        };
        let dropped = CancellationToken::new();
        Ok(Self {
            fetcher: Arc::new(Fetcher {
                origin,
                cache: http.shared.tokens.clone(),
                redactor: spec.redactor.clone(),
                source: spec.source.as_str().to_owned(),
            }),
            tasks: opening.tasks.clone(),
            _drop: dropped.clone().drop_guard(),
            dropped,
        })
    }

    /// Notes that the server refused a token.
    pub(super) fn note_refusal(&self, token: &Token) {
        self.fetcher.cache.note_refusal(token);
    }

    /// Returns the current token, or another one if that is the one that the server refused. Returns the refused one if
    /// another one does not exist.
    pub(super) async fn token(&self, refused: Option<&Token>) -> Result<Token, SourceFailure> {
        let fetcher = &self.fetcher;
        let cache = &fetcher.cache.0;
        let fetches = cache.fetches.load(Ordering::Acquire);
        let mut state = cache.state.clone().lock_owned().await;
        // A fetch has ended meanwhile. Its outcome is the outcome of all who waited for it, also if it failed.
        if cache.fetches.load(Ordering::Acquire) != fetches
            && let Some(outcome) = &state.outcome
        {
            return outcome.clone();
        }
        fetcher.look_at_file(&mut state).await;
        let held = state.held.as_ref();
        if let Some(held) = held.filter(|held| held.is_usable(refused, Instant::now())) {
            return Ok(held.token.clone());
        }
        // In a task, so that the fetch goes on if this request is cancelled.
        let fetch = fetcher.clone().fetch(state);
        let fetch = self.dropped.clone().run_until_cancelled_owned(fetch);
        match self.tasks.spawn(fetch).await {
            Ok(Some(outcome)) => outcome,
            _ => Err(SourceFailure::new(
                SourceCause::Stopped,
                "the connection was dropped",
            )),
        }
    }
}

impl Fetcher {
    /// Gets a token and keeps it.
    async fn fetch(
        self: Arc<Self>,
        mut state: OwnedMutexGuard<CacheState>,
    ) -> Result<Token, SourceFailure> {
        let asked = Instant::now();
        let masks = self.masks(&state);
        let fetched = match &self.origin {
            TokenOrigin::File(file) => file
                .read()
                .await
                .map(|(token, stamp)| (Grant::lasting(token), Some((stamp, asked)))),
            TokenOrigin::Command(command) => command.run(&masks).await.map(|grant| (grant, None)),
            TokenOrigin::Endpoint(endpoint) => {
                endpoint.ask(&masks).await.map(|grant| (grant, None))
            }
        };
        let outcome = match fetched {
            Ok((grant, file)) => {
                let expires = grant
                    .lifetime
                    .map(|lifetime| asked + lifetime - (lifetime / 10).min(MAX_EXPIRY_MARGIN));
                tracing::debug!(source = %self.source, "the source has a token");
                Ok(self.keep(&mut state, grant.token, expires, file))
            }
            Err(failure) => {
                // The token that was held has expired, or the server refused it.
                state.held = None;
                Err(failure)
            }
        };
        state.outcome = Some(outcome.clone());
        // Before the state is unlocked: requests that waited for it find the outcome.
        self.cache.0.fetches.fetch_add(1, Ordering::Release);
        outcome
    }

    /// Replaces the token if its file has changed. A file that cannot be read now, since it is being written, is read
    /// again later; the server decides how long the token before it is valid.
    async fn look_at_file(&self, state: &mut CacheState) {
        let TokenOrigin::File(file) = &self.origin else {
            return;
        };
        let now = Instant::now();
        let held = state.held.as_mut().and_then(|held| held.file.as_mut());
        let Some((stamp, looked)) = held else {
            return;
        };
        if now.duration_since(*looked) < token_file::LOOK_INTERVAL {
            return;
        }
        *looked = now;
        match file.read_if_changed(*stamp).await {
            Ok(Some((token, stamp))) => {
                self.keep(state, token, None, Some((stamp, now)));
            }
            Ok(None) => {}
            Err(failure) => {
                tracing::debug!(source = %self.source, reason = %failure, "the token of the file was not replaced");
            }
        }
    }

    /// Keeps a token. Its text is masked from now on, and so is the text of the token before it: the server may still
    /// answer requests with it.
    fn keep(
        &self,
        state: &mut CacheState,
        token: Token,
        expires: Option<Instant>,
        file: Option<(FileStamp, Instant)>,
    ) -> Token {
        if state.last.as_ref() != Some(&token) {
            let before = state.last.replace(token.clone());
            let tokens = std::iter::once(token.clone()).chain(before);
            let secrets = Redactor::new(tokens.map(|token| token.secret));
            let redactor = &self.cache.0.redactor;
            *redactor.write().unwrap_or_else(PoisonError::into_inner) =
                Some(self.redactor.merge(&secrets));
        }
        state.held = Some(HeldToken {
            token: token.clone(),
            expires,
            file,
        });
        token
    }

    /// Masks the secrets of the config and the last token.
    fn masks(&self, state: &CacheState) -> Redactor {
        let last = state.last.as_ref().map(|token| token.secret.clone());
        self.redactor.merge(&Redactor::new(last))
    }
}
