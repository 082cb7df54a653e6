//! The wait for another token, after the server refused the last one or there was none.

use std::time::Duration;

use tokio::time::sleep;

use super::{AuthSpec, TokenSource, token_file};
use crate::http::spec::HttpSpec;
use crate::opening::Opening;
use crate::spec::SourceSpec;

/// The first and the longest pause before a command runs, or an endpoint is asked, for another token.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Waits until the source has another token than the one that the server refused. A file is looked at once a second.
/// A command runs, and an endpoint is asked, after 1, 2, 4 s and so on; after more refusals in a row (`failures`) the
/// first pause is as much longer. Never ends if another token cannot be had.
pub(crate) async fn another_token(
    http: &HttpSpec,
    spec: &SourceSpec,
    opening: &Opening<'_>,
    failures: u32,
) {
    let refused = http.shared.tokens.refused();
    let (mut pause, max_pause) = match &http.auth {
        Some(AuthSpec::TokenFile(_)) => (token_file::LOOK_INTERVAL, token_file::LOOK_INTERVAL),
        Some(AuthSpec::TokenCommand(_)) => (first_pause(failures), MAX_PAUSE),
        // The endpoint refused the client itself, and may lock it after more attempts.
        Some(AuthSpec::ClientCredentials(_)) if http.shared.tokens.fetch_failed().await => {
            return std::future::pending().await;
        }
        Some(AuthSpec::ClientCredentials(_)) => (first_pause(failures), MAX_PAUSE),
        None => return std::future::pending().await,
    };
    loop {
        sleep(pause).await;
        pause = (pause * 2).min(max_pause);
        let Some(auth) = &http.auth else { continue };
        let source = TokenSource::new(auth, http, spec, opening).await;
        let Ok(source) = source else { continue };
        match source.token(refused.as_ref()).await {
            Ok(token) if Some(&token) != refused.as_ref() => return,
            Ok(_) => {}
            Err(failure) => {
                tracing::debug!(source = %spec.source, reason = %failure, "there is not another token yet");
            }
        }
    }
}

/// Returns the first pause after so many refusals in a row.
fn first_pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(6);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE)
}
