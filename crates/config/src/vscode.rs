//! A client file of VS Code (`.vscode/mcp.json`): an object with `servers`. Comments and trailing commas are read in
//! these files and in files of other clients that accept them. Its variables are rewritten to variables of a config;
//! other editors have them in `mcpServers` as well.

use super::clients::{self, EQUAL, KINDS};
use super::findings::{Cursor, Findings};
use super::source::variable_for;
use super::spanned::{Data, Member, Spanned};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::text::shown_line;

/// The key of the servers.
pub(super) const SERVERS: &str = "servers";
/// The variable for the base folder of relative paths in the config.
pub const WORKSPACE_FOLDER: &str = "workspaceFolder";
/// The folder where VS Code looks for its files.
pub(super) const FOLDER: &str = ".vscode";

/// The keys of an entry whose strings have variables.
const WITH_VARIABLES: [&str; 6] = ["command", "args", "env", "cwd", "url", "headers"];

/// The text without comments and trailing commas, if it is a file of a client that accepts them. Spaces replace
/// them, so that every other byte keeps its offset.
pub(super) fn without_comments(text: &str) -> Option<String> {
    // Most configs are not such a file; they are not copied.
    let names = [
        "\"servers\"",
        "\"mcpServers\"",
        "\"context_servers\"",
        "\"mcp\"",
    ];
    if !names.iter().any(|name| text.contains(name)) {
        return None;
    }
    let bare = blank(text);
    let is_client = clients::allows_comments(&top_keys(&bare));
    is_client.then_some(bare)
}

/// Whether an object with these keys is a file of VS Code.
pub(super) fn is_file_of_vscode(has: impl Fn(&str) -> bool) -> bool {
    has(SERVERS) && !has("tree") && !has("mcpServers")
}

/// Reports each part of the servers under `key` that has no equal in a config.
pub(super) fn check(findings: &mut Findings<'_>, root: &Cursor<'_>, key: &str) {
    let Some(servers) = root.get(key) else {
        return;
    };
    for entry in servers.value.members() {
        let at = servers.member(entry);
        for member in at.value.members() {
            let value = at.member(member);
            if member.key == "envFile" && key == SERVERS {
                let message = "`envFile` is not read";
                let diagnostic = Diagnostic::error(Code::NotSupportedYet, message);
                findings.add_key(&value, diagnostic.help("write each variable that the server needs in `env`, as `\"NAME\": \"${NAME}\"`, and set it where the broker runs"));
            } else if WITH_VARIABLES.contains(&member.key.as_str()) {
                check_strings(findings, &value);
            }
        }
    }
}

/// Rewrites the variables of the servers under `key`, and removes members that [`check`] has refused.
pub(super) fn rewrite(root: &mut Spanned, key: &str) {
    let Data::Object(members) = &mut root.data else {
        return;
    };
    let servers = members.iter_mut().filter(|member| member.key == key);
    for entry in servers.flat_map(|servers| members_mut(&mut servers.value)) {
        if let Data::Object(members) = &mut entry.value.data
            && key == SERVERS
        {
            members.retain(|member| member.key != "envFile");
        }
        for member in members_mut(&mut entry.value) {
            if WITH_VARIABLES.contains(&member.key.as_str()) {
                rewrite_strings(&mut member.value);
            }
        }
    }
}

fn members_mut(value: &mut Spanned) -> &mut [Member] {
    match &mut value.data {
        Data::Object(members) => members,
        _ => &mut [],
    }
}

fn check_strings(findings: &mut Findings<'_>, cursor: &Cursor<'_>) {
    match &cursor.value.data {
        Data::String(text) => {
            for inner in variables(text) {
                if let Err(diagnostic) = replacement(inner) {
                    findings.add(cursor, *diagnostic);
                }
            }
        }
        Data::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_strings(findings, &cursor.item(index, item));
            }
        }
        Data::Object(members) => {
            for member in members {
                check_strings(findings, &cursor.member(member));
            }
        }
        _ => {}
    }
}

fn rewrite_strings(value: &mut Spanned) {
    match &mut value.data {
        Data::String(text) => *text = rewritten(text),
        Data::Array(items) => items.iter_mut().for_each(rewrite_strings),
        Data::Object(members) => {
            for member in members {
                rewrite_strings(&mut member.value);
            }
        }
        _ => {}
    }
}

/// The texts between `${` and `}`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split("${")
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(inner, _)| inner)
}

fn rewritten(text: &str) -> String {
    let mut pieces = text.split("${");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('}') {
            Some((inner, after)) => {
                match replacement(inner) {
                    Ok(Some(new)) => out.push_str(&new),
                    Ok(None) => out.push_str(&format!("${{{inner}}}")),
                    // It is reported already.
                    Err(_) => {}
                }
                out.push_str(after);
            }
            None => {
                out.push_str("${");
                out.push_str(piece);
            }
        }
    }
    out
}

/// The text that replaces a variable of VS Code; `None` for a variable of a config.
fn replacement(inner: &str) -> Result<Option<String>, Box<Diagnostic>> {
    if let Some((_, equal)) = EQUAL.iter().find(|(name, _)| *name == inner) {
        return Ok(Some((*equal).to_owned()));
    }
    let shown = shown_line(inner, 80);
    let refused = |cause: &str, name: &str| {
        let message = format!("`${{{shown}}}` {cause}");
        let diagnostic = Diagnostic::error(Code::EnvSyntax, message);
        let variable = variable_for(name, true);
        Err(Box::new(diagnostic.help(format!(
            "write `${{{variable}}}`, and set this variable where the broker runs"
        ))))
    };
    match inner.split_once(':') {
        Some((_, default)) if default.starts_with('-') => Ok(None),
        Some(("env", name)) => Ok(Some(format!("${{{name}}}"))),
        Some(("input", name)) => refused("is a question of an editor to its user", name),
        Some((kind, name)) if KINDS.contains(&kind) => {
            refused("is a value that only an editor has", name)
        }
        // The reader of variables refuses it.
        Some(_) => Ok(None),
        None if inner.starts_with("workspaceFolder") || inner == "cwd" => {
            refused("is a value that only an editor has", inner)
        }
        None => Ok(None),
    }
}

/// The text with spaces in place of comments and of commas before a closing bracket. A comment that does not
/// end stays, so that the reader refuses it.
pub(super) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    // The offset of a comma that no value has followed yet, and whether a value precedes it.
    let (mut comma, mut after_value) = (None, false);
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(bytes, at);
                (comma, after_value) = (None, true);
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let rest = &bytes[at..];
                let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                let end = at + length.unwrap_or(rest.len());
                out[at..end].fill(b' ');
                at = end;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let Some(length) = text.get(at + 2..).and_then(|rest| rest.find("*/")) else {
                    break;
                };
                let end = at + length + 4;
                for byte in &mut out[at..end] {
                    if !matches!(*byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
                at = end;
            }
            b',' => {
                comma = after_value.then_some(at);
                after_value = false;
                at += 1;
            }
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    out[comma] = b' ';
                }
                after_value = true;
                at += 1;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            byte => {
                (comma, after_value) = (None, !matches!(byte, b'{' | b'[' | b':'));
                at += 1;
            }
        }
    }
    // Only whole comments and commas were replaced, so the text is still UTF-8.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The keys of the outermost object, as they are written.
fn top_keys(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut keys) = (0, 0usize, Vec::new());
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at);
                let next = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace());
                if depth == 1 && next == Some(&b':') {
                    keys.extend(text.get(at + 1..end - 1));
                }
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    keys
}

/// The offset behind the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_spaces() {
        for (text, bare) in [
            ("{\"a\":1, // é\n}", "{\"a\":1       \n}"),
            ("[1,/* x\ny */ 2 , ]", "[1,    \n     2   ]"),
            ("{\"a\":\"//\\\",]\",}", "{\"a\":\"//\\\",]\" }"),
            ("[,]", "[,]"),
            ("{,}", "{,}"),
            ("[1,,]", "[1,,]"),
            ("[[1],[],]", "[[1],[] ]"),
            ("[1] /* x", "[1] /* x"),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(blank(text), bare, "{text}");
            assert_eq!(blank(text).len(), text.len());
        }
    }

    #[test]
    fn variables_of_vscode_are_rewritten() {
        for (text, new) in [
            ("a${env:X}b", "a${X}b"),
            ("${X}${Y:-z}", "${X}${Y:-z}"),
            ("${workspaceFolder}/a", "${workspaceFolder}/a"),
            ("${userHome}${pathSeparator}x${/}y", "${HOME}/x/y"),
            ("${open", "${open"),
            ("$x}", "$x}"),
        ] {
            assert_eq!(rewritten(text), new, "{text}");
        }
        for (inner, name) in [
            ("input:api-key", "${API_KEY}"),
            ("config:a.b", "${A_B}"),
            ("command:x", "${X}"),
            ("workspaceFolderBasename", "${WORKSPACEFOLDERBASENAME}"),
        ] {
            let refused = replacement(inner).unwrap_err();
            assert!(refused.remedy().contains(name), "{refused}");
        }
    }
}
