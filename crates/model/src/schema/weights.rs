//! What a validator does between two looks at a value, told from the schema.

/// Bytes of text that are compared or counted in the time of a step.
const BYTES_PER_STEP: usize = 256;

/// The costs of looks under one schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    part: u64,
}

impl Weights {
    pub(super) const fn plain() -> Self {
        Self { part: 1 }
    }

    /// Steps for going over so many bytes.
    pub(super) const fn bytes(length: usize) -> u64 {
        (length / BYTES_PER_STEP) as u64
    }

    /// Steps for reading a part of a value.
    #[inline]
    pub(super) const fn part(&self) -> u64 {
        self.part
    }

    /// Steps for reading a member whose name has so many bytes.
    #[inline]
    pub(super) const fn member(&self, length: usize) -> u64 {
        self.part + Self::bytes(length)
    }

    /// Steps for reading a string of so many bytes, which may be matched by a pattern.
    #[inline]
    pub(super) const fn string(&self, length: usize) -> u64 {
        Self::bytes(length)
    }
}
