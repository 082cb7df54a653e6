//! `accept`: adds audits for locked digests without showing them, for reviewers who read them elsewhere.

use std::path::Path;

use broker_build::lock_file;
use broker_build::plan::nearest;
use broker_model::digest::Digest;
use broker_model::exit::Exit;
use broker_model::lock::{Lock, LockedSource};
use broker_model::suggest;
use broker_model::terminal::Text;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode, text};
use broker_review::accept;
use broker_review::audits::{
    Audit, Audits, Criteria, Date, Decision, Subject, Suppression, append, audits_file, subjects,
    who,
};
use broker_review::lint;
use broker_review::lock_file::lock_of_config;
use clap::{ArgGroup, Args};

use super::output::{self, say};
use super::unattended;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["source", "all", "moved"])))]
pub(super) struct AcceptArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The source, by the path of its node: itself and all its tools.
    #[arg(long, value_name = "PATH")]
    source: Option<String>,
    /// Only this tool of the source, by the server's name.
    #[arg(long, value_name = "NAME", requires = "source")]
    tool: Option<String>,
    /// Confirm the hints that the config sets for the tool instead (`tool_overrides.NAME.annotations`).
    #[arg(
        long,
        requires = "tool",
        conflicts_with_all = ["looked_at", "expires", "rules"]
    )]
    hints: bool,
    /// With `--hints`: the digest of the reviewed tool. Default: that of the lock.
    #[arg(long, value_name = "DIGEST", requires = "hints", value_parser = digest)]
    digest: Option<Digest>,
    /// Accept instead that the lock leaves the source or the tool out, or keeps an older state of it: every such part
    /// of the source, or with `--tool` the ones of this tool. It holds for the reason and the bytes that were seen.
    #[arg(
        long,
        conflicts_with_all = ["hints", "looked_at", "expires", "rules", "itself"]
    )]
    left_out: bool,
    /// Only the source itself: its name and instructions.
    #[arg(long, requires = "source", conflicts_with = "tool")]
    itself: bool,
    /// Every locked tool and source.
    #[arg(long)]
    all: bool,
    /// Carry the entries of the source of path OLD over to NEW, its path in the config: for equal bytes, and only if the
    /// command or URL is the same. Each keeps its author and date.
    #[arg(
        long,
        num_args = 2,
        value_names = ["OLD", "NEW"],
        conflicts_with_all = ["tool", "hints", "left_out", "itself", "notes", "looked_at", "expires", "rules"]
    )]
    moved: Vec<String>,
    /// With `--moved`: the lock that has the old path, `git:REV[:PATH]` or a file. Default: the lock beside the config, else
    /// `git:HEAD`.
    #[arg(long, value_name = "BASELINE", requires = "moved")]
    baseline: Option<String>,
    /// The author of the audit. Default: git's `user.name <user.email>`.
    #[arg(long, value_name = "NAME", env = "MCP_BROKER_WHO")]
    who: Option<String>,
    /// Notes for later readers.
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// The reviewed members: `description,inputSchema`.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    looked_at: Vec<String>,
    /// The last day of validity: `2027-06-30`.
    #[arg(long, value_name = "DATE")]
    expires: Option<Date>,
    /// Suppress this rule of the lint instead, for the locked bytes; needs `--reason`; repeatable. With
    /// `--all`, at each tool and source in which the lint finds it now.
    #[arg(
        long = "rule",
        value_name = "RULE",
        requires = "reason",
        conflicts_with_all = ["notes", "looked_at", "expires"]
    )]
    rules: Vec<String>,
    /// The reason why the finding is harmless.
    #[arg(long, value_name = "TEXT", requires = "rules")]
    reason: Option<String>,
}

pub(super) fn run(args: &AcceptArgs) -> Exit {
    match accept(args) {
        Ok(()) => Exit::Ok,
        Err(problems) => output::diagnostics(&problems),
    }
}

fn accept(args: &AcceptArgs) -> Result<(), Vec<Diagnostic>> {
    // Audits are decisions of people; a CI run must not make them.
    unattended::refuse("accept")?;
    let config = &args.file.config;
    let today = Date::today();
    refuse_nonsense(args, today)?;
    if args.hints {
        return accept_hints(args, today);
    }
    if args.left_out {
        return accept_left_out(args, today);
    }
    if let [old, new] = args.moved.as_slice() {
        return accept_moved(args, old, new);
    }
    let lock = lock_of_config(config)?;
    let audits = Audits::read(config)?;
    let open = if args.rules.is_empty() {
        let mut open = targets(args, &lock)?;
        let who = who(args.who.as_deref(), config)?;
        open.retain(|subject| !audits.is_accepted_by(subject, &who, today));
        open.into_iter().map(|subject| (subject, None)).collect()
    } else {
        findings(args, &lock, &audits)?
    };
    let shown = shown_line(&audits_file(config).to_string_lossy(), 200);
    if open.is_empty() {
        say(text!("nothing to do: {} already has these entries", shown));
        return Ok(());
    }
    let who = who(args.who.as_deref(), config)?;
    let decide = |(subject, rule): &(Subject<'_>, _)| decision(args, subject, *rule, &who, today);
    let decisions: Vec<_> = open.iter().map(decide).collect();
    add(config, &decisions)
}

/// Adds entries to the audits file, and says so.
fn add(config: &Path, decisions: &[Decision]) -> Result<(), Vec<Diagnostic>> {
    output::data(&Text::lines("", &append(config, decisions)?));
    let entries = match decisions.len() {
        1 => "1 entry".to_owned(),
        many => format!("{many} entries"),
    };
    let shown = shown_line(&audits_file(config).to_string_lossy(), 200);
    say(text!("added {} to {}: commit it", entries, shown));
    Ok(())
}

/// Adds an entry for each part that the lock leaves out and the options name.
fn accept_left_out(args: &AcceptArgs, today: Date) -> Result<(), Vec<Diagnostic>> {
    let config = &args.file.config;
    let lock = lock_of_config(config)?;
    let audits = Audits::read(config)?;
    let parts = accept::left_out::parts(&lock, args.source.as_deref(), args.tool.as_deref())?;
    accept::left_out::refuse_violations(&parts)?;
    let open: Vec<_> = parts
        .iter()
        .filter(|part| part.code != LeftOutCode::Violation)
        .filter(|part| !audits.accept_left_out(part))
        .collect();
    let shown = shown_line(&audits_file(config).to_string_lossy(), 200);
    if open.is_empty() {
        say(text!("nothing to do: {} already has these entries", shown));
        return Ok(());
    }
    let who = who(args.who.as_deref(), config)?;
    let notes = args.notes.as_deref();
    let entry = |part| accept::left_out::entry(part, &who, today, notes);
    let decisions: Vec<_> = open
        .iter()
        .map(|part| Decision::LeftOut(entry(part)))
        .collect();
    add(config, &decisions)
}

/// Adds the entries of a source for the new path of its node.
fn accept_moved(args: &AcceptArgs, old: &str, new: &str) -> Result<(), Vec<Diagnostic>> {
    let config = &args.file.config;
    let audits = Audits::read(config)?;
    // A lock that does not exist yet is made after the entries are there.
    let lock = match lock_file(config).exists() {
        true => Some(lock_of_config(config)?),
        false => None,
    };
    let who = who(args.who.as_deref(), config)?;
    let paths = accept::moved::Paths {
        old,
        new,
        baseline: args.baseline.as_deref(),
    };
    let (decisions, warnings) =
        accept::moved::entries(config, lock.as_ref(), &audits, &paths, &who)?;
    output::diagnostics(&warnings);
    if decisions.is_empty() {
        let shown = shown_line(&audits_file(config).to_string_lossy(), 200);
        say(text!("nothing to do: {} already has these entries", shown));
        return Ok(());
    }
    add(config, &decisions)
}

/// A digest of the command line.
fn digest(text: &str) -> Result<Digest, String> {
    Digest::try_from(text.to_owned()).map_err(str::to_owned)
}

/// Adds the entry for the hints of a tool, unless it exists.
fn accept_hints(args: &AcceptArgs, today: Date) -> Result<(), Vec<Diagnostic>> {
    let config = &args.file.config;
    let (source, tool) = (args.source.as_deref(), args.tool.as_deref());
    let (source, tool) = (source.unwrap_or_default(), tool.unwrap_or_default());
    let audits = Audits::read(config)?;
    let signature = accept::hints::Signature {
        who: &who(args.who.as_deref(), config)?,
        date: today,
        notes: args.notes.as_deref(),
    };
    let lock = || lock_of_config(config);
    let digest = args.digest.as_ref();
    let entry = accept::hints::entry(config, source, tool, digest, &signature, lock)?;
    let shown = shown_line(&audits_file(config).to_string_lossy(), 200);
    if audits.has_hints(&entry) {
        say(text!("nothing to do: {} already has this entry", shown));
        return Ok(());
    }
    output::data(&Text::lines(
        "",
        &append(config, &[Decision::Hints(entry)])?,
    ));
    say(text!("added 1 entry to {}: commit it", shown));
    Ok(())
}

/// The subjects and the rules to suppress there.
fn findings<'a, 'b>(
    args: &'b AcceptArgs,
    lock: &'a Lock,
    audits: &Audits,
) -> Result<Vec<(Subject<'a>, Option<&'b str>)>, Vec<Diagnostic>> {
    let linted = if args.all {
        lint::lint(&lock.sources)
    } else {
        Vec::new()
    };
    let is_found = |subject: &Subject<'_>, rule: &str| {
        linted.iter().any(|one| {
            one.source == subject.source.path
                && one.tool.as_deref() == subject.tool_name()
                && one.findings.iter().any(|finding| finding.rule == rule)
        })
    };
    let is_open = |subject: &Subject<'_>, rule: &str| {
        let source = subject.source.path.as_str();
        !audits.suppresses(rule, source, subject.tool_name(), &subject.digest)
    };
    let mut open = Vec::new();
    for subject in targets(args, lock)? {
        let of_it = args.rules.iter().map(String::as_str);
        let of_it =
            of_it.filter(|rule| is_open(&subject, rule) && (!args.all || is_found(&subject, rule)));
        open.extend(of_it.map(|rule| (subject.clone(), Some(rule))));
    }
    Ok(open)
}

fn decision(
    args: &AcceptArgs,
    subject: &Subject<'_>,
    rule: Option<&str>,
    who: &str,
    today: Date,
) -> Decision {
    let source = subject.source.path.clone();
    let tool = subject.tool_name().map(str::to_owned);
    let digest = subject.digest.clone();
    match rule {
        Some(rule) => Decision::Suppression(Suppression {
            rule: rule.to_owned(),
            source,
            tool,
            digest,
            reason: args.reason.clone().unwrap_or_default(),
            who: who.to_owned(),
            date: today,
        }),
        None => Decision::Audit(Audit {
            source,
            tool,
            digest,
            criteria: Criteria::SafeToExpose,
            who: who.to_owned(),
            date: today,
            looked_at: args
                .looked_at
                .iter()
                .map(|what| what.trim().to_owned())
                .collect(),
            notes: args.notes.clone(),
            expires: args.expires,
        }),
    }
}

/// Checks that clap cannot make: empty texts, a past day, an unknown rule.
fn refuse_nonsense(args: &AcceptArgs, today: Date) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let mut wrong = |message: String, help: &str| {
        let problem = Diagnostic::error(DiagnosticCode::AuditsValue, message);
        problems.push(problem.help(help));
    };
    if let Some(last) = args.expires.filter(|last| *last < today) {
        let message = format!("`--expires {last}` is in the past: today is {today}");
        wrong(message, "Give a later day, or leave the option out.");
    }
    let texts = [("--notes", &args.notes), ("--reason", &args.reason)];
    let said = texts.map(|(option, text)| (option, text.as_deref()));
    let looked_at = args
        .looked_at
        .iter()
        .map(|what| ("--looked-at", Some(what.as_str())));
    for (option, text) in said.into_iter().chain(looked_at) {
        if text.is_some_and(|text| text.trim().is_empty()) {
            wrong(
                format!("`{option}` is empty"),
                "Write a text, or leave the option out.",
            );
        }
    }
    let known: Vec<&str> = lint::rules().iter().map(|rule| rule.id).collect();
    let rules = args.rules.iter().map(String::as_str);
    for rule in rules.filter(|rule| !known.contains(rule)) {
        let message = format!(
            "`--rule {}` is not a rule of the lint",
            shown_line(rule, 80)
        );
        let near = nearest([rule].into_iter(), &known, 1);
        wrong(
            message,
            &format!("Did you mean {near}? docs/lint.md lists all rules."),
        );
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// The subjects that the options name, in the lock's order.
fn targets<'a>(args: &AcceptArgs, lock: &'a Lock) -> Result<Vec<Subject<'a>>, Vec<Diagnostic>> {
    let Some(path) = &args.source else {
        return Ok(subjects(lock));
    };
    let Some(source) = lock.source(path) else {
        let known: Vec<_> = lock
            .sources
            .iter()
            .map(|source| format!("`{}`", source.path))
            .collect();
        let message = format!(
            "`--source {}` names no locked source",
            shown_line(path, 200)
        );
        let help = format!("The sources are {}.", known.join(", "));
        return Err(vec![
            Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help),
        ]);
    };
    match &args.tool {
        Some(name) => tool(source, name).map(|subject| vec![subject]),
        // A suppression names one source or tool.
        None if args.itself || !args.rules.is_empty() => Ok(vec![Subject::itself(source)]),
        None => {
            let mut of_it = subjects(lock);
            of_it.retain(|subject| subject.source.path == source.path);
            Ok(of_it)
        }
    }
}

fn tool<'a>(source: &'a LockedSource, name: &str) -> Result<Subject<'a>, Vec<Diagnostic>> {
    let exposed = |wanted: &str| {
        source
            .exposed
            .iter()
            .find(|tool| tool.upstream_name == wanted)
    };
    if let Some(tool) = exposed(name) {
        return Ok(Subject::tool(source, tool));
    }
    let path = &source.path;
    let shown = shown_line(name, 100);
    let message = format!("`--tool {shown}` names no exposed tool of `{path}`");
    let names = source
        .exposed
        .iter()
        .map(|tool| tool.upstream_name.as_str());
    let nearest = suggest::nearest(name, names, 1).pop();
    let alias = source.exposed.iter().find(|tool| tool.exposed_name == name);
    let help = match (alias, nearest) {
        (Some(tool), _) => format!(
            "`{shown}` is its alias; the server calls it `{}`.",
            shown_line(&tool.upstream_name, 100)
        ),
        (None, _) if source.hidden.iter().any(|tool| tool.name == name) => {
            "It is hidden, so it needs no audit.".to_owned()
        }
        (None, Some(near)) => format!("did you mean `{}`?", shown_line(near, 100)),
        (None, None) => format!(
            "See `broker-gen tree`; `{path}` has {}.",
            counted(source.exposed.len(), "tool")
        ),
    };
    Err(vec![
        Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help),
    ])
}
