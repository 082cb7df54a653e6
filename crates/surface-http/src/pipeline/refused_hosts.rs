//! Lines for requests whose `Host` or `Origin` is refused. Every sender can cause them, so that there is one a minute.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use broker_model::CallCode;
use broker_model::text::shown_line;
use tokio::time::Instant;

use super::respond::Refusal;

/// The time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum characters of a header in a line.
const MAX_CHARS: usize = 128;

/// The requests that were refused since the last line.
#[derive(Debug, Default)]
pub(crate) struct RefusedHosts(Mutex<Since>);

#[derive(Clone, Copy, Debug, Default)]
struct Since {
    line: Option<Instant>,
    without_line: u64,
}

impl RefusedHosts {
    /// Writes a line for a refused request, or counts it for the next line.
    pub(crate) fn note(&self, refusal: &Refusal, headers: &HeaderMap) {
        let Some(without_line) = self.take_line() else {
            return;
        };
        let text = |name| {
            let value = headers.get(name)?.to_str().ok()?;
            Some(value.chars().take(MAX_CHARS).collect::<String>())
        };
        let (host, origin) = (text(header::HOST), text(header::ORIGIN));
        let remedy = remedy(refusal.code(), host.as_deref(), origin.as_deref());
        tracing::warn!(
            code = refusal.code().as_str(),
            host,
            origin,
            without_line,
            "a request was refused: {remedy}"
        );
    }

    /// Returns the number of requests without a line if this one has a line.
    fn take_line(&self) -> Option<u64> {
        let now = Instant::now();
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since
            .line
            .is_some_and(|line| now.duration_since(line) < LINE_INTERVAL)
        {
            since.without_line += 1;
            return None;
        }
        since.line = Some(now);
        Some(std::mem::take(&mut since.without_line))
    }
}

/// Returns what allows the request.
fn remedy(code: CallCode, host: Option<&str>, origin: Option<&str>) -> String {
    let given = |text: Option<&str>| match text {
        Some(text) => format!("`{}`", shown_line(text, MAX_CHARS)),
        None => "it".to_owned(),
    };
    if code == CallCode::HostForbidden {
        let host = given(host);
        return format!(
            "`Host` is {host}; if callers use this name, add {host} to `allowed_hosts` in the config, or start the broker with `--allow-host`"
        );
    }
    if code == CallCode::OriginForbidden {
        let origin = given(origin);
        return format!(
            "a page of {origin} called; if it may, add {origin} to `allowed_origins` in the config"
        );
    }
    "its `Host` or `Origin` is not valid".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_about_a_refused_host_names_it_and_the_key_that_allows_it() {
        let host = remedy(CallCode::HostForbidden, Some("tools.example:8443"), None);
        for part in ["`tools.example:8443`", "`allowed_hosts`", "`--allow-host`"] {
            assert!(host.contains(part), "{host}");
        }
        assert!(!host.contains("allowed_origins"), "{host}");
        let page = Some("https://app.example");
        let origin = remedy(CallCode::OriginForbidden, Some("localhost"), page);
        for part in ["`https://app.example`", "`allowed_origins`"] {
            assert!(origin.contains(part), "{origin}");
        }
        let other = remedy(CallCode::HeaderInvalid, None, None);
        assert!(!other.contains("allowed"), "{other}");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_hosts_have_one_line_a_minute_with_the_count_of_the_others() {
        let hosts = RefusedHosts::default();
        assert_eq!(hosts.take_line(), Some(0));
        for _ in 0..1000 {
            assert_eq!(hosts.take_line(), None);
        }
        tokio::time::advance(LINE_INTERVAL).await;
        assert_eq!(hosts.take_line(), Some(1000));
        assert_eq!(hosts.take_line(), None);
    }
}
