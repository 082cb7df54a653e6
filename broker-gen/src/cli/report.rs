//! A report in several formats, on standard output and in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use broker_drift::{Class, FailOn, Report};
use broker_model::Diagnostic;
use broker_model::exit::Exit;
use broker_process::program;
use broker_review::lint_report;
use broker_review::report::{self, Problems, ReportView, Sides};
use broker_review::whole_file::write_whole;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::output;

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
enum Format {
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

impl Format {
    /// Returns the format of the report.
    fn report(self) -> report::Format {
        match self {
            Self::Human => report::Format::Human,
            Self::Json => report::Format::Json,
            Self::Sarif => report::Format::Sarif,
            Self::Junit => report::Format::Junit,
            Self::Github => report::Format::Github,
            Self::Markdown => report::Format::Markdown,
        }
    }
}

/// The word for `--fail-on` that means findings on packages.
const PACKAGE: &str = "package";

/// A value of `--fail-on`: the findings that make the exit code fail.
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

/// Shows problems to people, and keeps the errors among them.
pub(super) fn show(problems: &mut Problems, shown: &[Diagnostic]) {
    output::diagnostics(shown);
    problems.add(shown);
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
            false => FailOn::new(&classes),
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
        show(&mut shown, problems);
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
        let text = shown.text(self.format.report(), fail_on);
        match self.format {
            // The problems are on standard error.
            Format::Human if shown.is_empty() => {}
            Format::Human => output::data(&text),
            _ => output::document(&text),
        }
        let mut exit = shown.report.exit(fail_on).or(shown.problems.exit());
        if shown.linted.iter().any(lint_report::has_errors) {
            exit = exit.or(Exit::Lint);
        }
        for file in &self.outputs {
            for (path, text) in shown.files(file.format.report(), &file.path, fail_on) {
                if let Err(error) = write_whole(&path, text.as_str().as_bytes()) {
                    let message = format!("`{}` cannot be written: {error}", path.display());
                    // A finding has precedence over a report that could not be written.
                    exit = exit.or(output::failure(&message));
                }
            }
        }
        exit
    }
}
