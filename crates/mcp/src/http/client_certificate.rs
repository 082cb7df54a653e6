//! The files with the certificate that a source presents to its server, and with its key.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use broker_http_client::{IdentityFiles, IdentityPem};

use super::spec::ClientCertificate;
use super::token_cache::FileStamp;

/// Maximum bytes of each file.
const MAX_PEM_BYTES: usize = 1 << 20;
/// The bits of a mode that let other users read, write or execute a file.
const OTHERS: u32 = 0o077;

/// Both files, and their state when they were read last.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    certificate: NamedFile,
    key: NamedFile,
    seen: Mutex<Option<[FileStamp; 2]>>,
}

/// A file, with its path for messages.
#[derive(Debug)]
struct NamedFile {
    path: PathBuf,
    shown: String,
}

impl CertificateFiles {
    pub(super) fn new(identity: &ClientCertificate, shown: impl Fn(&Path) -> String) -> Self {
        let named = |path: &Path| NamedFile {
            path: path.to_owned(),
            shown: shown(path),
        };
        Self {
            certificate: named(&identity.certificate),
            key: named(&identity.key),
            seen: Mutex::default(),
        }
    }

    fn read(&self) -> Result<IdentityPem, String> {
        let certificates = self.certificate.read("client_cert")?;
        self.check_mode()?;
        Ok(IdentityPem {
            certificates,
            key: self.key.read("client_key")?,
        })
    }

    /// Refuses a key that other users can read.
    fn check_mode(&self) -> Result<(), String> {
        let Ok(metadata) = fs::metadata(&self.key.path) else {
            // Reading it gives the reason.
            return Ok(());
        };
        let (mode, shown) = (metadata.mode() & 0o7777, &self.key.shown);
        match mode & OTHERS {
            0 => Ok(()),
            _ => Err(format!(
                "`client_key` `{shown}` has mode {mode:04o}, so that other users have access; run `chmod 600` on it"
            )),
        }
    }
}

impl NamedFile {
    fn read(&self, key: &str) -> Result<Vec<u8>, String> {
        let read = broker_files::read(&self.path, MAX_PEM_BYTES);
        read.map_err(|error| format!("`{key}` `{}` cannot be read: {error}", self.shown))
    }
}

impl IdentityFiles for CertificateFiles {
    fn read_if_changed(&self) -> Result<Option<IdentityPem>, String> {
        // Before they are read: a change meanwhile is found before the next connection.
        let stamps = [&self.certificate, &self.key].map(|file| FileStamp::read(&file.path));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let [Some(certificate), Some(key)] = stamps else {
            return self.read().map(Some);
        };
        let stamps = Some([certificate, key]);
        if *seen == stamps {
            return Ok(None);
        }
        let read = self.read()?;
        *seen = stamps;
        Ok(Some(read))
    }
}
