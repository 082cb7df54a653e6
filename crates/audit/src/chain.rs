//! The chain of hashes: each line has the SHA-256 of the bytes of the line before it.

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};

/// The member that ends a signed checkpoint, as bytes.
const SIGNATURE_MEMBER: &[u8] = b",\"sig\":\"";

/// Returns the hash of a line's bytes without the line feed, in hexadecimal.
pub(crate) fn hash_of(line: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, line).as_ref())
}

/// Returns the `prev` of the first line of a stream.
pub(crate) fn no_hash() -> String {
    "0".repeat(64)
}

/// The place in the chain after a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The id of the stream.
    pub(crate) stream: String,
    /// The number of the last line; 0 before the first.
    pub(crate) seq: u64,
    /// The hash of the last line.
    pub(crate) hash: String,
}

impl Chain {
    /// Begins a stream.
    pub(crate) fn new(stream: String) -> Self {
        Self {
            stream,
            seq: 0,
            hash: no_hash(),
        }
    }
}

/// Returns the text that the signature of a checkpoint is over. `unsigned` are the bytes of the checkpoint's line before
/// the member `sig`: they have the hash of the line before, so that the signature covers every line before.
pub(crate) fn signed_text(stream: &str, seq: u64, unsigned: &[u8]) -> String {
    let hash = hash_of(unsigned);
    format!("mcp-broker audit checkpoint v1\n{stream}\n{seq}\n{hash}\n")
}

/// Returns the bytes before the member `sig`, if it is the last one.
pub(crate) fn unsigned_part(line: &[u8]) -> Option<&[u8]> {
    let mut windows = line.windows(SIGNATURE_MEMBER.len());
    let at = windows.rposition(|part| part == SIGNATURE_MEMBER)?;
    let after = &line[at + SIGNATURE_MEMBER.len()..];
    let end = after.iter().position(|byte| *byte == b'"')?;
    let is_last = after[end + 1..].iter().all(|byte| *byte == b'}');
    is_last.then_some(&line[..at])
}
