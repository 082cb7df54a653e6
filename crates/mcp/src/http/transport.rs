//! The HTTP client for the URL of a source: certificates, proxies, and the failures of its connections.

use std::path::Path;
use std::sync::Arc;

use broker_http_client::{
    CONNECT_TIMEOUT, Certificate, HttpTransport, IdentityFiles, Proxies, ProxyError, Target,
    TransportError, certificates, root_message,
};
use broker_model::SourceCause;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use broker_model::url::HttpUrl;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use url::Url;

use super::client_certificate::CertificateFiles;
use super::spec::{ClientCertificate, HttpSpec};
use crate::failure::SourceFailure;

/// Maximum bytes of a file with certificates.
const MAX_CA_BYTES: usize = 4 << 20;

/// Returns the failure of a request without an answer to a URL, without queries and secrets.
pub(super) fn transport_failure(
    error: TransportError,
    shown_url: &str,
    redactor: &Redactor,
) -> SourceFailure {
    let reason = shown_line(&redactor.redact(&root_message(&error)), 200);
    let (cause, message) = match (error.is_tls(), error.is_connect()) {
        (true, _) => (
            SourceCause::TlsFailed,
            format!("the TLS connection to `{shown_url}` failed: {reason}"),
        ),
        (false, true) => (
            SourceCause::Unreachable,
            format!("`{shown_url}` cannot be reached: {reason}"),
        ),
        (false, false) => (
            SourceCause::Unreachable,
            format!("the connection to `{shown_url}` broke: {reason}"),
        ),
    };
    SourceFailure::new(cause, message)
}

/// Reads the URL as the HTTP library reads it. Both parsers must find the same server.
fn parse(url: &HttpUrl) -> Result<Url, SourceFailure> {
    let parsed = Url::parse(&url.expose()).ok().filter(|parsed| {
        let origin = url.origin();
        parsed.host_str() == Some(origin.host())
            && parsed.port_or_known_default() == Some(origin.port())
            && parsed.scheme() == if origin.is_tls() { "https" } else { "http" }
    });
    parsed.ok_or_else(|| {
        let message = format!(
            "the host of `{}` is not written in its normal form",
            url.origin()
        );
        SourceFailure::new(SourceCause::Unreachable, message)
    })
}

/// Returns the client for the server of a URL, with the TLS settings of a source, and the URL as its target. Files with
/// certificates are read on another thread.
pub(super) async fn connections(
    url: &HttpUrl,
    spec: &HttpSpec,
    redactor: &Redactor,
) -> Result<(HttpTransport, Target), SourceFailure> {
    let (ca_file, redactor) = (spec.ca_file.clone(), redactor.clone());
    let identity = spec.identity.clone();
    let is_loopback = url.origin().is_loopback();
    let url = parse(url)?;
    let of_client = url.clone();
    let build = spawn_blocking(move || {
        let (ca_file, identity) = (ca_file.as_deref(), identity.as_ref());
        build(&of_client, is_loopback, ca_file, identity, &redactor)
    });
    match timeout(CONNECT_TIMEOUT, build).await {
        Ok(Ok(built)) => {
            let client = built?;
            let target = client.target(url).map_err(|error| {
                let message = format!("the URL cannot be asked: {error}");
                SourceFailure::new(SourceCause::Unreachable, message)
            })?;
            Ok((client, target))
        }
        Ok(Err(_)) | Err(_) => {
            let seconds = CONNECT_TIMEOUT.as_secs();
            let message = format!("the certificates could not be read within {seconds} s");
            Err(SourceFailure::new(SourceCause::TlsFailed, message))
        }
    }
}

fn build(
    url: &Url,
    is_loopback: bool,
    ca_file: Option<&Path>,
    identity: Option<&ClientCertificate>,
    redactor: &Redactor,
) -> Result<HttpTransport, SourceFailure> {
    let shown = |file: &Path| shown_line(&redactor.redact(&file.to_string_lossy()), 300);
    let more = match ca_file {
        // A connection without TLS needs no certificates.
        Some(file) if url.scheme() == "https" => read_certificates(file, &shown(file))?,
        _ => Vec::new(),
    };
    let proxies = match is_loopback {
        true => Proxies::None,
        false => Proxies::Environment,
    };
    let identity = identity.map(|identity| {
        let files = CertificateFiles::new(identity, |file| shown(file));
        Arc::new(files) as Arc<dyn IdentityFiles>
    });
    HttpTransport::with_identity(url, more, proxies, identity).map_err(|error| {
        if let Some(error) = error.downcast_ref::<ProxyError>() {
            // Only words of the broker and the name of a variable.
            let failure = SourceFailure::new(SourceCause::ProxyInvalid, error.to_string());
            return failure.public();
        }
        let file = match ca_file {
            Some(file) => format!(" with the certificates of `ca_file` `{}`", shown(file)),
            None => String::new(),
        };
        let reason = root_message(&*error);
        let message = format!("the HTTP client cannot be set up{file}: {reason}");
        SourceFailure::new(SourceCause::TlsFailed, message)
    })
}

/// Reads the certificates of a `ca_file`. It must have some.
fn read_certificates(file: &Path, shown: &str) -> Result<Vec<Certificate>, SourceFailure> {
    let refused = |reason: &str| {
        let message = format!("the certificates of `ca_file` `{shown}` cannot be used: {reason}");
        SourceFailure::new(SourceCause::TlsFailed, message)
    };
    let bytes = broker_files::read(file, MAX_CA_BYTES);
    let bytes = bytes.map_err(|error| refused(&error.to_string()))?;
    let read = certificates(&bytes).map_err(refused)?;
    match read.is_empty() {
        true => Err(refused("it has none in PEM form")),
        false => Ok(read),
    }
}
