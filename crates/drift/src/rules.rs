//! The rules of drift: each with its stable id, its usual class and severity, and the reason. A changed
//! schema gets a milder class if a proof or the lack of a witness shows it; the class here is the one without.

use broker_model::public_names::PublicNames;

use super::class::{Class, FindingSeverity};

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable, kebab-case.
    pub id: &'static str,
    /// The class without a proof of a milder one.
    pub class: Class,
    /// The severity of that class.
    pub severity: FindingSeverity,
    /// The reason, in one sentence.
    pub reason: &'static str,
}

impl Rule {
    /// The page of this project that explains it.
    pub fn page(&self) -> String {
        format!("docs/drift-rules.md#{}", self.id)
    }

    /// The rule of an id in a table.
    ///
    /// # Panics
    ///
    /// The table has no such id: the ids in the code are constants, and tests compare them with the tables.
    pub fn in_table(table: &'static [Self], id: &str) -> &'static Self {
        let found = table.iter().find(|rule| rule.id == id);
        found.expect("the id of a rule is in its table")
    }
}

/// Every rule that a report can name, in the order of its page.
pub fn rules() -> &'static [Rule] {
    RULES
}

/// Adds the ids of the rules to the names that a report does not mask.
pub fn add_rule_ids(names: &mut PublicNames) {
    rules().iter().for_each(|rule| names.add(rule.id));
}

/// The rule of an id of this crate.
pub(super) fn rule(id: &str) -> &'static Rule {
    Rule::in_table(RULES, id)
}

/// The rule of one side of a tool, `input` or `output`.
pub(super) fn find(side: &str, rest: &str) -> &'static Rule {
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

/// One row per rule.
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
        "The tool seems to have another name; under that name it is a new tool until it is reviewed."
    "tool-moved" Gone Error
        "The tool is now offered by another source, so another server would run it."
    "tool-hidden" Gone Error
        "Callers cannot use a hidden tool."
    "tool-added" Added Note
        "A new tool is not exposed before it is reviewed."
    "tool-unusable" Unknown Error
        "A tool that cannot be read cannot be compared with the reviewed one."
    "tool-defined-twice" Unknown Error
        "A server that defines a tool twice may run either definition."
    "list-cut" Unknown Error
        "A tool in a part of a list that was not read cannot be compared with the reviewed one."
    "null-for-absent" Equivalent Note
        "Null stands for the absence of an optional member, so both forms mean the same."
    "unvalidated-changed" Unknown Error
        "The schema of an unvalidated tool cannot be compared, so every change of the tool needs a review."
    "unknown-change" Unknown Error
        "A change without a rule is never treated as harmless."
    // Its texts and hints.
    "description-changed" Text Warning
        "Models follow descriptions, so the reviewed one is served."
    "title-changed" Text Warning
        "Models read titles, so the reviewed one is served."
    "white-space-changed" Text Note
        "Only white space of a text changed; the reviewed text is served."
    "hidden-characters" Security Error
        "Invisible characters were added to a text that models read."
    "hidden-payload" Security Error
        "Encoded text that decodes to instructions was added to a text that models read."
    "annotations-less-safe" Security Error
        "The tool's annotations allow more harm than the reviewed ones."
    "annotations-safer" Text Warning
        "The tool claims to be safer than reviewed; the reviewed annotations are served."
    "annotations-respelled" Equivalent Note
        "With the defaults of the specification both forms mean the same."
    "annotations-changed" Text Warning
        "An annotation that is a text or is unknown changed."
    "icons-changed" Text Warning
        "People recognise a tool by its icon."
    "icon-host-changed" Security Error
        "Clients would fetch an icon from a host that was not reviewed."
    "meta-changed" Text Warning
        "Clients may read `_meta`; the reviewed one is served."
    "execution-changed" Text Warning
        "`execution` tells clients how to call; the reviewed one is served."
    "member-changed" Text Warning
        "An unknown member changed; the reviewed one is served."
    // The arguments of calls.
    "input-required-added" Breaking Error
        "Calls without the property were valid and are refused now."
    "input-required-removed" Compatible Note
        "The property is optional now; reviewed calls send it."
    "input-property-added" Compatible Warning
        "A new optional property is a new input channel; callers do not see it before it is reviewed."
    "input-channel-added" Compatible Error
        "A new property that asks for context, credentials or addresses can leak data."
    "input-property-renamed" Breaking Error
        "The server ignores or refuses an argument under its reviewed name."
    "input-property-removed" Breaking Error
        "Calls with the property no longer have the reviewed meaning."
    "input-schema-emptied" Breaking Error
        "The schema no longer describes the arguments."
    "input-type-narrowed" Breaking Error
        "Values of a type that was accepted are refused now."
    "input-type-widened" Compatible Note
        "Values of more types are accepted."
    "input-type-changed" Breaking Error
        "The property accepts values of another type."
    "input-enum-narrowed" Breaking Error
        "A value that was accepted is no longer listed."
    "input-enum-widened" Compatible Note
        "More values are listed."
    "input-enum-changed" Breaking Error
        "Listed values were removed and others added."
    "input-limit-narrowed" Breaking Error
        "Values that were within the bounds are refused now."
    "input-limit-widened" Compatible Note
        "The bounds are wider."
    "input-limit-changed" Breaking Error
        "The bounds changed."
    "input-pattern-narrowed" Breaking Error
        "Texts must match a new pattern."
    "input-pattern-widened" Compatible Note
        "Texts no longer need to match the pattern."
    "input-pattern-changed" Breaking Error
        "Texts must match another pattern."
    "input-alternatives-narrowed" Breaking Error
        "An accepted alternative was removed."
    "input-alternatives-widened" Compatible Note
        "An alternative was added."
    "input-alternatives-changed" Breaking Error
        "Alternatives were removed and others added."
    "input-condition-changed" Breaking Error
        "A condition on the arguments changed."
    "input-object-closed" Breaking Error
        "Members that the object accepted are refused now."
    "input-object-opened" Compatible Warning
        "The object accepts any member; arguments are validated against the reviewed, closed one."
    "input-default-changed" Compatible Warning
        "Calls without the property may have another effect."
    "input-format-changed" Compatible Warning
        "A format is an annotation, but the server may enforce it."
    "input-header-changed" Security Error
        "An argument moves between the body of the call and a header."
    "input-text-changed" Text Warning
        "Models read the texts of a schema; the reviewed ones are served."
    "input-keyword-changed" Text Warning
        "A keyword that does not constrain values changed; the reviewed schema is served."
    "input-dialect-changed" Equivalent Note
        "The schema names another dialect, in which it accepts the same values."
    "input-rearranged" Equivalent Note
        "The schema has another form and accepts the same values."
    "input-widened" Compatible Note
        "Every valid call of the reviewed schema is proven valid."
    "input-strictly-narrowed" Compatible Warning
        "The schema refuses a call that the reviewed schema accepts but does not declare."
    "input-member-lost" Breaking Error
        "A call with a declared member no longer has the reviewed meaning."
    "input-unsafe" Breaking Error
        "A call that was valid is refused now."
    "input-unproven" Unknown Error
        "Neither a proof nor a counterexample was found, so nothing is assumed."
    "input-schema-added" Unknown Error
        "A tool without an input schema could not be reviewed in full."
    "input-schema-removed" Unknown Error
        "The schema no longer describes the arguments."
    // The results of calls.
    "output-required-added" Compatible Note
        "Results always have the property."
    "output-required-removed" Breaking Error
        "Results may lack a property that readers rely on."
    "output-property-added" Breaking Error
        "Results have a member that the reviewed, closed object does not allow."
    "output-property-renamed" Breaking Error
        "Readers of results find nothing under the reviewed name."
    "output-property-removed" Compatible Warning
        "Results no longer declare an optional property."
    "output-schema-emptied" Unknown Error
        "The schema no longer describes the results."
    "output-type-narrowed" Compatible Note
        "Results have fewer types."
    "output-type-widened" Breaking Error
        "Results may have a type that readers do not know."
    "output-type-changed" Breaking Error
        "Results have another type."
    "output-enum-narrowed" Compatible Note
        "Results have fewer possible values."
    "output-enum-widened" Breaking Error
        "Results may have a value that readers do not know."
    "output-enum-changed" Breaking Error
        "Results may have a value that readers do not know."
    "output-limit-narrowed" Compatible Note
        "Results have tighter bounds."
    "output-limit-widened" Breaking Error
        "Results may exceed the reviewed bounds."
    "output-limit-changed" Breaking Error
        "Results may exceed the reviewed bounds."
    "output-pattern-narrowed" Compatible Note
        "Texts of results match a new pattern."
    "output-pattern-widened" Breaking Error
        "Texts of results may no longer match the pattern."
    "output-pattern-changed" Breaking Error
        "Texts of results match another pattern."
    "output-alternatives-narrowed" Compatible Note
        "Results have fewer forms."
    "output-alternatives-widened" Breaking Error
        "Results may have a form that readers do not know."
    "output-alternatives-changed" Breaking Error
        "Results may have a form that readers do not know."
    "output-condition-changed" Breaking Error
        "A condition on the results changed."
    "output-object-closed" Compatible Note
        "Results have only declared members."
    "output-object-opened" Breaking Error
        "Results may have members that typed readers refuse."
    "output-default-changed" Compatible Note
        "A default in the schema of results is an annotation."
    "output-format-changed" Compatible Warning
        "A format is an annotation that readers may rely on."
    "output-header-changed" Security Error
        "A member moves between the body and a header."
    "output-text-changed" Text Warning
        "Models read the texts of a schema; the reviewed ones are served."
    "output-keyword-changed" Text Warning
        "A keyword that does not constrain values changed; the reviewed schema is served."
    "output-dialect-changed" Equivalent Note
        "The schema names another dialect, in which it accepts the same values."
    "output-rearranged" Equivalent Note
        "The schema has another form and accepts the same values."
    "output-widened" Compatible Note
        "Every valid result of the live schema is proven valid under the reviewed one."
    "output-strictly-widened" Compatible Warning
        "The schema allows a result that the reviewed schema does not declare."
    "output-member-lost" Breaking Error
        "A declared member is no longer declared."
    "output-unsafe" Breaking Error
        "A result may be invalid under the reviewed schema."
    "output-unproven" Unknown Error
        "Neither a proof nor a counterexample was found, so nothing is assumed."
    "output-schema-added" Compatible Note
        "Results have a schema now; the reviewed tool has none."
    "output-schema-removed" Breaking Error
        "Readers rely on a schema that results no longer need to match."
    // A source as a whole.
    "source-unavailable" Unchecked Error
        "A source that cannot be listed cannot be compared with the lock."
    "source-gone" Gone Error
        "The tools of a removed source are removed with it."
    "source-added" Added Note
        "A new source is not exposed before it is reviewed."
    "left-out-changed" Compatible Warning
        "A part that the lock leaves out became sound or changed; it is not exposed before it is locked."
    "source-config-changed" Unknown Error
        "Another command, address or filter may be another server."
    "access-widened" Unknown Error
        "By the rules of access some callers may use more than the old lock gave them, although the rules are the same."
    "access-changed" Unknown Error
        "Other rules of access may give callers more; a lock has only the digest of the rules, so that the configs are to be compared."
    "trust-raised" Security Error
        "A higher trust level can expose tools that the reviewed one hides."
    "package-changed" Security Error
        "Another package under the same command is another program."
    "package-integrity-changed" Security Error
        "The content of a published version must not change, so the reviewed package was replaced."
    "package-version-changed" Same Note
        "A new version alone changes no reviewed content."
    "package-downgraded" Same Warning
        "A lower version may have faults that the reviewed one corrected."
    "package-unseen" Same Warning
        "A package that was not found may differ from the reviewed one."
    "package-unrecorded" Same Note
        "The lock has no record of the package, so there is nothing to compare."
    "hidden-tool-changed" Same Note
        "No caller can use a hidden tool."
    "server-name-changed" Text Warning
        "The server reports another name: it was renamed, or it is another server."
    "server-info-changed" Text Warning
        "The server's description of itself changed."
    "instructions-changed" Text Warning
        "Models follow instructions, so the reviewed ones are served."
    "server-version-changed" Same Note
        "A new version alone changes no reviewed content."
    "capabilities-changed" Same Warning
        "Other capabilities are not exposed."
    "protocol-revision-changed" Same Warning
        "Another revision of the protocol carries the same tools."
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn drift_rules_have_unique_ids_and_a_reason_of_one_sentence() {
        let mut ids = BTreeSet::new();
        for rule in rules() {
            assert!(ids.insert(rule.id), "{} is listed twice", rule.id);
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
    fn drift_rules_exist_for_input_and_output() {
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
            "property-renamed",
        ] {
            for side in ["input", "output"] {
                assert_eq!(find(side, id).id, format!("{side}-{id}"));
            }
        }
    }
}
