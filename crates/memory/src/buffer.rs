//! Buffers for long input whose memory returns to the system when they are freed.

use bytes::BytesMut;

/// Blocks of at least this size are mapped from the system and unmapped; smaller ones come from a heap of the
/// C library.
const OWN_BLOCK_BYTES: usize = 256 << 10;
/// A smaller buffer grows in place.
const MIN_LONG_BYTES: usize = 64 << 10;

/// Makes room for `additional` bytes. A buffer that becomes long is moved once to a mapped block: in its heap it
/// would grow in place, and the heap would keep the memory after the buffer is freed.
pub fn reserve(buffer: &mut BytesMut, additional: usize) {
    let needed = buffer.len() + additional;
    if needed <= buffer.capacity() {
        return;
    }
    if buffer.len() < MIN_LONG_BYTES || buffer.capacity() >= OWN_BLOCK_BYTES {
        return buffer.reserve(additional);
    }
    let mut own = BytesMut::with_capacity(needed.max(OWN_BLOCK_BYTES));
    own.extend_from_slice(buffer);
    *buffer = own;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_that_is_long_is_moved_once() {
        let mut buffer = BytesMut::new();
        reserve(&mut buffer, 100);
        assert!((100..1000).contains(&buffer.capacity()));
        buffer.extend_from_slice(b"head");
        let (mut moves, mut capacity) = (0, buffer.capacity());
        for _ in 0..64 {
            reserve(&mut buffer, 16 << 10);
            buffer.resize(buffer.len() + (16 << 10), 7);
            if capacity < OWN_BLOCK_BYTES && buffer.capacity() != capacity {
                moves += 1;
                capacity = buffer.capacity();
            }
        }
        assert!(moves <= 6, "moved {moves} times");
        assert!(capacity >= OWN_BLOCK_BYTES);
        assert!(buffer.starts_with(b"head") && buffer.len() == 4 + (1 << 20));
    }
}
