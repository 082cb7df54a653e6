//! `hints`: writes the tools that need search hints to a file, and reads the answers.

use std::path::PathBuf;

use broker_build::build_script;
use broker_build::plan;
use broker_config::Config;
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::{Diagnostic, DiagnosticCode};
use clap::Args;

use super::{output, unattended};

pub(super) mod edit;
mod export;
mod import;

#[derive(Debug, Args)]
pub(super) struct HintsArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Write the tools without a current hint to FILE: path, name, first sentence, parameters and digest of each.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Read answers from FILE, `{"tools":[{"path","digest","hints":[…]}]}`, and write them into the config, marked as
    /// generated.
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,
}

pub(super) fn run(args: &HintsArgs) -> Exit {
    let done = match (&args.what.export, &args.what.import) {
        (Some(file), _) => export::run(&args.file.config, file),
        (None, Some(file)) => {
            unattended::refuse("hints --import").and_then(|()| import::run(&args.file.config, file))
        }
        (None, None) => Ok(()),
    };
    match done {
        Ok(()) => Exit::Ok,
        Err(problems) => output::diagnostics(&problems),
    }
}

/// Config and lock, which must fit together.
fn read(config: &std::path::Path) -> Result<(Config, Lock), Vec<Diagnostic>> {
    let (config, lock) = build_script::read(config, &config.to_string_lossy())?;
    let plan = plan::plan(&config, &lock.sources)?;
    // Warnings about hints would name what this verb changes.
    let about_hints = [DiagnosticCode::HintUnreviewed, DiagnosticCode::HintStale];
    let warnings = plan.warnings.iter();
    let others = warnings.filter(|warning| !about_hints.contains(&warning.code));
    output::diagnostics(&others.cloned().collect::<Vec<_>>());
    Ok((config, lock))
}
