//! The checks of a draft, in their order. Each has a name and gives one result: parts that the lock leaves out,
//! warnings, and errors of the config file, of `access` or of the command line. With such errors, no lock is written.

use std::path::Path;

use broker_model::lock::Lock;

use super::draft::{CheckResult, Draft};
use crate::cli::input::Input;

mod config;
mod host_leaks;
mod lint;
mod names;
mod package;
mod schemas;
mod secrets;
pub(super) mod violations;

/// A check of a draft.
pub(in crate::cli) struct Check {
    /// Its name in the counts of the table of left-out parts.
    pub(in crate::cli) name: &'static str,
    /// Whether it reads only the listing, so that `check` applies it to live sources too.
    pub(in crate::cli) is_of_listing: bool,
    run: fn(&Context<'_>, &Draft) -> CheckResult,
}

/// The values that checks compare a draft with.
pub(in crate::cli) struct Context<'a> {
    /// The config and the launch settings.
    pub(in crate::cli) input: &'a Input,
    /// The file of the config.
    pub(in crate::cli) config_file: &'a Path,
    /// The lock before, if there is one that can be read.
    pub(in crate::cli) old: Option<&'a Lock>,
    /// Whether warnings are errors.
    pub(in crate::cli) strict: bool,
    /// Whether the command line names the sources to lock.
    pub(in crate::cli) names_sources: bool,
    /// Whether findings are shown in full.
    pub(in crate::cli) is_lock: bool,
}

impl Check {
    /// Runs it.
    pub(in crate::cli) fn run(&self, context: &Context<'_>, draft: &Draft) -> CheckResult {
        (self.run)(context, draft)
    }

    const fn for_listing(name: &'static str, run: fn(&Context<'_>, &Draft) -> CheckResult) -> Self {
        Self {
            name,
            is_of_listing: true,
            run,
        }
    }

    const fn for_files(name: &'static str, run: fn(&Context<'_>, &Draft) -> CheckResult) -> Self {
        Self {
            name,
            is_of_listing: false,
            run,
        }
    }
}

/// Every check, in the order of execution: each sees the draft without the parts that the ones before left out. Reasons
/// and findings show texts of tools, so tools with secrets are left out first.
pub(in crate::cli) const CHECKS: &[Check] = &[
    Check::for_listing("violations", violations::check),
    Check::for_files("package", package::check),
    Check::for_listing("secrets", secrets::check),
    Check::for_listing("schemas", schemas::check),
    Check::for_listing("lint", lint::check),
    Check::for_listing("names", names::check),
    Check::for_files("config", config::check),
    Check::for_files("schema forms", config::check_schema_forms),
    Check::for_files("examples", config::check_examples),
    Check::for_files("access", config::check_access),
    Check::for_files("hints", config::check_hints),
];

/// The checks that see several sources at once, or the config together with their content: a merge of locks repeats
/// them.
pub(in crate::cli) const MERGE_CHECKS: &[Check] = &[
    Check::for_listing("names", names::check),
    Check::for_files("config", config::check),
    Check::for_files("examples", config::check_examples),
    Check::for_files("access", config::check_access),
];
