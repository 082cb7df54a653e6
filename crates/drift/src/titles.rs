//! The parts of a report in words.

use broker_model::text::shown_line;

use super::class::Class;
use super::report::{Finding, Report, SourceDrift, ToolDrift};

/// Maximum characters of a shown witness.
const WITNESS: usize = 400;

impl SourceDrift {
    /// Its title for people.
    pub fn title(&self) -> String {
        let is_of_source = |finding: &Finding| finding.rule != "access-changed";
        match self.findings.iter().any(is_of_source) {
            true => format!("source {}", self.source),
            false => "rules of access".to_owned(),
        }
    }
}

impl ToolDrift {
    /// Its title for people: its path, and the server's name if it differs.
    pub fn title(&self) -> String {
        let path = shown_line(&self.path, 200);
        let name = shown_line(&self.tool, 100);
        if path.ends_with(&format!("/{name}")) {
            path
        } else {
            format!("{path} (`{name}`)")
        }
    }
}

impl Report {
    /// `1 same, 2 breaking`: the number of each class.
    pub fn counts(&self) -> String {
        let summary = self.summary();
        let counts = Class::ALL
            .into_iter()
            .map(|class| (class, summary.get(&class).copied().unwrap_or_default()))
            .filter(|(class, count)| *count > 0 || *class == Class::Same);
        let counts: Vec<_> = counts
            .map(|(class, count)| format!("{count} {}", class.as_str()))
            .collect();
        counts.join(", ")
    }
}

impl Finding {
    /// Whether another finding has the same change.
    pub fn shows_what(&self, other: &Self) -> bool {
        self.old.is_some()
            && (&self.pointer, &self.old, &self.new) == (&other.pointer, &other.old, &other.new)
    }

    /// The witness in one sentence.
    pub fn example(&self) -> Option<String> {
        let witness = self.witness.as_ref()?;
        let what = if self.rule.starts_with("output") {
            "answer"
        } else {
            "call"
        };
        Some(format!(
            "for example the {what} {}",
            shown_line(&broker_model::json::to_text(witness), WITNESS)
        ))
    }
}
