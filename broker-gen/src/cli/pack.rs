//! `pack`: appends the catalog of a config and its lock to a copy of a compiled broker. Starts no program.

use std::path::{Path, PathBuf};

use broker_build::build_script;
use broker_model::exit::Exit;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::whole_file::write_program;
use clap::Args;
use mcp_broker::packed::{self, PackedError};

use super::output::{self, say};
use super::serve::memory;
use super::working::Working;

/// The name of the runtime in the folder of this program.
const RUNTIME: &str = "mcp-broker";
/// The maximum size of a runtime, and of a packed broker that is read.
pub(super) const MAX_RUNTIME_BYTES: usize = 1 << 30;
/// The maximum length of a shown path.
const MAX_SHOWN: usize = 200;

#[derive(Debug, Args)]
pub(super) struct PackArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The broker to write. A file that exists is replaced.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// The broker to copy; a catalog that was packed into it is replaced. Default: `mcp-broker` in the folder of this
    /// program.
    #[arg(long, value_name = "FILE")]
    runtime: Option<PathBuf>,
}

pub(super) fn run(args: &PackArgs) -> Exit {
    let working = Working::begin("packing the broker");
    let packed = pack(args);
    drop(working);
    match packed {
        Ok(digest) => {
            say(text!("wrote {}: catalog {}", args.out.display(), digest));
            Exit::Ok
        }
        Err(problems) => output::diagnostics(&problems),
    }
}

/// Packs a broker; returns the digest of its catalog.
fn pack(args: &PackArgs) -> Result<&'static str, Vec<Diagnostic>> {
    let file = &args.file.config;
    let read = build_script::read_tables(file, &file.to_string_lossy(), false)?;
    if !read.problems.is_empty() {
        return Err(read.problems);
    }
    let catalog = memory::catalog(read.tables).map_err(|full| vec![*full])?;
    let runtime = match &args.runtime {
        Some(runtime) => runtime.clone(),
        None => runtime_beside_this_program().map_err(|problem| vec![*problem])?,
    };
    // It contains the library of a broker, and does not serve its own catalog.
    if std::env::current_exe().is_ok_and(|own| broker_files::is_same_file(&runtime, &own)) {
        return Err(vec![*unusable(&runtime, &PackedError::NotABroker)]);
    }
    let program = read_runtime(&runtime).map_err(|problem| vec![*problem])?;
    let packed = packed::pack(&program, &packed::catalog_bytes(catalog))
        .map_err(|error| vec![*unusable(&runtime, &error)])?;
    write_program(&args.out, &packed).map_err(|error| {
        let message = format!("`{}` cannot be written: {error}", args.out.display());
        vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
    })?;
    Ok(catalog.catalog_digest)
}

fn runtime_beside_this_program() -> Result<PathBuf, Box<Diagnostic>> {
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    own.map(|own| own.with_file_name(RUNTIME))
        .map_err(|error| unusable(Path::new(RUNTIME), &error))
}

/// Reads a runtime.
pub(super) fn read_runtime(file: &Path) -> Result<Vec<u8>, Box<Diagnostic>> {
    broker_files::read(file, MAX_RUNTIME_BYTES).map_err(|error| unusable(file, &error))
}

/// Returns the program without the catalog that was packed into it.
pub(super) fn without_catalog<'p>(
    program: &'p [u8],
    file: &Path,
) -> Result<&'p [u8], Box<Diagnostic>> {
    let parts = packed::parts(program).map_err(|error| unusable(file, &error))?;
    Ok(parts.map_or(program, |parts| parts.runtime))
}

fn unusable(file: &Path, reason: &dyn std::fmt::Display) -> Box<Diagnostic> {
    let shown = shown_line(&file.to_string_lossy(), MAX_SHOWN);
    let message = format!("`{shown}` cannot be used as a runtime: {reason}");
    Box::new(Diagnostic::error(DiagnosticCode::RuntimeUnusable, message))
}
