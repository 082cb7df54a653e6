//! Texts of a client's file as texts of a config: each variable of the client becomes a `${NAME}`.

use crate::Template;
use crate::template::is_variable_name;

/// A part of a text that needs a decision of the translation.
#[derive(Clone, Copy, Debug)]
pub enum Part<'t> {
    /// A variable of the environment.
    Variable(&'t str),
    /// A variable with a default.
    Default(&'t str, &'t str),
    /// Something that the client asks its user or computes: `input:id`.
    OfClient(&'t str),
}

/// Variables of editors that have an equal in a config.
pub(crate) const EQUAL: [(&str, &str); 4] = [
    ("workspaceFolder", "${workspaceFolder}"),
    ("userHome", "${HOME}"),
    ("pathSeparator", "/"),
    ("/", "/"),
];

/// The kinds of values that editors have, `${KIND:…}`. Of any other text behind a colon a part may be a secret.
pub(crate) const KINDS: [&str; 7] = [
    "command",
    "config",
    "extensionInstallFolder",
    "file",
    "input",
    "relativeFile",
    "workspaceFolder",
];

/// The text of a config for a text of the file; `replace` gives the text for each part. `None` if a config
/// cannot have the text.
pub fn translate<'t>(
    text: &'t str,
    replace: &mut impl FnMut(Part<'t>) -> String,
) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        out.push_str(before);
        // A dollar sign before a variable has different meanings.
        if out.ends_with('$') {
            return None;
        }
        let (inner, after) = behind.split_once('}')?;
        out.push_str(&variable(inner, replace)?);
        rest = after;
    }
    out.push_str(rest);
    Template::parse(&out).is_ok().then_some(out)
}

/// The text for the inner part of `${…}`.
fn variable<'t>(inner: &'t str, replace: &mut impl FnMut(Part<'t>) -> String) -> Option<String> {
    if let Some((_, equal)) = EQUAL.iter().find(|(name, _)| *name == inner) {
        return Some((*equal).to_owned());
    }
    let part = match inner.split_once(':') {
        Some((name, default)) if default.starts_with('-') && is_variable_name(name) => {
            // A nested variable ends at the first brace.
            let default = Some(&default[1..]).filter(|text| !text.contains("${"));
            Part::Default(name, default?)
        }
        Some(("env", name)) => Part::Variable(Some(name).filter(|name| is_variable_name(name))?),
        Some((kind, rest)) if !rest.is_empty() && KINDS.contains(&kind) => Part::OfClient(inner),
        None if inner.starts_with("workspaceFolder") || inner == "cwd" => Part::OfClient(inner),
        None if is_variable_name(inner) => Part::Variable(inner),
        _ => return None,
    };
    Some(replace(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str) -> Option<String> {
        translate(text, &mut |part| match part {
            Part::Variable(name) => format!("${{{name}}}"),
            Part::Default(name, default) => format!("${{{name}:-{default}}}"),
            Part::OfClient(inner) => format!("<{inner}>"),
        })
    }

    #[test]
    fn text_of_a_client_becomes_that_of_a_config() {
        for (text, config) in [
            ("a${env:X}b${Y}", "a${X}b${Y}"),
            ("${X:-d e}", "${X:-d e}"),
            ("${X:-}", "${X:-}"),
            ("${userHome}${/}x${pathSeparator}y", "${HOME}/x/y"),
            ("${workspaceFolder}/a", "${workspaceFolder}/a"),
            (
                "${input:api-key}${config:a.b}",
                "<input:api-key><config:a.b>",
            ),
            ("${workspaceFolder:x}${cwd}", "<workspaceFolder:x><cwd>"),
            ("$X $ 5$", "$X $ 5$"),
            ("", ""),
        ] {
            assert_eq!(translated(text).as_deref(), Some(config), "{text}");
        }
    }

    #[test]
    fn text_that_a_config_cannot_have_is_not_translated() {
        for text in [
            "${",
            "${}",
            "${a b}",
            "$${X}",
            "${X%%y}",
            "${A:-${B}}",
            "${env:a b}",
            "${:x}",
            "${X:d}",
            "${X:=d}",
            "${1}",
        ] {
            assert_eq!(translated(text), None, "{text}");
        }
    }
}
