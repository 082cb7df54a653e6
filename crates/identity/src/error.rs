//! The reasons why a credential identifies no caller. They do not contain a part of the credential.

/// Why a credential identifies no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Neither a known key nor a token. It may be the broker's own secret: this is compared elsewhere.
    #[error("the credential is not known")]
    Unknown,
    /// A known key after its `not_after`.
    #[error("the key has expired")]
    KeyExpired,
    /// A token that is not accepted.
    #[error("the token is not valid: {0}")]
    TokenInvalid(TokenFault),
    /// The keys of the token's issuer were not fetched, or not within the last day.
    #[error("the keys of the token's issuer are not available")]
    Unavailable,
    /// Tokens from this address failed, and too many others of it are being verified.
    #[error("too many tokens from this address are not valid")]
    TooManyFailures,
    /// The pool that verifies signatures is full.
    #[error("too many tokens are being verified")]
    Overloaded,
}

/// Why a token is not accepted. The text is for callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// Longer than the maximum.
    #[error("it is longer than 8192 bytes")]
    TooLong,
    /// Not three parts of base64url with JSON objects in the first two.
    #[error("it is malformed")]
    Malformed,
    /// `typ` of the header.
    #[error("its type is not accepted")]
    Type,
    /// `crit` of the header.
    #[error("it has critical header parameters")]
    Critical,
    /// `iss`.
    #[error("its issuer is not accepted")]
    Issuer,
    /// `alg` of the header.
    #[error("its algorithm is not accepted")]
    Algorithm,
    /// `aud`.
    #[error("its audience is not this broker")]
    Audience,
    /// `exp` is missing or not a time.
    #[error("it has no expiry")]
    NoExpiry,
    /// After `exp`.
    #[error("it has expired")]
    Expired,
    /// Before `nbf`, or `iat` is in the future.
    #[error("it is not valid yet")]
    NotYetValid,
    /// The claim of the subject is missing, empty, too long or not a string.
    #[error("it has no usable subject")]
    Subject,
    /// The issuer has no such key.
    #[error("its key is not known")]
    Key,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    Signature,
}
