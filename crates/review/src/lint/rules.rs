//! The rules of the lint: errors are invisible to a reviewer, warnings need a careful look.

use broker_drift::{Class, FindingSeverity, Rule};

/// Every rule, in the order of its page.
pub fn rules() -> &'static [Rule] {
    RULES
}

/// The rule of an id of this crate.
pub(super) fn rule(id: &str) -> &'static Rule {
    Rule::in_table(RULES, id)
}

/// The remedy for a finding of this rule; empty for an unknown id.
pub fn advice(id: &str) -> &'static str {
    ADVICE
        .iter()
        .find(|(known, _)| *known == id)
        .map_or("", |(_, advice)| advice)
}

/// One row per rule.
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
        "Models read characters without a width, and text that is encoded with them."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "bidirectional-code-point" Security Error
        "Direction marks show a text in another order than the one in which a model reads it."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "tag-code-point" Security Error
        "Tag characters spell ASCII text that models read and no screen shows."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "control-sequence" Security Error
        "Control characters move, colour and overwrite the text on a terminal."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "encoded-payload" Security Error
        "The text contains encoded text that decodes to instructions."
        "hide the tool with `tool_filter`, or drop the source, and report it to its maintainers"
    "hidden-markup" Text Warning
        "A reader overlooks a comment, or text after a long gap of blanks, and a model does not."
        "read the whole text"
    "instruction-markup" Text Warning
        "Markup of a prompt makes a description look as if it came from the user or the system."
        "read the marked text, and hide the tool if it concerns more than the tool itself"
    "instruction-override" Text Warning
        "The text refers to the model's other instructions or to its identity."
        "hide the tool, unless the tool itself works on instructions"
    "instruction-concealment" Text Warning
        "The text asks the model to conceal something from the user."
        "find out what is to be concealed, and why"
    "instruction-order" Text Warning
        "The text asks for the tool to be called before others, or without a request."
        "check that the order concerns only tools of this source; otherwise override the description"
    "sensitive-file" Text Warning
        "The text names a file with keys or settings, and a model may then read it."
        "check that the tool works on that file"
    "sends-elsewhere" Text Warning
        "The text asks the model to send data, or to put more into a call than the user asked for."
        "check where the data goes, and whether the call needs it"
    "foreign-tool-named" Text Warning
        "The text names a tool of another source, and can change how a model uses it."
        "check that it only says that the two are used together"
    "near-duplicate-description" Text Warning
        "A model cannot distinguish two tools with nearly the same description."
        "keep one of the two, or override a description"
    "parameter-asks" Text Warning
        "A parameter asks for the conversation or for secrets, which the call would then send to the server."
        "check what the server does with it, and give it no more than it needs"
    "confusable-name" Text Warning
        "The name looks like the name of another source's tool."
        "keep one of the two, or give one an alias"
    "mixed-script-name" Text Warning
        "Letters of several scripts make one word look like another."
        "hide the tool, unless its authors write in these scripts"
    "search-bait" Text Warning
        "The text lists words of many subjects, repeats words or claims to fit every request, so that searches find a tool that does not fit."
        "override the description with what the tool does, or hide the tool with `tool_filter`"
    "hint-foreign-tool" Text Warning
        "A search hint of the config names a tool of another source, so that its searches find the wrong tool."
        "remove the name from the hint"
    "hint-unrelated" Text Warning
        "A search hint of the config shares no word with the name, the description and the parameters of its tool."
        "check that a user who writes this needs the tool, or add a word of the tool"
    "hint-common" Text Warning
        "More than 5 % of the tools have every word of a search hint of the config, so that it finds nothing in particular."
        "say what is specific to the tool"
    "same-name" Text Warning
        "Two sources have a tool of this name, and a model may call the wrong one."
        "give one of the two an alias, or keep one"
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_drift as drift;
    use std::collections::BTreeSet;

    #[test]
    fn lint_rules_have_unique_ids_a_reason_and_advice() {
        let mut ids: BTreeSet<&str> = drift::rules().iter().map(|rule| rule.id).collect();
        for rule in rules() {
            assert!(ids.insert(rule.id), "{} is listed twice", rule.id);
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
