//! Appends entries to the audits file. Existing bytes are kept, and a reader sees the old file or the new
//! one.

use std::path::Path;

use broker_audits_file::text_of;
use broker_build::lock_file;
use broker_model::text::is_invisible;
use broker_model::{Diagnostic, DiagnosticCode};

use super::{Audits, Decision, audits_file};
use crate::whole_file::{turn, write_whole};

/// Appends these entries to the audits beside a config; returns the added text.
pub fn append(config: &Path, decisions: &[Decision]) -> Result<String, Vec<Diagnostic>> {
    let path = audits_file(config);
    let file = path.to_string_lossy().into_owned();
    let _turn = turn(&path);
    let old_text = text_of(&path)?;
    let old = Audits::parse(&file, old_text.as_deref().unwrap_or_default())?;
    let head = || format!("{}\n", head(config));
    let (text, added) = extended(&old_text.unwrap_or_else(head), decisions);
    if !holds(&Audits::parse(&file, &text), &old, decisions) {
        let message = "nothing can be appended to the audits in their current form";
        let help = "Write entries as `[[audits]]`, not as one list, and no other table after them.";
        return Err(vec![
            Diagnostic::error(DiagnosticCode::AuditsValue, message)
                .in_file(file)
                .help(help),
        ]);
    }
    // A symbolic link is kept.
    let target = path.canonicalize().unwrap_or(path);
    write_whole(&target, text.as_bytes()).map_err(|error| {
        let message = format!("`{file}` cannot be written: {error}");
        vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
    })?;
    Ok(added)
}

fn head(config: &Path) -> String {
    let lock = lock_file(config);
    let lock = lock.file_name().unwrap_or_default().to_string_lossy();
    let name: String = lock.chars().filter(|c| !is_invisible(*c)).collect();
    format!(
        "# Who looked at what in {name}. `broker-gen accept` and `broker-gen review` add to the end;\n\
         # nothing rewrites this file, and you may edit it."
    )
}

/// The text with the entries appended, and the added part.
fn extended(old: &str, decisions: &[Decision]) -> (String, String) {
    let entries: Vec<String> = decisions.iter().map(Decision::to_toml).collect();
    let added = entries.join("\n");
    let all = old.matches('\n').count();
    let line_end = if all > 0 && old.matches("\r\n").count() * 2 > all {
        "\r\n"
    } else {
        "\n"
    };
    let mut text = old.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(line_end);
    }
    if !text.is_empty() {
        text.push_str(line_end);
    }
    text.push_str(&added.replace('\n', line_end));
    (text, added)
}

/// Whether the new file parses to exactly the old entries and the new ones.
fn holds(new: &Result<Audits, Vec<Diagnostic>>, old: &Audits, decisions: &[Decision]) -> bool {
    let Ok(new) = new else { return false };
    let (mut audits, mut hints) = (Vec::new(), Vec::new());
    let (mut suppressions, mut left_out) = (Vec::new(), Vec::new());
    for decision in decisions {
        match decision {
            Decision::Audit(audit) => audits.push(audit),
            Decision::Hints(audit) => hints.push(audit),
            Decision::Suppression(suppression) => suppressions.push(suppression),
            Decision::LeftOut(audit) => left_out.push(audit),
        }
    }
    let old_audits = old.audits();
    let old_hints = old.hints();
    let new_hints = new.hints();
    let old_suppressions = old.suppressions();
    let new_audits = new.audits();
    let new_suppressions = new.suppressions();
    let old_left_out = old.left_out();
    let new_left_out = new.left_out();
    new_audits.eq(old_audits.chain(audits))
        && new_left_out.eq(old_left_out.chain(left_out))
        && new_hints.eq(old_hints.chain(hints))
        && new_suppressions.eq(old_suppressions.chain(suppressions))
        && new.exemptions_count() == old.exemptions_count()
        && new.violations().count() == old.violations().count()
}
