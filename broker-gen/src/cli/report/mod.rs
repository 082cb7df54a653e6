//! A report in several formats, on standard output and in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use broker_drift::{BetweenLocks, Class, FailOn, Finding, FindingSeverity, LintResult, Report};
use broker_model::exit::Exit;
use broker_model::json::to_review_text;
use broker_model::lock::LockedSource;
use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, NodePath};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{lint, output, program};
use places::Places;
pub(super) use problems::Problems;

mod github;
mod junit;
mod markdown;
mod places;
mod problems;
mod sarif;
mod work_tree;

#[derive(Debug, Default, Args)]
pub(super) struct ReportArgs {
    /// The format of the report on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write the report into a file as well; repeatable.
    #[arg(long = "output", value_name = "FORMAT=PATH")]
    outputs: Vec<ReportFile>,
    /// Exit with 3 only for these classes and worse ones; `added` includes new tools, `package` every finding on a
    /// package: another, an unseen or an unrecorded one.
    ///
    /// `breaking` passes a changed text in which the lint finds nothing, though a model may follow it. A source that could not be checked gives 4 in any case.
    #[arg(long, value_name = "CLASS,…", value_delimiter = ',', value_parser = fail_kinds())]
    fail_on: Vec<FailKind>,
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

/// The word for `--fail-on` that means findings on packages.
const PACKAGE: &str = "package";

/// What `--fail-on` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailKind {
    Class(Class),
    /// A finding on the package of a source.
    Package,
}

/// The values for `--fail-on`: all classes of findings that can fail, and `package`.
fn fail_kinds() -> impl TypedValueParser<Value = FailKind> {
    let classes = Class::ALL.into_iter().filter(|class| class.can_fail());
    let classes: Vec<_> = classes.collect();
    let names = classes.iter().map(|class| class.as_str()).chain([PACKAGE]);
    PossibleValuesParser::new(names).try_map(move |name| {
        let mut known = classes.iter().copied();
        match known.find(|class| class.as_str() == name) {
            Some(class) => Ok(FailKind::Class(class)),
            None if name == PACKAGE => Ok(FailKind::Package),
            None => Err("it is not a class"),
        }
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
    /// Why the comparison, or a part of it, was not made; already shown to people.
    pub(super) problems: &'a Problems,
    /// The findings of the lint in the live texts, and those that the audits do not settle.
    pub(super) linted: &'a [LintResult],
    pub(super) sides: Sides,
    /// The checked sources; `None` for all of the lock.
    pub(super) asked: Option<&'a [NodePath]>,
    /// The sources of the lock; its text, for the lines of findings; and its file.
    pub(super) locked: &'a [LockedSource],
    pub(super) lock_text: &'a str,
    pub(super) lock_path: &'a Path,
    /// The config, for the commands in remedies.
    pub(super) config: &'a Path,
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
        let classes = self.fail_on.iter().filter_map(|kind| match kind {
            FailKind::Class(class) => Some(*class),
            FailKind::Package => None,
        });
        let classes: Vec<_> = classes.collect();
        let packages = self.fail_on.contains(&FailKind::Package);
        let least = match classes.is_empty() {
            true => FailOn::default(),
            false => FailOn::of(&classes),
        };
        least.with_packages(packages)
    }

    /// Makes the folders of the files, so that a report is not lost at the end of a long comparison.
    pub(super) fn make_folders(&self) -> Result<(), Exit> {
        for ReportFile { path, .. } in &self.outputs {
            let folder = program::folder_of(path);
            fs::create_dir_all(folder).map_err(|error| {
                output::failure(&format!(
                    "the folder of `--output` `{}` cannot be made: {error}",
                    folder.display()
                ))
            })?;
        }
        Ok(())
    }

    /// Reports that the comparison was not made, in every format; returns the exit.
    pub(super) fn deliver_problems(
        &self,
        problems: &[Diagnostic],
        sides: Sides,
        config: &Path,
        lock_path: &Path,
    ) -> Exit {
        let mut shown = Problems::none();
        shown.show(problems);
        self.deliver(&ReportView {
            report: &Report::default(),
            problems: &shown,
            linted: &[],
            sides,
            asked: None,
            locked: &[],
            lock_text: "",
            lock_path,
            config,
        })
    }

    /// Prints the report and writes it to the files; returns the exit.
    pub(super) fn deliver(&self, shown: &ReportView<'_>) -> Exit {
        let fail_on = self.fail_on();
        let text = shown.text(self.format, fail_on);
        match self.format {
            // The problems are on standard error.
            Format::Human if shown.is_empty() => {}
            Format::Human => output::data(&text),
            _ => output::document(&text),
        }
        let mut exit = shown.report.exit(fail_on).or(shown.problems.exit());
        if shown.linted.iter().any(lint::has_errors) {
            exit = exit.or(Exit::Lint);
        }
        for file in &self.outputs {
            for (path, text) in shown.files(file, fail_on) {
                if let Err(error) = fs::write(&path, text.as_str()) {
                    let message = format!("`{}` cannot be written: {error}", path.display());
                    // A finding has precedence over a report that could not be written.
                    exit = exit.or(output::failure(&message));
                }
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
    fn files(&self, file: &ReportFile, fail_on: FailOn) -> Vec<(PathBuf, Text)> {
        let ReportFile { format, path } = file;
        if *format != Format::Markdown {
            return vec![(path.clone(), self.text(*format, fail_on))];
        }
        let whole = path.with_extension("whole.md");
        let name = whole.file_name().unwrap_or_default().to_string_lossy();
        let rest = format!(", in {}", shown_line(&name, 200));
        let (comment, is_cut) = markdown::comment(self, fail_on, &rest);
        let mut files = vec![(path.clone(), comment)];
        if is_cut {
            files.push((whole, markdown::whole(self, fail_on)));
        }
        files
    }

    /// Whether the report has only problems.
    fn is_empty(&self) -> bool {
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
