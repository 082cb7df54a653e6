//! A report in several formats, on standard output and in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use broker_drift::{BetweenLocks, Class, FailOn, Finding, FindingSeverity, LintResult, Report};
use broker_model::NodePath;
use broker_model::exit::Exit;
use broker_model::json::to_review_text;
use broker_model::lock::Lock;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{lint, output};
use places::Places;

mod github;
mod junit;
mod markdown;
mod places;
mod sarif;

#[derive(Debug, Default, Args)]
pub(super) struct ReportArgs {
    /// The format of the report on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the report into a file as well; repeatable.
    #[arg(long = "output", value_name = "FORMAT=PATH")]
    outputs: Vec<ReportFile>,
    /// Exit with 3 only for these classes and worse ones; `added` includes new tools.
    ///
    /// A source that could not be checked gives 4 in any case.
    #[arg(long, value_name = "CLASS,…", value_delimiter = ',', value_parser = fail_classes())]
    fail_on: Vec<Class>,
    /// Treat warnings as errors: of the lint, of differences that only the written schemas show, and of
    /// unpinned packages.
    #[arg(long)]
    pub(super) strict: bool,
}

/// The formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people: the worst first.
    #[default]
    Human,
    /// One JSON object; its schema is `broker-gen schema report`.
    Json,
    /// SARIF 2.1.0, for code scanning: each finding on its line of the lock.
    Sarif,
    /// JUnit XML: a suite for each source, a case for each tool.
    Junit,
    /// Workflow commands of GitHub Actions: annotations of the lock.
    Github,
    /// A comment for a pull request.
    Markdown,
}

/// The classes for `--fail-on`: all classes of findings that can fail.
fn fail_classes() -> impl TypedValueParser<Value = Class> {
    let can_fail = |class: &Class| !matches!(class, Class::Same | Class::Unchecked);
    let classes: Vec<_> = Class::ALL.into_iter().filter(can_fail).collect();
    let names = classes.iter().map(|class| class.as_str());
    PossibleValuesParser::new(names).try_map(move |name| {
        let mut known = classes.iter().copied();
        known
            .find(|class| class.as_str() == name)
            .ok_or("it is not a class")
    })
}

/// `FORMAT=PATH`.
#[derive(Clone, Debug)]
struct ReportFile {
    format: Format,
    path: PathBuf,
}

impl FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or("expected a format, `=` and a path, as in `sarif=drift.sarif`")?;
        Ok(Self {
            format: Format::from_str(format, false)?,
            path: path.into(),
        })
    }
}

/// The two sides of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sides {
    /// The lock against live servers.
    Live,
    /// One lock against another.
    Locks,
}

impl Sides {
    /// The names of old and new.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Live => ["lock", "live"],
            Self::Locks => ["old", "new"],
        }
    }
}

/// A report and the lock that its lines refer to.
#[derive(Debug)]
pub(super) struct ReportView<'a> {
    pub(super) report: &'a Report,
    /// The findings of the lint in the live texts, and those that the audits do not settle.
    pub(super) linted: &'a [LintResult],
    pub(super) sides: Sides,
    /// The checked sources; `None` for all of the lock.
    pub(super) asked: Option<&'a [NodePath]>,
    /// The text of the lock, for the lines of findings, and its file.
    pub(super) lock: &'a Lock,
    pub(super) lock_path: &'a Path,
    /// The config, for the commands in remedies.
    pub(super) config: &'a Path,
    pub(super) lock_text: &'a str,
}

impl ReportArgs {
    /// For people, with this strictness.
    pub(super) fn strictly(strict: bool) -> Self {
        Self {
            strict,
            ..Self::default()
        }
    }

    /// The classes that fail.
    fn fail_on(&self) -> FailOn {
        if self.fail_on.is_empty() {
            return FailOn::default();
        }
        FailOn::of(&self.fail_on)
    }

    /// Prints the report and writes it to the files; returns the exit.
    pub(super) fn deliver(&self, shown: &ReportView<'_>) -> Exit {
        let fail_on = self.fail_on();
        output::data(&shown.text(self.format, fail_on));
        let mut exit = shown.report.exit(fail_on);
        if shown.linted.iter().any(lint::has_errors) {
            exit = exit.or(Exit::Lint);
        }
        for ReportFile { format, path } in &self.outputs {
            if let Err(error) = fs::write(path, shown.text(*format, fail_on).as_str()) {
                let message = format!("`{}` cannot be written: {error}", path.display());
                // A finding has precedence over a report that could not be written.
                exit = exit.or(output::failure(&message));
            }
        }
        exit
    }
}

impl ReportView<'_> {
    fn text(&self, format: Format, fail_on: FailOn) -> Text {
        match format {
            Format::Human => match self.sides {
                Sides::Live => {
                    let linted = lint::report(self.linted, self.config);
                    text!("{}{}", self.report.text(), linted)
                }
                Sides::Locks => BetweenLocks(self.report).text(),
            },
            Format::Json => Text::json(&json!(self.report.wire(self.linted))),
            Format::Sarif => {
                let document = sarif::document(self, &self.places());
                Text::json_text(&to_review_text(&document))
            }
            Format::Junit => junit::document(self, fail_on),
            Format::Github => github::commands(self, &self.places()),
            Format::Markdown => markdown::comment(self, fail_on),
        }
    }

    fn places(&self) -> Places<'_> {
        Places::new(self.lock_path, self.lock_text)
    }

    /// All findings, the worst first: the class, the title, the source, the tool (`None`: the source itself),
    /// and the findings.
    fn blocks(&self) -> Vec<Block<'_>> {
        let sources = self.report.sources.iter().map(|one| Block {
            class: one.class,
            kind: BlockKind::Drift,
            title: one.title(),
            source: one.source.as_str(),
            tool: None,
            findings: &one.findings,
        });
        let tools = self.report.tools.iter().map(|one| Block {
            class: one.class,
            kind: BlockKind::Drift,
            title: one.title(),
            source: one.source.as_str(),
            tool: Some(one.tool.as_str()),
            findings: &one.findings,
        });
        let linted = self.linted.iter().map(|one| Block {
            class: one
                .findings
                .iter()
                .map(|one| one.class)
                .max()
                .unwrap_or(Class::Same),
            kind: BlockKind::Lint,
            title: format!("{} (lint)", shown_line(&one.path, 200)),
            source: one.source.as_str(),
            tool: one.tool.as_deref(),
            findings: &one.findings,
        });
        let mut blocks: Vec<_> = sources.chain(tools).chain(linted).collect();
        blocks.sort_by_key(|block| std::cmp::Reverse(block.class));
        blocks
    }
}

/// The subject of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    /// A change.
    Drift,
    /// A text, changed or not.
    Lint,
}

impl Block<'_> {
    /// Whether the command fails because of it; sources that could not be checked are separate.
    fn fails(&self, fail_on: FailOn) -> bool {
        match self.kind {
            BlockKind::Drift => fail_on.counts(self.class),
            BlockKind::Lint => {
                let mut findings = self.findings.iter();
                findings.any(|finding| finding.severity == FindingSeverity::Error)
            }
        }
    }
}

/// The findings of one tool or one source.
#[derive(Debug)]
struct Block<'a> {
    class: Class,
    kind: BlockKind,
    title: String,
    source: &'a str,
    tool: Option<&'a str>,
    findings: &'a [Finding],
}
