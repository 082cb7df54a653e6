//! The file to import, as values with their places: JSON with comments, or TOML.

use std::path::Path;

use broker_model::Diagnostic;
use broker_model::config::client_file::{self, Spanned};

use super::toml;

/// A file of a client that was read.
#[derive(Debug)]
pub(super) struct Document<'t> {
    /// Its name as the user gave it.
    pub(super) file: &'t str,
    /// Its text, without a byte-order mark.
    pub(super) text: &'t str,
    /// Its content.
    pub(super) root: Spanned,
}

impl<'t> Document<'t> {
    /// Reads the bytes of a file. Errors contain no value of the file.
    pub(super) fn read(file: &'t str, bytes: &'t [u8]) -> Result<Self, Vec<Diagnostic>> {
        let text = client_file::text_of(file, bytes)?;
        let root = if is_toml(file, text) {
            toml::parse(file, text)?
        } else {
            client_file::parse_json(file, text)?
        };
        Ok(Self { file, text, root })
    }
}

/// Whether a file is TOML: by its name, else by its first character.
fn is_toml(file: &str, text: &str) -> bool {
    let extension = Path::new(file).extension().unwrap_or_default();
    match extension.to_string_lossy().to_ascii_lowercase().as_str() {
        "toml" => true,
        "json" | "jsonc" => false,
        // JSON begins with a brace or a comment, and neither of them begins a line of TOML.
        _ => {
            let first = text.trim_start().chars().next();
            first.is_some_and(|first| !matches!(first, '{' | '/'))
        }
    }
}
