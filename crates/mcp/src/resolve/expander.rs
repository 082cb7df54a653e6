//! Expands the variables of a source's strings. Collects all problems, and all values that are secrets.

use std::path::Path;

use broker_config::{Part, Template};
use broker_model::redact::Secret;
use broker_model::{Diagnostic, DiagnosticCode};

use crate::environment::{Environment, is_base};

/// Expands templates; collects all problems and all secret values.
pub(super) struct Expander<'a> {
    pub(super) environment: &'a Environment,
    /// The value of `${workspaceFolder}`.
    pub(super) base: &'a Path,
    problems: Vec<Diagnostic>,
    /// Variables that are not set, by place, in the order found.
    missing: Vec<(String, Vec<String>)>,
    /// Variables without a default that are set and empty, in the order found.
    pub(super) empty: Vec<String>,
    pub(super) secrets: Vec<Secret>,
}

impl<'a> Expander<'a> {
    pub(super) fn new(environment: &'a Environment, base: &'a Path) -> Self {
        Self {
            environment,
            base,
            problems: Vec::new(),
            missing: Vec::new(),
            empty: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// Records a problem, each only once: words of one string share a place.
    pub(super) fn problem(&mut self, code: DiagnosticCode, message: &str, place: &str) {
        let known = |problem: &Diagnostic| {
            problem.code == code
                && problem.message == message
                && problem.pointer.as_deref() == Some(place)
        };
        if !self.problems.iter().any(known) {
            self.problems
                .push(Diagnostic::error(code, message).at(place));
        }
    }

    /// Records a problem that has its place.
    pub(super) fn push(&mut self, problem: Diagnostic) {
        self.problems.push(problem);
    }

    /// Records variables that are not set.
    fn missing(&mut self, names: impl Iterator<Item = String>, place: &str) {
        let at = self.missing.iter().position(|(known, _)| known == place);
        let at = at.unwrap_or_else(|| {
            self.missing.push((place.to_owned(), Vec::new()));
            self.missing.len() - 1
        });
        let known = &mut self.missing[at].1;
        for name in names {
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }

    /// Whether there was no problem so far.
    pub(super) fn is_fine(&self) -> bool {
        self.problems.is_empty() && self.missing.is_empty()
    }

    /// Returns all problems; each variable that is not set is reported once for each place.
    pub(super) fn finish(&mut self) -> Vec<Diagnostic> {
        for (place, names) in std::mem::take(&mut self.missing) {
            let verb = if names.len() == 1 { "is" } else { "are" };
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("{} {verb} not set", names.join(", "));
            self.problem(DiagnosticCode::EnvMissing, &message, &place);
        }
        std::mem::take(&mut self.problems)
    }

    /// Returns the expanded text; empty after a problem, and the problem is recorded. With `secret`, the whole text is
    /// a secret. A value from a variable is always a secret, except for variables that every child inherits.
    pub(super) fn expand(&mut self, template: &Template, place: &str, secret: bool) -> String {
        let (environment, base) = (self.environment, self.base);
        let value_of = |name: &str| match name {
            broker_config::WORKSPACE_FOLDER => base.to_str(),
            name => environment.get(name),
        };
        for name in template.variables() {
            let Some(value) = value_of(name) else {
                continue;
            };
            if value.contains(['\n', '\r', '\0']) {
                let message = format!("the value of `{name}` holds a newline or a NUL");
                self.problem(DiagnosticCode::EnvValue, &message, place);
            }
            if !is_base(name, value) && name != broker_config::WORKSPACE_FOLDER {
                self.secrets.push(Secret::new(value));
            }
        }
        for part in template.parts() {
            if let Part::Variable {
                name,
                default: None,
            } = part
                && value_of(name) == Some("")
                && !self.empty.contains(name)
            {
                self.empty.push(name.clone());
            }
        }
        let text = match template.expand(&|name| value_of(name).map(str::to_owned)) {
            Ok(text) => text,
            Err(missing) => {
                self.missing(missing.into_iter().map(|name| name.0), place);
                return String::new();
            }
        };
        if template.variables().next().is_none() && text.contains('\0') {
            self.problem(DiagnosticCode::EnvValue, "the text holds a NUL", place);
        }
        if secret {
            self.secrets.push(Secret::new(text.as_str()));
        }
        text
    }
}
