//! The entry point of build scripts: reads config and lock, checks them, writes the catalog.
//!
//! Starts no process and opens no socket. An error names the command that fixes it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use broker_config::{Config, Embedder, Machine, Parsed};
use broker_files::{
    CACHE_VARIABLES, Lookup, MODEL_VARIABLES, ReadError, find_model, model_of_variable,
};
use broker_model::lock::{self, Lock};
use broker_model::terminal::Text;
use broker_model::text::shell_word;
use broker_model::{Diagnostic, DiagnosticCode, text};

use crate::default_config::{CONFIG_VARIABLE, default_config};
use crate::emit::{self, Emitted};
use crate::hint_audits;
use crate::left_out_audits;
use crate::plan::StaleSource;
use crate::plan::{self, Plan};
use crate::tables::{self, Tables};
use crate::vectors_file::{self, vectors_file};
use broker_audits_file::{Violations, audits_file};

/// Compiles the config that `MCP_BROKER_CONFIG` names, by default `config.json` or `smoke_config.json`,
/// relative to the package's folder. Call it from a build script; a failure ends the process.
pub fn build() {
    tell_cargo(&text!("cargo::rerun-if-env-changed={}", CONFIG_VARIABLE));
    let config = default_config(&package_folder());
    if !config.is_from_variable {
        // A warning is the only output that cargo shows. It also says why a `config.json` that is created
        // later has no effect: cargo cannot watch a file that does not exist.
        tell_cargo(&text!(
            "cargo::warning={} is compiled in; {} names another config",
            config.file.display(),
            CONFIG_VARIABLE
        ));
    }
    run(config.file.as_os_str());
}

/// Compiles this config, relative to the package's folder, regardless of the environment.
pub fn build_config(config: &str) {
    run(OsStr::new(config));
}

fn package_folder() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default().into()
}

fn run(config: &OsStr) {
    let folder = package_folder();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let file = folder.join(config);
    for input in [&file, &lock_file(&file)] {
        tell_cargo(&text!("cargo::rerun-if-changed={}", input.display()));
    }
    // Cargo runs the script each time if a file that it watches does not exist.
    let optional = [audits_file(&file), vectors_file(&file)];
    for input in optional.iter().filter(|input| input.exists()) {
        tell_cargo(&text!("cargo::rerun-if-changed={}", input.display()));
    }
    let outcome = compile(&file, &config.to_string_lossy()).and_then(|emitted| {
        let mut files = emit::files(&emitted).into_iter();
        files.try_for_each(|(name, bytes)| write(&out.join(name), bytes))
    });
    if let Err(problems) = outcome {
        let command = command(&folder, config);
        for problem in &problems {
            tell_cargo(&text!("cargo::error={}", one_line(problem, &command)));
        }
        // Cargo shows the errors above; the exit code only has to be non-zero.
        #[expect(
            clippy::exit,
            reason = "a build script reports failure by its exit code"
        )]
        std::process::exit(1);
    }
}

/// Reads config and lock, and renders the catalog, without writing it.
fn compile(file: &Path, shown: &str) -> Result<Emitted, Vec<Diagnostic>> {
    let (config, lock) = read(file, shown)?;
    find_models(&config, file, &|name| env::var(name).ok())?;
    let open = left_out_audits::check(&lock, file, shown);
    if !open.is_empty() {
        return Err(open);
    }
    let plan = checked_plan(&config, &lock, file, shown)?;
    Ok(emit::emit(&config, &lock, &plan))
}

/// Refuses the embedder `HF` if a model is not on this machine: the broker that is built could not start. The models
/// are not read; the vectors of the tools are in the file beside the lock.
fn find_models(config: &Config, file: &Path, lookup: Lookup<'_>) -> Result<(), Vec<Diagnostic>> {
    let search = &config.search;
    if search.embedder != Embedder::Hf {
        return Ok(());
    }
    for variable in MODEL_VARIABLES.iter().chain(&CACHE_VARIABLES) {
        tell_cargo(&text!("cargo::rerun-if-env-changed={}", variable));
    }
    let first = model_of_variable(lookup).or_else(|| search.hf_model.clone());
    let names = [first, search.hf_multilingual_model.clone()];
    let base = config.base(file);
    let missing = names.into_iter().flatten().filter_map(|name| {
        let missing = find_model(&name, &base, lookup).err()?;
        let problem = Diagnostic::error(DiagnosticCode::EmbedderUnavailable, missing.to_string());
        Some(config.place(problem.at("/search")))
    });
    match missing.collect::<Vec<_>>() {
        none if none.is_empty() => Ok(()),
        missing => Err(missing),
    }
}

/// The tables of a lock that may be stale for some sources.
#[derive(Debug)]
pub struct PartialTables {
    pub tables: Tables,
    /// The sources whose part of the lock is stale.
    pub stale: Vec<StaleSource>,
    /// The parts that the lock leaves out and no entry of the audits accepts, and parts that no source has, as errors.
    pub problems: Vec<Diagnostic>,
}

/// Reads config and lock, and computes the catalog. With `allows_stale`, a lock that is stale for some sources is read for
/// the others.
pub fn read_tables(
    file: &Path,
    shown: &str,
    allows_stale: bool,
) -> Result<PartialTables, Vec<Diagnostic>> {
    let (config, mut lock) = read_unchecked(file, shown)?;
    let (stale, mut problems) = if allows_stale {
        plan::stale_sources(&config, &mut lock)?
    } else {
        plan::check_fresh(&config, &lock)?;
        (Vec::new(), Vec::new())
    };
    let paths: Vec<_> = stale.iter().map(|stale| stale.path.clone()).collect();
    let plan = plan::plan_beside(&config, &lock.sources, &paths)?;
    let plan = with_checks(plan, &config, file, shown)?;
    let tables = tables::tables(&config, &lock, &plan);
    problems.extend(left_out_audits::check(&lock, file, shown));
    Ok(PartialTables {
        tables,
        stale,
        problems,
    })
}

/// Makes the plan of config and lock. Refuses hints without an audit, parts that a violation names, and stale vectors.
pub fn checked_plan<'a>(
    config: &'a Config,
    lock: &'a Lock,
    file: &Path,
    shown: &str,
) -> Result<Plan<'a>, Vec<Diagnostic>> {
    with_checks(plan::plan(config, &lock.sources)?, config, file, shown)
}

fn with_checks<'a>(
    mut plan: Plan<'a>,
    config: &Config,
    file: &Path,
    shown: &str,
) -> Result<Plan<'a>, Vec<Diagnostic>> {
    let mut problems = hint_audits::check(config, &plan, file, shown);
    let sources = plan.sources.iter().map(|(_, locked)| *locked);
    for problem in Violations::check(sources, file, shown) {
        // Of an invalid audits file, every problem is reported once.
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    match vectors_file::load(config, &plan, file, shown) {
        Ok(vectors) => plan.vectors = vectors,
        Err(stale) => problems.extend(stale),
    }
    match problems.is_empty() {
        true => Ok(plan),
        false => Err(problems),
    }
}

/// Reads config and lock, and checks that they match.
pub fn read(file: &Path, shown: &str) -> Result<(Config, Lock), Vec<Diagnostic>> {
    let (config, lock) = read_unchecked(file, shown)?;
    plan::check_fresh(&config, &lock)?;
    Ok((config, lock))
}

/// Reads config and lock. The caller checks whether they match.
fn read_unchecked(file: &Path, shown: &str) -> Result<(Config, Lock), Vec<Diagnostic>> {
    let mut config = parse_config(file, shown)?.config;
    let lock_path = lock_file(file);
    let lock_shown = lock_file(Path::new(shown)).to_string_lossy().into_owned();
    let text = read_lock(&lock_path, &lock_shown)?;
    let lock = Lock::parse(&lock_shown, &text)?;
    config.use_word_lists_of(&lock);
    Ok((config, lock))
}

/// The config in a file, without the sources that are its own broker; `shown` is its name in messages.
pub fn parse_config(file: &Path, shown: &str) -> Result<Parsed, Vec<Diagnostic>> {
    parse_config_text(file, shown, &read_config(file, shown)?)
}

/// [`parse_config`] of these bytes, as if the file had them.
pub fn parse_config_text(
    file: &Path,
    shown: &str,
    bytes: &[u8],
) -> Result<Parsed, Vec<Diagnostic>> {
    let exists = |name: &str| broker_files::exists(name, file);
    let parsed = Config::parse_file(shown, bytes, &exists)?;
    let base = parsed.config.base(file);
    Ok(parsed.without_own_broker(Machine {
        base: &std::path::absolute(&base).unwrap_or_else(|_| base.clone()),
        program: &broker_files::program_name,
        is_config: &|other| broker_files::is_same_file(other, file),
        exists: &|other| other.exists(),
        variable: &|name| env::var(name).ok(),
    }))
}

/// The bytes of a config; `shown` is its name in messages.
pub fn read_config(file: &Path, shown: &str) -> Result<Vec<u8>, Vec<Diagnostic>> {
    broker_files::read(file, broker_config::MAX_BYTES).map_err(|error| {
        let code = match error {
            ReadError::Size(_) => DiagnosticCode::ConfigSize,
            _ => DiagnosticCode::ConfigUnreadable,
        };
        vec![unreadable(code, "config", shown, &error)]
    })
}

/// The text of a lock; `shown` is its name in messages.
pub fn read_lock(file: &Path, shown: &str) -> Result<String, Vec<Diagnostic>> {
    lock_text(broker_files::read_text(file, lock::MAX_BYTES), shown)
}

/// The text of a lock, or the reason why it cannot be read.
pub fn lock_text(text: Result<String, ReadError>, shown: &str) -> Result<String, Vec<Diagnostic>> {
    text.map_err(|error| {
        let code = if error.is_not_found() {
            DiagnosticCode::LockMissing
        } else {
            DiagnosticCode::LockCorrupt
        };
        vec![unreadable(code, "lock", shown, &error)]
    })
}

/// `<config stem>.lock.json`, in the folder of the config.
pub fn lock_file(config: &Path) -> PathBuf {
    let stem = config.file_stem().unwrap_or_default().to_string_lossy();
    config.with_file_name(format!("{stem}.lock.json"))
}

/// The command line that makes the lock, as the user has to type it.
fn command(folder: &Path, config: &OsStr) -> String {
    // In the broker's workspace broker-gen is built first; elsewhere it is installed.
    let own = folder.join("broker-gen/Cargo.toml").exists()
        && folder.join("tests/servers/toolbox").exists();
    let command = if own {
        "cargo build -p broker-gen -p toolbox-mcp && target/debug/broker-gen lock"
    } else {
        "broker-gen lock"
    };
    // The shell may have another default than the build.
    let config = shell_word(&config.to_string_lossy());
    format!("{command} --config {config}")
}

fn unreadable(code: DiagnosticCode, what: &str, file: &str, error: &ReadError) -> Diagnostic {
    Diagnostic::error(code, format!("the {what} `{file}` cannot be read: {error}"))
}

/// Cargo prints one line per error.
fn one_line(problem: &Diagnostic, command: &str) -> String {
    let by_lock = problem.code.as_str().starts_with("lock_");
    // A lock with merge-conflict markers is merged; a new one would take over drift of every server.
    let is_merged = problem
        .help
        .as_ref()
        .is_some_and(|help| help.contains("`broker-gen lock --merge`"));
    let remedy = if by_lock {
        let command = match is_merged {
            true => command.replace("broker-gen lock", "broker-gen lock --merge"),
            false => command.to_owned(),
        };
        format!("run: {command}")
    } else {
        problem.remedy().to_owned()
    };
    let place = match (&problem.file, problem.position) {
        (Some(file), Some(at)) => format!(" ({file}:{}:{})", at.line, at.column),
        (Some(file), None) => format!(" ({file})"),
        (None, _) => String::new(),
    };
    broker_model::text::shown_line(
        &format!("[{}] {}{place}; {remedy}", problem.code, problem.message),
        1000,
    )
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Vec<Diagnostic>> {
    // An unchanged file keeps its time, so that Cargo does not compile again.
    if broker_files::holds(path, bytes) {
        return Ok(());
    }
    fs::write(path, bytes).map_err(|error| {
        vec![Diagnostic::error(
            DiagnosticCode::FileWrite,
            format!("`{}` cannot be written: {error}", path.display()),
        )]
    })
}

fn tell_cargo(line: &Text) {
    // Cargo reads a build script's standard output; if it is closed, there is no other output.
    let _ = writeln!(io::stdout(), "{}", line.as_str());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_of_a_missing_local_model_is_refused_with_the_searched_folders() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let file = folder.path().join("c.json");
        let text = r#"{"mcpServers":{},"search":{"embedder":"HF","hf_model":"models/own","hf_multilingual_model":"org/second"}}"#;
        let config = Config::parse("c.json", text.as_bytes())
            .expect("valid")
            .config;
        let cache = folder.path().join("cache");
        let lookup = |name: &str| (name == "HF_HUB_CACHE").then(|| cache.display().to_string());
        let found = find_models(&config, &file, &lookup).expect_err("both are missing");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].code, DiagnosticCode::EmbedderUnavailable);
        let second = cache.join("models--org--second");
        assert!(
            found[1].message.contains(&second.display().to_string()),
            "{}",
            found[1].message
        );
        fs::create_dir_all(folder.path().join("models/own")).expect("writable");
        fs::create_dir_all(second.join("snapshots/abc")).expect("writable");
        assert_eq!(find_models(&config, &file, &lookup), Ok(()));
        let words = Config::parse("c.json", br#"{"mcpServers":{}}"#)
            .expect("valid")
            .config;
        assert_eq!(find_models(&words, &file, &|_| None), Ok(()));
    }
}
