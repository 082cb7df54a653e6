//! The end of a packed broker: the lengths of its parts, and their digests.

use sha2::{Digest as _, Sha256};

/// The first and the last bytes of a trailer. One of them is enough to recognise a packed broker, so that no single changed
/// byte makes it a broker without a packed catalog.
const MAGIC: [u8; 16] = *b"mcp-broker pack\n";
/// The length of a trailer.
pub(super) const TRAILER_BYTES: usize = 112;
/// The maximum size of a packed catalog, in bytes.
pub(super) const MAX_CATALOG_BYTES: u64 = 512 << 20;

/// A SHA-256 digest.
pub(super) type Sha = [u8; 32];

/// The description of a packed broker, at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    /// The length of the program before the catalog.
    pub(super) runtime_bytes: u64,
    /// The length of the catalog.
    pub(super) catalog_bytes: u64,
    /// The digest of the program.
    pub(super) runtime: Sha,
    /// The digest of the other fields and of the catalog.
    pub(super) digest: Sha,
}

/// The reason why a trailer is not valid.
pub(super) type Invalid = &'static str;

impl Trailer {
    /// Describes a program and its catalog.
    pub(super) fn new(runtime: &[u8], catalog: &[u8]) -> Self {
        let mut trailer = Self {
            runtime_bytes: runtime.len() as u64,
            catalog_bytes: catalog.len() as u64,
            runtime: Sha256::digest(runtime).into(),
            digest: [0; 32],
        };
        let mut hasher = trailer.hasher();
        hasher.update(catalog);
        trailer.digest = hasher.finalize().into();
        trailer
    }

    /// Begins the digest; the catalog follows.
    pub(super) fn hasher(&self) -> Sha256 {
        let mut hasher = Sha256::new();
        hasher.update(MAGIC);
        hasher.update(self.runtime_bytes.to_le_bytes());
        hasher.update(self.catalog_bytes.to_le_bytes());
        hasher.update(self.runtime);
        hasher
    }

    /// Returns the bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let lengths = [self.runtime_bytes, self.catalog_bytes].map(u64::to_le_bytes);
        [
            &MAGIC[..],
            &lengths.concat(),
            &self.runtime,
            &self.digest,
            &MAGIC,
        ]
        .concat()
    }

    /// Reads the last bytes of a file of this length. `None` if the file is not a packed broker.
    pub(super) fn read(
        bytes: &[u8; TRAILER_BYTES],
        file_bytes: u64,
    ) -> Result<Option<Self>, Invalid> {
        let (first, rest) = bytes.split_at(MAGIC.len());
        let (fields, last) = rest.split_at(rest.len() - MAGIC.len());
        match (first == MAGIC, last == MAGIC) {
            (false, false) => return Ok(None),
            (true, true) => {}
            (true, false) | (false, true) => return Err("its last bytes were changed"),
        }
        let (lengths, digests) = fields.split_at(16);
        let number = |at: usize| {
            let bytes = lengths[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let sha = |at: usize| digests[at..at + 32].try_into().unwrap_or_default();
        let trailer = Self {
            runtime_bytes: number(0),
            catalog_bytes: number(8),
            runtime: sha(0),
            digest: sha(32),
        };
        let parts = trailer.runtime_bytes.checked_add(trailer.catalog_bytes);
        let all = parts.and_then(|parts| parts.checked_add(TRAILER_BYTES as u64));
        if all != Some(file_bytes) {
            return Err("its parts have other lengths than it says");
        }
        if trailer.catalog_bytes > MAX_CATALOG_BYTES {
            return Err("its catalog is too large");
        }
        Ok(Some(trailer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], file_bytes: u64) -> Result<Option<Trailer>, Invalid> {
        Trailer::read(bytes.try_into().expect("a trailer"), file_bytes)
    }

    #[test]
    fn trailer_is_read_as_it_was_written() {
        let trailer = Trailer::new(b"program", b"catalog");
        let bytes = trailer.bytes();
        assert_eq!(bytes.len(), TRAILER_BYTES);
        assert_eq!(read(&bytes, 14 + TRAILER_BYTES as u64), Ok(Some(trailer)));
        assert_eq!(read(&[0; TRAILER_BYTES], 1 << 20), Ok(None));
    }

    #[test]
    fn trailer_with_a_false_length_or_a_changed_end_is_refused() {
        let trailer = Trailer::new(b"program", b"catalog");
        let end = 14 + TRAILER_BYTES as u64;
        for file_bytes in [0, 14, end - 1, end + 1, u64::MAX] {
            assert!(read(&trailer.bytes(), file_bytes).is_err(), "{file_bytes}");
        }
        for (runtime_bytes, catalog_bytes) in [(u64::MAX, 7), (7, u64::MAX), (u64::MAX, u64::MAX)] {
            let lying = Trailer {
                runtime_bytes,
                catalog_bytes,
                ..trailer
            };
            assert!(read(&lying.bytes(), end).is_err());
        }
        let large = Trailer {
            runtime_bytes: 0,
            catalog_bytes: MAX_CATALOG_BYTES + 1,
            ..trailer
        };
        let file = large.catalog_bytes + TRAILER_BYTES as u64;
        assert_eq!(read(&large.bytes(), file), Err("its catalog is too large"));
        for at in [
            0,
            MAGIC.len() - 1,
            TRAILER_BYTES - MAGIC.len(),
            TRAILER_BYTES - 1,
        ] {
            let mut bytes = trailer.bytes();
            bytes[at] ^= 1;
            assert_eq!(
                read(&bytes, end),
                Err("its last bytes were changed"),
                "{at}"
            );
        }
    }
}
