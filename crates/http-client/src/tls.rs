//! Certificates that are trusted, and the settings of TLS.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// A certificate that a client trusts.
pub type Certificate = CertificateDer<'static>;

/// The certificates of a file in PEM form. The error says why they cannot be read.
pub fn certificates(pem: &[u8]) -> Result<Vec<Certificate>, &'static str> {
    CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map_err(|_| "invalid certificate encoding"))
        .collect()
}

/// TLS with the certificates of the system, and with those of `more`. Without `more`, for an origin without TLS, none
/// are trusted, and those of the system are not read.
pub(crate) fn config(more: Option<Vec<Certificate>>) -> Result<ClientConfig, rustls::Error> {
    // A program that embeds the broker may have chosen its provider.
    let provider = match CryptoProvider::get_default() {
        Some(provider) => provider.clone(),
        None => Arc::new(ring::default_provider()),
    };
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match more {
        Some(more) => {
            let verifier = match more.is_empty() {
                true => Verifier::new(provider)?,
                false => Verifier::new_with_extra_roots(more, provider)?,
            };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
