//! Every command and every option that a message, a help text or a page names exists: the sources
//! and the pages are compared with the help of both programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use harness::{Run, binary};

/// Options of other programs that pages and messages name.
const FOREIGN: [&str; 29] = [
    "--all-targets",
    "--appendonly",
    "--cached",
    "--calls",
    "--cap-drop",
    "--check",
    "--cidfile",
    "--env-file",
    "--features",
    "--format",
    "--from",
    "--init",
    "--locked",
    "--no-default-features",
    "--offline",
    "--package",
    "--path",
    "--plain",
    "--preserve-env",
    "--privileged",
    "--quiet",
    "--read-only",
    "--release",
    "--rm",
    "--root",
    "--stdio",
    "--test",
    "--token",
    "--workspace",
];

/// The subcommands of a program, each with its options; those of the program itself are under "".
type Commands = BTreeMap<String, BTreeSet<String>>;

pub(super) fn help(program: &Path, args: &[&str]) -> String {
    let output = Run::new(program).args(args).output();
    assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
    output.stdout
}

/// Options as a help text lists them: at the beginning of a line.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start);
    let listed = lines.filter(|line| line.starts_with('-'));
    let words = listed.flat_map(|line| line.split([' ', ',', '=', '[', '<']));
    words
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(str::to_owned)
        .collect()
}

/// The verbs that a help text lists, under headings or without them.
pub(super) fn verbs(help: &str) -> Vec<&str> {
    let (_, list) = help.split_once("Commands:\n").unwrap_or_default();
    let list = list.split("\n\n").next().unwrap_or_default();
    let lines = list.lines().filter(|line| !line.ends_with(':'));
    let verbs = lines.filter_map(|line| {
        let line = line.strip_prefix("  ")?;
        let word = line.strip_prefix("  ").unwrap_or(line).split(' ').next()?;
        (!word.is_empty()).then_some(word)
    });
    verbs.collect()
}

/// The options of a verb and of the verbs below it.
fn options_of_verb(program: &Path, verb: &str) -> BTreeSet<String> {
    let whole = help(program, &[verb, "--help"]);
    let below = verbs(&whole).into_iter().filter(|verb| *verb != "help");
    let below = below.map(|below| help(program, &[verb, below, "--help"]));
    below.fold(options(&whole), |all, help| &all | &options(&help))
}

fn commands(program: &Path) -> Commands {
    let whole = help(program, &["--help"]);
    let verbs = verbs(&whole);
    assert!(!verbs.is_empty(), "it has verbs");
    let mut commands = Commands::from([(String::new(), options(&whole))]);
    for verb in verbs {
        let options = match verb {
            "help" => BTreeSet::new(),
            verb => options_of_verb(program, verb),
        };
        commands.insert(verb.to_owned(), options);
    }
    commands
}

/// Pages, templates and sources of what users run, tests apart.
fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open: Vec<PathBuf> = [
        "broker-gen/src",
        "crates/gen/src",
        "crates/mcp/src",
        "crates/config/src",
        "crates/model/src",
        "crates/review/src",
        "docs",
        "src",
    ]
    .iter()
    .map(|name| root.join(name))
    .collect();
    let mut files: Vec<PathBuf> = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
    ]
    .iter()
    .map(|name| root.join(name))
    .collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)
            .expect("the folder is readable")
            .flatten()
        {
            let path = entry.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if path.is_dir() {
                open.push(path);
            } else if matches!(ending, Some("rs" | "md" | "in")) {
                files.push(path);
            }
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("the file is UTF-8");
        (
            path.strip_prefix(root).expect("below the root").to_owned(),
            text,
        )
    };
    files.into_iter().map(read).collect()
}

/// The words after the name of a program on its line, up to the end of the command. Only commands
/// count, not sentences that begin with the name.
fn called<'a>(line: &'a str, program: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices(program) {
        let (before, rest) = (&line[..at], &line[at + program.len()..]);
        let Some(rest) = rest.strip_prefix(' ') else {
            continue;
        };
        // The program may follow a folder; the text before it must not be another command.
        let word = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || "/._~-".contains(c)))
            .map_or(0, |at| at + 1);
        let before = before[..word].trim_end();
        let begins = before.trim_matches(['/', '!', ' ', '$', '#']).is_empty()
            || ["`", "\"", "(", "\\n", "&&", "run:", "then"]
                .iter()
                .any(|end| before.ends_with(end));
        if begins {
            let rest = rest.split(" broker-gen ").next().unwrap_or_default();
            let ends = ['`', '|', '&', ';', '#', '"', '\\', '>', ')'];
            found.push(rest.split(ends).next().unwrap_or_default());
        }
    }
    found
}

fn problems_of(program: &str, commands: &Commands, path: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let is_verb = |word: &str| {
        word.len() > 1
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
            && !word.starts_with('-')
    };
    for (number, line) in text.lines().enumerate() {
        // A sentence in a comment or on a page may begin with the name of the program.
        let is_prose = |word: &str| {
            !commands.contains_key(word) && !line.contains(&format!("`{program} {word}"))
        };
        for call in called(line, program) {
            let mut words = call.split_whitespace();
            let first = words.clone().next().unwrap_or_default();
            let place = format!("{}:{}", path.display(), number + 1);
            let verb = match first {
                "stdio" if program == "mcp-broker" => "",
                word if is_verb(word) && !commands.contains_key(word) => {
                    if !is_prose(word) || line.contains("\\n  ") {
                        problems.push(format!("{place}: `{program} {word}` is not a verb"));
                    }
                    continue;
                }
                word if is_verb(word) => word,
                _ => "",
            };
            let known = &commands[verb];
            for word in words.by_ref().filter(|word| word.starts_with("--")) {
                let name = word
                    .trim_start_matches('-')
                    .split(|c: char| !(c.is_ascii_lowercase() || c == '-'))
                    .next();
                let option = format!("--{}", name.unwrap_or_default());
                if option.len() > 2 && !known.contains(&option) {
                    problems.push(format!(
                        "{place}: `{program} {verb}` has no option `{option}`"
                    ));
                }
            }
        }
    }
    problems
}

#[test]
fn commands_and_options_in_texts_exist() {
    let programs = ["broker-gen", "mcp-broker"];
    let trees: Vec<Commands> = programs
        .iter()
        .map(|name| commands(&binary(name)))
        .collect();
    assert!(trees[0].contains_key("lock") && trees[1].contains_key("doctor"));
    assert!(trees[0]["lock"].contains("--source"), "{:?}", trees[0]);
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for (path, text) in texts() {
        for (program, commands) in programs.iter().zip(&trees) {
            problems.extend(problems_of(program, commands, &path, &text));
        }
        // An option alone between backticks.
        for word in text.split('`').skip(1).step_by(2) {
            let name = word.split([' ', '=']).next().unwrap_or_default();
            let is_option = name.len() > 3
                && name.starts_with("--")
                && name[2..]
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c == '-');
            if is_option {
                named.insert((name.to_owned(), path.clone()));
            }
        }
    }
    let exists = |option: &str| {
        let mut verbs = trees.iter().flat_map(BTreeMap::values);
        verbs.any(|options| options.contains(option)) || FOREIGN.contains(&option)
    };
    for (option, path) in named.iter().filter(|(option, _)| !exists(option)) {
        problems.push(format!("{}: no program has `{option}`", path.display()));
    }
    assert!(named.len() > 50, "the texts were read: {}", named.len());
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn command_that_does_not_exist_is_found_in_any_text() {
    let commands = Commands::from([
        (String::new(), BTreeSet::from(["--reload".to_owned()])),
        ("lock".to_owned(), BTreeSet::from(["--source".to_owned()])),
    ]);
    let found = |text: &str| problems_of("broker-gen", &commands, Path::new("x"), text).len();
    for wrong in [
        "convert it with `broker-gen import FILE`",
        "  broker-gen lock --sauce /a",
        "Make it with `broker-gen lock --sauce {path}`, then build",
        "after_help = \"Examples:\\n  broker-gen lack\"",
        "cargo build && target/debug/broker-gen lock --sauce=x",
    ] {
        assert_eq!(found(wrong), 1, "{wrong}");
    }
    for right in [
        "run `broker-gen lock --source /a`, and `broker-gen` alone",
        "broker-gen is built from here",
        "cargo test -p broker-gen --test program",
    ] {
        assert_eq!(found(right), 0, "{right}");
    }
}
