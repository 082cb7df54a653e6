//! The document that names the issuers of tokens for clients (RFC 9728), and the challenge that names it.

use axum::http::HeaderValue;
use broker_config::{Config, PublicUrl};
use serde_json::json;

/// The path of the document for a resource at the root of its host.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The resource that the broker is for issuers of tokens. It does not depend on a request.
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    document: String,
    challenge: HeaderValue,
    challenge_of_token: HeaderValue,
    /// `None` if no scope gives a group.
    challenge_of_scope: Option<HeaderValue>,
}

impl ProtectedResource {
    /// Makes the resource of a config; `None` without `public_url`.
    pub fn from_config(config: &Config) -> Option<Self> {
        let url = config.public_url.as_ref()?;
        let issuers = config.identities.issuers.iter();
        let mut document = json!({
            "resource": url.as_str(),
            "authorization_servers": issuers.map(|one| &one.issuer).collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
        });
        let scopes = scopes(config);
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        let metadata = metadata_url(url);
        let challenge = |error: &str| {
            // A URL has neither quotes nor control characters, and a scope is checked.
            HeaderValue::try_from(format!("Bearer {error}resource_metadata=\"{metadata}\"")).ok()
        };
        let of_scope = || {
            let scopes = scopes.join(" ");
            challenge(&format!(
                "error=\"insufficient_scope\", scope=\"{scopes}\", "
            ))
        };
        Some(Self {
            document: document.to_string(),
            challenge: challenge("")?,
            challenge_of_token: challenge("error=\"invalid_token\", ")?,
            challenge_of_scope: (!scopes.is_empty()).then(of_scope).flatten(),
        })
    }

    /// The document, as JSON.
    pub(crate) fn document(&self) -> &str {
        &self.document
    }

    /// `WWW-Authenticate` of a request without a credential.
    pub(crate) const fn challenge(&self) -> &HeaderValue {
        &self.challenge
    }

    /// `WWW-Authenticate` of a request whose token is not valid (RFC 6750, section 3.1).
    pub(crate) const fn challenge_of_token(&self) -> &HeaderValue {
        &self.challenge_of_token
    }

    /// `WWW-Authenticate` of a request whose token conveys too few rights.
    pub(crate) const fn challenge_of_scope(&self) -> Option<&HeaderValue> {
        self.challenge_of_scope.as_ref()
    }
}

/// The scopes that give a group.
fn scopes(config: &Config) -> Vec<&str> {
    let issuers = config.identities.issuers.iter();
    let by_scope = issuers.filter(|issuer| issuer.groups_claim.as_deref() == Some("scope"));
    let names = by_scope.flat_map(|issuer| issuer.map.keys());
    let is_scope = |name: &&String| {
        name.bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'))
    };
    let mut names: Vec<&str> = names.filter(is_scope).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The URL of the document: between the host of the resource and its path (RFC 9728, section 3.1).
fn metadata_url(resource: &PublicUrl) -> String {
    let url = resource.url();
    let path = url.path().trim_end_matches('/');
    format!("{}{WELL_KNOWN}{path}", url.origin())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    impl ProtectedResource {
        /// Returns a resource with one scope that gives a group.
        pub(crate) fn with_scope(scope: &str) -> Self {
            resource("https://b.example", scope)
        }
    }

    fn resource(url: &str, scope: &str) -> ProtectedResource {
        let config = json!({
            "tree": [],
            "public_url": url,
            "access": {"groups": ["g"], "rules": []},
            "identities": {"issuers": [{
                "issuer": "https://idp.example", "audience": [url], "algorithms": ["ES256"],
                "groups_claim": "scope", "map": {scope: ["g"]},
            }]},
        });
        let parsed = Config::parse("c.json", config.to_string().as_bytes());
        ProtectedResource::from_config(&parsed.unwrap().config).unwrap()
    }

    #[test]
    fn challenge_names_the_document_of_the_public_url() {
        for (url, metadata) in [
            (
                "https://b.example",
                "https://b.example/.well-known/oauth-protected-resource",
            ),
            (
                "https://b.example:8443/mcp",
                "https://b.example:8443/.well-known/oauth-protected-resource/mcp",
            ),
        ] {
            let resource = resource(url, "mcp:read");
            let expected = format!("Bearer resource_metadata=\"{metadata}\"");
            assert_eq!(*resource.challenge(), expected);
            let expected =
                format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata}\"");
            assert_eq!(*resource.challenge_of_token(), expected);
            let expected = format!(
                "Bearer error=\"insufficient_scope\", scope=\"mcp:read\", resource_metadata=\"{metadata}\""
            );
            assert_eq!(*resource.challenge_of_scope().unwrap(), expected);
            let document: Value = serde_json::from_str(resource.document()).unwrap();
            assert_eq!(document["resource"], url);
            assert_eq!(
                document["authorization_servers"],
                json!(["https://idp.example"])
            );
            assert_eq!(document["scopes_supported"], json!(["mcp:read"]));
        }
    }
}
