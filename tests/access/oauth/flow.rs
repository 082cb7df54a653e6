//! The official SDKs begin without a token: the broker's 401 names the document of its resource, the document names
//! the issuer, and the SDK runs the authorization-code flow with PKCE there. It ends with a call of a tool.

use std::path::Path;

use harness::{Run, official_clients, official_python, private_node, refusal};
use serde_json::{Value, json};

use super::{Issuer, bearer, config, stage};
use crate::caller::Caller;
use crate::stage::Stage;

/// A broker whose `public_url` is its own address, which is known once it listens, with this path. The claim of groups is
/// `claim`.
fn resource(issuer: &Issuer, claim: &Value, path: &str) -> (Stage, String) {
    let (stage, _) = stage(&issuer.entry(&json!({})));
    let url = format!("http://{}{path}", stage.broker.address());
    let mut entry = issuer.entry(claim);
    // As `docs/access.md` says of a URL without a path.
    entry["audience"] = match path {
        "" => json!([url, format!("{url}/")]),
        _ => json!([url]),
    };
    let mut config = config(&entry);
    config["identities"]["keys_file"] = json!("keys.json");
    config["public_url"] = json!(url);
    stage.bench.write("c.json", &config.to_string());
    stage.reload();
    (stage, url)
}

/// Runs the flow of an SDK, whose user has groups by a claim of its account, and by the scope that the SDK asks for. The
/// resource has a path or none.
fn flow(program: &Path, script: &str, generation: &str, mode: &str) {
    let by_account = json!({});
    let by_scope = json!({"groups_claim": "scope", "map": {"tools:call": ["deployer"]}});
    for (claim, path, route) in [
        (&by_account, "/mcp", "/mcp"),
        (&by_account, "", "/mcp"),
        (&by_scope, "/mcp", "/mcp/direct"),
    ] {
        let issuer = Issuer::start();
        let (stage, url) = resource(&issuer, claim, path);
        let route = format!("http://{}{route}", stage.broker.address());
        let args = json!({"text": "by a token"}).to_string();
        let issuer_url = issuer.url();
        let output = Run::new(program)
            .args([official_clients().join(script)])
            .args([generation, mode, &issuer_url, &route, "a-echo", &args])
            .output();
        let case = format!("{script} {generation} {mode} {path} {claim}");
        assert_eq!(output.code, Some(0), "{case}: {}", output.stderr);
        let seen: Value = serde_json::from_str(&output.stdout).expect("one JSON object");
        let tools = seen["tools"].as_array().expect("a list");
        assert!(tools.contains(&json!("a-echo")), "{case}: {seen}");
        let is_own = |tool: &Value| tool.as_str().is_some_and(|name| name.starts_with("a-"));
        assert!(tools.iter().all(is_own), "{case}: {seen}");
        assert_ne!(seen["call"]["isError"], true, "{case}: {seen}");
        assert!(
            seen["call"].to_string().contains("by a token"),
            "{case}: {seen}"
        );
        assert_eq!(stage.journal("a", "call").len(), 1, "{case}");

        let asked = issuer.0.stderr();
        let scope = claim["map"].as_object().map_or("", |_| "tools:call");
        let client = script.strip_prefix("oauth.").expect("a script");
        let client = if client == "py" {
            "python"
        } else {
            "typescript"
        };
        // This one writes a URL without a path with a slash.
        let adds_slash = path.is_empty() && client == "python" && generation == "v1";
        let resource = if adds_slash { url + "/" } else { url };
        for step in [
            "discovery".to_owned(),
            format!("authorize {client} S256 {resource} {scope}"),
            format!("token authorization_code {client} {resource} PKCE"),
        ] {
            assert!(asked.contains(&step), "{case}: `{step}` in\n{asked}");
        }
    }
}

#[test]
fn typescript_sdk_of_the_first_generation_gets_a_token_and_calls() {
    flow(&private_node(), "oauth.mjs", "v1", "legacy");
}

#[test]
fn typescript_sdk_of_the_second_generation_gets_a_token_and_calls() {
    for mode in ["legacy", "auto"] {
        flow(&private_node(), "oauth.mjs", "v2", mode);
    }
}

#[test]
fn python_sdk_of_the_first_generation_gets_a_token_and_calls() {
    flow(&official_python("v1"), "oauth.py", "v1", "legacy");
}

#[test]
fn python_sdk_of_the_second_generation_gets_a_token_and_calls() {
    for mode in ["legacy", "auto"] {
        flow(&official_python("v2"), "oauth.py", "v2", mode);
    }
}

#[test]
fn challenge_leads_to_the_document_that_names_the_issuer() {
    let issuer = Issuer::start();
    let (stage, url) = resource(&issuer, &json!({}), "/mcp");
    let origin = url.strip_suffix("/mcp").expect("the URL of MCP");
    let document = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let anonymous = Caller::with(stage.broker.address(), &[]);
    for (caller, error) in [
        (anonymous.clone(), ""),
        (bearer(&stage, "a.b.c"), "error=\"invalid_token\", "),
    ] {
        let expected = format!("Bearer {error}resource_metadata=\"{document}\"");
        for reply in [
            caller.tree("/", 1),
            caller.try_session("/mcp").expect_err("it is refused"),
            caller.modern("/mcp/direct", "tools/list", &json!({})),
        ] {
            assert_eq!(reply.status, 401, "{}", reply.text());
            assert_eq!(reply.header("www-authenticate"), Some(&*expected));
        }
    }
    let document = document.strip_prefix(origin).expect("it is the broker's");
    let reply = anonymous.get(document).json();
    assert_eq!(reply["resource"], url);
    assert_eq!(reply["authorization_servers"], json!([issuer.url()]));
    // The audience is the new URL since the reload.
    let old = bearer(&stage, &issuer.token("ci"));
    refusal(&old.tree("/", 1), 401, "unauthorized");
}
