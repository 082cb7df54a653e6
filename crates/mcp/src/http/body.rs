//! Bodies of requests and answers. The bounds of an answer count its bytes after decompression.

use broker_http_client::{Response, TransportError};
use broker_memory::{Account, Charge, reserve};
use bytes::{Bytes, BytesMut};

/// Why a body cannot be used.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It is longer than the limit.
    TooLarge,
    /// The memory budget has no room for it.
    OutOfMemory,
    /// The connection broke, or the body cannot be decompressed.
    Broken(TransportError),
}

/// Reads a body of at most `max_bytes`, charged to `account` until its last share is dropped.
pub(super) async fn read(
    mut answer: Response,
    max_bytes: usize,
    account: &Account,
) -> Result<Bytes, BodyError> {
    if answer
        .content_length()
        .is_some_and(|length| length > max_bytes as u64)
    {
        return Err(BodyError::TooLarge);
    }
    let (mut body, mut charge) = (BytesMut::new(), Charge::default());
    while let Some(chunk) = answer.chunk().await.map_err(BodyError::Broken)? {
        // A body that decompresses to much must not keep this worker.
        tokio::task::coop::consume_budget().await;
        let length = body.len() + chunk.len();
        if length > max_bytes {
            return Err(BodyError::TooLarge);
        }
        charge
            .cover(account, length)
            .map_err(|_| BodyError::OutOfMemory)?;
        reserve(&mut body, chunk.len());
        body.extend_from_slice(&chunk);
    }
    Ok(charge.hold(body))
}

/// Returns a line without its newline.
pub(super) fn without_newline(line: Bytes) -> Bytes {
    match line.strip_suffix(b"\n") {
        Some(text) => line.slice(..text.len()),
        None => line,
    }
}
