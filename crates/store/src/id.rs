//! The id of a job.

use std::fmt;
use std::hash::{Hash, Hasher};

use data_encoding::{Encoding, Specification};
use subtle::ConstantTimeEq as _;

/// The first characters of each id.
const PREFIX: &str = "j_";
/// The random bytes of an id: 128 bits.
const RANDOM_BYTES: usize = 16;
/// The maximum number of characters behind the prefix. Replicas may later put more into an id.
const MAX_CHARS: usize = 60;

/// The system has no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random bytes: {0}")]
pub struct RandomError(getrandom::Error);

/// The id of a job: `j_` and lower-case base32 of random bytes. Who knows it may have no right to the job.
#[derive(Clone, Debug)]
pub struct JobId(Box<str>);

impl JobId {
    /// Makes a new id of random bytes.
    pub fn random() -> Result<Self, RandomError> {
        let mut bytes = [0_u8; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(RandomError)?;
        let mut text = PREFIX.to_owned();
        base32().encode_append(&bytes, &mut text);
        Ok(Self(text.into()))
    }

    /// Reads an id. Returns `None` if the text cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let is_valid = !rest.is_empty()
            && rest.len() <= MAX_CHARS
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        is_valid.then(|| Self(text.into()))
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Compares in a time that does not depend on the place of the first difference.
impl PartialEq for JobId {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for JobId {}

impl Hash for JobId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns base32 in lower case without padding.
fn base32() -> Encoding {
    let mut specification = Specification::new();
    specification
        .symbols
        .push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification
        .encoding()
        .unwrap_or(data_encoding::BASE32HEX_NOPAD)
}
