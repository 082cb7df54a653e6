//! The parts of a token: header and claims, read before the signature is verified.

use broker_model::json;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use crate::error::{AuthError, TokenFault};

/// Maximum length of the name of a key.
const MAX_KID_BYTES: usize = 256;

/// The header of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The name of its algorithm.
    pub(crate) alg: String,
    /// Its type, in lower case.
    pub(crate) typ: Option<String>,
    /// The name of its key.
    pub(crate) kid: Option<String>,
}

/// A token whose signature is not verified.
#[derive(Debug)]
pub(crate) struct TokenParts {
    pub(crate) header: Header,
    pub(crate) claims: Map<String, Value>,
    /// The JSON of the claims.
    pub(crate) payload: Box<str>,
}

impl TokenParts {
    /// Reads a token of at most [`MAX_TOKEN_BYTES`](super::MAX_TOKEN_BYTES).
    ///
    /// # Errors
    ///
    /// `Unknown` if the text does not have the form of a token, `TokenInvalid` for one that cannot be read.
    pub(crate) fn read(text: &str) -> Result<Self, AuthError> {
        let parts: Vec<&str> = text.splitn(4, '.').collect();
        let [header, payload, signature] = parts[..] else {
            return Err(AuthError::Unknown);
        };
        let (_, header) = object(header).ok_or(AuthError::Unknown)?;
        let header = read_header(header).map_err(AuthError::TokenInvalid)?;
        let malformed = AuthError::TokenInvalid(TokenFault::Malformed);
        let (payload, claims) = object(payload).ok_or(malformed)?;
        if signature.is_empty() || BASE64URL_NOPAD.decode(signature.as_bytes()).is_err() {
            // An unsigned token has an empty signature: its algorithm is the reason.
            return match header.alg.eq_ignore_ascii_case("none") {
                true => Err(AuthError::TokenInvalid(TokenFault::Algorithm)),
                false => Err(malformed),
            };
        }
        Ok(Self {
            header,
            claims,
            payload,
        })
    }
}

/// Returns the error for a text that is longer than any token.
pub(crate) fn refusal_of_long(text: &str) -> AuthError {
    // The beginning of a JSON object in base64url, and two dots.
    match text.starts_with("eyJ") && text.matches('.').count() == 2 {
        true => AuthError::TokenInvalid(TokenFault::TooLong),
        false => AuthError::Unknown,
    }
}

/// Returns the JSON object of a part, as text and read. Two equal keys are refused, since readers differ about them.
pub(crate) fn object(part: &str) -> Option<(Box<str>, Map<String, Value>)> {
    let bytes = BASE64URL_NOPAD.decode(part.as_bytes()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let claims = claims_of(&text)?;
    Some((text.into_boxed_str(), claims))
}

/// Returns the members of a JSON object.
pub(crate) fn claims_of(text: &str) -> Option<Map<String, Value>> {
    match json::parse(text).ok()? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn read_header(mut members: Map<String, Value>) -> Result<Header, TokenFault> {
    // No extension is known here, so each critical one is unknown.
    if members.contains_key("crit") {
        return Err(TokenFault::Critical);
    }
    let mut text = |name: &str| match members.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(TokenFault::Malformed),
    };
    let (alg, typ, kid) = (text("alg")?, text("typ")?, text("kid")?);
    if kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID_BYTES) {
        return Err(TokenFault::Malformed);
    }
    Ok(Header {
        alg: alg.ok_or(TokenFault::Malformed)?,
        typ: typ.map(|typ| typ.to_ascii_lowercase()),
        kid,
    })
}
