//! `lint`: suspicious texts of the lock. Launches no source; `lock` runs it before it writes.

use std::cell::Cell;

use broker_build::lock_file;
use broker_model::exit::Exit;
use broker_model::json::to_review_text;
use broker_model::lock::LockedSource;
use broker_model::terminal::Text;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_review::audits::Audits;
use broker_review::lint_report::{
    LintRun, human, lint_sources, name_config, settle, settled, show_all, summary, to_json,
};
use broker_review::lock_file::read_lock;
use clap::Args;

use super::{ConfigFile, Format, output};

mod release_age;

#[derive(Debug, Args)]
pub(super) struct LintArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Show every finding in full, also of a rule with many.
    #[arg(long)]
    all: bool,
    /// Let `npm` ask its registry for the age of releases, which it otherwise reads from its cache.
    #[arg(long)]
    online: bool,
    /// The format of the findings on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(super) fn run(args: &LintArgs) -> Exit {
    let path = lock_file(&args.file.config);
    let lock = match read_lock(&path) {
        Ok(file) => file.lock,
        Err(problems) => return output::diagnostics(&problems),
    };
    let audits = match Audits::read(&args.file.config) {
        Ok(audits) => audits,
        Err(problems) => return output::diagnostics(&problems),
    };
    let (settled, suppressed) = (settled(&audits), Cell::new(0));
    let (mut linted, exit) = lint_sources(
        &lock.sources,
        &|one, finding| {
            let is = settled(one, finding);
            suppressed.set(suppressed.get() + usize::from(is));
            is
        },
        args.strict,
    );
    name_config(&mut linted, &args.file.config);
    let looked = LintRun {
        sources: lock.sources.len(),
        tools: lock.sources.iter().map(|source| source.exposed.len()).sum(),
        suppressed: suppressed.get(),
    };
    match args.format {
        Format::Human => {
            output::data(&human(&linted, &show_all(&args.file.config), args.all));
            output::data(&settle(&linted, &args.file.config));
            output::data(&summary(&linted, &looked));
            release_age::say_ages(&lock.sources, args.online);
        }
        Format::Json => output::document(&Text::json_text(&to_review_text(&to_json(
            &linted, &looked,
        )))),
    }
    let instructions = |source: &LockedSource| source.instructions.is_some();
    if looked.tools == 0 && !lock.sources.iter().any(instructions) {
        let message = "the lock has no tool and no instructions, so nothing was checked";
        output::diagnostics(&[Diagnostic::warning(DiagnosticCode::SourceFailed, message)]);
        return exit.or(Exit::Unchecked);
    }
    exit
}
