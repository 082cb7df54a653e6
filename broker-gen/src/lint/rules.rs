//! The rules of the lint: errors are what nobody can see, warnings what a reviewer should look at.

use broker_drift::{Class, FindingSeverity, Rule};

/// Every rule, in the order of its page.
pub fn rules() -> &'static [Rule] {
    RULES
}

/// The rule of an id of this crate.
pub(super) fn rule(id: &str) -> &'static Rule {
    RULES
        .iter()
        .find(|rule| rule.id == id)
        .expect("every id that is used stands in the table, which a test holds")
}

/// What to do about a finding of this rule; empty for an id that is not known.
pub fn advice(id: &str) -> &'static str {
    ADVICE
        .iter()
        .find(|(known, _)| *known == id)
        .map_or("", |(_, advice)| advice)
}

/// One row a rule, so that the table reads as one.
macro_rules! table {
    ($($id:literal $class:ident $severity:ident $reason:literal $advice:literal)*) => {
        const RULES: &[Rule] = &[$(Rule {
            id: $id,
            class: Class::$class,
            severity: FindingSeverity::$severity,
            reason: $reason,
        }),*];
        const ADVICE: &[(&str, &str)] = &[$(($id, $advice)),*];
    };
}

table! {
    "hidden-code-point" Security Error
        "A model reads characters that take no place on a screen, and what is written with them."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "bidirectional-code-point" Security Error
        "Marks of direction show a text in another order than the one in which a model reads it."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "tag-code-point" Security Error
        "Tag characters spell ASCII that a model reads and nothing draws."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "control-sequence" Security Error
        "Control characters move, colour and overwrite what a terminal shows."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "encoded-payload" Security Error
        "Encoded text that reads as instructions was not written for a reviewer."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "hidden-markup" Text Warning
        "A comment, or a gap of blanks before more text, is passed over by a reader and not by a model."
        "read the whole text"
    "instruction-markup" Text Warning
        "Tags and marks of a prompt make a description look as if it came from the user or the system."
        "read what stands in it, and hide the tool if it is about more than the tool itself"
    "instruction-override" Text Warning
        "A description has no business with the model's other instructions, or with who it is."
        "hide the tool, unless it is about something else that has instructions"
    "instruction-concealment" Text Warning
        "The model is told to keep something from the user."
        "find out what is not to be said, and why"
    "instruction-order" Text Warning
        "The tool claims to come before others, or to be called without being asked for."
        "look whether the order is about this source's own tools; override the description if it is not"
    "sensitive-file" Text Warning
        "A file that holds keys or settings is named, and descriptions make models read files."
        "look whether the tool is about that file"
    "sends-elsewhere" Text Warning
        "The model is told to send something, or to put more into a call than was asked for."
        "look where it goes, and whether the call needs it"
    "foreign-tool-named" Text Warning
        "A tool of another source is named, and a description can change how a model uses it."
        "look whether it says more than that the two go together"
    "near-duplicate-description" Text Warning
        "A model cannot tell two tools apart that describe themselves alike."
        "keep one of the two, or override a description"
    "parameter-asks" Text Warning
        "A parameter asks for the conversation or for secrets, which then leave with the call."
        "look what the server does with it, and never give it more than it needs"
    "confusable-name" Text Warning
        "The name looks like that of another source's tool."
        "keep one of the two, or give one an alias"
    "mixed-script-name" Text Warning
        "Letters of several scripts in one word look like another word."
        "hide the tool, unless its authors write so"
    "same-name" Text Warning
        "Two sources have a tool of this name, and a model that has read of one may call the other."
        "give one of the two an alias, or keep one"
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_drift as drift;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_also_among_those_of_drift_and_each_says_what_to_do() {
        let mut ids: BTreeSet<&str> = drift::rules().iter().map(|rule| rule.id).collect();
        for rule in rules() {
            assert!(ids.insert(rule.id), "{} stands twice", rule.id);
            let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(rule.id.chars().all(kebab), "{}", rule.id);
            assert!(rule.reason.ends_with('.') && !rule.reason.contains(". "));
            assert!(!advice(rule.id).is_empty() && !advice(rule.id).ends_with('.'));
            let expected = match rule.severity {
                FindingSeverity::Error => Class::Security,
                _ => Class::Text,
            };
            assert_eq!(rule.class, expected, "{}", rule.id);
        }
    }
}
