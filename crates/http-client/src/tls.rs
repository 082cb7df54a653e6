//! Certificates that are trusted, and the settings of TLS.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_platform_verifier::Verifier;

use crate::certificate::{Certificate, FileCertificates, ServerCertificate};
use crate::expiry::CertificateExpiry;
use crate::identity::ClientIdentity;

/// Returns the provider of cryptography. A program that embeds the broker may have chosen it.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    match CryptoProvider::get_default() {
        Some(provider) => provider.clone(),
        None => Arc::new(ring::default_provider()),
    }
}

/// Configures TLS with the certificates of the system, and with the certificates of `more`. Without `more`, for an
/// origin without TLS, no certificate is trusted, and the system's certificates are not read.
pub(crate) fn config(
    more: Option<Vec<Certificate>>,
    expiry: &CertificateExpiry,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, rustls::Error> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match more {
        Some(more) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OriginVerifier::new(
                more,
                provider,
                expiry.clone(),
            )?)),
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    let mut config = match identity {
        Some(identity) => builder.with_client_cert_resolver(Arc::new(identity.clone())),
        None => builder.with_no_client_auth(),
    };
    if identity.is_some() {
        // The server of a resumed session remembers the certificate that the client had at its start.
        config.resumption = Resumption::disabled();
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies the certificate of a server: by the authorities of the system and of a file, or because it is in the file
/// byte for byte. `webpki` refuses the certificate of a server that is marked as an authority, as the usual commands
/// mark those that they sign with their own key.
#[derive(Debug)]
struct OriginVerifier {
    /// Absent if neither system nor file has an authority.
    authorities: Option<Verifier>,
    servers: Vec<ServerCertificate>,
    algorithms: WebPkiSupportedAlgorithms,
    expiry: CertificateExpiry,
}

impl OriginVerifier {
    fn new(
        more: Vec<Certificate>,
        provider: Arc<CryptoProvider>,
        expiry: CertificateExpiry,
    ) -> Result<Self, rustls::Error> {
        let algorithms = provider.signature_verification_algorithms;
        let FileCertificates {
            authorities,
            servers,
        } = FileCertificates::sort(more);
        let authorities = match authorities.is_empty() {
            true => Verifier::new(provider),
            false => Verifier::new_with_extra_roots(authorities, provider),
        };
        let authorities = match authorities {
            Ok(authorities) => Some(authorities),
            // A machine may have no authorities.
            Err(rustls::Error::General(_)) if !servers.is_empty() => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            authorities,
            servers,
            algorithms,
            expiry,
        })
    }
}

impl ServerCertVerifier for OriginVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut servers = self.servers.iter();
        if let Some(own) = servers.find(|own| own.der == *end_entity) {
            own.check_time(now)?;
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            self.expiry.note_peer(end_entity);
            return Ok(ServerCertVerified::assertion());
        }
        let verified = match &self.authorities {
            Some(authorities) => authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        verified.inspect(|_| self.expiry.note_peer(end_entity))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
