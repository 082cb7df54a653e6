//! The rules of drift and of the lint.

use broker_drift::Rule;

use crate::lint;

/// A rule, and the page that explains it.
pub type Explained = (&'static Rule, String);

/// Returns the rules of drift, then the rules of the lint.
pub fn all() -> impl Iterator<Item = Explained> {
    let of_drift = broker_drift::rules().iter().map(|rule| (rule, rule.page()));
    let of_lint = lint::rules().iter();
    of_drift.chain(of_lint.map(|rule| (rule, format!("docs/lint.md#{}", rule.id))))
}

/// The rule of this id.
pub fn find(id: &str) -> Option<Explained> {
    all().find(|(rule, _)| rule.id == id)
}
