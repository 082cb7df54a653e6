//! The answer that grants a token: the JSON of RFC 6749, section 5.1.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Token;

/// Bounds of a lifetime: a shorter one would cause a fetch for nearly every request.
const MIN_LIFETIME: Duration = Duration::from_secs(1);
const MAX_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// A token and its lifetime.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) token: Token,
    /// The time after the request until it expires; `None` if it is valid until the server refuses it.
    pub(super) lifetime: Option<Duration>,
}

/// Whether an answer has to say its token type. A token endpoint has to, a command does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenType {
    Required,
    Optional,
}

#[derive(Deserialize)]
struct Answer<'a> {
    access_token: Option<String>,
    token_type: Option<String>,
    #[serde(borrow)]
    expires_in: Option<&'a RawValue>,
}

impl Grant {
    /// Makes a token without a lifetime.
    pub(super) const fn lasting(token: Token) -> Self {
        Self {
            token,
            lifetime: None,
        }
    }

    /// Reads an answer; an error says what is wrong with it and does not show its text.
    pub(super) fn read(json: &[u8], token_type: TokenType) -> Result<Self, &'static str> {
        // The error of the parser may contain a part of the answer.
        let answer: Answer<'_> =
            serde_json::from_slice(json).map_err(|_| "is not a JSON object with `access_token`")?;
        let text = answer.access_token.ok_or("has no `access_token`")?;
        match answer.token_type {
            Some(name) if name.eq_ignore_ascii_case("bearer") => {}
            None if token_type == TokenType::Optional => {}
            None => return Err("has no `token_type`"),
            Some(_) => return Err("has another `token_type` than `Bearer`"),
        }
        let lifetime = answer.expires_in.map(|json| lifetime(json.get()));
        let lifetime = lifetime.transpose()?.flatten();
        Ok(Self {
            token: Token::new(&text)?,
            lifetime,
        })
    }
}

/// Returns the lifetime in `expires_in`, in seconds. Some servers write it as a string. `null` means without a
/// lifetime.
fn lifetime(json: &str) -> Result<Option<Duration>, &'static str> {
    let invalid = "has an `expires_in` that is not a number of seconds";
    if json == "null" {
        return Ok(None);
    }
    let text: Option<String> = serde_json::from_str(json).ok();
    let seconds: f64 = text
        .as_deref()
        .unwrap_or(json)
        .parse()
        .map_err(|_| invalid)?;
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(invalid);
    }
    let seconds = seconds.min(MAX_LIFETIME.as_secs_f64());
    Ok(Some(Duration::from_secs_f64(seconds).max(MIN_LIFETIME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<(String, Option<u64>), &'static str> {
        let grant = Grant::read(json.as_bytes(), TokenType::Required)?;
        let seconds = grant.lifetime.map(|lifetime| lifetime.as_secs());
        Ok((grant.token.secret.expose().to_owned(), seconds))
    }

    #[test]
    fn grant_has_a_bearer_token_and_a_bounded_lifetime() {
        let lifetime = |expires_in: &str| {
            let json = format!(
                r#"{{"access_token":"t0ken","token_type":"bEARER","expires_in":{expires_in},"x":[]}}"#
            );
            read(&json).map(|(_, lifetime)| lifetime)
        };
        for (expires_in, seconds) in [
            ("3600", Some(3600)),
            ("\"3600\"", Some(3600)),
            ("3600.5", Some(3600)),
            ("0", Some(1)),
            ("1e300", Some(30 * 24 * 3600)),
            ("null", None),
        ] {
            assert_eq!(lifetime(expires_in), Ok(seconds), "{expires_in}");
        }
        for invalid in ["-1", "true", "\"soon\"", "\"NaN\"", "\"inf\"", "[]", "{}"] {
            assert!(lifetime(invalid).is_err(), "{invalid}");
        }
        let without = read(r#"{"access_token":"t0ken","token_type":"Bearer"}"#);
        assert_eq!(without, Ok(("t0ken".to_owned(), None)));
    }

    #[test]
    fn grant_that_cannot_be_used_is_refused_without_its_text() {
        for json in [
            "",
            "[]",
            "null",
            "t0ken",
            r#"{"token_type":"Bearer"}"#,
            r#"{"access_token":7,"token_type":"Bearer"}"#,
            r#"{"access_token":"t0ken"}"#,
            r#"{"access_token":"t0ken","token_type":"DPoP"}"#,
            r#"{"access_token":"t0 ken","token_type":"Bearer"}"#,
            r#"{"access_token":"t0ken\r\nX: y","token_type":"Bearer"}"#,
            r#"{"access_token":"","token_type":"Bearer"}"#,
            r#"{"access_token":"t0ken","access_token":"t0ken","token_type":"Bearer"}"#,
        ] {
            let error = read(json).unwrap_err();
            assert!(!error.contains("t0ken"), "{error}");
        }
        let long = "t".repeat(super::super::MAX_TOKEN_BYTES + 1);
        let json = format!(r#"{{"access_token":"{long}","token_type":"Bearer"}}"#);
        assert!(read(&json).is_err());
        let json = r#"{"access_token":"t0ken"}"#;
        assert!(Grant::read(json.as_bytes(), TokenType::Optional).is_ok());
    }
}
