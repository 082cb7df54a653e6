//! The search hints that a model wrote: shows the hints of one tool after the other, and removes the mark of the hints
//! that a person accepts. Each acceptance is written at once.

use std::io::{self, BufRead};
use std::path::Path;

use broker_config::{Config, Source};
use broker_model::lock::{Lock, LockedTool};
use broker_model::terminal::Text;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, text};
use broker_review::session::{line_of, write};

use super::super::hints::edit::ConfigText;

const QUESTION: &str = "[a]ccept [s]kip [q]uit: ";

/// The end of the dialogue about hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HintTally {
    /// The number of tools whose hints were accepted.
    pub(super) accepted: usize,
    /// Whether the person quit.
    pub(super) quit: bool,
}

/// A tool with generated hints for its locked version.
struct Waiting<'a> {
    source: &'a Source,
    tool: &'a LockedTool,
    phrases: Vec<&'a str>,
}

/// Goes through the tools with generated hints.
pub(super) fn walk(
    file: &Path,
    config: &Config,
    lock: &Lock,
    input: &mut impl BufRead,
    output: &mut impl FnMut(&Text) -> io::Result<()>,
) -> Result<HintTally, Vec<Diagnostic>> {
    let waiting = waiting(config, lock);
    let mut tally = HintTally::default();
    for (at, one) in waiting.iter().enumerate() {
        let name = shown_line(&one.tool.upstream_name, 100);
        let head = text!(
            "search hints {} of {}: `{}` of {}, written by a model\n",
            at + 1,
            waiting.len(),
            name,
            one.source.path
        );
        write(output, &head)?;
        for phrase in &one.phrases {
            write(output, &text!("  {}\n", shown_line(phrase, 200)))?;
        }
        loop {
            let answer = line_of(&QUESTION.into(), input, output)?;
            match answer.as_deref().map(str::trim) {
                Some("a") => {
                    let edited = ConfigText::read(file)?;
                    let digest = one.tool.digest.as_str();
                    edited.accept(one.source, &one.tool.upstream_name, digest);
                    edited.write(file)?;
                    tally.accepted += 1;
                    break;
                }
                Some("s") => break,
                None | Some("q") => {
                    tally.quit = true;
                    return Ok(tally);
                }
                Some(_) => write(output, &"type `a`, `s` or `q`\n".into())?,
            }
        }
    }
    Ok(tally)
}

fn waiting<'a>(config: &'a Config, lock: &'a Lock) -> Vec<Waiting<'a>> {
    let mut out = Vec::new();
    for locked in &lock.sources {
        let Some(source) = config.source(&locked.path) else {
            continue;
        };
        for tool in &locked.exposed {
            let own = source.overrides.get(&tool.upstream_name);
            let hints = own.iter().flat_map(|own| &own.search_hints);
            let phrases: Vec<_> = hints
                .filter(|hint| hint.generated && hint.is_for(&tool.digest))
                .map(|hint| hint.text.as_str())
                .collect();
            if !phrases.is_empty() {
                out.push(Waiting {
                    source,
                    tool,
                    phrases,
                });
            }
        }
    }
    out
}
