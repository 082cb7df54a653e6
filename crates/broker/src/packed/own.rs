//! The catalog that is packed into the running program.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::trailer::{TRAILER_BYTES, Trailer};
use super::{PackedError, read_catalog};
use crate::catalog::Catalog;

/// The size of the buffer in which the catalog is digested.
const BUFFER_BYTES: usize = 64 << 10;

/// The packed catalog of the running program. Its digest was checked.
#[derive(Debug)]
pub(crate) struct OwnCatalog {
    file: File,
    trailer: Trailer,
}

impl OwnCatalog {
    /// Opens the packed catalog of the running program. `None` if it has none, or if its file cannot be opened.
    pub(crate) fn open() -> Result<Option<Self>, PackedError> {
        match File::open(own_file()?) {
            Ok(file) => Self::check(file),
            // Some systems let a program be executed but not read. A packed broker cannot be used there.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::NotFound
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks the digest without holding the catalog in memory: the guard of a broker never needs it.
    fn check(mut file: File) -> Result<Option<Self>, PackedError> {
        let length = file.metadata()?.len();
        if length < TRAILER_BYTES as u64 {
            return Ok(None);
        }
        let mut end = [0; TRAILER_BYTES];
        file.seek(SeekFrom::Start(length - TRAILER_BYTES as u64))?;
        file.read_exact(&mut end)?;
        let Some(trailer) = Trailer::read(&end, length).map_err(PackedError::Damaged)? else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(trailer.runtime_bytes))?;
        let mut hasher = trailer.hasher();
        let mut rest = trailer.catalog_bytes;
        let mut buffer = vec![0; BUFFER_BYTES];
        while rest > 0 {
            let part = usize::try_from(rest).map_or(BUFFER_BYTES, |rest| rest.min(BUFFER_BYTES));
            file.read_exact(&mut buffer[..part])?;
            sha2::Digest::update(&mut hasher, &buffer[..part]);
            rest -= part as u64;
        }
        let found: [u8; 32] = sha2::Digest::finalize(hasher).into();
        match found == trailer.digest {
            true => Ok(Some(Self { file, trailer })),
            false => Err(PackedError::Damaged("its catalog was changed")),
        }
    }

    /// Reads the catalog. It lives as long as the process.
    pub(crate) fn read(&self) -> Result<&'static Catalog, PackedError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.trailer.runtime_bytes))?;
        // The length was compared with the length of the file.
        let mut bytes = Vec::with_capacity(self.trailer.catalog_bytes as usize);
        file.take(self.trailer.catalog_bytes)
            .read_to_end(&mut bytes)?;
        // The file may have changed since.
        let mut hasher = self.trailer.hasher();
        sha2::Digest::update(&mut hasher, &bytes);
        let found: [u8; 32] = sha2::Digest::finalize(hasher).into();
        if found != self.trailer.digest {
            return Err(PackedError::Damaged("its catalog was changed"));
        }
        Ok(Box::leak(Box::new(read_catalog(bytes.leak())?)))
    }
}

/// The file of the running program, also after another one was put in its place.
fn own_file() -> io::Result<PathBuf> {
    let by_system = Path::new("/proc/self/exe");
    match cfg!(target_os = "linux") {
        true => Ok(by_system.to_owned()),
        false => std::env::current_exe(),
    }
}
