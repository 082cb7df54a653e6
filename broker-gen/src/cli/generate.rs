//! `generate`: writes the files that a build would compile in, or compares them with existing files.

use std::fs;
use std::path::{Path, PathBuf};

use broker_build::{build_script, emit, left_out_audits};
use broker_files::ReadError;
use broker_model::exit::Exit;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::whole_file::write_whole;
use clap::Args;

use super::output::{self, say};
use super::working::Working;
use super::{type_notes, unattended};

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The output folder; created if it is missing.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write nothing; exit with 5 if a file is missing or differs.
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &GenerateArgs) -> Exit {
    let file = &args.file.config;
    let shown = file.to_string_lossy();
    let (config, lock) = match build_script::read(file, &shown) {
        Ok(documents) => documents,
        Err(problems) => return output::diagnostics(&problems),
    };
    let open = left_out_audits::check(&lock, file, &shown);
    if !open.is_empty() {
        return output::diagnostics(&open);
    }
    let plan = match build_script::checked_plan(&config, &lock, file, &shown) {
        Ok(plan) => plan,
        Err(problems) => return output::diagnostics(&problems),
    };
    let working = Working::begin("generating the catalog and the types");
    let emitted = emit::emit(&config, &lock, &plan);
    drop(working);
    type_notes::say_notes(&broker_build::types::types(&plan).fallbacks);
    let files = emit::files(&emitted).into_iter();
    let mut files = files.map(|(name, bytes)| (args.out.join(name), bytes));
    // A CI run compares.
    let is_unattended = unattended::is_unattended();
    let problems: Vec<_> = if args.check || is_unattended {
        files
            .filter_map(|(path, bytes)| compare(&path, bytes))
            .collect()
    } else {
        // After a failure the other files stay as they are, so that as few as possible differ from the rest.
        let failed = files.find_map(|(path, bytes)| write(&path, bytes));
        failed.into_iter().collect()
    };
    let exit = output::diagnostics(&problems);
    if !args.check && !problems.is_empty() {
        unattended::say_reason();
    }
    if problems.is_empty() {
        let what = if args.check || is_unattended {
            "is current"
        } else {
            "has the files that the build compiles in"
        };
        say(text!(
            "{} {}: catalog {}",
            args.out.display(),
            what,
            emitted.catalog_digest
        ));
    }
    exit
}

fn compare(path: &Path, bytes: &[u8]) -> Option<Diagnostic> {
    let what = match broker_files::read(path, bytes.len()) {
        Ok(old) if old == bytes => return None,
        Ok(_) | Err(ReadError::Size(_)) => "does not match config and lock".to_owned(),
        Err(error) => format!("cannot be read: {error}"),
    };
    let message = format!("`{}` {what}", path.display());
    Some(Diagnostic::error(DiagnosticCode::GeneratedStale, message))
}

fn write(path: &Path, bytes: &[u8]) -> Option<Diagnostic> {
    if broker_files::holds(path, bytes) {
        return None;
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| write_whole(path, bytes));
    written.err().map(|error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        Diagnostic::error(DiagnosticCode::FileWrite, message)
    })
}
