//! API keys: the digest of each key, its name, its groups and its end. Also the file that `keys_file` names.

use std::collections::HashMap;
use std::fmt;

use super::{check_count, groups, raw_keys, report_name};
use crate::fields;
use crate::findings::{Cursor, Findings};
use crate::keys::{self, Level};
use crate::reader;
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::model_vendor::ModelVendor;
use broker_model::utc::UtcTime;

/// Maximum number of keys in the config and its file together.
pub const MAX_KEYS: usize = 4096;
/// Maximum size of a file of keys, in bytes.
pub const MAX_KEYS_FILE_BYTES: usize = 1 << 20;
const MAX_NAME_CHARS: usize = 64;

/// A key of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// The name of the key. It is the subject of its caller.
    pub name: String,
    /// The digest of the key.
    pub sha256: KeyDigest,
    /// The groups of its caller.
    pub groups: Vec<String>,
    /// The time of its expiry.
    pub not_after: Option<UtcTime>,
    /// The vendor of its caller's model. The vendor's limits apply to the tool lists of the caller.
    pub client: Option<ModelVendor>,
}

/// The SHA-256 of a key. Keys are random, so that the digest does not help to find one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest with these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads 64 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

const fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Names of callers without a key or a token. A key or the subject of a token may not have these names.
pub const RESERVED_SUBJECTS: [&str; 3] = ["anonymous", "local", "secret"];

/// Whether a text is 1 to 64 letters, digits, `.`, `_` and `-`, as names of keys and groups are.
pub fn is_key_name(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Reads the content of a file of keys, `{"keys": […]}`. An error contains every problem, in file order.
pub fn parse_file(file: &str, bytes: &[u8]) -> Result<Vec<ApiKey>, Vec<Diagnostic>> {
    let alone = |refusal: reader::Refusal| vec![refusal.in_file(file)];
    let text = reader::text_of(bytes).map_err(alone)?;
    if text.trim().is_empty() {
        let message = "the file of keys is empty; expected an object with `keys`";
        return Err(vec![
            Diagnostic::error(Code::ConfigShape, message).in_file(file),
        ]);
    }
    let mut findings = Findings::new(file, text);
    let spanned = reader::read(text, text, &mut findings).map_err(alone)?;
    let keys = read_keys(&mut findings, &Cursor::root(&spanned));
    match findings.refused() {
        true => Err(findings.finish()),
        false => Ok(keys),
    }
}

fn read_keys(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<ApiKey> {
    if raw_keys::report(findings, cursor) {
        return Vec::new();
    }
    let mut out = None;
    for member in fields::object(findings, cursor, "an object with `keys`").unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "keys" => out = Some(read(findings, &value)),
            unknown => keys::unknown(findings, &value, unknown, Level::KeysFile),
        }
    }
    if out.is_none() && !findings.refused() {
        let message = "the file of keys has no `keys`";
        findings.add(cursor, Diagnostic::error(Code::ConfigShape, message));
    }
    out.unwrap_or_default()
}

/// Reads a list of keys whose names and digests are unique.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<ApiKey> {
    check_count(findings, cursor, MAX_KEYS, "keys");
    let (mut names, mut digests) = (HashMap::new(), HashMap::new());
    let mut out = Vec::new();
    let items = fields::list(findings, cursor, "a list of keys").unwrap_or_default();
    for (index, item) in items.iter().enumerate().take(MAX_KEYS) {
        let item = cursor.item(index, item);
        let Some(key) = key(findings, &item) else {
            continue;
        };
        if let Some(first) = names.insert(key.name.clone(), item.value.at) {
            let message = format!("two keys have the name `{}`", key.name);
            let diagnostic = Diagnostic::error(Code::ConfigRange, message);
            findings.add_also(&item, diagnostic.help("give each key its own name"), first);
        }
        if let Some(first) = digests.insert(key.sha256, item.value.at) {
            let message = format!("the key `{}` has the digest of another key", key.name);
            let diagnostic = Diagnostic::error(Code::ConfigRange, message);
            let help = "make a key for each caller with `mcp-broker key new NAME`";
            findings.add_also(&item, diagnostic.help(help), first);
        }
        out.push(key);
    }
    out
}

fn key(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<ApiKey> {
    let members = fields::object(findings, cursor, "an object with `name` and `sha256`")?;
    let (mut name, mut sha256) = (None, None);
    let (mut of_groups, mut not_after, mut client) = (Vec::new(), None, None);
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "name" => name = read_name(findings, &value),
            "sha256" => sha256 = read_digest(findings, &value),
            "groups" => of_groups = groups(findings, &value),
            "not_after" => not_after = read_time(findings, &value),
            "client" => client = read_client(findings, &value),
            unknown => keys::unknown(findings, &value, unknown, Level::ApiKey),
        }
    }
    for needed in ["name", "sha256"] {
        if cursor.get(needed).is_none() {
            let message = format!("a key needs `{needed}`");
            let help = "`mcp-broker key new NAME` prints the whole object";
            findings.add(
                cursor,
                Diagnostic::error(Code::ConfigShape, message).help(help),
            );
        }
    }
    Some(ApiKey {
        name: name?,
        sha256: sha256?,
        groups: of_groups,
        not_after,
        client,
    })
}

fn read_name(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<String> {
    let text = fields::string(findings, cursor)?;
    if !is_key_name(text) {
        report_name(findings, cursor, "the name of a key", text);
        return None;
    }
    if RESERVED_SUBJECTS.contains(&text) {
        let message = format!("`{text}` is the name of callers without a key");
        let diagnostic = Diagnostic::error(Code::ConfigRange, message);
        findings.add(cursor, diagnostic.help("give the key another name"));
        return None;
    }
    Some(text.to_owned())
}

/// The digest is not shown: it may be something else that was pasted here.
fn read_digest(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<KeyDigest> {
    let text = fields::string(findings, cursor)?;
    if let Some(digest) = KeyDigest::parse(text) {
        return Some(digest);
    }
    let message = "expected the SHA-256 of a key: 64 hexadecimal digits in lower case";
    let diagnostic = Diagnostic::error(Code::ConfigRange, message);
    let help = match KeyDigest::parse(&text.to_ascii_lowercase()) {
        Some(_) => "write the letters in lower case",
        None => "`mcp-broker key new NAME` prints it",
    };
    findings.add(cursor, diagnostic.help(help));
    None
}

fn read_client(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<ModelVendor> {
    let vendor = ModelVendor::from_name(fields::string(findings, cursor)?);
    if vendor.is_none() {
        let message = "expected `openai`, `gemini` or `anthropic`".to_owned();
        fields::out_of_range(findings, cursor, message);
    }
    vendor
}

fn read_time(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<UtcTime> {
    let text = fields::string(findings, cursor)?;
    let time = UtcTime::parse(text);
    if time.is_none() {
        let message = "expected a time in UTC with whole seconds, such as `2027-01-31T12:00:00Z`";
        fields::out_of_range(findings, cursor, message.to_owned());
    }
    time
}
