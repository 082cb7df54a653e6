//! Resolves a server over HTTP: its URL, its headers, and the origin of its token.

use broker_config::client_file::{is_secret_key, is_secret_value, secrets_in_text};
use broker_config::{Auth, HttpEndpoint, Template, invalid_url, plain_http, plain_http_token};
use broker_model::DiagnosticCode;
use broker_model::json::escape_token;
use broker_model::redact::Secret;
use broker_model::url::HttpUrl;
use http::header::{HeaderMap, HeaderName};

use super::expander::Expander;
use super::process;
use crate::http::{
    AuthSpec, ClientCertificate, ClientCredentials, HttpShared, HttpSpec, visible_value,
};

/// Returns the server of the source. `None` after a problem; the expander records it.
pub(super) fn resolve(
    source: &broker_config::Source,
    http: &HttpEndpoint,
    expander: &mut Expander<'_>,
) -> Option<HttpSpec> {
    let at = |place: &str| format!("{}{place}", source.pointer);
    let literals = http.literal_query_secrets();
    expander
        .secrets
        .extend(literals.into_iter().map(Secret::new));
    let url = url(&http.url, &at("/url"), expander);
    let headers = headers(source, http, expander);
    let ca_file = http.ca_file.as_ref().map(|file| {
        let file = expander.expand(file, &at("/ca_file"), false);
        expander.base.join(file)
    });
    let identity = http.client_certificate.as_ref().map(|files| {
        let [certificate, key] = [
            (&files.certificate, "/client_cert"),
            (&files.key, "/client_key"),
        ]
        .map(|(file, key)| {
            let file = expander.expand(file, &at(key), false);
            expander.base.join(file)
        });
        ClientCertificate { certificate, key }
    });
    let auth = http
        .auth
        .as_ref()
        .map(|auth| self::auth(source, http, auth, expander));
    if let Some(url) = &url
        && let Some(problem) = plain_http(http, url)
    {
        expander.push(problem.at(at("/url")));
    }
    Some(HttpSpec {
        url: url?,
        headers: headers?,
        auth: auth.map_or(Some(None), |auth| auth.map(Some))?,
        shared: HttpShared::default(),
        ca_file,
        identity,
    })
}

/// Returns a URL whose text is decided by the values of its variables.
fn url(template: &Template, place: &str, expander: &mut Expander<'_>) -> Option<HttpUrl> {
    let text = expander.expand(template, place, false);
    if !expander.is_fine() {
        return None;
    }
    match HttpUrl::parse(&text) {
        Ok(url) => Some(url),
        Err(error) => {
            expander.push(invalid_url(error).at(place));
            None
        }
    }
}

fn headers(
    source: &broker_config::Source,
    http: &HttpEndpoint,
    expander: &mut Expander<'_>,
) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, template) in &http.headers {
        let place = format!("{}/headers/{}", source.pointer, escape_token(name));
        let is_secret = is_secret_key(name) || is_secret_value(name, template.raw());
        let text = expander.expand(template, &place, is_secret);
        let tokens = secrets_in_text(name, &text).into_iter();
        let tokens: Vec<_> = tokens.map(|range| Secret::new(&text[range])).collect();
        expander.secrets.extend(tokens);
        if is_secret && let Some((_, credential)) = text.split_once(' ') {
            // A server may repeat the credential without its scheme.
            expander.secrets.push(Secret::new(credential));
        }
        let (Ok(name), Some(mut value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            visible_value(&text),
        ) else {
            let message =
                "the value of a header holds a character other than visible ASCII and blanks";
            expander.problem(DiagnosticCode::EnvValue, message, &place);
            continue;
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    expander.is_fine().then_some(headers)
}

fn auth(
    source: &broker_config::Source,
    http: &HttpEndpoint,
    auth: &Auth,
    expander: &mut Expander<'_>,
) -> Option<AuthSpec> {
    let at = |place: &str| format!("{}/auth/{place}", source.pointer);
    Some(match auth {
        Auth::TokenFile(file) => {
            let file = expander.expand(file, &at("token_file"), false);
            AuthSpec::TokenFile(expander.base.join(file))
        }
        Auth::TokenCommand(command) => AuthSpec::TokenCommand(Box::new(process::resolve(
            source.path.as_str(),
            &source.pointer,
            command,
            expander,
        )?)),
        Auth::ClientCredentials(grant) => {
            let at = |key: &str| at(&format!("client_credentials/{key}"));
            let token_url = url(&grant.token_url, &at("token_url"), expander);
            if let Some(url) = &token_url
                && let Some(problem) = plain_http_token(http, url)
            {
                expander.push(problem.at(at("token_url")));
            }
            let client_id = expander.expand(&grant.client_id, &at("client_id"), false);
            let secret = expander.expand(&grant.client_secret, &at("client_secret"), true);
            let mut optional = |key: &str, template: &Option<Template>| {
                let template = template.as_ref()?;
                Some(expander.expand(template, &at(key), false))
            };
            AuthSpec::ClientCredentials(ClientCredentials {
                scope: optional("scope", &grant.scope),
                resource: optional("resource", &grant.resource),
                token_url: token_url?,
                client_id,
                client_secret: Secret::new(secret),
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use broker_config::Config;
    use broker_model::Diagnostic;
    use serde_json::{Value, json};

    use crate::concurrency::ConcurrencyLimits;
    use crate::environment::Environment;
    use crate::spec::SourceSpec;

    /// Resolves a source with these members; the variables have these values.
    fn resolved(
        members: &Value,
        variables: &[(&str, &str)],
    ) -> Result<SourceSpec, Vec<Diagnostic>> {
        let text = json!({"tree": [{"path": "/a", "source": members}]}).to_string();
        let config = Config::parse("c.json", text.as_bytes()).unwrap().config;
        let variables = variables.iter().map(|(name, value)| {
            let (name, value) = (*name, *value);
            (name.to_owned(), value.to_owned())
        });
        crate::resolve(
            config.sources().next().unwrap(),
            &config.limits,
            &Environment::new(variables.collect::<BTreeMap<_, _>>(), None),
            Path::new("/"),
            &ConcurrencyLimits::new(),
        )
    }

    #[test]
    fn literal_secrets_in_queries_and_headers_are_masked() {
        let spec = resolved(
            &json!({
                "url": "https://h/mcp?accessKey=canary1&privateKey=canary2&team=blue",
                "headers": {
                    "authKey": "Bearer canary3", "X-Ctx": "sk-ant-canary4-0123456789",
                    "X-Both": "${PART} sk-ant-canary5-0123456789", "X-Team": "blue",
                },
                "auth": {"client_credentials": {"token_url": "https://id/?tenant=t1&apiKey=canary6",
                    "client_id": "c", "client_secret": "canary7"}},
            }),
            &[("PART", "canary8")],
        );
        let redactor = spec.unwrap().redactor;
        let text = "canary1 canary2 canary3 sk-ant-canary4-0123456789 sk-ant-canary5-0123456789 \
            canary6 canary7 canary8";
        let masked = redactor.redact(text);
        assert!(!masked.contains("canary"), "{masked}");
        assert_eq!(redactor.redact("blue t1"), "blue t1");
    }

    #[test]
    fn plain_http_after_expansion_is_refused_unless_it_is_allowed() {
        let token_url = |allowed: bool| {
            json!({
                "url": "https://h/mcp", "allow_plain_http": allowed,
                "auth": {"client_credentials": {"token_url": "${ID}/token", "client_id": "c",
                    "client_secret": "${SECRET}"}},
            })
        };
        let query = |allowed: bool| json!({"url": "${ID}/mcp?accessKey=${SECRET}", "allow_plain_http": allowed});
        let refused = [
            (token_url(false), "/auth/client_credentials/token_url"),
            (query(false), "/url"),
        ];
        let remote = [("ID", "http://id.example"), ("SECRET", "canary")];
        for (members, place) in refused {
            let problems = resolved(&members, &remote).err().unwrap();
            let [problem] = &problems[..] else {
                panic!("{problems:?}");
            };
            assert_eq!(problem.code.as_str(), "plain_http");
            assert_eq!(
                problem.pointer,
                Some(format!("/tree/0/source{place}")),
                "{problem}"
            );
            assert!(problem.remedy().contains("allow_plain_http"), "{problem}");
            let shown = problem.to_string();
            assert!(shown.contains("`http://id.example`") && !shown.contains("canary"));
            let local = [("ID", "http://127.0.0.1:1"), ("SECRET", "canary")];
            assert!(resolved(&members, &local).is_ok());
        }
        for members in [token_url(true), query(true)] {
            assert!(resolved(&members, &remote).is_ok());
        }
    }
}
