//! Texts that are written to be found by every search: lists of keywords, repeated words, and long lists of tasks.
//!
//! Each measure has a threshold that few recorded tools of public servers reach; `docs/lint.md` has the number.

use std::collections::{BTreeSet, HashMap};

use broker_drift::encoded::{Word, words};
use broker_search::is_stop_word;

use super::TextFinding;
use super::texts::{Role, Text};

const RULE: &str = "search-bait";
/// Consecutive short items of a list.
const MAX_ITEMS: usize = 16;
/// Words of a short item.
const ITEM_WORDS: usize = 3;
/// Consecutive words without a stop word and without punctuation.
const MAX_BARE_WORDS: usize = 14;
/// Shorter texts repeat a word by chance.
const MIN_WORDS: usize = 20;
/// The share of one word among the words that are not stop words, in percent.
const MAX_SHARE: usize = 30;
/// Different tasks that a text names.
const MAX_TASKS: usize = 12;
/// The share of the words for these tasks among all words, in percent.
const TASK_SHARE: usize = 14;

/// What tools of every kind do; sorted.
const TASKS: &[&str] = &[
    "add",
    "analyse",
    "analyze",
    "answer",
    "archive",
    "ask",
    "book",
    "browse",
    "build",
    "buy",
    "calculate",
    "call",
    "cancel",
    "chat",
    "check",
    "clone",
    "close",
    "compare",
    "compile",
    "compress",
    "compute",
    "convert",
    "copy",
    "create",
    "debug",
    "decode",
    "delete",
    "deploy",
    "download",
    "draw",
    "edit",
    "email",
    "encode",
    "encrypt",
    "execute",
    "explain",
    "export",
    "extract",
    "fetch",
    "find",
    "fix",
    "format",
    "generate",
    "import",
    "install",
    "invite",
    "list",
    "manage",
    "merge",
    "monitor",
    "move",
    "notify",
    "open",
    "order",
    "parse",
    "pay",
    "plan",
    "play",
    "post",
    "print",
    "publish",
    "query",
    "read",
    "record",
    "remind",
    "remove",
    "rename",
    "replace",
    "report",
    "reserve",
    "restart",
    "restore",
    "retrieve",
    "run",
    "save",
    "schedule",
    "scrape",
    "search",
    "sell",
    "send",
    "share",
    "show",
    "sort",
    "start",
    "stop",
    "store",
    "submit",
    "summarise",
    "summarize",
    "sync",
    "test",
    "track",
    "translate",
    "update",
    "upload",
    "validate",
    "verify",
    "view",
    "visualize",
    "watch",
    "write",
];

/// Checks a prose text; values and names are lists by nature.
pub(super) fn check(text: &Text<'_>) -> Vec<TextFinding> {
    if text.role != Role::Prose {
        return Vec::new();
    }
    let words = words(text.text);
    let found = [
        keywords(text.text, &words),
        bare_words(text.text, &words),
        repeated(&words),
        tasks(&words),
    ];
    let first = found.into_iter().flatten().next();
    first.into_iter().collect()
}

/// The punctuation between two words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// None that separates.
    Joined,
    /// That of a list, or a line end.
    Item,
    /// The end of a sentence or of a list.
    End,
}

/// The gap before each word.
fn gaps(text: &str, words: &[Word]) -> Vec<Gap> {
    let of = |before: Option<&Word>, word: &Word| {
        let between = text.get(before.map_or(0, |word| word.to)..word.at);
        let mut gap = Gap::Joined;
        for c in between.unwrap_or_default().chars() {
            match c {
                '.' | '!' | '?' | ':' | '(' | ')' | '[' | ']' | '{' | '}' | '=' => return Gap::End,
                ',' | ';' | '|' | '/' | '•' | '·' | '、' | '\n' => gap = Gap::Item,
                _ => {}
            }
        }
        gap
    };
    let before = std::iter::once(None).chain(words.iter().map(Some));
    before
        .zip(words)
        .map(|(before, word)| of(before, word))
        .collect()
}

/// A long list of short items.
fn keywords(text: &str, words: &[Word]) -> Option<TextFinding> {
    let gaps = gaps(text, words);
    let (mut items, mut first, mut start) = (0, 0, 0);
    for at in 0..=words.len() {
        let gap = gaps.get(at).copied().unwrap_or(Gap::End);
        if gap == Gap::Joined && at > 0 {
            continue;
        }
        // An item ends here.
        if at > start && at - start <= ITEM_WORDS {
            if items == 0 {
                first = start;
            }
            items += 1;
        } else {
            items = 0;
        }
        if items >= MAX_ITEMS {
            let message = format!("a list of {items} keywords or more");
            return Some(finding(&words[first], &words[at - 1], message));
        }
        if gap == Gap::End {
            items = 0;
        }
        start = at;
    }
    None
}

/// Many words in a row without a stop word and without punctuation.
fn bare_words(text: &str, words: &[Word]) -> Option<TextFinding> {
    let gaps = gaps(text, words);
    let mut first = 0;
    for (at, word) in words.iter().enumerate() {
        if is_stop_word(&word.text) {
            first = at + 1;
        } else if gaps[at] != Gap::Joined {
            first = at;
        }
        if at + 1 - first >= MAX_BARE_WORDS {
            let message = format!("{MAX_BARE_WORDS} words in a row that form no sentence");
            return Some(finding(&words[first], word, message));
        }
    }
    None
}

/// One word that is a large part of the text.
fn repeated(words: &[Word]) -> Option<TextFinding> {
    let said = words.iter().filter(|word| !is_stop_word(&word.text));
    let mut counts: HashMap<&str, (usize, &Word)> = HashMap::new();
    let mut all = 0;
    for word in said {
        all += 1;
        counts.entry(&word.text).or_insert((0, word)).0 += 1;
    }
    let (count, word) = counts
        .into_values()
        .max_by_key(|(count, word)| (*count, std::cmp::Reverse(word.at)))?;
    if all < MIN_WORDS || count * 100 < all * MAX_SHARE {
        return None;
    }
    let message = format!("one word is {count} of {all}");
    Some(finding(word, word, message))
}

/// Many different tasks in few words.
fn tasks(words: &[Word]) -> Option<TextFinding> {
    let task = |word: &&Word| {
        let text = word.text.as_str();
        // `sends` is `send`.
        let is_known = |text: &str| TASKS.binary_search(&text).is_ok();
        is_known(text) || text.strip_suffix('s').is_some_and(is_known)
    };
    let named: Vec<_> = words.iter().filter(task).collect();
    let different: BTreeSet<_> = named
        .iter()
        .map(|word| word.text.trim_end_matches('s'))
        .collect();
    let count = different.len();
    if count < MAX_TASKS || count * 100 < words.len() * TASK_SHARE {
        return None;
    }
    let message = format!("{count} different tasks in {} words", words.len());
    Some(finding(named.first()?, named.last()?, message))
}

fn finding(first: &Word, last: &Word, message: String) -> TextFinding {
    TextFinding {
        rule: RULE,
        at: first.at,
        to: last.to,
        message: format!("{message}: the text may be written to be found by every search"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let text = Text {
            pointer: "/description".to_owned(),
            text,
            role: Role::Prose,
            member: None,
        };
        check(&text).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn tasks_are_sorted() {
        assert!(TASKS.is_sorted());
    }

    #[test]
    fn text_that_wants_to_be_found_by_every_search_is_pointed_out() {
        for (text, part) in [
            (
                "Best helper. Keywords: file, mail, ticket, issue, calendar, chat, database, git, image, video, invoice, weather, map, \
                 flight, hotel, stock, news",
                "16 keywords",
            ),
            (
                "Works with\nfiles\nmails\ntickets\nissues\ncalendars\nchats\ndatabases\nrepositories\nimages\nvideos\ninvoices\nmaps\n\
                 flights\nhotels\nstocks\nnews",
                "16 keywords",
            ),
            (
                "Does everything you need. create read update delete file mail ticket issue calendar chat database git image video",
                "form no sentence",
            ),
            (
                "Search search search the web. Search files, search mail, search tickets, search code, search, search, search \
                 images and search people, the search of all searches.",
                "one word is",
            ),
            (
                "It can create a file and read a mail. It can send a message, search the web, book a flight, translate a \
                 text, summarize a page, deploy an app, query a table, draw a chart, pay a bill and play a song.",
                "different tasks",
            ),
            (
                "create • read • update • delete • search • send • list • find • open • close • run • test • build • deploy • \
                 monitor • fix • merge",
                "keywords",
            ),
        ] {
            let found = found(text);
            assert!(
                found.len() == 1 && found[0].contains(part),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn usual_text_is_left_alone() {
        for text in [
            "",
            "Lists the files of a folder. Searches below it with a glob, and sorts them by name, size or time.",
            "Manages jobs: create-job, delete-job, get-job, get-jobs, update-job, start-job-run, stop-job-run and list-jobs are the \
             operations that the service has for this resource; each takes the name of the job.",
            "Sync group. Gets the sync groups of a sync service.",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn long_text_takes_few_steps() {
        // Every measure reads the words once, so a megabyte ends at once.
        for part in ["word ", "a, ", "search ", "\n"] {
            found(&part.repeat(200_000));
        }
    }
}
