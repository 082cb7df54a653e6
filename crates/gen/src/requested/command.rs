//! Parses a command into the package or file that it requests. Of a shell script only packages count.

use super::{PythonRunner, Request, Requested, is_commit, npm, python};
use broker_config::CommandLine;
use broker_config::launcher::options::{CONTAINER, NODE, NPX, PIPX, PYTHON, Read, SHELL, UVX};

/// The request of a command; `None` if it is unknown. A shell script is only searched for the first package
/// that it names.
pub fn request(command: &CommandLine) -> Option<Request> {
    match command {
        CommandLine::Shell { script, .. } => in_script(script),
        CommandLine::Direct { program, args, .. } => {
            let words = [program].into_iter().chain(args);
            read(&words.map(|word| word.raw()).collect::<Vec<_>>())
        }
    }
}

/// The first package that a script names. The script is one word, so the index is 0.
pub(super) fn in_script(script: &str) -> Option<Request> {
    let what_of = |command: &str| {
        let words: Vec<&str> = command
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
            .collect();
        // Words that may precede a program.
        let before = |word: &&&str| {
            matches!(**word, "exec" | "nohup" | "then" | "do" | "!") || is_assignment(word)
        };
        let start = words.iter().take_while(before).count();
        read(words.get(start..)?).map(|request| request.what)
    };
    let is_package = |what: &Requested| {
        !matches!(
            what,
            Requested::Script | Requested::Module(_) | Requested::Program
        )
    };
    let mut commands = script.split([';', '&', '|', '(', ')', '`', '\n']);
    let what = commands.find_map(|command| what_of(command).filter(is_package))?;
    Some(Request { word: 0, what })
}

/// The words, as written: variables are not expanded.
pub(super) fn read(words: &[&str]) -> Option<Request> {
    let start = skip_env(words)?;
    let program = base(words[start]);
    let after = |count: usize| start + 1 + count;
    let word = |count: usize| words.get(start + count).copied().unwrap_or_default();
    match program {
        "npx" => packages(words, start + 1, true),
        "bunx" | "pnpx" => packages(words, start + 1, false),
        "npm" => {
            let verb = NPX.read(words, start + 1).argument?;
            matches!(words[verb], "exec" | "x").then(|| packages(words, verb + 1, true))?
        }
        "bun" if word(1) == "x" => packages(words, after(1), false),
        "pnpm" | "yarn" if word(1) == "dlx" => packages(words, after(1), false),
        "uvx" => uv(words, start + 1),
        "uv" => {
            let tool = UVX.read(words, start + 1).argument?;
            let run = UVX.read(words, tool + 1).argument?;
            ((words[tool], words[run]) == ("tool", "run")).then(|| uv(words, run + 1))?
        }
        "pipx" => {
            let verb = PIPX.read(words, start + 1).argument?;
            (words[verb] == "run").then(|| pipx(words, verb + 1))?
        }
        "docker" | "podman" | "nerdctl" => {
            let mut verb = CONTAINER.read(words, start + 1).argument?;
            if words[verb] == "container" {
                verb += 1;
            }
            (words.get(verb) == Some(&"run")).then(|| image(words, verb + 1))?
        }
        _ => local(words, start, program),
    }
}

/// `env NAME=value program …` runs the program.
fn skip_env(words: &[&str]) -> Option<usize> {
    if base(words.first()?) != "env" {
        return Some(0);
    }
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    (words.iter().skip(1).position(is_program)).map(|at| at + 1)
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Options of npm and of programs that run its packages. Only the first package counts, since it has the command.
fn packages(words: &[&str], start: usize, npx: bool) -> Option<Request> {
    let options = NPX.read(words, start);
    let given: Vec<_> = options.all(&["-p", "--package"]).collect();
    let apart = options.first(&["--cache", "--prefix", "-C"]).is_some();
    let (spec, word, is_command) = match given.first() {
        Some((spec, word)) => (*spec, *word, false),
        None => {
            let at = options.argument?;
            (words[at], at, true)
        }
    };
    let what = if has_variable(spec) {
        elsewhere(spec, '#')
    } else {
        match npm::spec(spec) {
            None => elsewhere(spec, '#'),
            Some((name, version)) => {
                let specs = match given.as_slice() {
                    _ if !npx || apart => Vec::new(),
                    [] => vec![spec.to_owned()],
                    all => all.iter().map(|(spec, _)| (*spec).to_owned()).collect(),
                };
                Requested::Npm {
                    name,
                    version,
                    specs,
                    is_command,
                }
            }
        }
    };
    Some(Request { word, what })
}

fn uv(words: &[&str], start: usize) -> Option<Request> {
    let options = UVX.read(words, start);
    let at = options.argument?;
    let is_apart = |word: &&str| matches!(*word, "--no-cache" | "-n" | "--no-cache-dir");
    let apart = options
        .first(&["--cache-dir", "--directory", "--config-file"])
        .is_some()
        || words[start..at].iter().any(is_apart);
    let runner = if apart {
        PythonRunner::Apart
    } else {
        PythonRunner::Uv
    };
    let (spec, word) = options.first(&["--from"]).unwrap_or((words[at], at));
    Some(Request {
        word,
        what: python_package(spec, runner),
    })
}

fn pipx(words: &[&str], start: usize) -> Option<Request> {
    let options = PIPX.read(words, start);
    let at = options.argument?;
    let (spec, word) = options.first(&["--spec"]).unwrap_or((words[at], at));
    Some(Request {
        word,
        what: python_package(spec, PythonRunner::Pipx),
    })
}

fn python_package(spec: &str, runner: PythonRunner) -> Requested {
    if has_variable(spec) {
        return elsewhere(spec, '@');
    }
    let read = match runner {
        // Only for uv: `name@version`.
        PythonRunner::Uv | PythonRunner::Apart => python::uv_spec(spec),
        PythonRunner::Pipx => python::requirement(spec),
    };
    match read {
        Some((name, version)) => Requested::Pypi {
            name,
            version,
            runner,
        },
        None => elsewhere(spec, '@'),
    }
}

/// The commit is after the mark, and options of the address follow it.
fn elsewhere(spec: &str, mark: char) -> Requested {
    let end = match mark {
        '#' => spec,
        _ => spec.split('#').next().unwrap_or(spec),
    };
    let commit = end.rsplit_once(mark).map_or("", |(_, commit)| commit);
    Requested::Elsewhere {
        spec: spec.to_owned(),
        pinned: is_commit(commit),
    }
}

fn image(words: &[&str], start: usize) -> Option<Request> {
    let at = CONTAINER.read(words, start).argument?;
    let word = words[at];
    if has_variable(word) {
        return Some(Request {
            word: at,
            what: elsewhere(word, '@'),
        });
    }
    let (rest, digest) = match word.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest.to_owned())),
        None => (word, None),
    };
    // A colon before a slash belongs to the registry's port.
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag.to_owned())),
        _ => (rest, None),
    };
    let is_sha = |digest: &String| {
        let hex = digest.strip_prefix("sha256:").unwrap_or_default();
        hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let what = Requested::Image {
        name: name.to_owned(),
        tag,
        digest: digest.filter(is_sha),
    };
    Some(Request { word: at, what })
}

/// Returns a program, or the script of an interpreter. Code on the command line is part of the config; the lock covers
/// the config.
fn local(words: &[&str], start: usize, program: &str) -> Option<Request> {
    let versionless = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let options = match versionless {
        "node" | "nodejs" | "tsx" | "ts-node" | "ruby" | "perl" | "php" => {
            NODE.read(words, start + 1)
        }
        "python" | "pythonw" | "pypy" => PYTHON.read(words, start + 1),
        "sh" | "bash" | "dash" | "zsh" => SHELL.read(words, start + 1),
        "deno" | "bun" => match words.get(start + 1) {
            Some(&"run") => NODE.read(words, start + 2),
            _ => Read::default(),
        },
        _ => {
            let what = Requested::Program;
            return Some(Request { word: start, what });
        }
    };
    let is_python = versionless.starts_with("py");
    if let Some((name, word)) = options.first(&["-m"]).filter(|_| is_python) {
        let top = name.split('.').next().unwrap_or(name);
        let what = Requested::Module(top.to_owned());
        return Some(Request { word, what });
    }
    let is_code = |(name, ..): &(&str, &str, usize)| {
        let short = name.starts_with('-') && !name.starts_with("--");
        matches!(*name, "-e" | "--eval" | "-p" | "--print") || (short && name.ends_with('c'))
    };
    let word = options
        .argument
        .filter(|_| !options.values.iter().any(is_code))?;
    let what = Requested::Script;
    Some(Request { word, what })
}

fn has_variable(text: &str) -> bool {
    text.contains("${")
}
