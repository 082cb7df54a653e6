//! `review`: guides a person through everything without an audit, in a terminal, and writes each
//! acceptance at once, so that it is kept if the review ends early.

use std::io;
use std::path::Path;

use broker_build::build_script::checked_plan;
use broker_build::left_out_audits::{self, accept_command};
use broker_build::plan;
use broker_drift::{Report, access_lines};
use broker_model::exit::Exit;
use broker_model::lock::Lock;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::audits::{Audit, Audits, Criteria, Date, Decision, append, audits_file, who};
use broker_review::baseline::read_baseline;
use broker_review::lint_report::{lint_sources, settled};
use broker_review::lock_diff::access;
use broker_review::lock_file::lock_of_config;
use broker_review::session::items::{self, Item};
use broker_review::session::{self, Accepted, Style, Tally};
use clap::Args;

use super::output::{self, say};
use super::unattended;

mod generated_hints;

use generated_hints::HintTally;

/// Maximum number of shown changes of access.
const MAX_ACCESS_LINES: usize = 40;
/// The default baseline, if git has the lock.
const LAST_COMMIT: &str = "git:HEAD";

#[derive(Debug, Args)]
pub(super) struct ReviewArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The old lock: `git:REV[:PATH]` or a file. Default: `git:HEAD` if git has the lock, else none, and
    /// everything is new.
    #[arg(long, value_name = "BASELINE")]
    baseline: Option<String>,
    /// The author of the audits. Default: git's `user.name <user.email>`.
    #[arg(long, value_name = "NAME", env = "MCP_BROKER_WHO")]
    who: Option<String>,
}

pub(super) fn run(args: &ReviewArgs) -> Exit {
    match review(args) {
        Ok(()) => Exit::Ok,
        Err(problems) => output::diagnostics(&problems),
    }
}

fn review(args: &ReviewArgs) -> Result<(), Vec<Diagnostic>> {
    unattended::refuse("review")?;
    if !output::is_conversation() {
        let message = "standard input and output are not a terminal";
        return Err(vec![Diagnostic::error(
            DiagnosticCode::TerminalNeeded,
            message,
        )]);
    }
    let config = &args.file.config;
    let lock = lock_of_config(config)?;
    let audits = Audits::read(config)?;
    output::diagnostics(&stale(config, &lock));
    let left_out = lock.left_out_parts();
    for part in left_out.iter().filter(|part| !audits.accept_left_out(part)) {
        let command = accept_command(part, &config.to_string_lossy());
        say(text!(
            "not in the lock as it is now: {} ({}); to accept that: {}",
            left_out_audits::shown(part),
            part.code,
            command
        ));
    }
    let today = Date::today();
    let (baseline, name) = baseline(args.baseline.as_deref(), config)?;
    let (linted, _) = lint_sources(&lock.sources, &settled(&audits), false);
    let needed = needed(config);
    let mut items = items::items(&lock, baseline.as_ref(), &audits, today, needed, &linted);
    let open = items.len();
    // If one person per item is enough, the open items have no audit yet.
    if needed > 1 && open > 0 {
        let who = who(args.who.as_deref(), config)?;
        items.retain(|item| !audits.is_accepted_by(&item.subject, &who, today));
    }
    let of_others = open - items.len();
    let shown = shown_line(&audits_file(config).to_string_lossy(), 200);
    let mut changed = items::changed_sources(&lock, baseline.as_ref());
    changed.extend(access_changes(config, baseline.as_ref(), &lock));
    let changed = changed
        .into_iter()
        .map(|change| text!("changed since then: {}", change));
    let hints = review_hints(config, &lock)?;
    if hints.accepted > 0 {
        say(text!(
            "hints of {} accepted: run `broker-gen lock`, which compiles them",
            counted(hints.accepted, "tool")
        ));
    }
    if hints.quit {
        return Ok(());
    }
    if items.is_empty() {
        let changed: Vec<_> = changed.collect();
        if !changed.is_empty() {
            say(text!("compared with {}", name));
            changed.into_iter().for_each(say);
        }
        match of_others {
            0 => say(text!(
                "nothing to review: everything that is locked has an audit in {}",
                shown
            )),
            _ => say(text!(
                "nothing to review: you accepted {}, for which other people are needed",
                counted(of_others, "item")
            )),
        }
        return Ok(());
    }
    if of_others > 0 {
        say(text!(
            "you accepted {}, for which other people are needed",
            counted(of_others, "item")
        ));
    }
    let who = who(args.who.as_deref(), config)?;
    say(text!(
        "{} without {}; compared with {}; signed as {}",
        items.len(),
        if needed > 1 {
            "enough audits"
        } else {
            "an audit"
        },
        name,
        shown_line(&who, 100)
    ));
    changed.for_each(say);
    for path in items::left(&lock, baseline.as_ref()) {
        say(text!("left since then: {}", path));
    }
    let sign = |item: &Item<'_>, accepted: Accepted| {
        let audit = Audit {
            source: item.subject.source.path.clone(),
            tool: item.subject.tool_name().map(str::to_owned),
            digest: item.subject.digest.clone(),
            criteria: Criteria::SafeToExpose,
            who: who.clone(),
            date: today,
            looked_at: accepted.looked_at,
            notes: accepted.note,
            expires: None,
        };
        append(config, &[Decision::Audit(audit)]).map(|_| ())
    };
    let style = Style::for_terminal();
    let tally = session::walk(
        &items,
        &mut io::stdin().lock(),
        &mut output::ask,
        style,
        sign,
    )?;
    let Tally { accepted, skipped } = tally;
    let rest = items.len() - accepted - skipped;
    say(text!(
        "{} accepted, {} skipped, {} not reviewed",
        accepted,
        skipped,
        rest
    ));
    if accepted > 0 {
        say(text!("the audits are in {}: commit it", shown));
    }
    Ok(())
}

/// The number of people who must have accepted an item. A config that cannot be read requires one.
fn needed(file: &Path) -> u8 {
    let parsed = broker_build::build_script::parse_config(file, &file.to_string_lossy());
    parsed.map_or(1, |parsed| parsed.config.audits_required)
}

/// Asks about the search hints that a model wrote. A config that cannot be read has no hints.
fn review_hints(file: &Path, lock: &Lock) -> Result<HintTally, Vec<Diagnostic>> {
    let shown = file.to_string_lossy();
    let parsed = broker_build::build_script::parse_config(file, &shown);
    let Ok(parsed) = parsed else {
        return Ok(HintTally::default());
    };
    let input = &mut io::stdin().lock();
    generated_hints::walk(file, &parsed.config, lock, input, &mut output::ask)
}

/// Who gains or loses what since the baseline. A config that cannot be read does not matter for a review.
fn access_changes(path: &Path, baseline: Option<&Lock>, lock: &Lock) -> Vec<String> {
    let shown = path.to_string_lossy();
    let config = broker_build::build_script::parse_config(path, &shown);
    let (Ok(parsed), Some(old)) = (config, baseline) else {
        return Vec::new();
    };
    let mut report = Report::default();
    access::add(&mut report, &parsed.config, &old.sources, &lock.sources);
    access_lines(&report.access, MAX_ACCESS_LINES)
}

/// Warnings if the lock was made for another config, or the hints of the config are not audited, since a build refuses it. A config that cannot be read does
/// not matter for a review.
fn stale(path: &Path, lock: &Lock) -> Vec<Diagnostic> {
    let shown = path.to_string_lossy();
    let parsed = broker_build::build_script::parse_config(path, &shown);
    let fresh = match parsed {
        Ok(mut parsed) => {
            parsed.config.use_word_lists_of(lock);
            let config = &parsed.config;
            plan::check_fresh(config, lock)
                .and_then(|()| checked_plan(config, lock, path, &shown).map(|_| ()))
        }
        Err(_) => Ok(()),
    };
    output::as_warnings(fresh.err().unwrap_or_default())
}

/// The baseline, and its name for people.
fn baseline(said: Option<&str>, config: &Path) -> Result<(Option<Lock>, String), Vec<Diagnostic>> {
    let name = shown_line(said.unwrap_or(LAST_COMMIT), 200);
    match read_baseline(said.unwrap_or(LAST_COMMIT), config) {
        Ok(Some(lock)) => Ok((Some(lock), name)),
        Ok(None) => Ok((None, format!("nothing: {name} does not have the lock"))),
        Err(problems) if said.is_some() => Err(problems),
        // This baseline is a default, and a review without it is stricter.
        Err(problems) => {
            output::diagnostics(&output::as_warnings(problems));
            Ok((None, format!("nothing: {name} cannot be read")))
        }
    }
}
