//! The report: the differences, their severity and their remedies. `wire.rs` has its only JSON form.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::access::AccessChange;
use super::class::{Class, FindingSeverity};
use super::fail_on::FailOn;
use super::rules::add_rule_ids;
use broker_model::exit::Exit;
use broker_model::json::number_in;
use broker_model::path::NodePath;
use broker_model::public_names::PublicNames;
use broker_model::redact::Redactor;
use broker_model::text::shell_word;

/// The command that accepts the current tools of the server.
pub const RELOCK: &str = "`broker-gen lock";
/// The end of a remedy that locks again.
pub const BUILD: &str = "commit the lock and build again";
/// The same if `broker-gen serve` reads the lock.
pub const SERVE: &str = "commit the lock and start `broker-gen serve` again";

/// Rules of differences that only the strict view shows.
const STRICT: [&str; 2] = ["input-strictly-narrowed", "output-strictly-widened"];

/// The version of the JSON form.
pub const REPORT_VERSION: u64 = 1;

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The rule's stable id.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = r"^[a-z0-9]+(-[a-z0-9]+)*$"))
    )]
    pub rule: &'static str,
    /// The class.
    pub class: Class,
    /// The severity.
    pub severity: FindingSeverity,
    /// A pointer into the raw tool, or into the source's snapshot; empty for the whole.
    pub pointer: String,
    /// The reviewed value; null where there was none.
    pub old: Option<Value>,
    /// The live value; null where there is none.
    pub new: Option<Value>,
    /// A call or an answer as an example; null if there is none.
    pub witness: Option<Value>,
    /// The difference, in one sentence.
    pub message: String,
    /// The command that resolves it.
    pub remedy: String,
}

/// A tool that is not the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolDrift {
    /// The node on which its source is mounted.
    pub source: NodePath,
    /// The server's name of the tool.
    pub tool: String,
    /// The path for callers; for an added tool, the path that it would get.
    pub path: String,
    /// The class of the worst finding.
    pub class: Class,
    /// At least one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub findings: Vec<Finding>,
}

/// The differences of a whole source.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceDrift {
    /// The node on which it is mounted.
    pub source: NodePath,
    /// The class of the worst finding.
    pub class: Class,
    /// At least one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub findings: Vec<Finding>,
}

/// All differences between some sources and the lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One for each tool that is not the same.
    pub tools: Vec<ToolDrift>,
    /// Sources with findings on themselves.
    pub sources: Vec<SourceDrift>,
    /// Who gains or loses what by the rules of access.
    pub access: Vec<AccessChange>,
    /// The number of unchanged tools.
    pub same: usize,
    /// The config for the commands in remedies, as a word of a shell.
    pub config: Option<String>,
    /// Whether `broker-gen serve` reads the lock, so that the remedies name no build.
    pub is_served: bool,
}

impl ToolDrift {
    /// Whether a text of the tool changed, other than in white space.
    pub fn has_text_drift(&self) -> bool {
        self.findings.iter().any(Finding::is_text_drift)
    }
}

impl Finding {
    /// Whether a reviewed text changed, so that a broker with `on_text_drift: withdraw` does not serve it. A
    /// change of white space does not count, nor does the server's name, which no caller reads.
    pub fn is_text_drift(&self) -> bool {
        let of_server = matches!(self.rule, "server-name-changed" | "server-info-changed");
        self.class == Class::Text && !of_server && !self.is_respaced()
    }

    /// Whether it is about the package of the source.
    fn is_of_package(&self) -> bool {
        self.rule.starts_with("package-")
    }

    /// Two texts that differ only in white space. Values that masking made equal do not count.
    fn is_respaced(&self) -> bool {
        let text =
            |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        match (text(&self.old), text(&self.new)) {
            (Some(old), Some(new)) => {
                old != new && old.split_whitespace().eq(new.split_whitespace())
            }
            _ => false,
        }
    }
}

/// Masks the texts of a value, except those that are one of the names as a whole.
fn mask(value: &mut Value, redactor: &Redactor, names: Option<&PublicNames>) {
    let masked = |one: &mut Value| mask(one, redactor, names);
    match value {
        Value::String(text) if names.is_some_and(|names| names.has(text)) => {}
        Value::String(text) => {
            // The digits of a secret show; another number stays a number.
            let shown = redactor.redact(number_in(text).unwrap_or(text));
            if number_in(text) != Some(&*shown) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(masked),
        Value::Object(members) => members.values_mut().for_each(masked),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Report {
    /// Adds another report. Findings on one source come together.
    pub fn merge(&mut self, other: Self) {
        self.tools.extend(other.tools);
        for mut source in other.sources {
            let mut known = self.sources.iter_mut();
            match known.find(|one| one.source == source.source) {
                Some(one) => {
                    one.findings.append(&mut source.findings);
                    one.class = worst(&one.findings);
                }
                None => self.sources.push(source),
            }
        }
        self.access.extend(other.access);
        self.same += other.same;
        self.config = self.config.take().or(other.config);
        self.is_served |= other.is_served;
    }

    /// Adds a finding on a text to the change of that text, of one tool or of the source itself. A report without such a
    /// change stays as it is.
    pub fn add_to_change(&mut self, source: &NodePath, tool: Option<&str>, found: Finding) {
        let (class, findings) = match tool {
            Some(name) => {
                let mut tools = self.tools.iter_mut();
                match tools.find(|one| one.source == *source && one.tool == name) {
                    Some(one) => (&mut one.class, &mut one.findings),
                    None => return,
                }
            }
            None => {
                let mut sources = self.sources.iter_mut();
                match sources.find(|one| one.source == *source) {
                    Some(one) => (&mut one.class, &mut one.findings),
                    None => return,
                }
            }
        };
        let is_changed =
            |change: &Finding| change.new.is_some() && found.pointer.starts_with(&change.pointer);
        if !class.is_not_compared() && findings.iter().any(is_changed) {
            findings.push(found);
            *class = worst(findings);
        }
    }

    /// The tools that a report for people shows. A new tool that is the other side of a rename is shown there.
    pub fn shown_tools(&self) -> impl Iterator<Item = &ToolDrift> {
        let renames = self.tools.iter().filter_map(|tool| {
            let found = tool
                .findings
                .iter()
                .find(|one| one.rule == "tool-renamed")?;
            let name = found.new.as_ref()?.get("name")?.as_str()?;
            Some((&tool.source, name))
        });
        let renames: BTreeSet<_> = renames.collect();
        self.tools.iter().filter(move |tool| {
            tool.class != Class::Added || !renames.contains(&(&tool.source, tool.tool.as_str()))
        })
    }

    /// Whether it says nothing: no difference, and no unchanged tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.sources.is_empty() && self.access.is_empty() && self.same == 0
    }

    /// Sets the remedy of every finding, where it is known better than by its rule.
    pub fn set_remedy(&mut self, remedy: &str) {
        for finding in self.findings_mut() {
            remedy.clone_into(&mut finding.remedy);
        }
    }

    /// Masks secrets: a server may have put one into its texts. These names stay, and so do the ids of rules.
    pub fn mask(&mut self, redactor: &Redactor, mut names: PublicNames) {
        add_rule_ids(&mut names);
        for finding in self.findings_mut() {
            finding.message = redactor.redact_except(&finding.message, &names);
            for value in [&mut finding.old, &mut finding.new].into_iter().flatten() {
                mask(value, redactor, Some(&names));
            }
            let witness = finding.witness.iter_mut();
            witness.for_each(|witness| mask(witness, redactor, None));
        }
    }

    /// Names the config in the commands of the remedies, so that users can run them unchanged. A later name
    /// replaces an earlier one.
    pub fn name_config(&mut self, file: &str) {
        let file = shell_word(file);
        let before = match &self.config {
            Some(before) => format!("{RELOCK} --config {before}"),
            None => RELOCK.to_owned(),
        };
        let named = format!("{RELOCK} --config {file}");
        for finding in self.findings_mut() {
            finding.remedy = finding.remedy.replace(&before, &named);
        }
        self.config = Some(file);
    }

    /// Adapts the remedies to a lock that `broker-gen serve` reads: they name no build and no other program.
    pub fn name_serve(&mut self) {
        for finding in self.findings_mut() {
            let remedy = finding.remedy.replace(BUILD, SERVE);
            finding.remedy = remedy.replace("`mcp-broker doctor`", "`broker-gen doctor`");
        }
        self.is_served = true;
    }

    fn findings_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        let about_tools = self.tools.iter_mut().flat_map(|tool| &mut tool.findings);
        let about_sources = self.sources.iter_mut().flat_map(|one| &mut one.findings);
        about_tools.chain(about_sources)
    }

    /// Whether a tool or a source has a class that refuses, except unchecked ones.
    pub fn has_drift(&self) -> bool {
        self.fails(FailOn::default())
    }

    /// The exit code of a program that ends with this report: drift, or a source that could not be compared with
    /// the lock.
    pub fn exit(&self, fail_on: FailOn) -> Exit {
        let when = |is: bool, exit: Exit| if is { exit } else { Exit::Ok };
        let drift = when(self.fails(fail_on), Exit::Drift);
        drift.or(when(self.has_unchecked(), Exit::Unchecked))
    }

    /// Whether a tool or a source has a class that fails, except unchecked ones.
    pub fn fails(&self, fail_on: FailOn) -> bool {
        let mut of_sources = self.sources.iter().flat_map(|source| &source.findings);
        let counted = |class: Class| class.is_drift() && fail_on.counts(class);
        self.classes().any(counted) || (fail_on.package && of_sources.any(Finding::is_of_package))
    }

    /// Applies the strict view: a warning about a difference of the written schemas gets the class that it has
    /// there.
    pub fn strict(&mut self) {
        for finding in self.findings_mut() {
            if STRICT.contains(&finding.rule) {
                (finding.class, finding.severity) = (Class::Breaking, FindingSeverity::Error);
            }
        }
        let about_tools = self
            .tools
            .iter_mut()
            .map(|one| (&mut one.class, &one.findings));
        let about_sources = self
            .sources
            .iter_mut()
            .map(|one| (&mut one.class, &one.findings));
        for (class, findings) in about_tools.chain(about_sources) {
            *class = worst(findings);
        }
    }

    /// Whether a source could not be compared with the lock.
    pub fn has_unchecked(&self) -> bool {
        self.classes().any(|class| class == Class::Unchecked)
    }

    /// The worst class that refuses a plain start, unless there is none.
    pub fn refusing_class(&self) -> Option<Class> {
        self.classes().filter(|class| class.refuses()).max()
    }

    fn classes(&self) -> impl Iterator<Item = Class> {
        self.tools
            .iter()
            .map(|tool| tool.class)
            .chain(self.sources.iter().map(|source| source.class))
    }

    /// The number of tools and sources of each class. A tool counts once, as does a source with an entry.
    pub fn summary(&self) -> BTreeMap<Class, usize> {
        let mut counts: BTreeMap<_, _> = Class::ALL.into_iter().map(|class| (class, 0)).collect();
        for tool in &self.tools {
            *counts.entry(tool.class).or_default() += 1;
        }
        for source in self
            .sources
            .iter()
            .filter(|source| source.class != Class::Same)
        {
            *counts.entry(source.class).or_default() += 1;
        }
        *counts.entry(Class::Same).or_default() += self.same;
        counts
    }
}

impl ToolDrift {
    pub(super) fn new(source: &NodePath, tool: &str, path: String, findings: Vec<Finding>) -> Self {
        let class = worst(&findings);
        Self {
            source: source.clone(),
            tool: tool.to_owned(),
            path,
            class,
            findings,
        }
    }

    /// The ids of its rules, each once, in order.
    pub fn rules(&self) -> Vec<&'static str> {
        let mut rules: Vec<_> = self.findings.iter().map(|finding| finding.rule).collect();
        rules.dedup();
        rules
    }
}

impl SourceDrift {
    pub(super) fn new(source: &NodePath, findings: Vec<Finding>) -> Self {
        let class = worst(&findings);
        Self {
            source: source.clone(),
            class,
            findings,
        }
    }
}

pub(super) fn worst(findings: &[Finding]) -> Class {
    findings
        .iter()
        .map(|finding| finding.class)
        .max()
        .unwrap_or(Class::Same)
}
