//! Encoded text that decodes to instructions: base64, hex and escapes.
//!
//! The classifier and the lint of `broker-gen` share this module. The lint adds its own phrases.

mod decode;
mod fold;
mod words;

pub use self::decode::Run;
pub use self::fold::{Script, folded};
pub use self::words::{Word, words};

/// Maximum nesting of encodings that is decoded.
const MAX_DEPTH: usize = 3;
/// Minimum number of words of a sentence for a model.
const MIN_WORDS: usize = 4;
/// Words of instructions. Two of them make a deliberately encoded sentence an instruction.
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

/// The runs of `text` that decode to instructions, each with its decoded text. `is_instruction` adds
/// to the built-in rule: it is asked about decoded sentences that the rule does not recognise.
pub fn instructions(text: &str, is_instruction: &dyn Fn(&str) -> bool) -> Vec<(Run, String)> {
    instructions_below(text, is_instruction, 0)
}

fn instructions_below(
    text: &str,
    is_instruction: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Vec<(Run, String)> {
    if depth >= MAX_DEPTH {
        return Vec::new();
    }
    let mut all = Vec::new();
    for run in decode::runs(text) {
        let sentence = is_sentence(&run.decoded);
        let decoded = if sentence && (orders(&run) || is_instruction(&run.decoded)) {
            Some(run.decoded.clone())
        } else {
            instructions_below(&run.decoded, is_instruction, depth + 1)
                .into_iter()
                .next()
                .map(|(_, decoded)| decoded)
        };
        if let Some(decoded) = decoded {
            all.push((run, decoded));
        }
    }
    all
}

/// Whether a decoded text is prose of at least four words.
fn is_sentence(decoded: &str) -> bool {
    if words(decoded).len() < MIN_WORDS {
        return false;
    }
    let of_prose = |c: &char| c.is_alphabetic() || matches!(c, ' ' | '\n');
    let all = decoded.chars().count();
    let prose = decoded.chars().filter(of_prose).count();
    let blanks = decoded.chars().filter(|c| c.is_whitespace()).count();
    prose * 4 >= all * 3 && blanks * 12 >= all
}

fn orders(run: &Run) -> bool {
    let words = words(&run.decoded);
    let mut orders: Vec<&str> = words
        .iter()
        .map(|word| word.text.as_str())
        .filter(|word| ORDERS.contains(word))
        .collect();
    orders.sort_unstable();
    orders.dedup();
    run.is_deliberate && orders.len() >= 2
}
