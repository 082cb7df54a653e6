//! The file to import, as values with their places, and the servers of it as a config has them.

use broker_client_files::ClientFile;
use broker_config::client_file::{self, Client};
use broker_model::Diagnostic;

/// A file of a client that was read.
#[derive(Debug)]
pub(super) struct Document<'t> {
    /// Its name as the user gave it.
    pub(super) file: &'t str,
    /// Its text, without a byte-order mark.
    pub(super) text: &'t str,
    /// Its content.
    pub(super) content: ClientFile,
}

impl<'t> Document<'t> {
    /// Reads the bytes of a file. Errors contain no value of the file.
    pub(super) fn read(
        file: &'t str,
        bytes: &'t [u8],
        from: Option<Client>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Result<Self, Vec<Diagnostic>> {
        let text = client_file::text_of(file, bytes)?;
        let content = broker_client_files::read(file, text, from, exists)?;
        Ok(Self {
            file,
            text,
            content,
        })
    }
}
