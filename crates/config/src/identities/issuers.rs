//! Issuers of tokens (JWT): the accepted tokens, and the meaning of their claims.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::{check_count, groups};
use crate::fields;
use crate::findings::{Cursor, Findings};
use crate::keys::{self, Level};
use crate::public_url::{protected, without_query};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::suggest;
use broker_model::text::shown_line;
use broker_model::url::HttpUrl;

const MAX_ISSUERS: usize = 16;
/// Maximum number of audiences, and of claims for rules.
const MAX_NAMES: usize = 32;
const MAX_CLAIM_BYTES: usize = 256;
const DEFAULT_SUBJECT: &str = "sub";

/// An issuer whose tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The issuer. It is compared byte by byte with the claim `iss`.
    pub issuer: String,
    /// The same as a URL.
    pub url: HttpUrl,
    /// Accepted audiences; the claim `aud` has at least one of them.
    pub audience: Vec<String>,
    /// The place of its keys.
    pub jwks: KeySetPlace,
    /// Accepted algorithms.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// The claim with the subject.
    pub subject: String,
    /// The claim with values that give groups.
    pub groups_claim: Option<String>,
    /// The groups of each value of that claim; other values do not give a group.
    pub map: BTreeMap<String, Vec<String>>,
    /// Claims that access rules may use.
    pub claims: Vec<String>,
    /// The tolerated difference between the clocks.
    pub leeway: Duration,
    /// Whether the header `typ` must be `at+jwt` (RFC 9068), so that an ID token is never accepted.
    pub requires_access_token_type: bool,
}

/// The place of an issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySetPlace {
    /// The document of OpenID Connect Discovery, or of RFC 8414, names it.
    Discover,
    /// A URL.
    Url(HttpUrl),
}

/// A signature algorithm with a public key (RFC 7518, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are those of the standard")]
pub enum SignatureAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl SignatureAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    /// Its name in headers of tokens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }

    /// The algorithm of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<Issuer> {
    check_count(findings, cursor, MAX_ISSUERS, "issuers");
    let mut seen = HashMap::new();
    let mut out = Vec::new();
    let items = fields::list(findings, cursor, "a list of issuers").unwrap_or_default();
    for (index, item) in items.iter().enumerate().take(MAX_ISSUERS) {
        let item = cursor.item(index, item);
        let Some(issuer) = issuer(findings, &item) else {
            continue;
        };
        if let Some(first) = seen.insert(issuer.issuer.clone(), item.value.at) {
            let message = format!("the issuer `{}` is listed twice", issuer.url);
            let diagnostic = Diagnostic::error(Code::ConfigRange, message);
            findings.add_also(&item, diagnostic.help("join the two"), first);
        }
        out.push(issuer);
    }
    out
}

fn issuer(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<Issuer> {
    let members = fields::object(findings, cursor, "an object with `issuer` and `audience`")?;
    let (mut id, mut audience, mut algorithms) = (None, Vec::new(), Vec::new());
    let (mut jwks, mut subject) = (Some(KeySetPlace::Discover), DEFAULT_SUBJECT.to_owned());
    let (mut groups_claim, mut map, mut claims) = (None, BTreeMap::new(), Vec::new());
    let (mut leeway, mut requires_access_token_type) =
        (keys::key(Level::Issuer, "leeway_s").time(), false);
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "issuer" => id = read_issuer(findings, &value),
            "audience" => audience = names(findings, &value, "audience"),
            "jwks" => jwks = read_place(findings, &value),
            "algorithms" => algorithms = read_algorithms(findings, &value),
            "subject" => subject = claim(findings, &value).unwrap_or_default(),
            "groups_claim" => groups_claim = claim(findings, &value),
            "map" => map = read_map(findings, &value),
            "claims" => claims = names(findings, &value, "claim"),
            key @ "leeway_s" => {
                let seconds = keys::integer(findings, &value, Level::Issuer, key);
                leeway = seconds.map_or(leeway, |seconds| Duration::from_secs(seconds as u64));
            }
            "require_typ" => requires_access_token_type = read_type(findings, &value),
            unknown => keys::unknown(findings, &value, unknown, Level::Issuer),
        }
    }
    check_members(findings, cursor);
    let (issuer, url) = id?;
    Some(Issuer {
        issuer,
        url,
        audience,
        jwks: jwks?,
        algorithms,
        subject,
        groups_claim,
        map,
        claims,
        leeway,
        requires_access_token_type,
    })
}

/// Reports members that are missing, and a map without the claim that it maps.
fn check_members(findings: &mut Findings<'_>, cursor: &Cursor<'_>) {
    for (needed, help) in [
        (
            "issuer",
            "write the claim `iss` of its tokens, byte by byte",
        ),
        (
            "audience",
            "list the claim `aud` that its tokens for this broker have, usually `public_url`",
        ),
        (
            "algorithms",
            "list what the issuer signs with, such as `[\"RS256\"]`: a token may not choose",
        ),
    ] {
        if cursor.get(needed).is_none() {
            let message = format!("an issuer needs `{needed}`");
            findings.add(
                cursor,
                Diagnostic::error(Code::ConfigShape, message).help(help),
            );
        }
    }
    if let Some(map) = cursor.get("map")
        && cursor.get("groups_claim").is_none()
    {
        let message = "`map` has values of a claim, and there is no `groups_claim`";
        let diagnostic = Diagnostic::error(Code::ConfigShape, message);
        findings.add(&map, diagnostic.help("name the claim in `groups_claim`"));
    }
}

fn read_issuer(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<(String, HttpUrl)> {
    let text = fields::string(findings, cursor)?;
    let url = protected(findings, cursor, text)?;
    without_query(findings, cursor, text).then(|| (text.to_owned(), url))
}

fn read_place(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<KeySetPlace> {
    match fields::string(findings, cursor)? {
        "discover" => Some(KeySetPlace::Discover),
        url if url.contains("://") => protected(findings, cursor, url).map(KeySetPlace::Url),
        other => {
            let shown = shown_line(other, 40);
            let message = format!("expected `discover` or an `https` URL, got `{shown}`");
            fields::out_of_range(findings, cursor, message);
            None
        }
    }
}

fn read_algorithms(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Vec<SignatureAlgorithm> {
    not_empty(findings, cursor, "algorithm");
    let all = || SignatureAlgorithm::ALL.map(SignatureAlgorithm::as_str);
    let mut seen = HashMap::new();
    fields::strings(findings, cursor, |findings, item, text| {
        let Some(algorithm) = SignatureAlgorithm::parse(text) else {
            let shown = shown_line(text, 40);
            let message = format!("`{shown}` is not an algorithm for tokens");
            let diagnostic = Diagnostic::error(Code::ConfigRange, message);
            findings.add(item, diagnostic.help(algorithm_help(text, &all())));
            return None;
        };
        if let Some(first) = seen.insert(algorithm, item.value.at) {
            let message = format!("the algorithm `{text}` is listed twice");
            findings.add_also(item, Diagnostic::error(Code::ConfigRange, message), first);
        }
        Some(algorithm)
    })
}

fn algorithm_help(text: &str, all: &[&'static str]) -> String {
    if text.eq_ignore_ascii_case("none") {
        return "a token without a signature is never accepted".to_owned();
    }
    if text.to_ascii_uppercase().starts_with("HS") {
        return "a shared secret is never accepted: let the issuer sign with a private key"
            .to_owned();
    }
    match suggest::nearest(text, all.iter().copied(), 1).pop() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", all.join(", ")),
    }
}

fn read_map(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> BTreeMap<String, Vec<String>> {
    let mut out = BTreeMap::new();
    let expected = "an object with lists of groups";
    for member in fields::object(findings, cursor, expected).unwrap_or_default() {
        let value = cursor.member(member);
        out.insert(member.key.clone(), groups(findings, &value));
    }
    out
}

fn read_type(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> bool {
    match fields::string(findings, cursor) {
        Some("at+jwt") => true,
        Some(other) => {
            let shown = shown_line(other, 40);
            fields::out_of_range(
                findings,
                cursor,
                format!("expected `at+jwt`, got `{shown}`"),
            );
            false
        }
        None => false,
    }
}

/// Texts of a list that is not empty if it has audiences, each once.
fn names(findings: &mut Findings<'_>, cursor: &Cursor<'_>, kind: &str) -> Vec<String> {
    check_count(findings, cursor, MAX_NAMES, &format!("{kind}s"));
    if kind == "audience" {
        not_empty(findings, cursor, kind);
    }
    let mut seen = HashMap::new();
    let mut out = fields::strings(findings, cursor, |findings, item, _| {
        let name = claim(findings, item)?;
        if let Some(first) = seen.insert(name.clone(), item.value.at) {
            let message = format!("the {kind} `{}` is listed twice", shown_line(&name, 80));
            findings.add_also(item, Diagnostic::error(Code::ConfigRange, message), first);
        }
        Some(name)
    });
    out.truncate(MAX_NAMES);
    out
}

fn not_empty(findings: &mut Findings<'_>, cursor: &Cursor<'_>, kind: &str) {
    use crate::spanned::Data;
    if matches!(&cursor.value.data, Data::Array(items) if items.is_empty()) {
        let message = format!("expected at least one {kind}");
        fields::out_of_range(findings, cursor, message);
    }
}

/// The name of a claim, or a value that is compared with one.
fn claim(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<String> {
    let text = fields::text(findings, cursor, "the value")?;
    if text.is_empty() || text.len() > MAX_CLAIM_BYTES {
        let message = format!("expected 1 to {MAX_CLAIM_BYTES} bytes");
        fields::out_of_range(findings, cursor, message);
        return None;
    }
    Some(text)
}
