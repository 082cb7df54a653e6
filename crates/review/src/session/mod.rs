//! The dialogue: shows an item, reads a line, executes the answer. Independent of terminal and files.

use std::io::{self, BufRead};

use broker_model::terminal::Text;
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, text};

mod describe;
pub mod items;
mod show;

use items::Item;
pub use show::Style;

const QUESTION: &str = "[a]ccept [s]kip [r]est [b]ack [q]uit, [d] whole [j]son [n]ote, [?] help: ";

const HELP: &str = "  a  accept: write an audit of this item
  s  skip: decide later
  r  rest: accept this item, and the rest of its source without showing it; a
     tool with a finding of the lint or a drift class above `text` is shown
  b  back to the item before
  q  quit; accepted items stay accepted
  d  show the whole item as text
  j  show the whole item as JSON, as it is in the lock
  n  add a note to the audit
";

/// The note of an audit of an item that was not shown.
const UNSEEN: &str = "accepted with the rest of the source, not shown by the review";

/// The content of the audit of an accepted item.
#[derive(Debug, Default)]
pub struct Accepted {
    pub looked_at: Vec<String>,
    pub note: Option<String>,
}

/// The numbers of decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub accepted: usize,
    pub skipped: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Open,
    Accepted,
    Skipped,
}

enum Answer {
    Accept,
    Skip,
    Rest,
    Back,
    Quit,
    Whole,
    Json,
    Note,
    Help,
    Unclear,
}

/// The decision on one item.
enum Step {
    Accept(Accepted),
    Rest(Accepted),
    Skip,
    Back,
    Quit,
}

/// Goes through the items; `sign` is called at each acceptance, before the next item is shown. The end of
/// the input quits.
pub fn walk(
    items: &[Item<'_>],
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
    style: Style,
    mut sign: impl FnMut(&Item<'_>, Accepted) -> Result<(), Vec<Diagnostic>>,
) -> Result<Tally, Vec<Diagnostic>> {
    let mut decisions = vec![Decision::Open; items.len()];
    let mut shown = Vec::new();
    let mut next = (!items.is_empty()).then_some(0);
    while let Some(at) = next {
        let item = &items[at];
        let block = show::block(item, at + 1, items.len(), style);
        write(output, &block)?;
        if decisions[at] == Decision::Accepted {
            write(output, &"  it is accepted already\n".into())?;
        }
        match ask(item, input, output)? {
            Step::Quit => break,
            Step::Back => {
                match shown.pop() {
                    Some(before) => next = Some(before),
                    None => write(output, &"this is the first item\n".into())?,
                }
                continue;
            }
            Step::Skip if decisions[at] == Decision::Accepted => {
                let text = "it stays accepted: to undo that, remove its entry from the audits\n";
                write(output, &text.into())?;
            }
            Step::Skip => decisions[at] = Decision::Skipped,
            Step::Accept(_) if decisions[at] == Decision::Accepted => {}
            Step::Accept(accepted) => {
                accept(item, accepted, output, &mut sign)?;
                decisions[at] = Decision::Accepted;
            }
            Step::Rest(accepted) => {
                let rest = rest_of(items, &decisions, at);
                let question = text!(
                    "accept {} of {} without showing them? [y]es [n]o: ",
                    counted(rest.len(), "more tool"),
                    item.subject.source.path
                );
                if !rest.is_empty() && !confirmed(&question, input, output)? {
                    continue;
                }
                if decisions[at] != Decision::Accepted {
                    accept(item, accepted, output, &mut sign)?;
                    decisions[at] = Decision::Accepted;
                }
                for other in rest {
                    let accepted = Accepted {
                        looked_at: Vec::new(),
                        note: Some(UNSEEN.to_owned()),
                    };
                    sign(&items[other], accepted)?;
                    decisions[other] = Decision::Accepted;
                    write(
                        output,
                        &text!("accepted unseen: {}\n", items[other].subject.shown()),
                    )?;
                }
            }
        }
        shown.push(at);
        next = (at + 1..items.len()).find(|at| decisions[*at] != Decision::Accepted);
    }
    let count = |wanted| decisions.iter().filter(|one| **one == wanted).count();
    Ok(Tally {
        accepted: count(Decision::Accepted),
        skipped: count(Decision::Skipped),
    })
}

fn accept(
    item: &Item<'_>,
    accepted: Accepted,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
    sign: &mut impl FnMut(&Item<'_>, Accepted) -> Result<(), Vec<Diagnostic>>,
) -> Result<(), Vec<Diagnostic>> {
    let looked_at = accepted.looked_at.join(", ");
    sign(item, accepted)?;
    write(output, &text!("accepted: {}\n", shown_line(&looked_at, 70)))
}

/// The later items of the same source that may be accepted without being shown.
fn rest_of(items: &[Item<'_>], decisions: &[Decision], at: usize) -> Vec<usize> {
    let source = &items[at].subject.source.path;
    let later = at + 1..items.len();
    later
        .filter(|other| {
            let item = &items[*other];
            item.subject.source.path == *source
                && decisions[*other] == Decision::Open
                && !item.has_to_be_shown()
        })
        .collect()
}

/// Whether the answer to the question is yes; the end of the input is not.
fn confirmed(
    question: &Text,
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
) -> Result<bool, Vec<Diagnostic>> {
    let answer = line_of(question, input, output)?;
    Ok(answer.is_some_and(|line| matches!(line.trim().to_lowercase().as_str(), "y" | "yes")))
}

fn ask(
    item: &Item<'_>,
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
) -> Result<Step, Vec<Diagnostic>> {
    let (mut saw_all, mut note) = (false, None);
    loop {
        let Some(line) = line_of(&QUESTION.into(), input, output)? else {
            return Ok(Step::Quit);
        };
        let answer = Answer::parse(&line);
        match answer {
            Answer::Accept | Answer::Rest => {
                let looked_at = item.members(saw_all);
                let accepted = Accepted { looked_at, note };
                return Ok(match answer {
                    Answer::Rest => Step::Rest(accepted),
                    _ => Step::Accept(accepted),
                });
            }
            Answer::Skip => return Ok(Step::Skip),
            Answer::Back => return Ok(Step::Back),
            Answer::Quit => return Ok(Step::Quit),
            Answer::Whole => {
                saw_all = true;
                write(output, &show::whole(item))?;
            }
            Answer::Json => {
                saw_all = true;
                write(output, &show::json(item))?;
            }
            Answer::Help => write(output, &HELP.into())?,
            Answer::Note => match line_of(&"note: ".into(), input, output)? {
                None => return Ok(Step::Quit),
                Some(text) if text.trim().is_empty() => note = None,
                Some(text) => note = Some(text.trim().to_owned()),
            },
            Answer::Unclear => {
                let shown = shown_line(&line, 40);
                write(
                    output,
                    &text!("`{}` is not an answer; ? lists them\n", shown),
                )?;
            }
        }
    }
}

impl Answer {
    fn parse(line: &str) -> Self {
        match line.trim().to_lowercase().as_str() {
            "a" | "accept" => Self::Accept,
            "s" | "skip" => Self::Skip,
            "r" | "rest" => Self::Rest,
            "b" | "back" => Self::Back,
            "q" | "quit" => Self::Quit,
            "d" => Self::Whole,
            "j" | "json" => Self::Json,
            "n" | "note" => Self::Note,
            "?" | "h" | "help" => Self::Help,
            _ => Self::Unclear,
        }
    }
}

/// The next line of the input; `None` at its end.
pub fn line_of(
    question: &Text,
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
) -> Result<Option<String>, Vec<Diagnostic>> {
    write(output, question)?;
    let mut line = Vec::new();
    let read = input.read_until(b'\n', &mut line).map_err(lost)?;
    if read == 0 {
        write(output, &"\n".into())?;
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

pub fn write(
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

    use broker_model::lock::Lock;
    use broker_model::{NodePath, Snapshot};
    use serde_json::json;

    use super::*;
    use crate::audits::{Audits, Date};

    /// A lock with two tools.
    fn lock() -> Lock {
        let text = r#"{"tree": [{"path": "/a", "source": {"command": "server"}}]}"#;
        let parsed = broker_config::Config::parse("c.json", text.as_bytes());
        let config = parsed.unwrap().config;
        let source = config.source(&NodePath::parse("/a").unwrap()).unwrap();
        let snapshot = Snapshot {
            resources: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
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
            access_digest: None,
            generator: "test".to_owned(),
            sources: vec![source.to_locked(&snapshot)],
            left_out: Vec::new(),
        }
    }

    fn items(lock: &Lock) -> Vec<Item<'_>> {
        items::items(lock, None, &Audits::default(), Date::today(), 1, &[])
    }

    #[test]
    fn review_rest_of_an_accepted_item_accepts_the_others() {
        let lock = lock();
        let items = items(&lock);
        let mut signed = Vec::new();
        let tally = walk(
            &items,
            // The first tool is accepted, and then seen again.
            &mut Cursor::new("a\nb\nr\ny\n"),
            &mut |_: &Text| Ok(()),
            Style::default(),
            |item, accepted| {
                signed.push((item.subject.shown(), accepted.note.is_some()));
                Ok(())
            },
        );
        assert_eq!(tally.unwrap().accepted, 2);
        assert_eq!(
            signed,
            [("/a/x".to_owned(), false), ("/a/y".to_owned(), true)]
        );
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
        let items = items(&lock);
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
        let items = items(&lock);
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
