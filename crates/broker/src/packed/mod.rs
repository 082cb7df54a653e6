//! A broker without a build: the catalog is appended to a copy of a compiled broker.
//!
//! A packed broker is the bytes of the program, the bytes of the catalog, and a trailer with their lengths and digests. The
//! program reads its own end at the start, and checks the digest before it uses anything of it.

use std::io;

use sha2::{Digest as _, Sha256};

use crate::catalog::{Catalog, FORMAT};

mod check;
mod codec;
mod own;
mod tables;
#[cfg(test)]
mod tests;
mod trailer;

pub(crate) use own::OwnCatalog;
use tables::Unreadable;
use trailer::{MAX_CATALOG_BYTES, TRAILER_BYTES, Trailer};

/// The version of this library.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The end of the mark of a program that reads a packed catalog.
const MARK_END: &str = " reads a packed catalog of form 1\n";
/// The mark of a program that reads a packed catalog: the one that calls [`main`](crate::main) has it.
static MARK: &str = concat!(
    "mcp-broker ",
    env!("CARGO_PKG_VERSION"),
    " reads a packed catalog of form 1\n"
);

/// Keeps the mark in the program.
pub(crate) fn keep_mark() {
    std::hint::black_box(MARK);
}

/// The reason why a program has no packed catalog that can be used, or why none can be packed into it.
#[derive(Debug, thiserror::Error)]
pub enum PackedError {
    /// The bytes are not those that were packed.
    #[error("the packed broker is damaged: {0}")]
    Damaged(&'static str),
    /// Another version packed it.
    #[error("the packed catalog has format {0}, and this broker reads {FORMAT}")]
    Format(u32),
    /// The program does not read a packed catalog of this version.
    #[error("it is not a broker of version {VERSION}")]
    NotABroker,
    /// The catalog is too large.
    #[error("the catalog has {0} bytes, and at most {MAX_CATALOG_BYTES} can be packed")]
    Size(usize),
    /// An error of the operating system.
    #[error("the broker cannot read its own file: {0}")]
    Io(#[from] io::Error),
}

/// The parts of a packed broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedParts<'a> {
    /// The program.
    pub runtime: &'a [u8],
    /// The bytes of the catalog.
    pub catalog: &'a [u8],
    /// Whether the program is the one that was packed.
    pub has_its_runtime: bool,
}

/// Returns the bytes of a catalog. Equal catalogs have equal bytes.
pub fn catalog_bytes(catalog: &Catalog) -> Vec<u8> {
    tables::write(catalog)
}

/// Returns a program with a catalog. A catalog that the program has already is replaced.
///
/// # Errors
///
/// The program is not a broker of this version or is damaged, or the catalog is too large.
pub fn pack(program: &[u8], catalog: &[u8]) -> Result<Vec<u8>, PackedError> {
    let runtime = parts(program)?.map_or(program, |parts| parts.runtime);
    // The whole mark is not in the program that searches for it.
    let mark = ["mcp-broker ", VERSION, MARK_END].concat();
    if memchr::memmem::find(runtime, mark.as_bytes()).is_none() {
        return Err(PackedError::NotABroker);
    }
    if catalog.len() as u64 > MAX_CATALOG_BYTES {
        return Err(PackedError::Size(catalog.len()));
    }
    let trailer = Trailer::new(runtime, catalog);
    Ok([runtime, catalog, &trailer.bytes()].concat())
}

/// Splits the bytes of a packed broker. `None` for other programs.
///
/// # Errors
///
/// The catalog or the trailer was changed.
pub fn parts(bytes: &[u8]) -> Result<Option<PackedParts<'_>>, PackedError> {
    let Some((_, end)) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
        return Ok(None);
    };
    let length = bytes.len() as u64;
    let Some(trailer) = Trailer::read(end, length).map_err(PackedError::Damaged)? else {
        return Ok(None);
    };
    // The trailer was compared with the length.
    let (runtime, rest) = bytes.split_at(trailer.runtime_bytes as usize);
    let catalog = &rest[..rest.len() - TRAILER_BYTES];
    let mut hasher = trailer.hasher();
    hasher.update(catalog);
    if hasher.finalize()[..] != trailer.digest {
        return Err(PackedError::Damaged("its catalog was changed"));
    }
    Ok(Some(PackedParts {
        runtime,
        catalog,
        has_its_runtime: Sha256::digest(runtime)[..] == trailer.runtime,
    }))
}

/// Returns the SHA-256 digest of a file in hexadecimal digits, as `sha256sum` prints it.
pub fn sha256_text(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads the bytes of a catalog.
fn read_catalog(bytes: &'static [u8]) -> Result<Catalog, PackedError> {
    let catalog = tables::read(bytes).map_err(|error| match error {
        Unreadable::Format(found) => PackedError::Format(found),
        Unreadable::Malformed(reason) => PackedError::Damaged(reason.0),
    })?;
    check::check(&catalog).map_err(|reason| PackedError::Damaged(reason.0))?;
    Ok(catalog)
}
