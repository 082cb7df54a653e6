//! `mcp-broker audit`: verifies, prints and prepares audit logs. Starts no server.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use broker_audit::{Head, KeyPair, Line, PublicKey, VerifyOptions, parse, verify};
use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::text;

use super::failure::Failure;
use super::followed_log::FollowedLog;
use super::{audit_query, tree};
use crate::catalog::Catalog;
use crate::cli::{AuditVerb, Format, KeyArgs, TailArgs, VerifyArgs};
use crate::logging::LogOutput;

/// The maximum bytes of a file with a public key.
const MAX_KEY_BYTES: usize = 4096;
/// The time between two looks at a file that is followed.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Runs a subcommand. `catalog` returns the compiled-in catalog.
pub(super) fn run(
    verb: &AuditVerb,
    output: &LogOutput,
    catalog: &dyn Fn() -> Option<&'static Catalog>,
) -> Result<Exit, Failure> {
    match verb {
        AuditVerb::Explain(args) => audit_query::explain(args, catalog()),
        AuditVerb::Replay(args) => audit_query::replay(args),
        AuditVerb::Verify(args) => run_verify(args),
        AuditVerb::Tail(args) => tail(args),
        AuditVerb::Key(args) => make_key(args, output),
    }
}

fn run_verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    let usage = |message: String| Failure::Usage(message);
    let key = args.public_key.as_deref().map(public_key).transpose()?;
    let head = args.head.as_deref().map(|text| {
        let problem = || usage(format!("`--head {text}` is not SEQ:HASH"));
        Head::parse(text).ok_or_else(problem)
    });
    let options = VerifyOptions {
        key,
        head: head.transpose()?,
    };
    let report = verify(&args.files, &options).map_err(|error| usage(error.to_string()))?;
    tree::print(&match args.format {
        Format::Human => Text::lines("", &report.to_string()),
        Format::Json => Text::json_text(&report.to_json()),
    })?;
    Ok(match report.is_unchanged() {
        true => Exit::Ok,
        false => Exit::Failure,
    })
}

fn public_key(file: &Path) -> Result<PublicKey, Failure> {
    let shown = file.display();
    let bytes = broker_files::read(file, MAX_KEY_BYTES)
        .map_err(|error| Failure::Usage(format!("cannot read the key `{shown}`: {error}")))?;
    PublicKey::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|error| Failure::Usage(format!("`{shown}`: {error}")))
}

fn make_key(args: &KeyArgs, output: &LogOutput) -> Result<Exit, Failure> {
    let pair = KeyPair::generate().map_err(|error| Failure::Internal(error.to_string()))?;
    let mut public = args.file.clone().into_os_string();
    public.push(".pub");
    let public = PathBuf::from(public);
    let mut made = Vec::new();
    for (file, text, mode) in [
        (&args.file, &pair.private_pem, 0o600),
        (&public, &pair.public_pem, 0o644),
    ] {
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(mode).open(file);
        let written = opened.and_then(|mut opened| {
            made.push(file);
            opened.write_all(text.as_bytes())?;
            opened.sync_all()
        });
        if let Err(error) = written {
            // One key without the other has no use. The reported error is the first one.
            made.iter().for_each(|file| drop(fs::remove_file(file)));
            let reason = match error.kind() {
                io::ErrorKind::AlreadyExists => "it already exists, as a file or a link".to_owned(),
                _ => broker_files::with_help(error).to_string(),
            };
            return Err(Failure::Usage(format!(
                "cannot write the key `{}`: {reason}",
                file.display()
            )));
        }
    }
    output.note(&text!(
        "{}",
        format!(
            "Set `audit.key_file` to `{}`, and keep `{}` where the logs are verified.",
            args.file.display(),
            public.display()
        )
    ));
    Ok(Exit::Ok)
}

fn tail(args: &TailArgs) -> Result<Exit, Failure> {
    let unreadable = |error: io::Error| {
        Failure::Usage(format!("cannot read `{}`: {error}", args.file.display()))
    };
    let mut file = FollowedLog::open(&args.file).map_err(unreadable)?;
    let mut number = 0u64;
    loop {
        while let Some(bytes) = file.next().map_err(unreadable)? {
            number += 1;
            let bytes = bytes.trim_ascii_end();
            let line = parse(bytes).map_err(|error| {
                let place = format!("`{}`, line {number}", args.file.display());
                Failure::Usage(format!("{place}, is not a line of an audit log: {error}"))
            })?;
            file.note(line.seq);
            if is_wanted(args, &line) {
                let shown = text!("{}\n", String::from_utf8_lossy(bytes));
                tree::print(&shown)?;
            }
        }
        if !args.follow {
            return Ok(Exit::Ok);
        }
        std::thread::sleep(FOLLOW_INTERVAL);
    }
}

/// Whether a line passes all filters.
fn is_wanted(args: &TailArgs, line: &Line<'_>) -> bool {
    let target = line.target.as_deref();
    let source = target.and_then(|target| target.source.as_deref());
    let is_below = |path: &str| {
        let wanted = args.path.as_deref().unwrap_or("/").trim_end_matches('/');
        let rest = path.strip_prefix(wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let has_path = args.path.is_none() || target.is_some_and(|target| is_below(&target.path));
    let actor = line.actor.as_deref().map(|actor| actor.subject.as_str());
    has_path
        && (args.source.is_none() || args.source.as_deref() == source)
        && (args.identity.is_none() || args.identity.as_deref() == actor)
        && (args.outcome.is_none() || args.outcome.as_deref() == line.outcome.as_deref())
}
