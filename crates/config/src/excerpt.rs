//! A syntax error with its line and a caret. The content of every string is masked, since it may be a
//! secret; text outside strings is shown only as far as it is JSON.

use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::json::Position;

/// Columns of the line that are shown on either side of the caret.
const REACH: usize = 60;

/// The message of `serde_json` at its place, with the masked line.
pub(super) fn syntax_error(text: &str, error: &serde_json::Error) -> Diagnostic {
    let line_number = error.line().max(1);
    let line = text.split('\n').nth(line_number - 1).unwrap_or("");
    let line = line.strip_suffix('\r').unwrap_or(line);
    // serde_json counts bytes, and its column names the refused byte.
    let mut bytes = error.column().saturating_sub(1).min(line.len());
    while !line.is_char_boundary(bytes) {
        bytes -= 1;
    }
    let column = line[..bytes].chars().count() + 1;
    let whole = error.to_string();
    let cause = whole.split(" at line ").next().unwrap_or("not JSON");
    // Quoted text in the message is left out, like the content of strings.
    let cause = cause.split(": ").next().unwrap_or(cause);
    let cause = match line[bytes..].chars().next() {
        // A comma precedes; without it the object would be closed here.
        Some('}') if cause == "key must be a string" => "trailing comma",
        _ => cause,
    };
    let masked = mask(line);
    let shown: Vec<char> = masked.chars().collect();
    let from = column.saturating_sub(REACH + 1);
    let to = (column + REACH).min(shown.len());
    let window: String = shown.get(from..to).unwrap_or(&[]).iter().collect();
    let caret = " ".repeat(column - 1 - from);
    let blank = " ".repeat(line_number.to_string().len());
    let mut diagnostic = Diagnostic::error(Code::ConfigSyntax, cause)
        .notes([
            format!("  {line_number} | {window}"),
            format!("  {blank} | {caret}^"),
        ])
        .help(
            "correct the place; JSON has no comments, no trailing commas, and only double quotes",
        );
    diagnostic.position = Some(Position {
        line: line_number,
        column,
    });
    diagnostic
}

/// `line` with every character of a string's content as `•`. Keys are shown: a string is a key if a
/// brace or comma precedes and a colon follows. An apostrophe and a bare word open a string as well.
fn mask(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            quote @ ('"' | '\'') => {
                let (end, closed) = end_of_string(&chars, at + 1, quote);
                let is_key = closed
                    && chars[end + 1..]
                        .iter()
                        .find(|c| !c.is_whitespace())
                        .is_some_and(|c| *c == ':')
                    && matches!(
                        chars[..at].iter().rev().find(|c| !c.is_whitespace()),
                        None | Some('{' | ',')
                    )
                    && chars[at + 1..end].iter().all(|c| is_plain(*c));
                out.push(quote);
                for c in &chars[at + 1..end] {
                    out.push(if is_key { *c } else { '•' });
                }
                if closed {
                    out.push(quote);
                }
                at = end + usize::from(closed);
            }
            c if c.is_ascii_punctuation() => {
                out.push(c);
                at += 1;
            }
            c if c.is_whitespace() => {
                out.push(' ');
                at += 1;
            }
            _ => at = mask_word(&chars, at, &mut out),
        }
    }
    out
}

/// A bare word: a JSON literal is shown, any other word may be a part of a secret.
fn mask_word(chars: &[char], start: usize, out: &mut String) -> usize {
    let end = chars[start..]
        .iter()
        .position(|c| {
            c.is_whitespace() || c.is_ascii_punctuation() && !matches!(c, '_' | '-' | '.')
        })
        .map_or(chars.len(), |length| start + length);
    let word: String = chars[start..end].iter().collect();
    let known = matches!(word.as_str(), "true" | "false" | "null")
        || word.len() < 5 && word.parse::<f64>().is_ok();
    for c in word.chars() {
        out.push(if known { c } else { '•' });
    }
    end
}

fn end_of_string(chars: &[char], mut at: usize, quote: char) -> (usize, bool) {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return (at, true),
            _ => at += 1,
        }
    }
    (chars.len(), false)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '/' | '*')
}
