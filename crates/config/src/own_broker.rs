//! Sources that are the broker of the config itself: it would start itself again, without end. They are left out with a
//! warning; another broker stays a source. The caller looks at the files; the decision is made here.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::confidential::shell_words;
use super::{CommandLine, Endpoint, Node, Parsed, ProcessEndpoint, Source};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::path::NodePath;

/// The compiled broker.
const BROKER: &str = "mcp-broker";
/// The generator, whose verb `serve` is a broker.
const GENERATOR: &str = "broker-gen";
/// The variable that names a config.
const CONFIG_VARIABLE: &str = "MCP_BROKER_CONFIG";
/// The names of a config in a folder, the preferred one first.
const CONFIG_NAMES: [&str; 2] = ["config.json", "smoke_config.json"];
/// The subcommands of `mcp-broker` that do not run a server.
const VERBS: [&str; 6] = ["connect", "doctor", "help", "key", "logs", "status"];
/// The options of both programs that take no value as the next word. Tests of both command lines compare them.
pub const FLAGS: [&str; 9] = [
    "--allow-unauthenticated",
    "--dump-tree",
    "--help",
    "--ignore-broken-tool",
    "--no-mcp",
    "--reload",
    "--version",
    "-V",
    "-h",
];
/// Programs that run the program that their arguments name.
const WRAPPERS: [&str; 17] = [
    "bash", "bunx", "command", "dash", "dlx", "env", "exec", "nice", "nohup", "npx", "pnpm", "run",
    "sh", "time", "uvx", "yarn", "zsh",
];
/// Shells, whose argument after `-c` is a script.
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];
/// The maximum number of words of a command that are read.
const MAX_WORDS: usize = 1_000;

/// The machine as the decision needs it.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// The folder for the relative paths of the config, absolute.
    pub base: &'a Path,
    /// The name of the file that a program is, after every symbolic link, if it is found.
    pub program: &'a dyn Fn(&Path) -> Option<String>,
    /// Whether a path leads to the config.
    pub is_config: &'a dyn Fn(&Path) -> bool,
    /// Whether a path exists.
    pub exists: &'a dyn Fn(&Path) -> bool,
    /// The value of a variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl Parsed {
    /// The config without the sources that are its own broker, with a warning for each.
    #[must_use]
    pub fn without_own_broker(mut self, machine: Machine<'_>) -> Self {
        let own: Vec<(NodePath, String)> = self
            .config
            .sources()
            .filter(|source| is_own_broker(source, machine))
            .map(|source| (source.path.clone(), source.pointer.clone()))
            .collect();
        for (path, pointer) in own {
            let message = format!("`{path}` is the broker of this config itself and is left out");
            let warning = Diagnostic::warning(Code::OwnBroker, message).at(pointer.as_str());
            self.warnings.push(self.config.place(warning));
            self.config.remove_source(&path, &pointer);
        }
        self
    }
}

impl super::Config {
    /// Removes a source, as if the file had not written it. In a file with entries its node goes with it.
    fn remove_source(&mut self, path: &NodePath, pointer: &str) {
        if let Some((parent, key)) = pointer.rsplit_once('/')
            && let Some(Value::Object(members)) = self.document.value.pointer_mut(parent)
        {
            members.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        let is_entry = self.document.value.get("tree").is_none();
        remove(&mut self.root, path, is_entry);
    }
}

fn remove(node: &mut Node, path: &NodePath, is_entry: bool) {
    if is_entry {
        node.children.retain(|child| child.path != *path);
        return;
    }
    if node.path == *path {
        node.source = None;
    }
    for child in &mut node.children {
        remove(child, path, is_entry);
    }
}

/// Whether a source starts a broker with the config that has the source.
fn is_own_broker(source: &Source, machine: Machine<'_>) -> bool {
    let Endpoint::Process(process) = &source.endpoint else {
        return false;
    };
    let expand = |template: &super::Template| template.expand(machine.variable).ok();
    let folder = process.cwd.as_ref().and_then(expand).unwrap_or_default();
    let folder = machine.base.join(folder);
    let Some(found) = broker_in(&words(process, machine), &folder, machine) else {
        return false;
    };
    let of_source = process.env.get(CONFIG_VARIABLE).and_then(expand);
    match found.config.or(found.variable).or(of_source) {
        Some(config) if !config.is_empty() => (machine.is_config)(&found.folder.join(config)),
        _ => {
            let names = CONFIG_NAMES.map(|name| found.folder.join(name));
            let default = names.iter().find(|name| (machine.exists)(name));
            default.is_some_and(|file| (machine.is_config)(file))
        }
    }
}

/// Whether a command starts a broker, with whichever config.
pub fn starts_a_broker(words: &[String]) -> bool {
    let nothing = Machine {
        base: Path::new(""),
        program: &|_| None,
        is_config: &|_| false,
        exists: &|_| false,
        variable: &|_| None,
    };
    broker_in(words, Path::new(""), nothing).is_some()
}

/// The words of a command, with variables and without quotes.
fn words(process: &ProcessEndpoint, machine: Machine<'_>) -> Vec<String> {
    let of_script = |text: &str| -> Vec<String> {
        let ranges = shell_words::split(text).into_iter().take(MAX_WORDS);
        ranges.map(|range| without_quotes(&text[range])).collect()
    };
    match &process.command {
        CommandLine::Shell { written, .. } => of_script(written),
        CommandLine::Direct {
            program,
            args,
            script,
        } => {
            let program = program.expand(machine.variable).unwrap_or_default();
            let is_shell = SHELLS.contains(&name_of(&program));
            let mut before = "";
            let args = args.iter().take(MAX_WORDS).enumerate();
            let args = args.flat_map(|(at, arg)| {
                // `-c`, and joined with others: `-lc`.
                let is_option = |word: &str| word.starts_with('-') && word.ends_with('c');
                let is_script = script.as_ref().is_some_and(|script| script.at == at)
                    || (is_shell && is_option(std::mem::replace(&mut before, arg.raw())));
                match is_script {
                    true => of_script(arg.raw()),
                    false => vec![arg.expand(machine.variable).unwrap_or_default()],
                }
            });
            let args: Vec<String> = args.collect();
            std::iter::once(program).chain(args).collect()
        }
    }
}

fn without_quotes(word: &str) -> String {
    word.replace(['"', '\''], "")
}

/// A broker in the words of a command.
#[derive(Debug, PartialEq, Eq)]
struct FoundBroker {
    /// The working folder.
    folder: PathBuf,
    /// The argument that names its config.
    config: Option<String>,
    /// The value of the variable that names it, if the command sets it.
    variable: Option<String>,
}

/// The broker that a command starts, if it is evident.
fn broker_in(words: &[String], folder: &Path, machine: Machine<'_>) -> Option<FoundBroker> {
    let mut folder = folder.to_owned();
    let mut variable = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "cd" {
            folder = folder.join(rest.next()?);
            if !matches!(rest.next()?.as_str(), "&&" | ";") {
                return None;
            }
        } else if let Some(value) = word
            .strip_prefix(CONFIG_VARIABLE)
            .and_then(|rest| rest.strip_prefix('='))
        {
            variable = Some(value.to_owned());
        } else if let Some(program) = broker_program(word, &folder, machine) {
            let args: Vec<&str> = rest
                .map(String::as_str)
                .take_while(|word| !is_operator(word))
                // `npx -p mcp-broker mcp-broker`
                .skip_while(|word| name_of(word) == program)
                .collect();
            let config = config_argument(program, &args)?;
            return Some(FoundBroker {
                folder,
                config: config.map(str::to_owned),
                variable,
            });
        } else if !(word.starts_with('-')
            || is_assignment(word)
            || WRAPPERS.contains(&name_of(word)))
        {
            return None;
        }
    }
    None
}

/// The program of the broker that a word names, by itself or after every symbolic link.
fn broker_program(word: &str, folder: &Path, machine: Machine<'_>) -> Option<&'static str> {
    let known = |name: &str| [BROKER, GENERATOR].into_iter().find(|known| *known == name);
    if word.starts_with('-') || word.is_empty() {
        return None;
    }
    known(name_of(word)).or_else(|| {
        let file = match word.contains('/') {
            true => folder.join(word),
            false => PathBuf::from(word),
        };
        known(name_of(&(machine.program)(&file)?))
    })
}

/// The name of a program without its folder, the version of a package and the ending of Windows.
fn name_of(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.split('@').next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name)
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_operator(word: &str) -> bool {
    word.trim_start_matches(|c: char| c.is_ascii_digit())
        .starts_with(['|', ';', '&', '<', '>'])
}

/// The config that the arguments of a broker name; `None` if they do not start a server.
fn config_argument<'a>(program: &str, args: &[&'a str]) -> Option<Option<&'a str>> {
    let is_generator = program == GENERATOR;
    let (first, args) = match args.split_first() {
        Some((first, rest)) if is_generator => (Some(first), rest),
        _ => (args.first(), args),
    };
    let serves = match (is_generator, first) {
        (true, first) => first.copied() == Some("serve"),
        (false, Some(first)) => !VERBS.contains(first),
        (false, None) => true,
    };
    if !serves {
        return None;
    }
    let (mut named, mut positional) = (None, Vec::new());
    let mut args = args.iter().copied();
    while let Some(arg) = args.next() {
        if let Some(config) = arg.strip_prefix("--config=") {
            named = Some(config);
        } else if arg == "--config" {
            named = args.next();
        } else if !arg.starts_with('-') {
            positional.push(arg);
        } else if !arg.contains('=') && !FLAGS.contains(&arg) {
            args.next();
        }
    }
    // The compiled broker takes ADDR and CONFIG.
    let second = positional.get(1).copied();
    Some(named.or(second.filter(|_| !is_generator)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// Returns the paths of the sources that are left out of a config at `/home/c.json`. `/bin/link` is a link to
    /// `mcp-broker`, and `/home/link.json` is a link to the config.
    fn left_out(sources: &str) -> Vec<String> {
        let text = format!(r#"{{"mcpServers":{{{sources}}}}}"#);
        let parsed = Config::parse("c.json", text.as_bytes()).expect("valid");
        let count = parsed.config.sources().count();
        let machine = Machine {
            base: Path::new("/home"),
            program: &|file| {
                (file == Path::new("link") || file == Path::new("/bin/link"))
                    .then(|| BROKER.to_owned())
            },
            is_config: &|file| {
                [
                    "/home/c.json",
                    "/home/./c.json",
                    "/home/link.json",
                    "/home/sub/../c.json",
                ]
                .map(Path::new)
                .contains(&file)
                    || file == Path::new("/own/config.json")
            },
            exists: &|file| file == Path::new("/own/config.json"),
            variable: &|name| (name == "HOME").then(|| "/home".to_owned()),
        };
        let parsed = parsed.without_own_broker(machine);
        let warned = parsed
            .warnings
            .iter()
            .filter(|one| one.code == Code::OwnBroker);
        let left = warned.count();
        assert_eq!(count - left, parsed.config.sources().count());
        let again = Config::parse("c.json", parsed.config.compiled_text().as_bytes());
        let again = again.expect("the compiled text is a config").config;
        assert_eq!(again.digest(), parsed.config.digest());
        let of_text = Config::parse("c.json", text.as_bytes())
            .expect("valid")
            .config;
        let has = |path: &NodePath| parsed.config.sources().any(|source| source.path == *path);
        let gone = of_text.sources().filter(|source| !has(&source.path));
        gone.map(|source| source.path.as_str().to_owned()).collect()
    }

    #[test]
    fn entry_that_starts_the_broker_with_its_config_is_left_out() {
        for entry in [
            r#""command":"mcp-broker","args":["stdio","c.json"]"#,
            r#""command":"mcp-broker","args":["stdio","./c.json","--log-level","debug"]"#,
            r#""command":"mcp-broker","args":["--log-level","debug","--reload","stdio","c.json"]"#,
            r#""command":"/usr/bin/mcp-broker","args":["127.0.0.1:0","${HOME}/c.json"]"#,
            r#""command":"link","args":["stdio","link.json"]"#,
            r#""command":"/bin/link","args":["stdio","c.json"]"#,
            r#""command":"broker-gen","args":["serve","--config","c.json","stdio"]"#,
            r#""command":"broker-gen","args":["serve","stdio","--config=sub/../c.json"]"#,
            r#""command":"broker-gen","args":["serve","stdio"],"env":{"MCP_BROKER_CONFIG":"c.json"}"#,
            r#""command":"broker-gen","args":["serve","stdio"],"cwd":"/own""#,
            r#""command":"mcp-broker","args":["stdio"],"cwd":"/own""#,
            r#""command":"sh","args":["-c","exec mcp-broker stdio 'c.json' 2>/tmp/log"]"#,
            r#""command":"sh","args":["-c","cd /own && broker-gen serve stdio"]"#,
            r#""command":"env","args":["MCP_BROKER_CONFIG=/home/c.json","broker-gen","serve","stdio"]"#,
            r#""command":"npx","args":["-y","mcp-broker@1.0.0","stdio","c.json"]"#,
            r#""command":"npx","args":["-p","mcp-broker","mcp-broker","stdio","c.json"]"#,
        ] {
            let sources = format!(r#""own":{{{entry}}},"other":{{"command":"x"}}"#);
            assert_eq!(left_out(&sources), ["/own"], "{entry}");
        }
    }

    #[test]
    fn another_broker_stays_a_source() {
        for entry in [
            r#""command":"mcp-broker","args":["stdio","other.json"]"#,
            r#""command":"mcp-broker","args":["stdio"]"#,
            r#""command":"mcp-broker","args":["doctor","c.json"]"#,
            r#""command":"broker-gen","args":["serve","stdio"]"#,
            r#""command":"broker-gen","args":["lock","--config","c.json"]"#,
            r#""command":"broker-gen","args":["serve"],"env":{"MCP_BROKER_CONFIG":"o.json"},"cwd":"/own""#,
            r#""command":"my-server","args":["mcp-broker","stdio","c.json"]"#,
            r#""command":"sh","args":["-c","cat c.json | mcp-broker"]"#,
            r#""command":"sh","args":["-c","cd /tmp; mcp-broker stdio c.json"]"#,
            r#""url":"https://broker.example/mcp""#,
        ] {
            let sources = format!(r#""a":{{{entry}}}"#);
            assert_eq!(left_out(&sources), [] as [&str; 0], "{entry}");
        }
    }

    #[test]
    fn own_broker_in_a_tree_leaves_its_node_and_what_is_below() {
        let text = r#"{"tree":[{"path":"/a","source":{"command":"mcp-broker","args":["stdio","c.json"]},
            "children":[{"path":"/a/b","source":{"command":"x"}}]}]}"#;
        let parsed = Config::parse("c.json", text.as_bytes()).expect("valid");
        let parsed = parsed.without_own_broker(Machine {
            base: Path::new("/home"),
            program: &|_| None,
            is_config: &|file| file == Path::new("/home/c.json"),
            exists: &|_| false,
            variable: &|_| None,
        });
        let paths: Vec<_> = parsed.config.sources().map(|s| s.path.as_str()).collect();
        assert_eq!(paths, ["/a/b"]);
        assert!(!parsed.config.compiled_text().contains("mcp-broker"));
    }
}
