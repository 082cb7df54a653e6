//! Encoded runs that read as instructions once they are decoded.

use super::decode::{Run, runs};
use super::{Found, phrases, words};

/// Codings within codings that are undone.
const MAX_DEPTH: usize = 3;
/// Words that a sentence for a model needs.
const FEWEST_WORDS: usize = 4;
/// Words that orders are made of; two of them make a decoded sentence one.
const ORDERS: [&str; 60] = [
    "ignore",
    "disregard",
    "forget",
    "override",
    "bypass",
    "instructions",
    "instruction",
    "rules",
    "prompt",
    "system",
    "assistant",
    "user",
    "tell",
    "mention",
    "reveal",
    "secret",
    "secretly",
    "silently",
    "hide",
    "must",
    "always",
    "never",
    "dont",
    "before",
    "after",
    "instead",
    "read",
    "open",
    "send",
    "forward",
    "upload",
    "post",
    "include",
    "append",
    "attach",
    "call",
    "invoke",
    "use",
    "tool",
    "tools",
    "execute",
    "run",
    "command",
    "shell",
    "curl",
    "wget",
    "bash",
    "file",
    "files",
    "contents",
    "password",
    "token",
    "key",
    "keys",
    "credentials",
    "email",
    "delete",
    "remove",
    "download",
    "history",
];

/// How many there are.
pub fn payloads(text: &str) -> usize {
    found(text, 0).len()
}

/// One finding for each.
pub(super) fn check(text: &str) -> Vec<Found> {
    let found = found(text, 0).into_iter().map(|(run, says)| Found {
        rule: "encoded-payload",
        at: run.at,
        to: run.to,
        message: format!("{} that decodes to {}", run.coding, super::quoted(&says)),
    });
    found.collect()
}

/// The runs, each with what it says in the end.
fn found(text: &str, depth: usize) -> Vec<(Run, String)> {
    if depth >= MAX_DEPTH {
        return Vec::new();
    }
    let mut all = Vec::new();
    for run in runs(text) {
        let says = if orders(&run) {
            Some(run.decoded.clone())
        } else {
            found(&run.decoded, depth + 1)
                .into_iter()
                .next()
                .map(|(_, says)| says)
        };
        if let Some(says) = says {
            all.push((run, says));
        }
    }
    all
}

fn orders(run: &Run) -> bool {
    let words = words::of(&run.decoded);
    if words.len() < FEWEST_WORDS {
        return false;
    }
    let of_prose = |c: &char| c.is_alphabetic() || matches!(c, ' ' | '\n');
    let (all, prose) = (
        run.decoded.chars().count(),
        run.decoded.chars().filter(of_prose).count(),
    );
    let blanks = run.decoded.chars().filter(|c| c.is_whitespace()).count();
    if prose * 4 < all * 3 || blanks * 12 < all {
        return false;
    }
    let mut orders: Vec<&str> = words
        .iter()
        .map(|word| word.text.as_str())
        .filter(|word| ORDERS.contains(word))
        .collect();
    orders.sort_unstable();
    orders.dedup();
    let phrased = || !phrases::check(&run.decoded).is_empty();
    run.is_deliberate && orders.len() >= 2 || phrased()
}
