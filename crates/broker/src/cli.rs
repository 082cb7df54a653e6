//! The command line, checked without reading any file or opening any socket.

use broker_model::suggest;
use std::path::PathBuf;

use clap::Parser;
use tracing::Level;

use crate::logging;

mod verbs;

pub(crate) use verbs::{DoctorArgs, Format, StatusArgs, Verb};

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

    /// Where to listen: `host:port`, for example `127.0.0.1:8100`; port 0 takes a free one. Or
    /// `stdio`: be an MCP server on standard input and output, for the client that starts it.
    #[arg(value_name = "ADDR", required_unless_present_any = ["dump_tree", "version"])]
    pub(crate) address: Option<String>,

    /// The config; default: the compiled-in one.
    #[arg(value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The secret that callers must present. Better: MCP_BROKER_SECRET or `--secret-file`.
    #[arg(value_name = "SECRET")]
    pub(crate) secret: Option<String>,

    /// Apply changes of CONFIG while running, as SIGHUP does at any time: timeouts, limits, render modes,
    /// `env`, a tighter filter. A change that needs a new lock or a new build is refused as a whole.
    #[arg(long)]
    pub(crate) reload: bool,

    /// Start even if tools differ from the lock, which are withdrawn, or if sources fail, whose tools
    /// stay listed.
    #[arg(long)]
    pub(crate) ignore_broken_tool: bool,

    /// The least severe level that is logged.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: LogLevel,

    /// The format of the log.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) log_format: logging::Format,

    /// Print the compiled-in tree and exit; start no source.
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "human")]
    pub(crate) dump_tree: Option<TreeForm>,

    /// Let other machines call without a secret.
    #[arg(long)]
    pub(crate) allow_unauthenticated: bool,

    /// A name that the `Host` header may have, with or without a port; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,

    /// A file that holds the secret.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// Print the version, the catalog's digest, and what it was built from.
    #[arg(short = 'V', long)]
    pub(crate) version: bool,
}

const EXAMPLES: &str = "\
Examples:
  mcp-broker doctor                            reports what is wrong with the sources
  mcp-broker 127.0.0.1:8100                    serves over HTTP
  mcp-broker stdio                             serves the client that starts it
  mcp-broker status 127.0.0.1:8100             shows how a running broker is doing";

/// The form of the printed tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TreeForm {
    /// One line for each entry.
    Human,
    /// One JSON object.
    Json,
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogLevel {
    /// Failures of the broker.
    Error,
    /// Problems that an operator should look at.
    Warn,
    /// Normal operation.
    Info,
    /// Details of the operation.
    Debug,
    /// Everything.
    Trace,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
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
            (self.secret_file.is_some(), "`--secret-file`"),
            (self.allow_unauthenticated, "`--allow-unauthenticated`"),
            (!self.allow_host.is_empty(), "`--allow-host`"),
        ];
        let given = given.into_iter().filter(|(given, _)| *given);
        given.map(|(_, name)| name).collect()
    }
}

/// Splits `host:port`; fails with a message.
pub(crate) fn split_address(text: &str) -> Result<(&str, u16), String> {
    let wrong = || {
        let hint = nearest_word(text).map_or_else(String::new, |word| {
            if word == text {
                format!("; `{word}` comes first: `mcp-broker {word} …`")
            } else {
                format!("; did you mean `{word}`?")
            }
        });
        format!(
            "`{}` is not `host:port`, for example `127.0.0.1:8100`{hint}",
            text.escape_debug()
        )
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
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

/// The nearest subcommand or word for ADDR, or `text` itself if it is one.
fn nearest_word(text: &str) -> Option<&'static str> {
    const WORDS: [&str; 4] = ["doctor", "status", "stdio", "help"];
    let same = WORDS.into_iter().find(|word| *word == text);
    same.or_else(|| suggest::nearest(text, WORDS, 1).pop())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("mcp-broker").chain(args.iter().copied()))
    }

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
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
        assert_eq!(cli.allow_host, ["a", "b:1"]);
        assert_eq!(
            (cli.log_level, cli.log_format),
            (LogLevel::Info, logging::Format::Human)
        );
        let tree = |arg| parse(&[arg]).unwrap().dump_tree;
        assert_eq!(tree("--dump-tree"), Some(TreeForm::Human));
        assert_eq!(tree("--dump-tree=json"), Some(TreeForm::Json));
        assert!(parse(&["--dump-tree"]).unwrap().address.is_none());
        assert!(parse(&["--version"]).unwrap().version);
        for wrong in [
            &[][..],
            &["--nope"],
            &["--dump-tree=yaml"],
            &["a:1", "--log-level", "loud"],
            &["a:1", "c", "s", "extra"],
        ] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
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
        assert!(matches!(cli.verb, Some(Verb::Status(_))));
        // A config may have any name.
        let cli = parse(&["127.0.0.1:1", "doctor"]).unwrap();
        assert!(cli.verb.is_none());
        assert_eq!(cli.config.as_deref(), Some(std::path::Path::new("doctor")));
        for wrong in [
            &["status"][..],
            &["doctor", "a", "b"],
            &["doctor", "--reload"],
            &["doctor", "--format", "xml"],
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
        assert_eq!(verbs.len(), 2);
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
        ] {
            assert_eq!(split_address(text), Ok(expected));
        }
        for text in [
            "",
            "8100",
            ":8100",
            "localhost",
            "localhost:",
            "::1:8100",
            "a:+1",
            "a:65536",
            "[::1]",
            "[]:1",
        ] {
            assert!(split_address(text).is_err(), "{text}");
        }
        for (text, part) in [
            ("docter", "did you mean `doctor`?"),
            ("doctor", "`mcp-broker doctor …`"),
            ("sdtio", "did you mean `stdio`?"),
        ] {
            assert!(split_address(text).unwrap_err().contains(part), "{text}");
        }
        assert!(!split_address("localhost").unwrap_err().contains(';'));
    }
}
