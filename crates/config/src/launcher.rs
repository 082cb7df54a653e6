//! Reads commands that start a server elsewhere: in a container, on another host or as another user. Such a server is not
//! a descendant of the program that the broker starts, and gets only the variables that the command names.

pub mod options;

use crate::CommandLine;
use options::{CONTAINER, KUBECTL, LXC, Options, SSH, SUDO};

/// The programs that run containers with the options of Docker.
const CONTAINER_PROGRAMS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// The options of a container that name a variable, and those that name a file of variables.
const ENV: [&str; 2] = ["-e", "--env"];
const ENV_FILE: [&str; 1] = ["--env-file"];
/// The maximum number of programs that start each other, such as `env` and `sudo`.
const MAX_PROGRAMS: usize = 8;

/// The way in which a command starts its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchKind {
    /// A new container.
    Run,
    /// A process in a container that exists.
    Exec,
    /// A process on another host.
    Remote,
}

/// A command that starts a server elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The way.
    pub kind: LaunchKind,
    /// The program and its verb: `docker run`.
    pub shown: String,
    /// The index of the word `run`; the program of the source is 0. Meaningful for [`LaunchKind::Run`].
    pub verb: usize,
    /// Whether process 1 of a new container passes signals on and collects exit statuses.
    pub has_init: bool,
    /// Whether the config names a new container.
    pub is_named: bool,
    /// The file for the id of a new container, by the config.
    pub id_file: Option<String>,
}

/// The variables that a command asks for by their names, without values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedVariables {
    /// Their names, each once, in the order of the command.
    pub names: Vec<String>,
    /// Files whose lines are names, or names with values.
    pub files: Vec<String>,
}

/// A command that was read.
#[derive(Debug, Default)]
struct Command {
    launcher: Option<Launcher>,
    asked: AskedVariables,
}

impl Launcher {
    /// Reads the words of a command; `None` if its server is a descendant of its program.
    pub fn parse(words: &[&str]) -> Option<Self> {
        read(words).launcher
    }

    /// Reads the first command of a config that starts a server elsewhere. In a script, `verb` has no meaning.
    pub fn find(command: &CommandLine) -> Option<Self> {
        commands(command).into_iter().find_map(|one| one.launcher)
    }
}

impl AskedVariables {
    /// Reads the commands of a config.
    pub fn find(command: &CommandLine) -> Self {
        let mut all = Self::default();
        for one in commands(command) {
            one.asked.names.iter().for_each(|name| all.add(name));
            all.files.extend(one.asked.files);
        }
        all
    }

    /// Reads the words of a command.
    pub fn parse(words: &[&str]) -> Self {
        read(words).asked
    }

    /// Adds the lines of a file of variables that are names only.
    pub fn add_lines(&mut self, text: &str) {
        let lines = text.lines().map(str::trim);
        lines.for_each(|line| self.add(line));
    }

    fn add(&mut self, name: &str) {
        let is_name = is_variable_name(name) && !self.names.iter().any(|known| known == name);
        if is_name {
            self.names.push(name.to_owned());
        }
    }
}

/// Reads each command of a config: one, or those of its script.
fn commands(command: &CommandLine) -> Vec<Command> {
    match command {
        CommandLine::Shell { script, .. } => in_script(script),
        CommandLine::Direct {
            program,
            args,
            script,
        } => {
            let words = [program].into_iter().chain(args);
            let words: Vec<&str> = words.map(|word| word.raw()).collect();
            let script = script.as_ref().map(|script| in_script(&script.text));
            script.unwrap_or_else(|| vec![read(&words)])
        }
    }
}

fn in_script(script: &str) -> Vec<Command> {
    let commands = script.split([';', '&', '|', '(', ')', '`', '\n']);
    let words = |command: &str| {
        let words = command.split_whitespace();
        let words: Vec<&str> = words.map(|word| word.trim_matches(['"', '\''])).collect();
        // Words that may precede a program.
        let is_before = |word: &&&str| {
            matches!(**word, "exec" | "nohup" | "then" | "do" | "!") || is_assignment(word)
        };
        let start = words.iter().take_while(is_before).count();
        read(&words[start..])
    };
    commands.map(words).collect()
}

/// Reads the words of one command. Variables are not expanded.
fn read(words: &[&str]) -> Command {
    let mut command = Command::default();
    let mut start = 0;
    for _ in 0..MAX_PROGRAMS {
        let Some(word) = words.get(start) else { break };
        let program = word.rsplit('/').next().unwrap_or(word);
        let next = match program {
            "env" => {
                let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
                words[start + 1..]
                    .iter()
                    .position(is_program)
                    .map(|at| start + 1 + at)
            }
            "sudo" => sudo(words, start + 1, &mut command.asked),
            _ => {
                start_elsewhere(program, words, start, &mut command);
                None
            }
        };
        match next {
            Some(next) => start = next,
            None => break,
        }
    }
    command
}

/// Reads the options of `sudo`, and returns the index of its program.
fn sudo(words: &[&str], start: usize, asked: &mut AskedVariables) -> Option<usize> {
    let read = SUDO.letters(words, start);
    for (_, names, _) in read.values.iter().filter(|one| one.0 == "--preserve-env") {
        names.split(',').for_each(|name| asked.add(name.trim()));
    }
    let is_program = |word: &&str| !is_assignment(word);
    let argument = read.argument?;
    let at = words[argument..].iter().position(is_program)?;
    Some(argument + at)
}

/// Reads a program that may start a server elsewhere.
fn start_elsewhere(program: &str, words: &[&str], start: usize, command: &mut Command) {
    if CONTAINER_PROGRAMS.contains(&program) {
        return container(program, words, start, command);
    }
    let (kind, options) = match program {
        "ssh" => (LaunchKind::Remote, SSH),
        "kubectl" | "oc" => (LaunchKind::Exec, KUBECTL),
        "lxc" | "incus" => (LaunchKind::Exec, LXC),
        _ => return,
    };
    let read = options.letters(words, start + 1);
    let Some(at) = read.argument else { return };
    let shown = match kind {
        LaunchKind::Remote => {
            let is_option = |one: &&(&str, &str, usize)| one.0 == "-o";
            for (_, value, _) in read.values.iter().filter(is_option) {
                sent_variables(value, &mut command.asked);
            }
            program.to_owned()
        }
        LaunchKind::Exec | LaunchKind::Run if words[at] == "exec" => format!("{program} exec"),
        LaunchKind::Exec | LaunchKind::Run => return,
    };
    command.launcher = Some(Launcher {
        kind,
        shown,
        verb: at,
        has_init: false,
        is_named: false,
        id_file: None,
    });
}

/// Adds the variables of an option of `ssh`: `SendEnv=A B`.
fn sent_variables(option: &str, asked: &mut AskedVariables) {
    let mut words = option.split(|c: char| c.is_whitespace() || c == '=');
    if words
        .next()
        .is_some_and(|key| key.eq_ignore_ascii_case("SendEnv"))
    {
        words.for_each(|name| asked.add(name.trim_matches('"')));
    }
}

/// Reads `docker run`, `docker container run`, `docker exec` and `docker compose run`.
fn container(program: &str, words: &[&str], start: usize, command: &mut Command) {
    let Some(mut verb) = CONTAINER.letters(words, start + 1).argument else {
        return;
    };
    let mut is_compose = false;
    match words[verb] {
        "container" => verb += 1,
        "compose" => {
            is_compose = true;
            match CONTAINER.letters(words, verb + 1).argument {
                Some(at) => verb = at,
                None => return,
            }
        }
        _ => {}
    }
    let kind = match words.get(verb) {
        Some(&"run") if !is_compose => LaunchKind::Run,
        Some(&("run" | "exec")) => LaunchKind::Exec,
        _ => return,
    };
    let read = CONTAINER.letters(words, verb + 1);
    for (value, _) in read.all(&ENV) {
        command.asked.add(value);
    }
    let files = read.all(&ENV_FILE).map(|(file, _)| file.to_owned());
    command.asked.files.extend(files);
    let end = read.argument.unwrap_or(words.len());
    let mut options = words[verb + 1..end].iter();
    let verb_shown = if is_compose {
        "compose run"
    } else {
        words[verb]
    };
    command.launcher = Some(Launcher {
        kind,
        shown: format!("{program} {verb_shown}"),
        verb,
        has_init: options.any(|word| matches!(*word, "--init" | "--init=true")),
        is_named: read.first(&["--name"]).is_some(),
        id_file: read.first(&["--cidfile"]).map(|(file, _)| file.to_owned()),
    });
}

impl Options {
    /// Reads options like [`Options::read`], and also values that follow a letter without a blank: `-eNAME`, `-ieNAME`.
    fn letters<'a>(self, words: &[&'a str], start: usize) -> options::Read<'a> {
        let mut read = self.read(words, start);
        let end = read.argument.unwrap_or(words.len());
        for (at, word) in words.iter().enumerate().take(end).skip(start) {
            let is_letters = word.starts_with('-') && !word.starts_with("--");
            let of_value = read.values.iter().any(|one| one.2 == at && one.1 == *word);
            if !is_letters || of_value {
                continue;
            }
            let letter = word.char_indices().skip(1).find(|(_, letter)| {
                let name = format!("-{letter}");
                (self.takes)(&name)
            });
            let Some((position, letter)) = letter else {
                continue;
            };
            let after = &word[position + letter.len_utf8()..];
            let name = match letter {
                'e' => "-e",
                'o' => "-o",
                _ => continue,
            };
            let value = match after {
                "" => words.get(at + 1).copied(),
                after => Some(after.strip_prefix('=').unwrap_or(after)),
            };
            let value = value.filter(|value| !read.values.contains(&(name, value, at + 1)));
            read.values.extend(value.map(|value| (name, value, at)));
        }
        read.values.sort_by_key(|one| one.2);
        read
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    is_variable_name(name)
}

/// Whether a text is the name of a variable: no value and no reference.
fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Command {
        read(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn launcher_is_recognised_in_every_form() {
        use LaunchKind::{Exec, Remote, Run};
        for (line, expected) in [
            ("docker run -i --rm a", Some((Run, "docker run", 1, false))),
            (
                "/usr/bin/podman run --init -i a",
                Some((Run, "podman run", 1, true)),
            ),
            (
                "docker run -i a --init",
                Some((Run, "docker run", 1, false)),
            ),
            (
                "docker --context c container run -i --init=true a",
                Some((Run, "docker run", 4, true)),
            ),
            (
                "env A=b sudo -n -u me nerdctl run -i a",
                Some((Run, "nerdctl run", 7, false)),
            ),
            (
                "docker exec -i c server",
                Some((Exec, "docker exec", 1, false)),
            ),
            (
                "docker compose -f x.yml run --rm -T s",
                Some((Exec, "docker compose run", 4, false)),
            ),
            (
                "kubectl -n tools exec -i pod -- server",
                Some((Exec, "kubectl exec", 3, false)),
            ),
            ("lxc exec c -- server", Some((Exec, "lxc exec", 1, false))),
            ("ssh -p 22 host server", Some((Remote, "ssh", 3, false))),
            ("kubectl port-forward x", None),
            ("docker ps", None),
            ("docker", None),
            ("npx -y server", None),
            ("", None),
        ] {
            let found = read_line(line).launcher;
            let found = found
                .as_ref()
                .map(|one| (one.kind, one.shown.as_str(), one.verb, one.has_init));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn asked_variables_are_those_without_a_value() {
        for (line, names, files) in [
            (
                "docker run -i --rm -e TOKEN -e A=b --env OTHER --env=THIRD a",
                "TOKEN OTHER THIRD",
                "",
            ),
            (
                "docker run -ieONE -ie TWO -eX=1 -e THREE a -e NOT",
                "ONE TWO THREE",
                "",
            ),
            (
                "podman run --env-file v.env --env-file=w.env a",
                "",
                "v.env w.env",
            ),
            ("docker exec -e T -i c server", "T", ""),
            ("docker run -e ${NAME} -e $X a", "", ""),
            (
                "ssh -o SendEnv=ONE -oSendEnv=TWO -o LogLevel=x h s",
                "ONE TWO",
                "",
            ),
            ("sudo --preserve-env=A,B -u me server", "A B", ""),
            ("sudo --preserve-env=A docker run -e B -e A i", "A B", ""),
            ("npx -y -e NAME server", "", ""),
        ] {
            let asked = read_line(line).asked;
            assert_eq!(asked.names.join(" "), names, "{line}");
            assert_eq!(asked.files.join(" "), files, "{line}");
        }
    }

    #[test]
    fn launcher_in_a_script_is_found() {
        let found = in_script("cd /x && exec docker run -i -e TOKEN \"a\" | tee log");
        let launchers: Vec<_> = found
            .iter()
            .filter_map(|one| one.launcher.as_ref())
            .collect();
        assert_eq!(launchers.len(), 1);
        assert_eq!(launchers[0].shown, "docker run");
        assert_eq!(found[2].asked.names, ["TOKEN"]);
    }

    #[test]
    fn lines_of_a_file_without_a_value_are_names() {
        let mut asked = AskedVariables::default();
        asked.add_lines("# text\nONE\nTWO=2\n\n  THREE \nnot a name\n");
        assert_eq!(asked.names, ["ONE", "THREE"]);
    }
}
