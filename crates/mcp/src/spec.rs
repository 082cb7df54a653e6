//! The specification of one source, resolved once from config and environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use broker_model::config::{self, CommandLine, Limits, Template};
use broker_model::filter::ToolFilter;
use broker_model::json::escape_token;
use broker_model::redact::{Redactor, Secret, is_secret_name};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use broker_process::{ProcessSpec, search_folders};

use crate::concurrency::ConcurrencyLimits;
use crate::environment::{Environment, is_base, withheld};
use crate::log_level::AskedLogLevel;
use broker_memory::MemoryBudget;

/// The shell for commands with shell syntax.
const SHELL: &str = "/bin/sh";
/// The maximum number of queued calls.
const MAX_QUEUED_CALLS: usize = 256;

/// The specification of one source. `Debug` shows no value.
#[derive(Clone)]
pub struct SourceSpec {
    /// The source, which is the path of its node.
    pub source: NodePath,
    /// The transport and address of the server.
    pub endpoint: Endpoint,
    /// The maximum time of a start, until it has listed its tools.
    pub startup_timeout: Duration,
    /// The interval of listings without an announcement; `None` for never.
    pub relist_interval: Option<Duration>,
    /// The maximum length of a line that it sends.
    pub line_bytes: usize,
    /// The maximum length of all pages of its tool list.
    pub listing_bytes: usize,
    /// The maximum number of calls in flight in one process.
    pub max_in_flight: usize,
    /// Processes that share its calls.
    pub instances: usize,
    /// The maximum number of queued calls.
    pub queue: usize,
    /// A redactor that knows this source's secrets.
    pub redactor: Redactor,
    /// Names of variables that the child does not inherit and that may explain a failed start.
    pub withheld: Vec<String>,
    /// The budget to which the lines of its process are charged.
    pub memory: MemoryBudget,
    /// Limits that it shares with the other sources of its broker.
    pub concurrency: ConcurrencyLimits,
    /// The level of log messages that callers of its broker ask for.
    pub log_level: AskedLogLevel,
    /// Times that have no key in the config.
    pub timing: Timing,
}

/// The transport and address of a server.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A child process, over its standard streams.
    Process(ProcessSpec),
}

impl SourceSpec {
    /// Whether a server that was started by `other` equals one that this would start, so that it can
    /// keep running. The startup timeout and the interval of listings are ignored: they do not affect a
    /// running server.
    pub fn starts_the_same(&self, other: &Self) -> bool {
        let (Endpoint::Process(process), Endpoint::Process(running)) =
            (&self.endpoint, &other.endpoint);
        process.starts_the_same(running)
            && self.line_bytes == other.line_bytes
            && self.listing_bytes == other.listing_bytes
            && self.max_in_flight == other.max_in_flight
            && self.instances == other.instances
            && self.queue == other.queue
    }
}

/// Times of starting and stopping that have no key in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The wait for an answer in the first era before the other is tried too.
    pub probe: Duration,
    /// Maximum time for a process to end after its stdin was closed.
    pub close_grace: Duration,
    /// Maximum time for it to end after SIGTERM, before SIGKILL.
    pub term_grace: Duration,
    /// The minimum time between two listings that `tools/list_changed` asked for; it doubles up to
    /// `recheck_gap_cap` while announcements continue.
    pub recheck_gap: Duration,
    /// The maximum time between two such listings, and the time without announcements after which the
    /// minimum applies again.
    pub recheck_gap_cap: Duration,
    /// Maximum time for a running server to answer a listing. If an announced listing is missing after
    /// that, new calls are refused.
    pub recheck_timeout: Duration,
    /// The first delay before a restart; it doubles up to `backoff_cap`.
    pub backoff: Duration,
    /// The maximum delay before a restart.
    pub backoff_cap: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(10),
            close_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(2),
            recheck_gap: Duration::from_secs(1),
            recheck_gap_cap: Duration::from_secs(60),
            recheck_timeout: Duration::from_secs(10),
            backoff: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(60),
        }
    }
}

/// Expands every variable of `source` and decides which variables its child inherits. Reports every
/// problem: all missing variables (`env_missing`) and all values that cannot be used (`env_value`). A
/// program that does not exist is not reported here; its start fails with a [`crate::SourceFailure`].
/// `concurrency` is shared by all sources of the config.
pub fn resolve(
    source: &config::Source,
    limits: &Limits,
    environment: &Environment,
    base: &Path,
    concurrency: &ConcurrencyLimits,
) -> Result<SourceSpec, Vec<Diagnostic>> {
    let base = std::path::absolute(if base.as_os_str().is_empty() {
        Path::new(".")
    } else {
        base
    })
    .unwrap_or_else(|_| base.to_owned());
    let mut expander = Expander::new(environment, &base);
    let at = |place: &str| format!("{}{place}", source.pointer);

    let mut env = inherited(source, environment, &mut expander);
    let (mut program, args, shell) = match &source.command {
        CommandLine::Direct {
            program,
            args,
            script,
        } => {
            let mut places = source.places.iter().map(|place| at(place));
            let mut place = || places.next().unwrap_or_else(|| at("/command"));
            let program = expander.expand(program, &place(), false);
            if program.is_empty() && expander.is_fine() {
                expander.problem(
                    DiagnosticCode::EnvValue,
                    "the program's name is empty",
                    &at("/command"),
                );
            }
            let mut words = Vec::with_capacity(args.len());
            for (at, arg) in args.iter().enumerate() {
                let place = place();
                let Some(script) = script.as_ref().filter(|script| script.at == at) else {
                    words.push(expander.expand(arg, &place, false));
                    continue;
                };
                for (name, template) in &script.variables {
                    let value = expander.expand(template, &place, false);
                    env.insert(name.clone(), value);
                }
                words.push(script.text.clone());
            }
            (program, words, false)
        }
        CommandLine::Shell {
            script, variables, ..
        } => {
            for (name, template) in variables {
                let value = expander.expand(template, &at("/command"), false);
                env.insert(name.clone(), value);
            }
            (
                SHELL.to_owned(),
                vec!["-c".to_owned(), script.clone()],
                true,
            )
        }
    };
    for (name, template) in &source.env {
        let place = at("/env/") + &escape_token(name);
        if name.is_empty() || name.contains(['=', '\0']) {
            expander.problem(
                DiagnosticCode::EnvValue,
                "a variable's name is empty or holds `=` or NUL",
                &place,
            );
            continue;
        }
        let value = expander.expand(template, &place, is_secret_name(name));
        env.insert(name.clone(), value);
    }
    let cwd = source
        .cwd
        .as_ref()
        .map(|cwd| expander.expand(cwd, &at("/cwd"), false));
    for (name, value) in [("PYTHONUTF8", "1"), ("PYTHONIOENCODING", "utf-8")] {
        env.entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    let problems = expander.finish();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut secrets = expander.secrets;
    secrets.extend(
        source
            .literal_secret_arguments()
            .into_iter()
            .map(Secret::new),
    );

    if !shell && program.contains('/') {
        program = base.join(program).to_string_lossy().into_owned();
    }
    let path = env.get("PATH").map_or("", String::as_str);
    let search = search_folders(environment.exe_dir(), path, &base);
    let withheld = withheld(source, environment, &env);
    let redactor = Redactor::new(secrets);
    let process = ProcessSpec {
        name: source.path.as_str().to_owned(),
        search,
        program,
        args,
        cwd: Some(cwd.map_or_else(|| base.clone(), |cwd| base.join(cwd))),
        env,
        shell,
        redactor: redactor.clone(),
    };
    Ok(SourceSpec {
        source: source.path.clone(),
        endpoint: Endpoint::Process(process),
        startup_timeout: source.startup_timeout,
        relist_interval: source.relist_interval,
        line_bytes: limits.line_bytes,
        listing_bytes: limits.listing_bytes,
        max_in_flight: source.max_in_flight.max(1),
        instances: source.instances.max(1),
        queue: MAX_QUEUED_CALLS,
        redactor,
        withheld,
        memory: MemoryBudget::new(limits.memory_bytes),
        concurrency: concurrency.clone(),
        log_level: AskedLogLevel::new(),
        timing: Timing::default(),
    })
}

/// The variables that the child inherits: the base, and those in `inherit_env`.
fn inherited(
    source: &config::Source,
    environment: &Environment,
    expander: &mut Expander<'_>,
) -> BTreeMap<String, String> {
    let globs = match ToolFilter::compile(&source.inherit_env) {
        Ok(globs) => globs,
        Err(errors) => {
            for error in errors {
                let place = format!("{}/inherit_env/{}", source.pointer, error.index);
                expander.problem(DiagnosticCode::GlobSyntax, &error.to_string(), &place);
            }
            return BTreeMap::new();
        }
    };
    let named = |name: &str| {
        !source.inherit_env.is_empty() && !config::is_own_variable(name) && globs.admits(name)
    };
    let mut env = BTreeMap::new();
    for (name, value) in environment.iter() {
        if is_base(name) || named(name) {
            if is_secret_name(name) {
                expander.secrets.push(Secret::new(value));
            }
            env.insert(name.to_owned(), value.to_owned());
        }
    }
    env
}

/// Expands templates; collects all problems and all secret values.
struct Expander<'a> {
    environment: &'a Environment,
    /// The value of `${workspaceFolder}`.
    base: &'a Path,
    problems: Vec<Diagnostic>,
    /// Variables that are not set, by place, in the order found.
    missing: Vec<(String, Vec<String>)>,
    secrets: Vec<Secret>,
}

impl<'a> Expander<'a> {
    fn new(environment: &'a Environment, base: &'a Path) -> Self {
        Self {
            environment,
            base,
            problems: Vec::new(),
            missing: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// Records a problem, each only once: words of one string share a place.
    fn problem(&mut self, code: DiagnosticCode, message: &str, place: &str) {
        let known = |problem: &Diagnostic| {
            problem.code == code
                && problem.message == message
                && problem.pointer.as_deref() == Some(place)
        };
        if !self.problems.iter().any(known) {
            self.problems
                .push(Diagnostic::error(code, message).at(place));
        }
    }

    /// Records variables that are not set.
    fn missing(&mut self, names: impl Iterator<Item = String>, place: &str) {
        let at = self.missing.iter().position(|(known, _)| known == place);
        let at = at.unwrap_or_else(|| {
            self.missing.push((place.to_owned(), Vec::new()));
            self.missing.len() - 1
        });
        let known = &mut self.missing[at].1;
        for name in names {
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }

    /// Whether there was no problem so far.
    fn is_fine(&self) -> bool {
        self.problems.is_empty() && self.missing.is_empty()
    }

    /// All problems; each variable that is not set is reported once for each place.
    fn finish(&mut self) -> Vec<Diagnostic> {
        for (place, names) in std::mem::take(&mut self.missing) {
            let verb = if names.len() == 1 { "is" } else { "are" };
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("{} {verb} not set", names.join(", "));
            self.problem(DiagnosticCode::EnvMissing, &message, &place);
        }
        std::mem::take(&mut self.problems)
    }

    /// The expanded text; empty if there was a problem, which is recorded. With `secret`, the whole
    /// text is a secret. A value from a variable is always a secret, except for variables that every
    /// child inherits.
    fn expand(&mut self, template: &Template, place: &str, secret: bool) -> String {
        let (environment, base) = (self.environment, self.base);
        let value_of = |name: &str| match name {
            config::WORKSPACE_FOLDER => base.to_str(),
            name => environment.get(name),
        };
        for name in template.variables() {
            let Some(value) = value_of(name) else {
                continue;
            };
            if value.contains(['\n', '\r', '\0']) {
                let message = format!("the value of `{name}` holds a newline or a NUL");
                self.problem(DiagnosticCode::EnvValue, &message, place);
            }
            if !is_base(name) && name != config::WORKSPACE_FOLDER {
                self.secrets.push(Secret::new(value));
            }
        }
        let text = match template.expand(&|name| value_of(name).map(str::to_owned)) {
            Ok(text) => text,
            Err(missing) => {
                self.missing(missing.into_iter().map(|name| name.0), place);
                return String::new();
            }
        };
        if template.variables().next().is_none() && text.contains('\0') {
            self.problem(DiagnosticCode::EnvValue, "the text holds a NUL", place);
        }
        if secret {
            self.secrets.push(Secret::new(text.as_str()));
        }
        text
    }
}

impl fmt::Debug for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSpec")
            .field("source", &self.source)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
