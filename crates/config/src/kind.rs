//! The keys that say how the server of a source is reached, and the rules between them: `command`, `url`
//! and `backend`.

use super::findings::{Cursor, Findings};
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
pub(super) fn read<'a>(findings: &mut Findings<'_>, cursor: &'a Cursor<'a>) -> Option<Kind<'a>> {
    let command = cursor.get("command");
    let url = cursor.get("url");
    let wrong = |findings: &mut Findings<'_>, at: &Cursor<'_>, message: &str| {
        findings.add(at, Diagnostic::error(Code::ConfigSourceKind, message));
        None::<Kind<'a>>
    };
    let said = backend(findings, cursor);
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
            let args = cursor.get("args");
            if let Some(args) = &args {
                wrong(findings, args, "`args` needs `command`");
            }
            args.is_none().then_some(Kind::Http(url))
        }
        (Some(command), None, _) => {
            for key in &http_endpoint::KEYS[1..] {
                if let Some(at) = cursor.get(key) {
                    wrong(findings, &at, &format!("`{key}` needs `url`"));
                }
            }
            Some(Kind::Process(command))
        }
    }
}

/// Returns the transport that `backend` names, and its place.
fn backend<'a>(
    findings: &mut Findings<'_>,
    cursor: &'a Cursor<'a>,
) -> Option<(&'static str, Cursor<'a>)> {
    let at = cursor.get("backend")?;
    let Data::String(text) = &at.value.data else {
        return None;
    };
    let known = ["stdio", "http"].into_iter().find(|name| name == text);
    if known.is_none() {
        let message = "`backend` is neither `stdio` nor `http`".to_owned();
        fields::out_of_range(findings, &at, message);
    }
    known.map(|known| (known, at))
}
