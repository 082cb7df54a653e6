//! `lock --pin`: writes the versions of packages that unpinned `npx` and `uvx` commands ran into the config. Every other
//! byte of the file stays, and a copy of it is beside it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use broker_build::build_script::read_config;
use broker_build::requested::{Requested, request};
use broker_config::{CommandLine, Config, Source};
use broker_drift::SeenPackage;
use broker_mcp::EraHint;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, NodePath, text};
use broker_review::provenance;
use broker_review::whole_file::{turn_if_unchanged, write_whole};
use jsonc_parser::ast::Value;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::cli::LockArgs;
use crate::cli::input::Input;
use crate::cli::launch::snapshot_all::{Failure, SnapshotJob, snapshot_all};
use crate::cli::output::say;

/// Maximum number of backups of one file.
const MAX_BACKUPS: usize = 100;

/// A word of a command that names a package without one version.
struct Unpinned<'c> {
    source: &'c Source,
    /// The pointer of the string that has the word.
    pointer: String,
    word: String,
    form: Form,
}

/// The form of a package with one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `name@1`.
    Npm,
    /// `name@1`. The name may have extras behind it.
    UvxTool,
    /// `name==1`.
    Requirement,
}

/// Launches the sources with an unpinned `npx` or `uvx` command, and writes the versions that ran into the config. Returns
/// whether the file has changed.
pub(in crate::cli) async fn pin(args: &LockArgs, input: &Input) -> Result<bool, Vec<Diagnostic>> {
    let found: Vec<Unpinned<'_>> = input
        .specs
        .iter()
        .filter_map(|spec| unpinned(input.config.source(&spec.source)?))
        .collect();
    if found.is_empty() {
        say(text!("every command of `npx` and `uvx` names a version"));
        return Ok(false);
    }
    let file = &args.config.file.config;
    let shown = file.to_string_lossy();
    let is_of_client = found.iter().any(|one| is_in_client_file(one.source));
    if is_of_client && !args.write_client_file {
        let message =
            format!("`{shown}` has the format of a client's file, and `--pin` would write it");
        let help = "Add `--write-client-file`, or write the versions yourself: `broker-gen lock` names them.";
        return Err(vec![
            Diagnostic::error(DiagnosticCode::FileWrite, message).help(help),
        ]);
    }
    let bytes = read_config(file, &shown)?;
    let old = String::from_utf8(bytes).map_err(|_| {
        let message = format!("`{shown}` is not UTF-8");
        vec![Diagnostic::error(DiagnosticCode::ConfigEncoding, message)]
    })?;
    let versions = versions(input, &found).await;
    let mut new = old.clone();
    for one in &found {
        let seen = versions.iter().find(|(path, _)| *path == one.source.path);
        let version = match seen.map(|(_, version)| version) {
            Some(Ok(version)) => version,
            Some(Err(why)) => {
                say(text!("{}: not pinned: {}", one.source.path, why));
                continue;
            }
            None => continue,
        };
        let pinned = pinned_word(&one.word, version, one.form);
        let edited = pinned.as_deref().and_then(|word| {
            let text = with_word(&new, &one.pointer, &one.word, word)?;
            is_pinned(&shown, &text, &one.source.path, version).then_some(text)
        });
        match (edited, pinned) {
            (Some(text), Some(word)) => {
                new = text;
                say(text!(
                    "{}: pinned `{}` as `{}`",
                    one.source.path,
                    shown_line(&one.word, 200),
                    shown_line(&word, 200)
                ));
            }
            _ => say(text!(
                "{}: not pinned: write the version {} into `{}` yourself",
                one.source.path,
                shown_line(version, 80),
                shown_line(&one.word, 200)
            )),
        }
    }
    if new == old {
        return Ok(false);
    }
    // A symbolic link is kept.
    let target = file.canonicalize().unwrap_or_else(|_| file.clone());
    let _turn = turn_if_unchanged(&target, Some(old.as_bytes()), broker_config::MAX_BYTES)?;
    let (backup, is_new) = back_up(file, &old).map_err(|error| cannot_write(file, &error))?;
    write_whole(&target, new.as_bytes()).map_err(|error| {
        if is_new {
            // The file is as it was.
            drop(std::fs::remove_file(&backup));
        }
        cannot_write(file, &error)
    })?;
    say(text!(
        "wrote {}; {} has the text before",
        shown,
        backup.display()
    ));
    Ok(true)
}

fn cannot_write(file: &Path, error: &io::Error) -> Vec<Diagnostic> {
    let message = format!("`{}` cannot be written: {error}", file.display());
    vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
}

/// The unpinned package of a source that `npx` or `uvx` runs, without a shell.
fn unpinned(source: &Source) -> Option<Unpinned<'_>> {
    let process = source.process()?;
    let CommandLine::Direct { program, args, .. } = &process.command else {
        return None;
    };
    let request = request(&process.command)?;
    request.what.moving()?;
    match &request.what {
        Requested::Npm { .. } | Requested::Pypi { .. } => {}
        Requested::Image { .. }
        | Requested::Elsewhere { .. }
        | Requested::Script
        | Requested::Module(_)
        | Requested::Program => return None,
    }
    let words: Vec<&str> = [program]
        .into_iter()
        .chain(args)
        .map(|word| word.raw())
        .collect();
    let is_runner = |word: &&str| matches!(word.rsplit('/').next(), Some("npx" | "uvx"));
    words.iter().find(|word| is_runner(word))?;
    let word = (*words.get(request.word)?).to_owned();
    let before = words.get(request.word.checked_sub(1)?).copied();
    let form = match &request.what {
        Requested::Npm { .. } => Form::Npm,
        _ if before == Some("--from") || word.starts_with("--from=") => Form::Requirement,
        _ => Form::UvxTool,
    };
    Some(Unpinned {
        source,
        pointer: format!("{}{}", source.pointer, process.places.get(request.word)?),
        word,
        form,
    })
}

/// Whether the source is an entry of a file in the format of clients.
fn is_in_client_file(source: &Source) -> bool {
    ["/mcpServers/", "/servers/"]
        .iter()
        .any(|key| source.pointer.starts_with(key))
}

/// The version that each source ran, or why it is not known.
async fn versions(
    input: &Input,
    found: &[Unpinned<'_>],
) -> Vec<(NodePath, Result<String, String>)> {
    let is_asked = |path: &NodePath| found.iter().any(|one| one.source.path == *path);
    let specs = input.specs.iter().filter(|spec| is_asked(&spec.source));
    let jobs = specs.map(|spec| SnapshotJob {
        spec: spec.clone(),
        era: EraHint::default(),
        volatile: Vec::new(),
        twice: false,
    });
    let results = snapshot_all(jobs.collect()).await.into_iter();
    results
        .map(|result| {
            let version = match result.outcome {
                Err(Failure::Source(failed)) => Err(failed.message()),
                Err(Failure::Unstable(_)) => Err("it is not stable".to_owned()),
                Ok(_) => seen_version(input, &result.source),
            };
            (result.source, version)
        })
        .collect()
}

fn seen_version(input: &Input, path: &NodePath) -> Result<String, String> {
    let process = input.spec(path).and_then(|spec| spec.endpoint.process());
    let source = input.config.source(path);
    let (Some(source), Some(process)) = (source, process) else {
        return Err("it has no command".to_owned());
    };
    match provenance::look(source, process) {
        SeenPackage::Found(package) => {
            let version = package.version.filter(|version| is_plain(version));
            version.ok_or_else(|| "its package has no usual version".to_owned())
        }
        SeenPackage::Nothing => Err("it runs no package".to_owned()),
        SeenPackage::Unseen(why) => Err(why),
    }
}

fn is_plain(version: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-+!".contains(&b);
    version.starts_with(|c: char| c.is_ascii_digit()) && version.bytes().all(plain)
}

/// The word with one version in place of what it asks for.
fn pinned_word(word: &str, version: &str, form: Form) -> Option<String> {
    let (option, spec) = match word.split_once('=') {
        Some((option, spec)) if option.starts_with('-') => (format!("{option}="), spec),
        _ => (String::new(), word),
    };
    let (ends, sign): (&[char], _) = match form {
        Form::Npm => (&['@'], "@"),
        Form::UvxTool => (&['@', '=', '<', '>', '!', '~', ';', ' '], "@"),
        Form::Requirement => (&['@', '=', '<', '>', '!', '~', ';', ' '], "=="),
    };
    // The first `@` belongs to a scope.
    let begin = usize::from(spec.starts_with('@'));
    let end = spec[begin..].find(ends);
    let name = &spec[..end.map_or(spec.len(), |end| end + begin)];
    (name.len() > begin).then(|| format!("{option}{name}{sign}{version}"))
}

/// The text with `new` in place of `old` in the string at a pointer; `None` if `old` is not there exactly once as a word.
fn with_word(text: &str, pointer: &str, old: &str, new: &str) -> Option<String> {
    let range = string_at(text, pointer)?;
    let literal = &text[range.clone()];
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    let mut places = literal.match_indices(old).map(|(at, _)| at).filter(|at| {
        let before = literal[..*at].chars().next_back();
        let after = literal[at + old.len()..].chars().next();
        before.is_some_and(is_end) && after.is_some_and(is_end)
    });
    let (at, None) = (places.next()?, places.next()) else {
        return None;
    };
    let at = range.start + at;
    Some(format!("{}{new}{}", &text[..at], &text[at + old.len()..]))
}

/// The bytes of the string at a JSON pointer, with its quotes.
fn string_at(text: &str, pointer: &str) -> Option<Range<usize>> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let offset = text.len() - bare.len();
    let parsed = parse_to_ast(bare, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    let mut value = parsed.value?;
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        value = match value {
            Value::Object(object) => {
                let mut members = object.properties.into_iter();
                members.find(|member| member.name.as_str() == name)?.value
            }
            Value::Array(array) => array.elements.into_iter().nth(name.parse().ok()?)?,
            _ => return None,
        };
    }
    match value {
        Value::StringLit(literal) => Some(literal.range.start + offset..literal.range.end + offset),
        _ => None,
    }
}

/// Whether the text is a config whose source requests exactly this version.
fn is_pinned(file: &str, text: &str, path: &NodePath, version: &str) -> bool {
    let Ok(parsed) = Config::parse(file, text.as_bytes()) else {
        return false;
    };
    let source = parsed.config.source(path);
    let requested = source.and_then(|source| request(&source.process()?.command));
    requested.is_some_and(|requested| match requested.what {
        Requested::Npm { version: asked, .. } | Requested::Pypi { version: asked, .. } => {
            asked.exact() == Some(version)
        }
        Requested::Image { .. }
        | Requested::Elsewhere { .. }
        | Requested::Script
        | Requested::Module(_)
        | Requested::Program => false,
    })
}

/// Copies the text beside the file; a backup with this text is not repeated. Returns also whether it was made now.
fn back_up(file: &Path, text: &str) -> io::Result<(PathBuf, bool)> {
    for number in 0..MAX_BACKUPS {
        let mut name = file.as_os_str().to_owned();
        match number {
            0 => name.push(".bak"),
            number => name.push(format!(".bak.{number}")),
        }
        let backup = PathBuf::from(name);
        if broker_files::holds(&backup, text.as_bytes()) {
            return Ok((backup, false));
        }
        if std::fs::symlink_metadata(&backup).is_err() {
            write_whole(&backup, text.as_bytes())?;
            return Ok((backup, true));
        }
    }
    Err(io::Error::other(format!(
        "it has {MAX_BACKUPS} backups; remove old ones"
    )))
}

/// Writes pins, if `--pin` is given, and returns the input after it.
pub(in crate::cli) async fn input_with_pins(
    args: &LockArgs,
    input: Input,
) -> Result<Input, Vec<Diagnostic>> {
    if !args.pin || !pin(args, &input).await? {
        return Ok(input);
    }
    Input::read(&args.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_word_has_one_version() {
        for (word, form, pinned) in [
            ("pkg", Form::Npm, "pkg@1.2.3"),
            ("pkg@latest", Form::Npm, "pkg@1.2.3"),
            ("@scope/pkg", Form::Npm, "@scope/pkg@1.2.3"),
            ("@scope/pkg@^1", Form::Npm, "@scope/pkg@1.2.3"),
            ("--package=pkg@1", Form::Npm, "--package=pkg@1.2.3"),
            ("tool", Form::UvxTool, "tool@1.2.3"),
            ("tool[cli]>=1", Form::UvxTool, "tool[cli]@1.2.3"),
            ("tool@latest", Form::UvxTool, "tool@1.2.3"),
            ("--from=tool>=1", Form::Requirement, "--from=tool==1.2.3"),
            ("tool", Form::Requirement, "tool==1.2.3"),
        ] {
            let found = pinned_word(word, "1.2.3", form);
            assert_eq!(found.as_deref(), Some(pinned), "{word}");
        }
        assert_eq!(pinned_word("@", "1", Form::Npm), None);
    }

    #[test]
    fn word_is_replaced_and_every_other_byte_stays() {
        let text = "\u{feff}{ // comment\n \"a\": [\"npx\",\t\"pkg\", \"pkg\"],\r\n \"b\": \"npx  -y pkg --x pkg-x\", }";
        let list = with_word(text, "/a/1", "pkg", "pkg@1");
        assert_eq!(list, Some(text.replacen("\"pkg\"", "\"pkg@1\"", 1)));
        let line = with_word(text, "/b", "pkg", "pkg@1");
        assert_eq!(line, Some(text.replacen("-y pkg ", "-y pkg@1 ", 1)));
        for (pointer, word) in [("/b", "pk"), ("/c", "pkg"), ("/a", "pkg")] {
            assert_eq!(with_word(text, pointer, word, "x"), None, "{pointer}");
        }
        let twice = "{\"b\": \"npx pkg pkg\"}";
        assert_eq!(with_word(twice, "/b", "pkg", "x"), None);
    }
}
