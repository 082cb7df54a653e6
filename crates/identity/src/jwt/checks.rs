//! Everything that is checked before a signature: issuer, algorithm, type, audience, times and subject. The
//! configuration decides the possible algorithms, never the token alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_config::identities::{Issuer, RESERVED_SUBJECTS, SignatureAlgorithm};
use serde_json::{Map, Value};

use super::parts::Header;
use crate::error::TokenFault;
use crate::jwks::source::KeySource;
use crate::principal::PrincipalSubject;

/// Maximum length of a subject, in bytes.
const MAX_SUBJECT_BYTES: usize = 256;
/// The type of access tokens (RFC 9068), without and with the prefix of media types.
const ACCESS_TOKEN_TYPES: [&str; 2] = ["at+jwt", "application/at+jwt"];
/// The type of any token (RFC 7519). A token without a type has it.
const ANY_TOKEN_TYPE: &str = "jwt";
/// The claim whose text is a list of words.
const SCOPE: &str = "scope";

/// An issuer of the settings and its keys.
#[derive(Debug)]
pub(crate) struct AcceptedIssuer {
    pub(crate) config: Issuer,
    pub(crate) keys: Arc<KeySource>,
}

/// The content of a token that is accepted if its signature is right.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) issuer: Arc<AcceptedIssuer>,
    pub(crate) algorithm: SignatureAlgorithm,
    pub(crate) subject: PrincipalSubject,
    pub(crate) groups: Vec<String>,
    pub(crate) claims: BTreeMap<String, Value>,
    /// `exp` and the leeway after it.
    pub(crate) expires: SystemTime,
}

/// Checks a token at a time.
pub(crate) fn check(
    header: &Header,
    claims: &Map<String, Value>,
    issuers: &[Arc<AcceptedIssuer>],
    now: SystemTime,
) -> Result<Checked, TokenFault> {
    let iss = claims.get("iss").and_then(Value::as_str);
    let issuer = issuers
        .iter()
        .find(|one| Some(one.config.issuer.as_str()) == iss);
    let issuer = issuer.ok_or(TokenFault::Issuer)?;
    let config = &issuer.config;
    let algorithm = SignatureAlgorithm::parse(&header.alg)
        .filter(|algorithm| config.algorithms.contains(algorithm))
        .ok_or(TokenFault::Algorithm)?;
    check_type(header, config)?;
    check_audience(claims, config)?;
    let expires = check_times(claims, config.leeway, now)?;
    let subject = claims.get(&config.subject).and_then(Value::as_str);
    let subject = subject
        .filter(|subject| (1..=MAX_SUBJECT_BYTES).contains(&subject.len()))
        .filter(|subject| !RESERVED_SUBJECTS.contains(subject))
        .ok_or(TokenFault::Subject)?;
    Ok(Checked {
        algorithm,
        subject: PrincipalSubject::Token {
            issuer: config.issuer.clone(),
            subject: subject.to_owned(),
        },
        groups: groups(claims, config),
        claims: selected(claims, config),
        expires,
        issuer: issuer.clone(),
    })
}

/// Checks the type. An ID token has the type `JWT` as well, and the client as its audience: its audience refuses it, or
/// the strict type.
fn check_type(header: &Header, config: &Issuer) -> Result<(), TokenFault> {
    let typ = header.typ.as_deref().ok_or(TokenFault::Type)?;
    let is_access_token = ACCESS_TOKEN_TYPES.contains(&typ);
    let is_any = typ == ANY_TOKEN_TYPE && !config.requires_access_token_type;
    match is_access_token || is_any {
        true => Ok(()),
        false => Err(TokenFault::Type),
    }
}

fn check_audience(claims: &Map<String, Value>, config: &Issuer) -> Result<(), TokenFault> {
    let is_accepted = |value: &Value| {
        let text = value.as_str();
        text.is_some_and(|text| config.audience.iter().any(|one| one == text))
    };
    let is_accepted = match claims.get("aud") {
        Some(Value::Array(values)) => values.iter().any(is_accepted),
        Some(value) => is_accepted(value),
        None => false,
    };
    match is_accepted {
        true => Ok(()),
        false => Err(TokenFault::Audience),
    }
}

/// Returns the end of a token with its leeway, if it is valid now.
fn check_times(
    claims: &Map<String, Value>,
    leeway: Duration,
    now: SystemTime,
) -> Result<SystemTime, TokenFault> {
    let exp = time(claims.get("exp").ok_or(TokenFault::NoExpiry)?).ok_or(TokenFault::NoExpiry)?;
    let expires = exp.checked_add(leeway).ok_or(TokenFault::NoExpiry)?;
    if now >= expires {
        return Err(TokenFault::Expired);
    }
    for name in ["nbf", "iat"] {
        let Some(value) = claims.get(name) else {
            continue;
        };
        let begin = time(value).ok_or(TokenFault::Malformed)?;
        if now + leeway < begin {
            return Err(TokenFault::NotYetValid);
        }
    }
    Ok(expires)
}

/// Returns a `NumericDate` of RFC 7519: seconds, possibly with a fraction.
fn time(value: &Value) -> Option<SystemTime> {
    let since = match value.as_u64() {
        Some(seconds) => Duration::from_secs(seconds),
        None => Duration::try_from_secs_f64(value.as_f64()?).ok()?,
    };
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// Returns the groups that the values of the claim give, sorted, each once.
fn groups(claims: &Map<String, Value>, config: &Issuer) -> Vec<String> {
    let Some(name) = &config.groups_claim else {
        return Vec::new();
    };
    let values: Vec<&str> = match claims.get(name) {
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) if name == SCOPE => text.split(' ').collect(),
        Some(Value::String(text)) => vec![text],
        _ => Vec::new(),
    };
    let mapped = values.iter().filter_map(|value| config.map.get(*value));
    let mut groups: Vec<_> = mapped.flatten().cloned().collect();
    groups.sort();
    groups.dedup();
    groups
}

fn selected(claims: &Map<String, Value>, config: &Issuer) -> BTreeMap<String, Value> {
    let names = config.claims.iter();
    names
        .filter_map(|name| Some((name.clone(), claims.get(name)?.clone())))
        .collect()
}
