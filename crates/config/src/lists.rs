//! The lists of a source and of the top level whose items have a grammar.

use std::collections::BTreeSet;

use super::Template;
use super::fields;
use super::findings::{Cursor, Findings};
use broker_model::address::{AddressRange, AddressRangeError};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::filter::{FilterError, ToolFilter};
use broker_model::lock::VOLATILE_INSTRUCTIONS;
use broker_model::text::shown_line;
use broker_model::uri_filter::UriFilter;

pub(super) fn tool_filter(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> ToolFilter {
    let patterns = fields::strings(findings, cursor, |findings, item, text| {
        let text = fields::unescaped(findings, item, text, "a pattern of a filter")?;
        check_glob(findings, item, &text).then_some(text)
    });
    // Each pattern compiled alone, so this is a failure of the whole set. It is an error as well: without
    // its filter the source would expose every tool.
    ToolFilter::compile(&patterns).unwrap_or_else(|errors| {
        report(findings, cursor, errors);
        ToolFilter::default()
    })
}

pub(super) fn uri_filter(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> UriFilter {
    let written = tool_filter(findings, cursor);
    UriFilter::new(written).unwrap_or_else(|errors| {
        report(findings, cursor, errors);
        UriFilter::default()
    })
}

pub(super) fn inherit_env(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<String> {
    fields::strings(findings, cursor, |findings, item, text| {
        if text.starts_with('!') {
            let message =
                "`inherit_env` takes no `!` patterns: only variables that it names are inherited";
            findings.add(item, Diagnostic::error(Code::GlobSyntax, message));
            return None;
        }
        check_glob(findings, item, text).then(|| text.to_owned())
    })
}

fn check_glob(findings: &mut Findings<'_>, item: &Cursor<'_>, text: &str) -> bool {
    let Err(errors) = ToolFilter::compile(&[text]) else {
        return true;
    };
    report(findings, item, errors);
    false
}

fn report(findings: &mut Findings<'_>, at: &Cursor<'_>, errors: Vec<FilterError>) {
    for error in errors {
        let message = format!(
            "`{}` is not a glob: {}",
            shown_line(&error.pattern, 80),
            error.reason
        );
        findings.add(at, Diagnostic::error(Code::GlobSyntax, message));
    }
}

/// `/instructions`, and pointers below a tool; a pointer to the whole tool is refused, since the tool would leave the lock.
pub(super) fn volatile(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> BTreeSet<String> {
    fields::strings(findings, cursor, |findings, item, text| {
        if text == VOLATILE_INSTRUCTIONS {
            return Some(text.to_owned());
        }
        let mut tokens = text.strip_prefix("/tools/").unwrap_or("").split('/');
        let whole = |token: Option<&str>| token.is_none_or(str::is_empty);
        let (tool, member) = (tokens.next(), tokens.next());
        if whole(tool) || whole(member) || member == Some("*") {
            fields::out_of_range(
                findings,
                item,
                "a `volatile` pointer is `/instructions`, or begins with `/tools/NAME/MEMBER`; NAME may be `*`".to_owned(),
            );
            return None;
        }
        Some(text.to_owned())
    })
    .into_iter()
    .collect()
}

pub(super) fn allowed_hosts(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<Template> {
    fields::strings(findings, cursor, |findings, item, text| {
        let template = fields::template_of(findings, item, text)?;
        if is_literal(&template) && !is_host(text) {
            fields::out_of_range(
                findings,
                item,
                "expected a host name, without scheme, path or `*`".to_owned(),
            );
        }
        Some(template)
    })
}

pub(super) fn allowed_origins(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<Template> {
    fields::strings(findings, cursor, |findings, item, text| {
        let template = fields::template_of(findings, item, text)?;
        let host = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        if is_literal(&template) && !host.is_some_and(is_host) {
            fields::out_of_range(
                findings,
                item,
                "expected an origin, `https://host` or `https://host:port`".to_owned(),
            );
        }
        Some(template)
    })
}

/// Addresses of proxies. A range with every address is refused: any caller could then claim any address.
pub(super) fn trusted_proxies(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
) -> Vec<AddressRange> {
    fields::strings(findings, cursor, |findings, item, text| {
        let error = match AddressRange::parse(text) {
            Ok(range) => return Some(range),
            Err(error) => error,
        };
        let diagnostic = Diagnostic::error(Code::ConfigRange, error.to_string());
        let diagnostic = match error {
            AddressRangeError::HostBits(range) => diagnostic.help(format!("write `{range}`")),
            AddressRangeError::All => diagnostic
                .help("list the addresses of your proxies: others could claim any address"),
            AddressRangeError::Syntax => diagnostic,
        };
        findings.add(item, diagnostic);
        None
    })
}

fn is_literal(template: &Template) -> bool {
    template.variables().next().is_none()
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']')
        })
}
