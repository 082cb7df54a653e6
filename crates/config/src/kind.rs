//! The keys that say how the server of a source is reached, and the rules between them: `command`, `url`,
//! `backend` and `type`.

use super::findings::{Cursor, Findings};
use super::source::Form;
use super::spanned::Data;
use super::{fields, http_endpoint};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;

/// The key that names the server.
pub(super) enum Kind<'a> {
    /// `command`.
    Process(Cursor<'a>),
    /// `url`.
    Http(Cursor<'a>),
}

/// The key that names the server; `None` if the keys contradict each other.
pub(super) fn read<'a>(
    findings: &mut Findings<'_>,
    cursor: &'a Cursor<'a>,
    form: Form,
) -> Option<Kind<'a>> {
    let command = cursor.get("command");
    let url = cursor.get("url");
    let wrong = |findings: &mut Findings<'_>, at: &Cursor<'_>, message: &str| {
        findings.add(at, Diagnostic::error(Code::ConfigSourceKind, message));
        None::<Kind<'a>>
    };
    let mut said = backend(findings, cursor, "backend", form);
    let typed = match form {
        Form::Entry => backend(findings, cursor, "type", form),
        Form::Tree => None,
    };
    if let (Some((one, _)), Some((other, at))) = (&said, &typed)
        && one != other
    {
        return wrong(findings, at, "`backend` and `type` contradict each other");
    }
    said = said.or(typed);
    match (command, url, said) {
        (Some(_), Some(url), _) => wrong(
            findings,
            &url,
            "the source has both `command` and `url`; give exactly one",
        ),
        (None, None, Some(("http", at))) => wrong(findings, &at, "an `http` source needs a `url`"),
        (None, None, _) => wrong(
            findings,
            cursor,
            "the source has neither `command` nor `url`; give exactly one",
        ),
        (Some(command), None, Some(("http", _))) => wrong(
            findings,
            &command,
            "an `http` source has a `url` and no `command`",
        ),
        (None, Some(url), Some(("stdio", _))) => wrong(
            findings,
            &url,
            "a `stdio` source has a `command` and no `url`",
        ),
        (None, Some(url), _) => {
            let args = cursor.get("args").filter(|args| !is_unused(args, form));
            if let Some(args) = &args {
                wrong(findings, args, "`args` needs `command`");
            }
            args.is_none().then_some(Kind::Http(url))
        }
        (Some(command), None, _) => {
            for key in &http_endpoint::KEYS[1..] {
                let counts = |at: &Cursor<'_>| match *key {
                    "auth" => form == Form::Tree || http_endpoint::is_own_auth(at),
                    "headers" => !is_unused(at, form),
                    _ => true,
                };
                if let Some(at) = cursor.get(key).filter(counts) {
                    wrong(findings, &at, &format!("`{key}` needs `url`"));
                }
            }
            Some(Kind::Process(command))
        }
    }
}

/// Whether a value for the other kind of server is ignored: editors of other clients write empty lists and
/// objects.
pub(super) fn is_unused(value: &Cursor<'_>, form: Form) -> bool {
    let is_empty = match &value.value.data {
        Data::Object(members) => members.is_empty(),
        Data::Array(items) => items.is_empty(),
        _ => false,
    };
    form == Form::Entry && is_empty
}

/// The backend that `backend` or `type` names, in the terms of this config, and its place.
fn backend<'a>(
    findings: &mut Findings<'_>,
    cursor: &'a Cursor<'a>,
    key: &str,
    form: Form,
) -> Option<(&'static str, Cursor<'a>)> {
    let at = cursor.get(key)?;
    let Data::String(text) = &at.value.data else {
        return None;
    };
    let known = match text.as_str() {
        "stdio" => Some("stdio"),
        "http" => Some("http"),
        "sse" | "streamable-http" | "streamableHttp" | "streamable_http" if form == Form::Entry => {
            Some("http")
        }
        _ => None,
    };
    if known.is_none() {
        fields::out_of_range(
            findings,
            &at,
            format!("`{key}` is neither `stdio` nor `http`"),
        );
    }
    known.map(|known| (known, at))
}
