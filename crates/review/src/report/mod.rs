//! A report in several formats.

use std::path::{Path, PathBuf};

use broker_doctor::{report_text, text_between_locks};
use broker_drift::{Class, FailOn, Finding, FindingSeverity, LintResult, Report};
use broker_model::NodePath;
use broker_model::json::to_review_text;
use broker_model::lock::LockedSource;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use serde_json::json;

use crate::lint_report;
use places::Places;
pub use problems::Problems;

mod github;
mod junit;
mod markdown;
mod places;
mod problems;
mod sarif;
mod work_tree;

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: the worst first.
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

/// The two sides of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
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
pub struct ReportView<'a> {
    pub report: &'a Report,
    /// Why the comparison, or a part of it, was not made; already shown to people.
    pub problems: &'a Problems,
    /// The findings of the lint in the live texts, and those that the audits do not settle.
    pub linted: &'a [LintResult],
    pub sides: Sides,
    /// The checked sources; `None` for all of the lock.
    pub asked: Option<&'a [NodePath]>,
    /// The sources of the lock; its text, for the lines of findings; and its file.
    pub locked: &'a [LockedSource],
    pub lock_text: &'a str,
    pub lock_path: &'a Path,
    /// The config, for the commands in remedies.
    pub config: &'a Path,
}

impl ReportView<'_> {
    pub fn text(&self, format: Format, fail_on: FailOn) -> Text {
        match format {
            Format::Human => match self.sides {
                Sides::Live => {
                    let linted = lint_report::report(self.linted, self.config);
                    text!("{}{}", report_text(self.report), linted)
                }
                Sides::Locks => text_between_locks(self.report),
            },
            Format::Json => {
                let wire = self.report.wire(self.linted, self.problems.findings());
                Text::json(&json!(wire))
            }
            Format::Sarif => {
                let document = sarif::document(self, &self.places());
                Text::json_text(&to_review_text(&document))
            }
            Format::Junit => junit::document(self, fail_on),
            Format::Github => github::commands(self, &self.places()),
            Format::Markdown => {
                let rest = "; `--output markdown=FILE` writes all";
                markdown::comment(self, fail_on, rest).0
            }
        }
    }

    /// The report as a file; with a second file for all of it if the format has a limit of size.
    pub fn files(&self, format: Format, path: &Path, fail_on: FailOn) -> Vec<(PathBuf, Text)> {
        if format != Format::Markdown {
            return vec![(path.to_owned(), self.text(format, fail_on))];
        }
        let whole = path.with_extension("whole.md");
        let name = whole.file_name().unwrap_or_default().to_string_lossy();
        let rest = format!(", in {}", shown_line(&name, 200));
        let (comment, is_cut) = markdown::comment(self, fail_on, &rest);
        let mut files = vec![(path.to_owned(), comment)];
        if is_cut {
            files.push((whole, markdown::whole(self, fail_on)));
        }
        files
    }

    /// Whether the report has only problems.
    pub fn is_empty(&self) -> bool {
        !self.problems.findings().is_empty() && self.report.is_empty() && self.linted.is_empty()
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
        let tools = self.report.shown_tools().map(|one| Block {
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
        let problems = self.problems.findings().iter().map(|one| Block {
            class: one.class,
            kind: BlockKind::Problem,
            title: "the comparison".to_owned(),
            source: "/",
            tool: None,
            findings: std::slice::from_ref(one),
        });
        let mut blocks: Vec<_> = problems.chain(sources).chain(tools).chain(linted).collect();
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
    /// A reason why a part was not compared.
    Problem,
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
            BlockKind::Problem => true,
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
