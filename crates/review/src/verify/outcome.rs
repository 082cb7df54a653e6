//! The outcome of `verify`: passed checks, problems, and their output.

use broker_model::Diagnostic;
use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::counted;
use serde_json::{Value, json};

/// The checks and their problems.
#[derive(Debug, Default)]
pub struct Outcome {
    pub tools: usize,
    pub sources: usize,
    /// One line for each passed check, with its name.
    pub holds: Vec<(&'static str, String)>,
    pub catalog_digest: Option<String>,
    /// How the broker that was asked has this catalog: the end of a sentence.
    pub binary: Option<String>,
    pub root_digest: Option<String>,
    pub audits: Option<Counts>,
    pub problems: Vec<Diagnostic>,
}

/// The audit status of the lock.
#[derive(Debug)]
pub struct Counts {
    /// The number of people who must have audited a tool; 0 if the config requires no audits.
    pub people: u8,
    pub audited: usize,
    pub exempt: usize,
    pub of: usize,
}

impl Outcome {
    /// A document, or its problems.
    pub fn take<T>(&mut self, read: Result<T, Vec<Diagnostic>>) -> Option<T> {
        read.map_err(|problems| self.problems.extend(problems)).ok()
    }

    pub fn holds(&mut self, what: &'static str, how: String) {
        self.holds.push((what, how));
    }

    /// Renders the outcome for people: one line if all is well, else the checks that passed and the result.
    pub fn human(&self, exit: Exit) -> Text {
        if exit == Exit::Ok {
            return self.verified();
        }
        let mut out = Text::new();
        for (what, how) in &self.holds {
            out.push(text!("  {:<8} {}\n", what, how));
        }
        let errors = self.problems.iter().filter(|one| one.is_error()).count();
        out.push(match errors {
            0 => "not verified: there is no source, so nothing was checked\n".into(),
            _ => text!("not verified: {}\n", counted(errors, "problem")),
        });
        out
    }

    fn verified(&self) -> Text {
        let audits = self.audits.as_ref();
        let audits = audits.map(|counts| format!(", audits {counts}"));
        let catalog = self.catalog_digest.as_ref();
        let catalog = catalog.map(|digest| format!(", catalog {digest}"));
        let binary = self.binary.as_ref();
        let binary = binary.map(|how| format!(", {how}"));
        text!(
            "verified: {} of {}{}{}{}\n",
            counted(self.tools, "tool"),
            counted(self.sources, "source"),
            audits.unwrap_or_default(),
            catalog.unwrap_or_default(),
            binary.unwrap_or_default()
        )
    }

    pub fn to_json(&self, exit: Exit) -> Value {
        json!({
            "format_version": 1,
            "verified": exit == Exit::Ok,
            "sources": self.sources,
            "tools": self.tools,
            "root_digest": self.root_digest,
            "catalog_digest": self.catalog_digest,
            "holds": self.holds.iter().map(|(what, _)| *what).collect::<Vec<_>>(),
            "audits": self.audits.as_ref().map(|counts| json!({
                "required": counts.people > 0,
                "people": counts.people,
                "audited": counts.audited,
                "exempt": counts.exempt,
                "of": counts.of,
            })),
            "problems": self.problems.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        })
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.audited, self.of)?;
        if self.exempt > 0 {
            write!(f, " and {} exempt", self.exempt)?;
        }
        match self.people {
            0 => write!(f, ", which the config does not require")?,
            1 => {}
            people => write!(f, ", each by {people} people")?,
        }
        Ok(())
    }
}
