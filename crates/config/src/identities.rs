//! The section `identities`: keys of callers and issuers of tokens. It is a setting of the running broker: the
//! lock does not cover it.

use std::collections::BTreeMap;

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::spanned::Data;
use super::template::Template;
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::text::shown_line;

mod api_keys;
mod issuers;
mod raw_keys;

pub use api_keys::{
    ApiKey, KeyDigest, MAX_KEYS, MAX_KEYS_FILE_BYTES, RESERVED_SUBJECTS, is_key_name, parse_file,
};
pub use issuers::{Issuer, KeySetPlace, SignatureAlgorithm};
pub use raw_keys::KEY_PREFIX;

/// Who calls: keys and issuers of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identities {
    /// The keys of the config.
    pub keys: Vec<ApiKey>,
    /// A file with further keys; ignored if it is empty after its variables are expanded.
    pub keys_file: Option<Template>,
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<Issuer>,
    /// Whether calls that were sent are cancelled after the revocation of their caller's rights.
    pub on_revoke: OnRevoke,
}

/// The reaction to the revocation of a caller's rights while its calls run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRevoke {
    /// The calls run to their end, and their results are discarded.
    #[default]
    Discard,
    /// The calls are cancelled.
    Cancel,
}

/// A group that a key or an issuer gives, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUse<'a> {
    /// The name of the group.
    pub group: &'a str,
    /// Its JSON pointer in the file of [`Identities`], or in the file of keys.
    pub pointer: String,
}

impl Identities {
    /// Whether no caller can identify itself by them. The content of `keys_file` is not known here: one that is
    /// named counts as a key.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.keys_file.is_none() && self.issuers.is_empty()
    }

    /// Every group that the config gives to a caller, in file order of each section.
    pub fn groups(&self) -> impl Iterator<Item = GroupUse<'_>> {
        let of_keys = groups_of_keys(&self.keys, "/identities");
        let of_issuers = self.issuers.iter().enumerate().flat_map(|(index, issuer)| {
            let mapped = issuer.map.iter();
            mapped.flat_map(move |(value, groups)| {
                let at = format!("/identities/issuers/{index}/map");
                numbered(groups, broker_model::json::child_pointer(&at, value))
            })
        });
        of_keys.chain(of_issuers)
    }
}

/// Returns every group of these keys; `parent` is the pointer of the object that has them. It is empty for a file of
/// keys.
pub fn groups_of_keys<'a>(
    keys: &'a [ApiKey],
    parent: &'a str,
) -> impl Iterator<Item = GroupUse<'a>> {
    keys.iter().enumerate().flat_map(move |(index, key)| {
        numbered(&key.groups, format!("{parent}/keys/{index}/groups"))
    })
}

fn numbered(groups: &[String], list: String) -> impl Iterator<Item = GroupUse<'_>> {
    groups
        .iter()
        .enumerate()
        .map(move |(index, group)| GroupUse {
            group,
            pointer: format!("{list}/{index}"),
        })
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Identities {
    let mut out = Identities::default();
    // No other message may show a part of a key, so the rest of the section is not read after such a message.
    if raw_keys::report(findings, cursor) {
        return out;
    }
    for member in fields::object(findings, cursor, "an object").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "keys" => out.keys = api_keys::read(findings, &value),
            "keys_file" => out.keys_file = keys_file(findings, &value),
            "issuers" => out.issuers = issuers::read(findings, &value),
            "on_revoke" => out.on_revoke = on_revoke(findings, &value).unwrap_or_default(),
            unknown => keys::unknown(findings, &value, unknown, Level::Identities),
        }
    }
    out
}

fn keys_file(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Template> {
    let file = fields::template(findings, cursor)?;
    (!file.raw().is_empty()).then_some(file)
}

fn on_revoke(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<OnRevoke> {
    match fields::string(findings, cursor)? {
        "discard" => Some(OnRevoke::Discard),
        "cancel" => Some(OnRevoke::Cancel),
        other => {
            let shown = shown_line(other, 40);
            let message = format!("expected `discard` or `cancel`, got `{shown}`");
            fields::out_of_range(findings, cursor, message);
            None
        }
    }
}

/// Names of groups, each once. Whether they exist is checked with the access rules.
fn groups(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    fields::strings(findings, cursor, |findings, item, text| {
        if !is_key_name(text) {
            report_name(findings, item, "the name of a group", text);
            return None;
        }
        if let Some(first) = seen.insert(text.to_owned(), item.value.at) {
            let message = format!("the group `{text}` is listed twice");
            let diagnostic = Diagnostic::error(Code::ConfigRange, message);
            findings.add_also(item, diagnostic, first);
        }
        Some(text.to_owned())
    })
}

fn report_name(findings: &mut Findings<'_>, cursor: &Cursor<'_>, kind: &str, text: &str) {
    let shown = shown_line(text, 80);
    let message =
        format!("`{shown}` is not {kind}: expected 1 to 64 letters, digits, `.`, `_` and `-`");
    fields::out_of_range(findings, cursor, message);
}

/// Reports a list with more items than `max`.
fn check_count(findings: &mut Findings<'_>, cursor: &Cursor<'_>, max: usize, items: &str) {
    if let Data::Array(list) = &cursor.value.data
        && list.len() > max
    {
        let message = format!(
            "the list has {} {items}; at most {max} are read",
            list.len()
        );
        fields::out_of_range(findings, cursor, message);
    }
}
