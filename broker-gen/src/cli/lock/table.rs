//! The table of what a lock leaves out, with the command or the line of the config that settles each part.

use std::collections::BTreeMap;
use std::path::Path;

use broker_model::exit::Exit;
use broker_model::lock::{LeftOutPart, Lock};
use broker_model::terminal::Text;
use broker_model::text::{counted, shell_word, shown_line};
use broker_model::{Diagnostic, LeftOutCode, NodePath, Severity, text};
use broker_terminal::Layout as _;

use super::draft::LeftOutOf;
use crate::cli::output::say;
use broker_build::left_out_audits::{LeftOutAudits, accept_command, remedy};

pub(super) use broker_build::left_out_audits::shown;

/// Maximum number of parts that the table shows.
const MAX_ROWS: usize = 200;

/// Prints the table. Returns [`Exit::Partial`] if no entry of the audits accepts one of the parts.
pub(super) fn show(
    lock: &Lock,
    problems: &[(NodePath, LeftOutOf)],
    audits: &LeftOutAudits,
    config: &Path,
) -> Exit {
    let parts = lock.left_out_parts();
    if parts.is_empty() {
        return Exit::Ok;
    }
    // The end of the stderr of a server is not in the table.
    for (_, one) in problems.iter().filter(|(_, one)| one.tool.is_none()) {
        let warning = Diagnostic {
            severity: Severity::Warning,
            ..one.problem.clone()
        };
        say(warning.text());
    }
    let config = config.to_string_lossy();
    let (accepted, open): (Vec<_>, Vec<_>) = parts.iter().partition(|part| audits.accept(part));
    say(heading(&parts, problems, number(accepted.iter().copied())));
    let mut table = Text::new();
    for part in open.iter().take(MAX_ROWS) {
        row(&mut table, part, problems, &config);
    }
    let rest = number(open.iter().copied().skip(MAX_ROWS));
    if rest > 0 {
        table.push(text!("  … and {}\n", counted(rest, "more part")));
    }
    if let Some(first) = open.first() {
        let of_one_source = open.iter().all(|part| part.source == first.source);
        let accept = match open.as_slice() {
            [_] => accept_command(first, &config),
            _ if of_one_source => accept_command(
                &LeftOutPart {
                    tool: None,
                    ..(*first).clone()
                },
                &config,
            ),
            _ => format!(
                "broker-gen accept --config {} --all --left-out",
                shell_word(&config)
            ),
        };
        table.wrap(
            "  ",
            "  ",
            &format!(
                "Verify and the build fail until each part is settled or accepted: `{accept}`"
            ),
        );
    }
    if !open.is_empty() {
        say(table.trimmed());
    }
    match open.is_empty() {
        true => Exit::Ok,
        false => Exit::Partial,
    }
}

/// The number of parts, with those that are only counted.
fn number<'p>(parts: impl IntoIterator<Item = &'p LeftOutPart<'p>>) -> usize {
    let counts = parts.into_iter().map(|part| part.count);
    usize::try_from(counts.sum::<u64>()).unwrap_or(usize::MAX)
}

/// Returns the number of parts, and the number of each check.
fn heading(parts: &[LeftOutPart<'_>], problems: &[(NodePath, LeftOutOf)], accepted: usize) -> Text {
    let kept = parts.iter().filter(|part| part.is_kept).count();
    let is_unvalidated = |part: &&LeftOutPart<'_>| part.code == LeftOutCode::Unvalidated;
    let unvalidated = parts.iter().filter(is_unvalidated).count();
    let left_out = number(parts) - kept - unvalidated;
    let mut counts = Vec::new();
    if left_out > 0 {
        counts.push(format!("{} left out", counted(left_out, "part")));
    }
    if kept > 0 {
        counts.push(format!("{} kept as it was locked", counted(kept, "source")));
    }
    if unvalidated > 0 {
        counts.push(format!(
            "{} served unvalidated",
            counted(unvalidated, "tool")
        ));
    }
    if accepted > 0 {
        counts.push(format!("{accepted} accepted"));
    }
    let mut by_check: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, one) in problems {
        *by_check.entry(one.check).or_default() += 1;
    }
    let by_check: Vec<_> = by_check
        .into_iter()
        .map(|(check, count)| format!("{check} {count}"))
        .collect();
    match by_check.is_empty() {
        true => text!("{}", counts.join(", ")),
        false => text!("{} (by check: {})", counts.join(", "), by_check.join(", ")),
    }
}

/// One part: what, why, and what settles it.
fn row(table: &mut Text, part: &LeftOutPart<'_>, problems: &[(NodePath, LeftOutOf)], config: &str) {
    let place = match part.place {
        "" => String::new(),
        place => format!(" at {}", shown_line(place, 200)),
    };
    let what = match part.is_kept {
        true => format!("{}, kept", shown(part)),
        false => shown(part),
    };
    table.wrap(
        "  ",
        "    ",
        &format!(
            "{what}: {}: {}{place}",
            part.code,
            shown_line(part.reason.trim_end_matches('.'), 300)
        ),
    );
    let mut known = problems.iter();
    let known = known
        .find(|(source, one)| source == part.source && one.tool.as_ref() == Some(&part.digest));
    let remedy = match known.and_then(|(_, one)| one.problem.help.as_deref()) {
        Some(help) => help.to_owned(),
        None => remedy(part, config),
    };
    table.wrap("    ", "    ", &remedy);
}
