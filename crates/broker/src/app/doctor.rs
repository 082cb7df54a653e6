//! `mcp-broker doctor`: loads the settings as for a start, examines every source and prints the
//! diagnosis. A signal ends it and its processes.

use std::collections::BTreeSet;
use std::time::Duration;

use broker_doctor::Diagnosis;
use broker_mcp::Environment;
use broker_model::exit::Exit;
use broker_model::redact::Redactor;
use broker_model::text;
use broker_process::guard::Signals;
use tokio::time::timeout;

use super::failure::{Failure, unless_refused};
use super::names;
use super::settings::LoadedConfig;
use super::tree;
use crate::catalog::Catalog;
use crate::cli::{DoctorArgs, Format};
use crate::core::{Core, SourceExam};
use crate::logging::LogOutput;
use crate::secret;

/// Maximum time for interrupted servers to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of the progress message at a terminal.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Examines every source.
pub(super) async fn run(
    catalog: &'static Catalog,
    args: &DoctorArgs,
    output: &LogOutput,
    mut signals: Signals,
) -> Result<Exit, Failure> {
    let environment = Environment::capture();
    let settings = LoadedConfig::load(catalog, args.config.as_deref())?;
    for warning in &settings.warnings {
        output.report(&warning.text(), &warning.to_json());
    }
    // Problems that refuse a start before any source is started are reported here too.
    let mut diagnostics = Vec::new();
    settings.host_policy(&[], &environment, &mut diagnostics);
    let parts = Core::builder(catalog)
        .config(&settings.config, &settings.base)
        .environment(&environment);
    let exam = SourceExam::new(parts);
    let exam = unless_refused(exam, diagnostics)?;
    let hidden = Redactor::new(secret::values_to_hide());
    output.mask(&exam.redactor().merge(&hidden));
    output.show_names(names::collect_later(catalog, &settings.config));
    let all = tokio::select! {
        all = examine(catalog, exam, output) => all,
        () = signals.stop() => return Ok(interrupted(output).await),
    };
    let config = args.config.as_deref().map_or_else(
        || catalog.config_name.to_owned(),
        |file| file.display().to_string(),
    );
    let all: Vec<_> = all
        .into_iter()
        .map(|one| Diagnosis::new(one, &config, "mcp-broker doctor"))
        .collect();
    let text = match args.format {
        Format::Human => output.named_text(&broker_doctor::human(&all)),
        Format::Json => {
            let json = broker_doctor::json(&all, Some(catalog.catalog_digest));
            output.named_json_text(&json.to_string())
        }
    };
    tree::print(&text)?;
    Ok(if broker_doctor::attention(&all) == 0 {
        Exit::Ok
    } else {
        Exit::Failure
    })
}

/// Examines all sources; at a terminal it reports the examinations that are still running.
async fn examine(
    catalog: &'static Catalog,
    exam: SourceExam,
    output: &LogOutput,
) -> Vec<crate::core::ExamResult> {
    let waiting: BTreeSet<_> = catalog.sources.iter().map(|source| source.path).collect();
    let waiting = tokio::sync::watch::Sender::new(waiting);
    let done = |path| {
        waiting.send_modify(|waiting| {
            waiting.remove(path);
        });
    };
    let mut run = std::pin::pin!(exam.run(done));
    let is_watched = crate::logging::is_watched();
    loop {
        if let Ok(all) = timeout(PROGRESS_INTERVAL, &mut run).await {
            return all;
        }
        if is_watched {
            let names: Vec<_> = waiting.borrow().iter().copied().collect();
            output.note(&text!("still waiting for {}", names.join(", ")));
        }
    }
}

/// The exam was dropped, so its processes are being ended.
async fn interrupted(output: &LogOutput) -> Exit {
    output.note(&"interrupted: stopping the servers that were started".into());
    if timeout(END_TIMEOUT, broker_process::all_ended())
        .await
        .is_err()
    {
        output.note(&"some of their processes are still running".into());
    }
    Exit::Interrupted
}
