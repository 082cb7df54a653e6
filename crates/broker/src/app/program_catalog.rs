//! The catalog of a program: the one that was packed into it, else the one that was compiled in.

use std::cell::OnceCell;

use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::{Diagnostic, DiagnosticCode, text};

use super::ServedCatalog;
use super::failure::Failure;
use crate::catalog::Catalog;
use crate::cli::Cli;
use crate::logging::{Format, LogOutput};
use crate::packed::{OwnCatalog, PackedError, keep_mark};

/// The catalog of the running program.
#[derive(Debug)]
pub(super) struct ProgramCatalog {
    compiled: &'static Catalog,
    packed: Result<Option<OwnCatalog>, PackedError>,
    read: OnceCell<&'static Catalog>,
}

impl ProgramCatalog {
    /// Finds the catalog, and checks the digest of a packed one.
    pub(super) fn find(compiled: &'static Catalog) -> Self {
        keep_mark();
        Self {
            compiled,
            packed: OwnCatalog::open(),
            read: OnceCell::new(),
        }
    }

    /// Whether the bytes of the program are those that were packed.
    pub(super) const fn is_sound(&self) -> bool {
        self.packed.is_ok()
    }

    /// Whether the program was built without a catalog, and none was packed into it.
    pub(super) const fn is_missing(&self) -> bool {
        matches!(self.packed, Ok(None)) && self.compiled.catalog_digest.is_empty()
    }

    /// Returns the catalog. A packed one is read once.
    pub(super) fn read(&self) -> Result<ServedCatalog, Vec<Diagnostic>> {
        let packed = match &self.packed {
            Ok(None) if self.is_missing() => return Err(vec![missing()]),
            Ok(None) => return Ok(ServedCatalog::new(self.compiled)),
            Ok(Some(packed)) => packed,
            Err(error) => return Err(vec![diagnostic(error)]),
        };
        let catalog = match self.read.get() {
            Some(catalog) => catalog,
            None => {
                let read = packed.read().map_err(|error| vec![diagnostic(&error)])?;
                self.read.get_or_init(|| read)
            }
        };
        Ok(ServedCatalog::new(catalog))
    }

    /// Reports why the catalog cannot be used.
    pub(super) fn refuse(&self, format: Format) -> Exit {
        let output = LogOutput::new(format);
        let failure = match self.read() {
            Err(problems) => Failure::Diagnostics(problems),
            Ok(_) => return Exit::Ok,
        };
        failure.report(&output);
        output.finish();
        failure.exit()
    }

    /// Whether a command line can be run: a damaged program runs none, except that a client over stdio gets the reason as
    /// an answer.
    pub(super) fn runs(&self, cli: &Cli) -> bool {
        let prints = cli.version || cli.options.dump_tree.is_some();
        self.is_sound() || (cli.verb.is_none() && cli.is_stdio() && !prints)
    }

    /// Returns the version of a program without a catalog if the command line asks for it.
    pub(super) fn version_without_catalog(&self, cli: &Cli) -> Option<Text> {
        let asks = cli.verb.is_none() && cli.version;
        (asks && self.is_missing()).then(|| {
            text!(
                "mcp-broker {}\nno catalog: `broker-gen pack` makes a broker of this program\n",
                env!("CARGO_PKG_VERSION")
            )
        })
    }
}

fn missing() -> Diagnostic {
    let message = "this program has no catalog";
    Diagnostic::error(DiagnosticCode::CatalogMissing, message)
}

fn diagnostic(error: &PackedError) -> Diagnostic {
    match error {
        PackedError::Format(_) => {
            let help = "Pack it again with the `broker-gen` of this version.";
            Diagnostic::error(DiagnosticCode::LockVersion, error.to_string()).help(help)
        }
        PackedError::Damaged(_)
        | PackedError::NotABroker
        | PackedError::Size(_)
        | PackedError::Io(_) => {
            Diagnostic::error(DiagnosticCode::CatalogDamaged, error.to_string())
        }
    }
}
