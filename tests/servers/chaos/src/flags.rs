//! The command line. It reads no file.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Set by the program when it restarts itself with SIGTERM ignored.
pub(crate) const TERM_IGNORED: &str = "--internal-term-ignored";
/// Set by the program when it closes its stdout.
pub(crate) const MUTE: &str = "--internal-mute";

const HELP: &str = "\
A scripted MCP server for tests; its tools and faults change while it runs.

Usage: chaos-mcp [--script FILE] [--journal FILE] [--brief] [ARGUMENT]...
       chaos-mcp --http ADDRESS [--script FILE] [--journal FILE] [--brief]
       chaos-mcp --replay FILE [--page-size N] [--journal FILE] [--brief]

Options:
      --script FILE   Read what to do from this JSON file, again at each request;
                      the built-in script while the file does not exist
      --http ADDRESS  Serve MCP over HTTP instead of stdio, at 127.0.0.1:PORT or PORT (0:
                      any free one); print the URL on one line, end with stdin.
                      The member `http` of the script has transport and faults
      --replay FILE   Offer the tools recorded in this file; a call echoes its arguments
      --page-size N   Tools in each page of a replayed list
      --journal FILE  Append a JSON line for each start, request, call, cancel and end
      --brief         Journal only the beginning of a call's arguments
  -h, --help          Print this help
  -V, --version       Print the version

Other arguments that do not begin with `-` are ignored; `args_dump` shows them.
";

/// The parsed command line.
pub(crate) enum Command {
    Run(Flags),
    Print(String),
}

/// The source of the script.
pub(crate) enum From {
    BuiltIn,
    Script(PathBuf),
    Replay { file: PathBuf, page_size: usize },
}

pub(crate) struct Flags {
    pub(crate) from: From,
    pub(crate) journal: Option<PathBuf>,
    pub(crate) brief: bool,
    /// The address to listen at; without one, the transport is stdio.
    pub(crate) http: Option<SocketAddr>,
    pub(crate) term_ignored: bool,
    pub(crate) mute: bool,
    /// The arguments of the caller, without those that the program adds.
    pub(crate) shown: Vec<String>,
}

pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let (mut script, mut replay, mut page_size, mut journal) = (None, None, None, None);
    let mut http = None;
    let (mut brief, mut term_ignored, mut mute) = (false, false, false);
    let mut shown = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        if text != TERM_IGNORED && text != MUTE {
            shown.push(text.clone());
        }
        let mut value = || {
            let value = arguments
                .next()
                .ok_or_else(|| format!("`{text}` needs a value"))?;
            shown.push(value.to_string_lossy().into_owned());
            Ok::<_, String>(value)
        };
        match text.as_str() {
            "--script" => script = Some(PathBuf::from(value()?)),
            "--replay" => replay = Some(PathBuf::from(value()?)),
            "--http" => http = Some(address(&value()?.to_string_lossy())?),
            "--journal" => journal = Some(PathBuf::from(value()?)),
            "--page-size" => {
                let size = value()?.to_str().and_then(|size| size.parse().ok());
                page_size = Some(
                    size.filter(|size| *size > 0)
                        .ok_or("`--page-size` needs a number above 0")?,
                );
            }
            "--brief" => brief = true,
            TERM_IGNORED => term_ignored = true,
            MUTE => mute = true,
            "-h" | "--help" => return Ok(Command::Print(HELP.to_owned())),
            "-V" | "--version" => {
                let version = format!("chaos-mcp {}\n", env!("CARGO_PKG_VERSION"));
                return Ok(Command::Print(version));
            }
            other if other.starts_with('-') => {
                return Err(format!("unexpected argument `{other}`; see `--help`"));
            }
            _ => {}
        }
    }
    let from = match (script, replay) {
        (Some(_), Some(_)) => return Err("`--script` and `--replay` exclude each other".to_owned()),
        (_, None) if page_size.is_some() => {
            return Err("`--page-size` goes with `--replay`; a script has `page_size`".to_owned());
        }
        (Some(file), None) => From::Script(file),
        (None, Some(file)) => From::Replay {
            file,
            page_size: page_size.unwrap_or(usize::MAX),
        },
        (None, None) => From::BuiltIn,
    };
    Ok(Command::Run(Flags {
        from,
        journal,
        brief,
        http,
        term_ignored,
        mute,
        shown,
    }))
}

/// A loopback address with a port, or a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let address = text.parse().or_else(|_| text.parse().map(local));
    match address {
        Ok(address) if address.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) => Ok(address),
        _ => Err(format!(
            "`--http` needs 127.0.0.1:PORT or PORT, not `{text}`"
        )),
    }
}
