//! The command line, checked without reading any file or opening any socket.

use broker_model::suggest;
use std::path::PathBuf;

use clap::{CommandFactory as _, Parser};

mod asked_broker;
mod audit;
mod format;
mod jobs;
mod options;
mod serve;
mod shared;
mod verbs;

pub(crate) use asked_broker::AskOptions;
pub(crate) use audit::{AuditVerb, ExplainArgs, KeyArgs, ReplayArgs, TailArgs, VerifyArgs};
pub(crate) use format::Format;
pub(crate) use jobs::{JobsVerb, OneJob};
pub(crate) use options::{LogLevel, ModeOption, RunOptions, TreeForm};
pub use serve::ServeOptions;
pub use shared::{KeyVerb, NewKeyArgs, SharedVerb, StatusArgs};
pub(crate) use verbs::{DoctorArgs, LogsArgs, Verb};

/// Serves reviewed, locked MCP tools through three stable meta-tools.
#[derive(Debug, Parser)]
#[command(
    name = "mcp-broker",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,

    /// Where to listen: `host:port`, or a port of 127.0.0.1; port 0 takes a free one. Or `stdio`: be an
    /// MCP server on standard input and output, for the client that starts it.
    #[arg(value_name = "ADDR", default_value = DEFAULT_ADDRESS)]
    pub(crate) address: Option<String>,

    /// The config; default: the compiled-in one.
    #[arg(value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The secret that callers must present. Better: MCP_BROKER_SECRET or `--secret-file`.
    #[arg(value_name = "SECRET")]
    pub(crate) secret: Option<String>,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    /// Let other machines call without a secret.
    #[arg(long)]
    pub(crate) allow_unauthenticated: bool,

    /// Print the version, the catalog's digest, and what it was built from.
    #[arg(short = 'V', long)]
    pub(crate) version: bool,
}

/// Where a broker listens if its command line names no address.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8100";

const EXAMPLES: &str = "\
Examples:
  mcp-broker doctor                            reports what is wrong with the sources
  mcp-broker 127.0.0.1:8100                    serves over HTTP
  mcp-broker stdio                             serves the client that starts it
  mcp-broker connect cursor --write            adds the broker to the file of Cursor
  mcp-broker key new ci                        makes an API key for a caller
  mcp-broker status 127.0.0.1:8100             shows how a running broker is doing
  mcp-broker logs /repo                        prints what a server of it wrote to stderr
  mcp-broker jobs list                         lists the jobs of a running broker";

/// The definition of the command line, for completions and man pages.
pub fn command() -> clap::Command {
    Cli::command()
}

impl Cli {
    /// Whether ADDR is `stdio`.
    pub(crate) fn is_stdio(&self) -> bool {
        self.address.as_deref() == Some("stdio")
    }

    /// The arguments that only a listener uses.
    pub(crate) fn only_for_listeners(&self) -> Vec<&'static str> {
        let given = [
            (self.secret.is_some(), "SECRET"),
            (self.options.secret_file.is_some(), "`--secret-file`"),
            (self.allow_unauthenticated, "`--allow-unauthenticated`"),
            (!self.options.allow_host.is_empty(), "`--allow-host`"),
            (self.options.base_path.is_some(), "`--base-path`"),
            (self.options.no_mcp, "`--no-mcp`"),
        ];
        let given = given.into_iter().filter(|(given, _)| *given);
        given.map(|(_, name)| name).collect()
    }
}

/// The host of an address that is only a port.
const DEFAULT_HOST: &str = "127.0.0.1";

/// The subcommands and words for ADDR of a broker, for suggestions.
pub(crate) const WORDS: &[&str] = &[
    "connect", "doctor", "jobs", "key", "logs", "status", "stdio", "help",
];
/// The words for ADDR of `broker-gen serve`. It has no subcommands.
pub(crate) const SERVE_WORDS: &[&str] = &["stdio"];

/// Splits `host:port`; a port alone is one of 127.0.0.1. The message of an error may suggest one of `words`.
pub(crate) fn split_address<'t>(
    text: &'t str,
    words: &[&'static str],
) -> Result<(&'t str, u16), String> {
    let wrong = || {
        let hint = nearest_word(text, words).map_or_else(String::new, |word| {
            if word == text {
                format!("; `{word}` comes first: `mcp-broker {word} …`")
            } else {
                format!("; did you mean `{word}`?")
            }
        });
        format!(
            "`{}` is not a port or `host:port`, for example `127.0.0.1:8100`{hint}",
            text.escape_debug()
        )
    };
    let (host, port) = text.rsplit_once(':').unwrap_or((DEFAULT_HOST, text));
    let bare = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or_else(wrong)?,
        None if host.contains(':') => return Err(wrong()),
        None => host,
    };
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port.parse() {
        Ok(port) if digits && !bare.is_empty() => Ok((bare, port)),
        _ => Err(wrong()),
    }
}

/// The nearest one of `words`, or `text` itself if it is one.
fn nearest_word(text: &str, words: &[&'static str]) -> Option<&'static str> {
    let words = words.iter().copied();
    let same = words.clone().find(|word| *word == text);
    same.or_else(|| suggest::nearest(text, words, 1).pop())
}

#[cfg(test)]
mod tests {
    use broker_config::own_broker::FLAGS;

    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("mcp-broker").chain(args.iter().copied()))
    }

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_option_without_a_value_is_known_to_the_search_for_the_own_broker() {
        let command = Cli::command();
        let options = command.get_arguments();
        let options = options.filter(|option| !option.get_action().takes_values());
        for name in options.filter_map(clap::Arg::get_long) {
            let flag = format!("--{name}");
            assert!(FLAGS.contains(&flag.as_str()), "{flag}");
        }
    }

    #[test]
    fn command_line_arguments_have_defaults() {
        let cli = parse(&[
            "127.0.0.1:8100",
            "c.json",
            "s",
            "--allow-host",
            "a",
            "--allow-host",
            "b:1",
        ])
        .unwrap();
        assert_eq!(cli.address.as_deref(), Some("127.0.0.1:8100"));
        assert_eq!(cli.secret.as_deref(), Some("s"));
        assert_eq!(cli.options.allow_host, ["a", "b:1"]);
        assert_eq!(
            (cli.options.log_level, cli.options.log_format),
            (LogLevel::Info, crate::logging::Format::Human)
        );
        let tree = |arg| parse(&[arg]).unwrap().options.dump_tree;
        assert_eq!(tree("--dump-tree"), Some(TreeForm::Human));
        assert_eq!(tree("--dump-tree=json"), Some(TreeForm::Json));
        let bare = parse(&[]).unwrap();
        assert_eq!(bare.address.as_deref(), Some(DEFAULT_ADDRESS));
        for level in ["INFO", "warning", "WARN", "Debug"] {
            assert!(parse(&["a:1", "--log-level", level]).is_ok(), "{level}");
        }
        assert!(parse(&["--version"]).unwrap().version);
        for wrong in [
            &["--nope"][..],
            &["--dump-tree=yaml"],
            &["a:1", "--log-level", "loud"],
            &["a:1", "c", "s", "extra"],
        ] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn base_path_is_an_absolute_path_without_a_slash_at_its_end() {
        let path = |text: &str| {
            let cli = parse(&["8100", "--base-path", text]);
            cli.map(|cli| cli.options.base_path.unwrap_or_default())
        };
        for (text, expected) in [("/gateway", "/gateway"), ("/a/b/", "/a/b"), ("/", "")] {
            assert_eq!(path(text).unwrap(), expected);
        }
        for text in [
            "", "gateway", "//a", "/a//b", "/a/../b", "/a?b", "/a b", "/ä",
        ] {
            assert!(path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn stdio_is_accepted_as_the_address() {
        let cli = parse(&["stdio", "c.json", "--ignore-broken-tool"]).unwrap();
        assert!(cli.is_stdio() && cli.only_for_listeners().is_empty());
        assert_eq!(cli.config.as_deref(), Some(std::path::Path::new("c.json")));
        let cli = parse(&["stdio", "c.json", "s", "--allow-host", "h"]).unwrap();
        assert_eq!(cli.only_for_listeners(), ["SECRET", "`--allow-host`"]);
        assert!(!parse(&["127.0.0.1:0"]).unwrap().is_stdio());
    }

    #[test]
    fn subcommand_is_accepted_only_as_the_first_argument() {
        let cli = parse(&["doctor", "c.json", "--format", "json"]).unwrap();
        let Some(Verb::Doctor(args)) = cli.verb else {
            panic!("{cli:?}");
        };
        assert_eq!(args.format, Format::Json);
        assert_eq!(args.config.as_deref(), Some(std::path::Path::new("c.json")));
        let cli = parse(&["status", "127.0.0.1:1"]).unwrap();
        assert!(matches!(
            cli.verb,
            Some(Verb::Shared(SharedVerb::Status(_)))
        ));
        // A config may have any name.
        let cli = parse(&["127.0.0.1:1", "doctor"]).unwrap();
        assert!(cli.verb.is_none());
        assert_eq!(cli.config.as_deref(), Some(std::path::Path::new("doctor")));
        for wrong in [
            &["status"][..],
            &["doctor", "a", "b"],
            &["doctor", "--reload"],
            &["doctor", "--format", "xml"],
            &["key"],
            &["key", "new"],
            &["key", "old", "a"],
            &["connect"],
            &["connect", "emacs"],
            &["connect", "zed", "c.json", "--http", "http://h/mcp"],
            &["connect", "zed", "--secret"],
            &["connect", "zed", "--http", "http://h/mcp", "--with-secret"],
            &[
                "connect",
                "zed",
                "--http",
                "http://h/mcp",
                "--secret-env",
                "A",
            ],
        ] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn subcommand_help_has_an_example() {
        let mut command = Cli::command();
        command.build();
        let verbs = command.get_subcommands_mut();
        let verbs: Vec<_> = verbs.filter(|verb| verb.get_name() != "help").collect();
        assert_eq!(verbs.len(), 7);
        for verb in verbs {
            let name = verb.get_name().to_owned();
            let help = verb.render_long_help().to_string();
            assert!(help.contains(&format!("\n  mcp-broker {name} ")), "{help}");
        }
    }

    #[test]
    fn address_is_split_into_host_and_port_or_refused() {
        for (text, expected) in [
            ("127.0.0.1:8100", ("127.0.0.1", 8100)),
            ("localhost:0", ("localhost", 0)),
            ("[::1]:8100", ("::1", 8100)),
            ("8100", ("127.0.0.1", 8100)),
            ("0", ("127.0.0.1", 0)),
        ] {
            assert_eq!(split_address(text, WORDS), Ok(expected));
        }
        for text in [
            "",
            " 8100",
            "65536",
            "+1",
            ":8100",
            "localhost",
            "localhost:",
            "::1:8100",
            "a:+1",
            "a:65536",
            "[::1]",
            "[]:1",
        ] {
            assert!(split_address(text, WORDS).is_err(), "{text}");
        }
        for (text, part) in [
            ("docter", "did you mean `doctor`?"),
            ("doctor", "`mcp-broker doctor …`"),
            ("sdtio", "did you mean `stdio`?"),
        ] {
            assert!(
                split_address(text, WORDS).unwrap_err().contains(part),
                "{text}"
            );
        }
        assert!(!split_address("localhost", WORDS).unwrap_err().contains(';'));
        for (text, hint) in [("doctr", false), ("status", false), ("stdoi", true)] {
            let message = split_address(text, SERVE_WORDS).unwrap_err();
            assert_eq!(
                message.ends_with("; did you mean `stdio`?"),
                hint,
                "{message}"
            );
            assert!(hint || !message.contains(';'), "{message}");
        }
    }
}
