//! The records of package managers. Pure: texts become packages, and the caller finds the files.

use sha2::{Digest as _, Sha256};

pub mod npm;
pub mod python;

#[cfg(test)]
mod tests;

/// Maximum length of a name, version or integrity from a file.
const MAX_TEXT_LENGTH: usize = 512;

/// The integrity of a file from its content.
pub fn file_integrity(content: &[u8]) -> String {
    format!(
        "sha256:{}",
        broker_model::digest::hex(&Sha256::digest(content))
    )
}

/// A text from a file, if a lock may contain it: short, and only visible ASCII.
fn plain(text: &str) -> Option<String> {
    let fits = !text.is_empty()
        && text.len() <= MAX_TEXT_LENGTH
        && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| text.to_owned())
}
