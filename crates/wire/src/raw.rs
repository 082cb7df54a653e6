//! A JSON value that is forwarded unread.

use bytes::Bytes;
use serde_json::value::RawValue;

/// One JSON value as it was written: a slice of its line, whose memory it keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

impl Raw {
    /// Keeps `value`, read from `line`.
    pub(crate) fn new(line: &Bytes, value: &RawValue) -> Self {
        Self(line.slice_ref(value.get().as_bytes()))
    }

    /// Returns its text, JSON in UTF-8.
    pub const fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns its bytes, without a copy.
    #[inline]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl AsRef<[u8]> for Raw {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
