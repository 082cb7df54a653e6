//! The section `identities` of the config.

use std::collections::BTreeMap;

use schemars::JsonSchema;

/// Who calls: keys and issuers of tokens.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Identities {
    /// API keys. `mcp-broker key new NAME` makes one and prints its entry.
    #[schemars(length(max = 4096))]
    keys: Option<Vec<ApiKey>>,
    /// A file with further keys, `{"keys": […]}`, relative to the config's folder. `${NAME}` is a variable; an empty
    /// text means none. It is read at the start and on SIGHUP.
    keys_file: Option<String>,
    /// Issuers whose tokens (JWT) are accepted.
    #[schemars(length(max = 16))]
    issuers: Option<Vec<Issuer>>,
    /// The treatment of running calls of a caller whose right ends: `discard` their results, or `cancel` them.
    /// Default: `discard`.
    on_revoke: Option<OnRevoke>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnRevoke {
    Discard,
    Cancel,
}

/// An API key: its digest, never the key itself.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApiKey {
    /// The name of the key, which is the subject of its caller.
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,64}$"))]
    name: String,
    /// The SHA-256 of the key, 64 hexadecimal digits in lower case.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    sha256: String,
    /// The groups of its caller. Default: none.
    groups: Option<Vec<GroupName>>,
    /// The time from which it is refused, in UTC.
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"))]
    not_after: Option<String>,
    /// The vendor of the model of its caller, whose limits its lists of tools have; a route such as
    /// `/mcp/direct/openai` takes precedence. Default: none.
    client: Option<ModelVendor>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModelVendor {
    OpenAi,
    Gemini,
    Anthropic,
}

#[derive(JsonSchema)]
struct GroupName(#[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,64}$"))] String);

/// An issuer whose tokens are accepted.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Issuer {
    /// The claim `iss` of its tokens, byte by byte: a URL with `https`, or `http` on loopback.
    issuer: String,
    /// Accepted audiences; the claim `aud` has at least one of them.
    #[schemars(length(min = 1, max = 32))]
    audience: Vec<ClaimText>,
    /// `discover`, or the URL of its keys. Default: `discover`.
    jwks: Option<String>,
    /// Accepted algorithms of signatures.
    #[schemars(length(min = 1))]
    algorithms: Vec<SignatureAlgorithm>,
    /// The claim with the subject. Default: `sub`.
    subject: Option<ClaimText>,
    /// The claim with values that give groups: a string or a list of strings.
    groups_claim: Option<ClaimText>,
    /// The groups of each value of that claim; other values give none.
    map: Option<BTreeMap<String, Vec<GroupName>>>,
    /// Claims that access rules may use.
    #[schemars(length(max = 32))]
    claims: Option<Vec<ClaimText>>,
    /// Seconds by which clocks may differ. Default: 60.
    #[schemars(range(min = 0, max = 300))]
    leeway_s: Option<u64>,
    /// The header `typ` that tokens must have. Default: none, `JWT` or `at+jwt`.
    require_typ: Option<TokenType>,
}

#[derive(JsonSchema)]
struct ClaimText(#[schemars(length(min = 1, max = 256))] String);

#[derive(JsonSchema)]
enum SignatureAlgorithm {
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

#[derive(JsonSchema)]
enum TokenType {
    #[serde(rename = "at+jwt")]
    AccessToken,
}
