//! A broker that accepts the tokens of a real issuer: `oauth2-mock-server`, by `tests/clients/issuer.mjs`.

mod flow;
mod rotation;
mod tokens;

use harness::{ListeningServer, Response, Run, official_clients, private_node, request};
use serde_json::{Value, json};

use crate::caller::{Caller, Key};
use crate::stage::{Stage, scripted};

/// The resource that tokens are for, unless a test takes the address of its broker.
const AUDIENCE: &str = "https://broker.example/mcp";

/// A running issuer.
#[derive(Debug)]
struct Issuer(ListeningServer);

impl Issuer {
    fn start() -> Self {
        let script = official_clients().join("issuer.mjs");
        Self(ListeningServer::start(
            Run::new(&private_node()).args([script]),
        ))
    }

    /// Its identifier.
    fn url(&self) -> String {
        self.0.url("")
    }

    /// The answer to a form.
    fn post(&self, route: &str, client: &str, form: &[(&str, &str)]) -> Value {
        let url = self.url();
        let address = url.strip_prefix("http://").expect("it has no TLS");
        let fields: Vec<_> = form
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let basic = match client {
            "ci" => "Basic Y2k6c2VjcmV0",
            "guest" => "Basic Z3Vlc3Q6c2VjcmV0",
            other => panic!("the issuer has no client `{other}`"),
        };
        let headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Authorization", basic),
        ];
        let reply = request(
            address,
            "POST",
            route,
            &headers,
            fields.join("&").as_bytes(),
        );
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// An access token by the grant of client credentials.
    fn token(&self, client: &str) -> String {
        self.token_with(client, &[("resource", AUDIENCE)])
    }

    /// The same for a request with these members.
    fn token_with(&self, client: &str, form: &[(&str, &str)]) -> String {
        let form = [&[("grant_type", "client_credentials")], form].concat();
        let reply = self.post("/token", client, &form);
        reply["access_token"]
            .as_str()
            .expect("it is text")
            .to_owned()
    }

    /// A new key signs from now on.
    fn rotate(&self, keeps_earlier_keys: bool) {
        let keep = keeps_earlier_keys.to_string();
        let published = self.post("/test/rotate", "ci", &[("keep", &keep)]);
        let count = published.as_array().map(Vec::len);
        assert_eq!(
            count,
            Some(1 + usize::from(keeps_earlier_keys)),
            "{published}"
        );
    }

    /// Its entry in a config, with these members.
    fn entry(&self, members: &Value) -> Value {
        let mut entry = json!({
            "issuer": self.url(), "audience": [AUDIENCE], "jwks": "discover", "algorithms": ["ES256"],
            "groups_claim": "groups", "map": {"eng-platform": ["deployer"]},
        });
        let members = members.as_object().expect("members are an object");
        entry
            .as_object_mut()
            .expect("an object")
            .extend(members.clone());
        entry
    }
}

/// A config whose group `deployer` may use `/a` only.
fn config(issuer: &Value) -> Value {
    let mut config = scripted(json!({
        "groups": ["deployer", "admin"],
        "rules": [{"allow": ["/a/**"], "to": ["deployer"]}, {"allow": ["/**"], "to": ["admin"]}],
    }));
    config["mcp"] = json!({"mode": "direct"});
    config["public_url"] = json!(AUDIENCE);
    config["identities"]["issuers"] = json!([issuer]);
    config
}

/// A broker that accepts tokens of this entry of an issuer, and the key of an admin.
fn stage(issuer: &Value) -> (Stage, Caller) {
    let key = Key::new("root", &["admin"]);
    let stage = Stage::with(config(issuer), &[&key], |run| run);
    let admin = stage.caller(&key);
    (stage, admin)
}

/// A caller with this token.
fn bearer(stage: &Stage, token: &str) -> Caller {
    let bearer = format!("Bearer {token}");
    Caller::with(stage.broker.address(), &[("Authorization", &bearer)])
}

/// A call that the group `deployer` may make.
fn call(caller: &Caller) -> Response {
    caller.call("/a/echo", &json!({"text": "x"}))
}

/// The status of that call with this token.
fn status(stage: &Stage, token: &str) -> u16 {
    call(&bearer(stage, token)).status
}
