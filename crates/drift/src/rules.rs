//! The rules of drift: each with its stable id, the class and the severity that it usually gives,
//! and the reason. A change of a schema gets a milder class where a proof or the lack of a witness
//! says so; the class here is the one without.

use super::report::{Class, FindingSeverity};

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable, kebab-case.
    pub id: &'static str,
    /// What it means where nothing milder is proven.
    pub class: Class,
    /// How loud it is then.
    pub severity: FindingSeverity,
    /// Why, in one sentence.
    pub reason: &'static str,
}

impl Rule {
    /// Where it is explained, in this project.
    pub fn page(&self) -> String {
        format!("docs/drift-rules.md#{}", self.id)
    }
}

/// Every rule that a report can name, in the order of its page.
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

/// The rule of one side of a tool, `input` or `output`.
pub(super) fn of(side: &str, rest: &str) -> &'static Rule {
    let of_side = |rule: &&Rule| {
        let own = rule
            .id
            .strip_prefix(side)
            .and_then(|id| id.strip_prefix('-'));
        own == Some(rest)
    };
    RULES
        .iter()
        .find(of_side)
        .unwrap_or_else(|| rule("unknown-change"))
}

/// One row a rule, so that the table reads as one.
macro_rules! table {
    ($($id:literal $class:ident $severity:ident $reason:literal)*) => {
        &[$(Rule {
            id: $id,
            class: Class::$class,
            severity: FindingSeverity::$severity,
            reason: $reason,
        }),*]
    };
}

const RULES: &[Rule] = table! {
    // A tool as a whole.
    "tool-gone" Gone Error
        "Calls to a tool that is no longer listed cannot succeed."
    "tool-renamed" Gone Error
        "A tool under another name is another tool until it was reviewed there."
    "tool-moved" Gone Error
        "A tool that another source offers now is run by somebody else."
    "tool-hidden" Gone Error
        "A tool that the filter hides is no longer there for callers."
    "tool-added" Added Note
        "A new tool is never exposed before it was reviewed."
    "unknown-change" Unknown Error
        "A change that no rule knows is never taken for a harmless one."
    // Its texts and hints.
    "description-changed" Text Warning
        "A model follows what a description says, so the reviewed one is served."
    "title-changed" Text Warning
        "A model reads the title, so the reviewed one is served."
    "white-space-changed" Text Note
        "Only white space of a text moved; the reviewed text is served."
    "hidden-characters" Security Error
        "Characters that a reader cannot see came into a text that a model reads."
    "hidden-payload" Security Error
        "Encoded text that reads as instructions came into a text that a model reads."
    "annotations-less-safe" Security Error
        "The tool says that it may do more harm than was reviewed."
    "annotations-safer" Text Warning
        "The tool claims to be safer than reviewed; the reviewed claim is served."
    "annotations-respelled" Equivalent Note
        "The defaults of the specification make the same claim."
    "annotations-changed" Text Warning
        "An annotation that is a text or is not known moved."
    "icons-changed" Text Warning
        "An icon is what a person recognises the tool by."
    "icon-host-changed" Security Error
        "An icon is fetched from a host that was not reviewed."
    "meta-changed" Text Warning
        "`_meta` may be read by clients; the reviewed one is served."
    "execution-changed" Text Warning
        "`execution` tells clients how to call; the reviewed one is served."
    "member-changed" Text Warning
        "A member that is not known moved; the reviewed one is served."
    // What callers may send.
    "input-required-added" Breaking Error
        "Calls that leave the property out were good and are refused now."
    "input-required-removed" Compatible Note
        "The property may be left out now; reviewed calls send it."
    "input-property-added" Compatible Warning
        "A new optional property is a new input channel; callers do not see it before it was reviewed."
    "input-channel-added" Compatible Error
        "A new property that asks for context, credentials or addresses is a way for data to leave."
    "input-property-removed" Breaking Error
        "A call that sends the property no longer means what was reviewed."
    "input-schema-emptied" Breaking Error
        "Nothing is said any more of what the tool takes."
    "input-type-narrowed" Breaking Error
        "Values of a type that was taken are refused now."
    "input-type-widened" Compatible Note
        "Values of more types are taken."
    "input-type-changed" Breaking Error
        "The property takes values of another type."
    "input-enum-narrowed" Breaking Error
        "A value that was taken is no longer listed."
    "input-enum-widened" Compatible Note
        "More values are listed."
    "input-enum-changed" Breaking Error
        "Listed values left and others came."
    "input-limit-narrowed" Breaking Error
        "Values that were within the bounds are outside now."
    "input-limit-widened" Compatible Note
        "The bounds are wider."
    "input-limit-changed" Breaking Error
        "The bounds moved."
    "input-pattern-narrowed" Breaking Error
        "Texts have to match a pattern that they did not have to match."
    "input-pattern-widened" Compatible Note
        "Texts no longer have to match the pattern."
    "input-pattern-changed" Breaking Error
        "Texts have to match another pattern."
    "input-alternatives-narrowed" Breaking Error
        "An alternative that was taken left."
    "input-alternatives-widened" Compatible Note
        "An alternative was added."
    "input-alternatives-changed" Breaking Error
        "Alternatives left and others came."
    "input-condition-changed" Breaking Error
        "A condition on the arguments changed."
    "input-object-closed" Breaking Error
        "Members that the object took are refused now."
    "input-object-opened" Compatible Warning
        "The object takes any member; callers are held to the reviewed, closed one."
    "input-default-changed" Compatible Warning
        "What the server does for callers that leave the property out may have changed."
    "input-format-changed" Compatible Warning
        "A format is a note to the caller, and the server may insist on it."
    "input-header-changed" Security Error
        "An argument moves between the body of the call and a header."
    "input-text-changed" Text Warning
        "A model reads the texts of a schema; the reviewed ones are served."
    "input-keyword-changed" Text Warning
        "A keyword that takes nothing moved; the reviewed schema is served."
    "input-dialect-changed" Equivalent Note
        "The schema names another dialect, in which it takes the same."
    "input-rearranged" Equivalent Note
        "The schema is written otherwise and takes the same."
    "input-widened" Compatible Note
        "Every call of the reviewed schema is proven good."
    "input-strictly-narrowed" Compatible Warning
        "As written a call is refused that the reviewed schema does not mention."
    "input-member-lost" Breaking Error
        "A call that sends a declared member no longer means what was reviewed."
    "input-unsafe" Breaking Error
        "A call that was good is refused now."
    "input-unproven" Unknown Error
        "Neither a proof nor a counterexample was found, so nothing is assumed."
    "input-schema-added" Unknown Error
        "A tool without an input schema cannot have been reviewed in full."
    "input-schema-removed" Unknown Error
        "Nothing is said any more of what the tool takes."
    // What callers must read.
    "output-required-added" Compatible Note
        "Answers have the property always."
    "output-required-removed" Breaking Error
        "Answers may leave out what readers rely on."
    "output-property-added" Breaking Error
        "Answers carry a member that the reviewed, closed object does not have."
    "output-property-removed" Compatible Warning
        "Answers no longer declare a property that readers could do without."
    "output-schema-emptied" Unknown Error
        "Nothing is said any more of what the answers are."
    "output-type-narrowed" Compatible Note
        "Answers are of fewer types."
    "output-type-widened" Breaking Error
        "Answers may be of a type that readers do not know."
    "output-type-changed" Breaking Error
        "Answers are of another type."
    "output-enum-narrowed" Compatible Note
        "Answers hold fewer values."
    "output-enum-widened" Breaking Error
        "Answers may hold a value that readers do not know."
    "output-enum-changed" Breaking Error
        "Answers may hold a value that readers do not know."
    "output-limit-narrowed" Compatible Note
        "Answers keep to tighter bounds."
    "output-limit-widened" Breaking Error
        "Answers may pass the reviewed bounds."
    "output-limit-changed" Breaking Error
        "Answers may pass the reviewed bounds."
    "output-pattern-narrowed" Compatible Note
        "Texts of answers match a pattern."
    "output-pattern-widened" Breaking Error
        "Texts of answers may no longer match the pattern."
    "output-pattern-changed" Breaking Error
        "Texts of answers match another pattern."
    "output-alternatives-narrowed" Compatible Note
        "Answers have fewer forms."
    "output-alternatives-widened" Breaking Error
        "Answers may have a form that readers do not know."
    "output-alternatives-changed" Breaking Error
        "Answers may have a form that readers do not know."
    "output-condition-changed" Breaking Error
        "A condition on the answers changed."
    "output-object-closed" Compatible Note
        "Answers hold nothing but what is declared."
    "output-object-opened" Breaking Error
        "Answers may hold members that typed readers refuse."
    "output-default-changed" Compatible Note
        "A default in an answer's schema is a note."
    "output-format-changed" Compatible Warning
        "A format is a note that readers may rely on."
    "output-header-changed" Security Error
        "A member moves between the body and a header."
    "output-text-changed" Text Warning
        "A model reads the texts of a schema; the reviewed ones are served."
    "output-keyword-changed" Text Warning
        "A keyword that takes nothing moved; the reviewed schema is served."
    "output-dialect-changed" Equivalent Note
        "The schema names another dialect, in which it takes the same."
    "output-rearranged" Equivalent Note
        "The schema is written otherwise and takes the same."
    "output-widened" Compatible Note
        "Every answer of the live schema is proven readable."
    "output-strictly-widened" Compatible Warning
        "As written an answer may come that the reviewed schema does not mention."
    "output-member-lost" Breaking Error
        "A declared member is no longer declared."
    "output-unsafe" Breaking Error
        "An answer may come that nobody agreed to read."
    "output-unproven" Unknown Error
        "Neither a proof nor a counterexample was found, so nothing is assumed."
    "output-schema-added" Compatible Note
        "Answers got a schema; readers of the reviewed tool have none."
    "output-schema-removed" Breaking Error
        "Readers rely on a schema that no answer keeps to any more."
    // A source as a whole.
    "source-unavailable" Unchecked Error
        "A source that cannot be listed cannot be compared with the lock."
    "source-gone" Gone Error
        "The tools of a source that left have left with it."
    "source-added" Added Note
        "A new source is never exposed before it was reviewed."
    "source-config-changed" Unknown Error
        "Another command, address or filter may be another server."
    "package-changed" Security Error
        "Another package under the same command is another program."
    "package-integrity-changed" Security Error
        "One version has one content, so somebody replaced what was reviewed."
    "package-version-changed" Same Note
        "A version alone changes nothing that was reviewed."
    "package-unseen" Same Warning
        "A package that could not be looked at is not known to be the reviewed one."
    "package-unrecorded" Same Note
        "The lock does not say what ran when it was made, so there is nothing to compare."
    "hidden-tool-changed" Same Note
        "A tool that the filter hides concerns no caller."
    "server-name-changed" Text Warning
        "The server calls itself by another name: a rebrand, or another server."
    "server-info-changed" Text Warning
        "What the server says of itself moved."
    "instructions-changed" Text Warning
        "A model follows the instructions, so the reviewed ones stand."
    "server-version-changed" Same Note
        "A version alone changes nothing that was reviewed."
    "capabilities-changed" Same Warning
        "Other capabilities are no part of what is exposed."
    "protocol-revision-changed" Same Warning
        "Another revision of the protocol carries the same tools."
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_kebab_case_and_unique_and_reasons_are_one_sentence() {
        let mut ids = BTreeSet::new();
        for rule in rules() {
            assert!(ids.insert(rule.id), "{} stands twice", rule.id);
            let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(rule.id.chars().all(kebab), "{}", rule.id);
            assert!(
                rule.reason.ends_with('.') && !rule.reason.contains(". "),
                "{}",
                rule.id
            );
        }
    }

    #[test]
    fn both_sides_have_the_same_rules_and_every_id_in_the_code_is_listed() {
        for id in [
            "unsafe",
            "widened",
            "unproven",
            "rearranged",
            "dialect-changed",
            "member-lost",
            "type-narrowed",
            "enum-changed",
            "limit-widened",
            "pattern-changed",
            "condition-changed",
            "alternatives-changed",
            "object-closed",
            "object-opened",
            "schema-emptied",
            "text-changed",
            "default-changed",
            "format-changed",
            "header-changed",
            "keyword-changed",
            "property-removed",
        ] {
            for side in ["input", "output"] {
                assert_eq!(of(side, id).id, format!("{side}-{id}"));
            }
        }
    }
}
