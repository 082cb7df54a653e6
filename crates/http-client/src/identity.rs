//! The certificate that the client presents to a server that asks for one, and its key. Both are read again before a new
//! connection if their files have changed.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::task::spawn_blocking;

use crate::expiry::CertificateExpiry;

/// The files with the certificate of the client and its key.
pub trait IdentityFiles: Send + Sync + 'static {
    /// Reads both files, unless they are as they were when it read them last. May wait for a file system.
    ///
    /// # Errors
    ///
    /// Why they cannot be read, without their content.
    fn read_if_changed(&self) -> Result<Option<IdentityPem>, String>;
}

/// A chain of certificates, beginning with the certificate of the client, and its key, in PEM form.
pub struct IdentityPem {
    /// The chain.
    pub certificates: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
}

impl fmt::Debug for IdentityPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityPem").finish_non_exhaustive()
    }
}

/// The certificate and the key in use.
#[derive(Clone)]
pub(crate) struct ClientIdentity(Arc<Shared>);

struct Shared {
    files: Arc<dyn IdentityFiles>,
    current: RwLock<Option<Arc<CertifiedKey>>>,
    provider: Arc<CryptoProvider>,
    expiry: CertificateExpiry,
}

impl ClientIdentity {
    /// Reads the files. `expiry` gets the end of the certificates, now and when they are replaced.
    pub(crate) fn read(
        files: Arc<dyn IdentityFiles>,
        provider: Arc<CryptoProvider>,
        expiry: CertificateExpiry,
    ) -> Result<Self, String> {
        let identity = Self(Arc::new(Shared {
            files,
            current: RwLock::default(),
            provider,
            expiry,
        }));
        identity.renew()?;
        Ok(identity)
    }

    /// Reads the files again if they have changed. Files that cannot be used now, since they are being replaced, leave
    /// the certificate before them in use.
    pub(crate) async fn refresh(&self) {
        let identity = self.clone();
        let renewed = spawn_blocking(move || identity.renew()).await;
        if let Ok(Err(reason)) = renewed {
            tracing::warn!(reason, "the client certificate was not replaced");
        }
    }

    fn renew(&self) -> Result<(), String> {
        if let Some(pem) = self.0.files.read_if_changed()? {
            let read = parse(&pem, &self.0.provider)?;
            self.0.expiry.note_client(&read.cert);
            let current = self.0.current.write();
            *current.unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(read));
        }
        Ok(())
    }
}

fn parse(pem: &IdentityPem, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&pem.certificates).collect();
    let certificates =
        certificates.map_err(|_| "`client_cert` has a certificate that is not in PEM form")?;
    if certificates.is_empty() {
        return Err("`client_cert` has no certificate in PEM form".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(&pem.key)
        .map_err(|_| "`client_key` has no unencrypted private key in PEM form")?;
    CertifiedKey::from_der(certificates, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            "the key of `client_key` does not belong to the first certificate of `client_cert`"
                .to_owned()
        }
        error => format!("`client_cert` and `client_key` cannot be used: {error}"),
    })
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let current = self.0.current.read();
        let current = current.unwrap_or_else(PoisonError::into_inner).clone();
        current.filter(|current| current.key.choose_scheme(schemes).is_some())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").finish_non_exhaustive()
    }
}

/// The resolver of a client without a certificate.
#[derive(Debug)]
pub(crate) struct NoIdentity;

impl ResolvesClientCert for NoIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
