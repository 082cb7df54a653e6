//! `hints --import`: checks the answers of a person or a model, and writes them into the config as generated hints. One
//! wrong answer refuses the whole file, so that nothing is written in part.

use std::collections::BTreeMap;
use std::path::Path;

use broker_config::{Config, MAX_HINTS, SearchHint, Source, hint_problem};
use broker_model::lock::{Lock, LockedTool};
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, text};
use serde::Deserialize;

use super::super::output::say;
use super::edit::ConfigText;
use super::export::path_of;

/// The maximum bytes of a file of answers.
const MAX_BYTES: usize = 4 << 20;
/// Endings of host names, with which a word is an address.
const HOST_ENDINGS: [&str; 13] = [
    "ai", "app", "biz", "co", "com", "de", "dev", "info", "io", "me", "net", "org", "xyz",
];

/// The answers.
#[derive(Deserialize)]
struct Answers {
    tools: Vec<Answer>,
}

/// The hints for one tool.
#[derive(Deserialize)]
struct Answer {
    path: String,
    digest: String,
    #[serde(default)]
    hints: Vec<String>,
}

pub(super) fn run(file: &Path, answers: &Path) -> Result<(), Vec<Diagnostic>> {
    // Before the config is read for the checks, so that what is checked is what is edited, or the write is refused.
    let edited = ConfigText::read(file)?;
    let (config, lock) = super::read(file)?;
    let given = read(answers)?;
    let shown = answers.to_string_lossy();
    let checked = check(&config, &lock, &given).map_err(|found| {
        found
            .into_iter()
            .map(|one| one.in_file(shown.as_ref()))
            .collect::<Vec<_>>()
    })?;
    let mut count = 0;
    for (source, tool, hints) in &checked {
        edited.add(source, &tool.upstream_name, hints);
        count += hints.len();
    }
    if count == 0 {
        say(text!(
            "the answers have no new hints; the config is unchanged"
        ));
        return Ok(());
    }
    edited.write(file)?;
    say(text!(
        "{} written, marked as generated; `broker-gen review` shows them",
        counted(count, "hint")
    ));
    Ok(())
}

fn read(file: &Path) -> Result<Answers, Vec<Diagnostic>> {
    let shown = file.to_string_lossy();
    let wrong =
        |code, message: String| vec![Diagnostic::error(code, message).in_file(shown.as_ref())];
    let bytes = broker_files::read(file, MAX_BYTES).map_err(|error| {
        wrong(
            DiagnosticCode::ConfigUnreadable,
            format!("cannot read the answers: {error}"),
        )
    })?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!(
            "the answers are not `{{\"tools\":[{{\"path\",\"digest\",\"hints\"}}]}}`: {}",
            shown_line(&error.to_string(), 200)
        );
        wrong(DiagnosticCode::HintRefused, message)
    })
}

type Checked<'a> = Vec<(&'a Source, &'a LockedTool, Vec<SearchHint>)>;

/// The new hints of each tool, or every problem.
fn check<'a>(
    config: &'a Config,
    lock: &'a Lock,
    answers: &Answers,
) -> Result<Checked<'a>, Vec<Diagnostic>> {
    let mut tools = BTreeMap::new();
    for locked in &lock.sources {
        let Some(source) = config.source(&locked.path) else {
            continue;
        };
        for tool in &locked.exposed {
            tools.insert(path_of(locked, tool), (source, tool));
        }
    }
    let mut owners = owners(config);
    let (mut checked, mut problems) = (Vec::new(), Vec::new());
    for (at, answer) in answers.tools.iter().enumerate() {
        let mut refuse = |below: &str, message: String| {
            let place = format!("/tools/{at}{below}");
            problems.push(Diagnostic::error(DiagnosticCode::HintRefused, message).at(place));
        };
        let Some((source, tool)) = tools.get(&answer.path) else {
            let path = shown_line(&answer.path, 120);
            refuse("/path", format!("the lock has no tool `{path}`"));
            continue;
        };
        if answer.digest != tool.digest.as_str() {
            let message = "the answer is for another version of the tool; export again".to_owned();
            refuse("/digest", message);
            continue;
        }
        let own = source.overrides.get(&tool.upstream_name);
        let known = own.map_or(&[][..], |own| &own.search_hints);
        let mut hints: Vec<SearchHint> = Vec::new();
        for (number, phrase) in answer.hints.iter().enumerate() {
            let phrase = phrase.trim();
            let place = format!("/hints/{number}");
            if let Some(problem) = hint_problem(phrase).or_else(|| address_problem(phrase)) {
                refuse(&place, problem);
                continue;
            }
            let owner = owners
                .entry(phrase.to_lowercase())
                .or_insert_with(|| source.path.as_str().to_owned());
            if owner != source.path.as_str() {
                let phrase = shown_line(phrase, 120);
                refuse(&place, format!("`{phrase}` is a hint of `{owner}` as well"));
                continue;
            }
            let is_known = known.iter().chain(&hints).any(|hint| hint.text == phrase);
            if !is_known {
                hints.push(SearchHint {
                    text: phrase.to_owned(),
                    generated: true,
                    made_for: Some(tool.digest.as_str().to_owned()),
                });
            }
        }
        if known.len() + hints.len() > MAX_HINTS {
            let message = format!(
                "the tool would have {} hints, but may have {MAX_HINTS}; it has {} already",
                known.len() + hints.len(),
                known.len()
            );
            refuse("/hints", message);
        }
        if !hints.is_empty() {
            checked.push((*source, *tool, hints));
        }
    }
    match problems.is_empty() {
        true => Ok(checked),
        false => Err(problems),
    }
}

/// The source of each phrase of the config, in lower case.
fn owners(config: &Config) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for source in config.sources() {
        let hints = source.overrides.values().flat_map(|own| &own.search_hints);
        for hint in hints {
            owners.insert(hint.text.to_lowercase(), source.path.as_str().to_owned());
        }
    }
    owners
}

/// The reason why a phrase is refused that contains an address.
fn address_problem(phrase: &str) -> Option<String> {
    let is_address = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let lower = word.to_ascii_lowercase();
        let host = lower.split(['/', ':', '?', '#']).next().unwrap_or_default();
        lower.contains("://")
            || lower.starts_with("www.")
            || host
                .rsplit_once('.')
                .is_some_and(|(name, end)| !name.is_empty() && HOST_ENDINGS.contains(&end))
    };
    phrase
        .split_whitespace()
        .find(|word| is_address(word))
        .map(|word| format!("a hint contains no URL: `{}`", shown_line(word, 120)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_in_a_phrase_is_recognised() {
        for phrase in [
            "see https://a.example/x",
            "www.evil.test",
            "book on Evil.com",
            "(evil.io/path)",
            "file://etc",
        ] {
            assert!(address_problem(phrase).is_some(), "{phrase}");
        }
        for phrase in [
            "what day is it",
            "convert 3.5 to text",
            "open main.rs",
            "e.g. a list",
        ] {
            assert_eq!(address_problem(phrase), None, "{phrase}");
        }
    }
}
