//! The dialogue: shows an item, reads a line, executes the answer. Independent of terminal and files.

use std::io::{self, BufRead};

use broker_model::terminal::Text;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, text};

use super::items::Item;
use super::show::{self, Style};

const QUESTION: &str = "[a]ccept [s]kip [q]uit, [d] show the whole, [n] add a note: ";

/// The content of the audit of an accepted item.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) looked_at: Vec<String>,
    pub(super) note: Option<String>,
}

/// The numbers of decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) accepted: usize,
    pub(super) skipped: usize,
}

enum Answer {
    Accept,
    Skip,
    Quit,
    Whole,
    Note,
    Unclear,
}

/// Goes through the items; `sign` is called at each acceptance, before the next item is shown. The end of
/// the input quits.
pub(super) fn walk(
    items: &[Item<'_>],
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
    style: Style,
    mut sign: impl FnMut(&Item<'_>, Accepted) -> Result<(), Vec<Diagnostic>>,
) -> Result<Tally, Vec<Diagnostic>> {
    let mut tally = Tally::default();
    for (index, item) in items.iter().enumerate() {
        let block = show::block(item, index + 1, items.len(), style);
        write(output, &block)?;
        match ask(item, input, output)? {
            Some(Some(accepted)) => {
                let looked_at = accepted.looked_at.join(", ");
                sign(item, accepted)?;
                tally.accepted += 1;
                write(output, &text!("accepted: {}\n", shown_line(&looked_at, 70)))?;
            }
            Some(None) => tally.skipped += 1,
            None => break,
        }
    }
    Ok(tally)
}

/// `None` quits, `Some(None)` skips.
fn ask(
    item: &Item<'_>,
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
) -> Result<Option<Option<Accepted>>, Vec<Diagnostic>> {
    let (mut saw_all, mut note) = (false, None);
    loop {
        let Some(line) = line_of(QUESTION, input, output)? else {
            return Ok(None);
        };
        match Answer::of(&line) {
            Answer::Accept => {
                let looked_at = item.members(saw_all);
                return Ok(Some(Some(Accepted { looked_at, note })));
            }
            Answer::Skip => return Ok(Some(None)),
            Answer::Quit => return Ok(None),
            Answer::Whole => {
                saw_all = true;
                write(output, &show::whole(item))?;
            }
            Answer::Note => match line_of("note: ", input, output)? {
                None => return Ok(None),
                Some(text) if text.trim().is_empty() => note = None,
                Some(text) => note = Some(text.trim().to_owned()),
            },
            Answer::Unclear => {
                let shown = shown_line(&line, 40);
                write(output, &text!("`{}` is not one of a, s, q, d, n\n", shown))?;
            }
        }
    }
}

impl Answer {
    fn of(line: &str) -> Self {
        match line.trim().to_lowercase().as_str() {
            "a" | "accept" => Self::Accept,
            "s" | "skip" => Self::Skip,
            "q" | "quit" => Self::Quit,
            "d" => Self::Whole,
            "n" | "note" => Self::Note,
            _ => Self::Unclear,
        }
    }
}

/// The next line of the input; `None` at its end.
fn line_of(
    question: &'static str,
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
) -> Result<Option<String>, Vec<Diagnostic>> {
    write(output, &question.into())?;
    let mut line = Vec::new();
    let read = input.read_until(b'\n', &mut line).map_err(lost)?;
    if read == 0 {
        write(output, &"\n".into())?;
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

fn write(
    output: &mut impl FnMut(&Text) -> io::Result<()>,
    text: &Text,
) -> Result<(), Vec<Diagnostic>> {
    output(text).map_err(lost)
}

fn lost(error: io::Error) -> Vec<Diagnostic> {
    let message = format!("the terminal cannot be read or written: {error}");
    vec![Diagnostic::error(DiagnosticCode::TerminalNeeded, message)]
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use broker_model::lock::{Lock, LockedSource};
    use broker_model::{NodePath, Snapshot};
    use serde_json::json;

    use super::*;
    use crate::cli::audits::{Audits, Date};

    /// A lock with two tools.
    fn lock() -> Lock {
        let text = r#"{"tree": [{"path": "/a", "source": {"command": "server"}}]}"#;
        let parsed = broker_model::config::Config::parse("c.json", text.as_bytes());
        let config = parsed.unwrap().config;
        let source = config.source(&NodePath::parse("/a").unwrap()).unwrap();
        let snapshot = Snapshot {
            server_info: json!({}),
            protocol_version: "2025-11-25".to_owned(),
            capabilities: json!({}),
            instructions: None,
            tools: ["x", "y"]
                .map(|name| json!({"name": name}).as_object().unwrap().clone().into())
                .to_vec(),
        };
        Lock {
            version: broker_model::lock::LOCK_VERSION,
            config_digest: config.digest(),
            generator: "test".to_owned(),
            sources: vec![LockedSource::from_snapshot(source, &snapshot)],
        }
    }

    /// A terminal that goes when the second tool is shown.
    fn closing(text: &Text) -> io::Result<()> {
        if text.as_str().contains("/a/y") {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    #[test]
    fn review_decision_is_signed_before_a_later_failure() {
        let lock = lock();
        let items = super::super::items::items(&lock, None, &Audits::default(), Date::today());
        let mut signed = Vec::new();
        let outcome = walk(
            &items,
            &mut Cursor::new("a\na\n"),
            &mut closing,
            Style::default(),
            |item, accepted| {
                signed.push((item.subject.shown(), accepted.looked_at));
                Ok(())
            },
        );
        assert!(outcome.is_err());
        assert_eq!(signed, [("/a/x".to_owned(), vec!["name".to_owned()])]);
    }

    #[test]
    fn review_ends_when_a_decision_cannot_be_written() {
        let lock = lock();
        let items = super::super::items::items(&lock, None, &Audits::default(), Date::today());
        let mut asked = 0;
        let outcome = walk(
            &items,
            &mut Cursor::new("a\na\n"),
            &mut |_: &Text| Ok(()),
            Style::default(),
            |_, _| {
                asked += 1;
                Err(vec![Diagnostic::error(DiagnosticCode::FileWrite, "full")])
            },
        );
        assert_eq!(outcome.unwrap_err()[0].code, DiagnosticCode::FileWrite);
        assert_eq!(asked, 1);
    }
}
