//! Variables in texts of clients: each client's way to write one becomes `${NAME}`, or the form of editors, for
//! [`super::translate`]. Where `${` is only text, it becomes `$${`. A config cannot contain it: its reader refuses it,
//! and an import puts a variable in its place.

use super::Client;
use super::entry::Entry;
use crate::spanned::{Data, Member};
use crate::template::is_variable_name;

/// Keys of a server whose texts may have variables.
const PLACES: [&str; 8] = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "http_headers",
    "requestOptions",
];

/// How a client writes variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syntax {
    /// `${NAME}`, `${NAME:-default}`, `${env:NAME}` and what editors have.
    Braces,
    /// The same, and `$NAME`.
    Dollar,
    /// `{env:NAME}` and `{file:PATH}`.
    Single,
    /// `${{ secrets.NAME }}` and `${{ inputs.NAME }}`.
    Double,
    /// Every text is literal.
    Literal,
}

fn syntax(client: Option<Client>, key: &str) -> Syntax {
    match client {
        Some(Client::Gemini) => Syntax::Dollar,
        Some(Client::Copilot) if matches!(key, "env" | "headers") => Syntax::Dollar,
        Some(Client::Goose) if matches!(key, "url" | "headers") => Syntax::Dollar,
        Some(Client::Opencode) => Syntax::Single,
        Some(Client::Continue) => Syntax::Double,
        Some(Client::Codex | Client::Goose | Client::Zed) => Syntax::Literal,
        _ => Syntax::Braces,
    }
}

/// Rewrites the texts of a server.
pub(super) fn convert(entry: &Entry<'_, '_>, members: &mut [Member]) {
    for member in members {
        if PLACES.contains(&member.key.as_str()) {
            let syntax = syntax(entry.rules.client, &member.key);
            if syntax != Syntax::Braces {
                rewrite(&mut member.value.data, syntax);
            }
        }
    }
}

fn rewrite(data: &mut Data, syntax: Syntax) {
    match data {
        Data::String(text) => *text = rewritten(text, syntax),
        Data::Array(items) => {
            let mut is_script = false;
            for item in items {
                // The variables of a script come from the environment, whichever program starts its shell.
                let is_option = matches!(&item.data, Data::String(text)
                    if text.starts_with('-') && text.ends_with('c'));
                if !is_script || syntax == Syntax::Dollar {
                    rewrite(&mut item.data, syntax);
                }
                is_script = is_option;
            }
        }
        Data::Object(members) => members
            .iter_mut()
            .for_each(|member| rewrite(&mut member.value.data, syntax)),
        _ => {}
    }
}

fn rewritten(text: &str, syntax: Syntax) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (new, length) = match syntax {
            Syntax::Dollar => dollar(rest, out.ends_with('$')),
            Syntax::Single => single(rest),
            Syntax::Double => double(rest),
            Syntax::Braces | Syntax::Literal => None,
        }
        .unwrap_or_else(|| match (syntax, rest.starts_with("${")) {
            (Syntax::Single | Syntax::Double | Syntax::Literal, true) => ("$${".to_owned(), 2),
            // As it is; `translate` reads it.
            (Syntax::Dollar, true) => ("${".to_owned(), 2),
            _ => (c.to_string(), c.len_utf8()),
        });
        out.push_str(&new);
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// `$NAME`.
fn dollar(rest: &str, after_dollar: bool) -> Option<(String, usize)> {
    let name = rest.strip_prefix('$').filter(|_| !after_dollar)?;
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let name = name.get(..name.find(is_end).unwrap_or(name.len()))?;
    is_variable_name(name).then(|| (format!("${{{name}}}"), name.len() + 1))
}

/// `{env:NAME}`, `{file:PATH}`.
fn single(rest: &str) -> Option<(String, usize)> {
    let (inner, _) = rest.strip_prefix('{')?.split_once('}')?;
    let length = inner.len() + 2;
    if let Some(name) = inner.strip_prefix("env:") {
        return is_variable_name(name).then(|| (format!("${{{name}}}"), length));
    }
    inner
        .starts_with("file:")
        .then(|| (format!("${{{inner}}}"), length))
}

/// `${{ secrets.NAME }}`, `${{ inputs.NAME }}`.
fn double(rest: &str) -> Option<(String, usize)> {
    let (inner, _) = rest.strip_prefix("${{")?.split_once("}}")?;
    let length = inner.len() + 5;
    let (kind, name) = inner.trim().split_once('.')?;
    // The last part is the name of the secret; parts before it say who has it.
    let name = name.rsplit('.').next().unwrap_or(name);
    match kind {
        "secrets" if is_variable_name(name) => Some((format!("${{{name}}}"), length)),
        "inputs" | "secrets" => Some((format!("${{input:{name}}}"), length)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_each_client_are_those_of_a_config() {
        for (syntax, text, expected) in [
            (Syntax::Dollar, "Bearer $A_B-$C", "Bearer ${A_B}-${C}"),
            (Syntax::Dollar, "${A}$1 $ 5$", "${A}$1 $ 5$"),
            (Syntax::Dollar, "$$A", "$$A"),
            (Syntax::Single, "x{env:A}y{file:./b}", "x${A}y${file:./b}"),
            (Syntax::Single, "{\"a\":1}${A}", "{\"a\":1}$${A}"),
            (Syntax::Double, "${{ secrets.A }}", "${A}"),
            (Syntax::Double, "${{ secrets.o/p.A-B }}é", "${input:A-B}é"),
            (Syntax::Double, "${{inputs.b}}${A}", "${input:b}$${A}"),
            (Syntax::Literal, "a $A ${A}", "a $A $${A}"),
        ] {
            assert_eq!(rewritten(text, syntax), expected, "{text}");
        }
    }
}
