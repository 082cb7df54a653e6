//! Requests that are refused for their caller: by a wrong credential, or since an entry does not exist for it.

use std::path::Path;

use harness::{Broker, Response, Run, binary, contains, named, refusal};
use serde_json::{Value, json};

use crate::caller::{Caller, Key};
use crate::stage::{Comparable, Stage, comparable, scripted};

const SECRET: &str = "s3cret-for-tests";
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Access with the groups `reader`, who sees `/b/**`, and `admin`.
fn access() -> Value {
    json!({
        "groups": ["reader", "admin"],
        "rules": [
            {"allow": ["/b/**"], "to": ["reader"]},
            {"allow": ["/**"], "to": ["admin"]},
        ],
    })
}

/// A broker with the keys of `ada`, a reader, and `root`, an admin.
fn stage_with(change: impl FnOnce(&mut Value)) -> (Stage, Caller, Caller) {
    let keys = [Key::new("ada", &["reader"]), Key::new("root", &["admin"])];
    let mut config = scripted(access());
    change(&mut config);
    let secret = |run: Run| run.env("MCP_BROKER_SECRET", SECRET);
    let stage = Stage::with(config, &[&keys[0], &keys[1]], secret);
    let [ada, root] = keys.map(|key| stage.caller(&key));
    (stage, ada, root)
}

fn by_secret(stage: &Stage) -> Caller {
    let bearer = format!("Bearer {SECRET}");
    Caller::with(stage.broker.address(), &[("Authorization", &bearer)])
}

/// A request of each kind.
fn requests(caller: &Caller) -> Vec<Response> {
    let headers = [("Accept", "text/event-stream")];
    vec![
        caller.tree("/", 1),
        caller.describe("/"),
        caller.call("/b/echo", &json!({"text": "x"})),
        caller.modern("/mcp", "tools/list", &json!({})),
        caller.modern("/mcp/direct", "tools/list", &json!({})),
        match caller.try_session("/mcp") {
            Ok((_, reply)) | Err(reply) => reply,
        },
        caller.request("GET", "/mcp", &headers, ""),
        caller.request("DELETE", "/mcp", &headers, ""),
    ]
}

/// The error object of a refusal, also of MCP.
fn error_of(reply: &Response) -> Value {
    let body = reply.json();
    match body["error"]["data"].is_object() {
        true => body["error"]["data"].clone(),
        false => body["error"].clone(),
    }
}

#[test]
fn credential_that_is_missing_or_wrong_is_answered_with_the_place_of_the_document() {
    let url = |config: &mut Value| config["public_url"] = json!("https://broker.example/mcp");
    let (stage, ada, _) = stage_with(url);
    let place = "https://broker.example/.well-known/oauth-protected-resource/mcp";
    // RFC 6750, section 3.1: an error code only if the request has a token.
    let challenge = |has_token: bool| match has_token {
        true => format!("Bearer error=\"invalid_token\", resource_metadata=\"{place}\""),
        false => format!("Bearer resource_metadata=\"{place}\""),
    };
    let unknown = Key::new("unknown", &[]).text;
    let mistyped = unknown.replace("mbk_", "mbk_a");
    for wrong in [
        &[][..],
        &[("Authorization", "Bearer wrong")],
        &[("Authorization", &format!("Bearer {unknown}"))],
        &[("X-API-Key", &mistyped)],
        &[("X-API-Key", "")],
        &[("Authorization", "Basic czNjcmV0")],
        &[(
            "Authorization",
            "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.",
        )],
        &[("Authorization", &format!("Bearer {SECRET}x"))],
    ] {
        let caller = Caller::with(stage.broker.address(), wrong);
        let has_token = wrong.iter().any(|(_, value)| value.starts_with("Bearer "));
        let challenge = challenge(has_token);
        for reply in requests(&caller) {
            assert_eq!(reply.status, 401, "{wrong:?}: {}", reply.text());
            assert_eq!(reply.header("www-authenticate"), Some(challenge.as_str()));
            let error = error_of(&reply);
            assert_eq!(error["code"], "unauthorized", "{error}");
            let credentials = wrong
                .iter()
                .filter_map(|(_, value)| value.rsplit(' ').next());
            for credential in credentials.filter(|text| text.len() > 5) {
                assert!(!reply.text().contains(credential), "{}", reply.text());
            }
        }
    }
    for reply in requests(&ada) {
        assert_ne!(reply.status, 401, "{}", reply.text());
    }
    assert_eq!(stage.journal("b", "call").len(), 1, "that of the valid key");
    let (_, log) = stage.broker.terminate();
    assert!(
        !log.contains(&unknown[4..]) && !log.contains(SECRET),
        "{log}"
    );
}

#[test]
fn wrong_credential_is_refused_where_callers_without_one_have_rights() {
    let open = |config: &mut Value| config["access"]["anonymous"] = json!(["reader"]);
    let (stage, ada, root) = stage_with(open);
    let anonymous = Caller::with(stage.broker.address(), &[]);
    assert_eq!(anonymous.call("/b/echo", &json!({"text": "x"})).status, 200);
    assert_eq!(anonymous.tree("/", 16).body, ada.tree("/", 16).body);
    assert_ne!(anonymous.tree("/", 16).body, root.tree("/", 16).body);
    for wrong in ["Bearer wrong", "Basic eA==", "Bearer a.b.c"] {
        let caller = Caller::with(stage.broker.address(), &[("Authorization", wrong)]);
        for reply in requests(&caller) {
            assert_eq!(reply.status, 401, "{wrong}: {}", reply.text());
            let expected = match wrong.starts_with("Bearer ") {
                true => "Bearer error=\"invalid_token\"",
                false => "Bearer",
            };
            assert_eq!(reply.header("www-authenticate"), Some(expected));
        }
    }
}

#[test]
fn two_credentials_that_differ_are_refused() {
    let (stage, ada, root) = stage_with(|_| {});
    let key = |caller: &Caller| caller.credential[0].1.clone();
    let (one, two) = (key(&ada), key(&root));
    let plain = |bearer: &str| bearer.trim_start_matches("Bearer ").to_owned();
    let two_of = |second: &str| {
        let headers = [("Authorization", one.as_str()), ("X-API-Key", second)];
        Caller::with(stage.broker.address(), &headers)
    };
    for second in [plain(&two), SECRET.to_owned(), "x".to_owned()] {
        for reply in requests(&two_of(&second)) {
            assert_eq!(reply.status, 400, "{}", reply.text());
            assert_eq!(error_of(&reply)["code"], "header_invalid");
        }
    }
    assert_eq!(two_of(&plain(&one)).tree("/", 1).status, 200);
    let query = ada.post(&format!("/meta_tree?token={}", plain(&one)), &json!({}));
    refusal(&query, 400, "header_invalid");
}

#[test]
fn denied_tool_is_forbidden_where_the_config_says_so() {
    let shown = |config: &mut Value| config["access"]["denied"] = json!("forbidden");
    let (stage, ada, root) = stage_with(shown);
    for reply in [
        ada.call("/a/add", &json!({"a": 1, "b": 2})),
        ada.call("/a/add", &json!({"wrong": true})),
        ada.describe("/a/add"),
        ada.tree("/a", 1),
    ] {
        let error = refusal(&reply, 403, "forbidden");
        assert!(error.get("did_you_mean").is_none(), "{error}");
        assert!(error.get("details").is_none(), "{error}");
    }
    let several = ada.post(
        "/meta_desc",
        &json!({"paths": ["/a/add", "/a/nope", "/b/add"]}),
    );
    let entries = several.json()["entries"].clone();
    assert_eq!(entries[0]["error"]["code"], "forbidden");
    assert_eq!(entries[1]["error"]["code"], "path_not_found");
    assert!(entries[2]["args_schema"].is_object());
    // Only a caller that names the tool learns of it.
    for hidden in [
        ada.tree("/", 16),
        ada.describe("/"),
        ada.describe("/a/ad"),
        ada.describe("/add"),
        ada.modern("/mcp/direct", "tools/list", &json!({})),
        ada.modern("/mcp", "server/discover", &json!({})),
    ] {
        for name in ["/a/add", "/a/echo", "a-add"] {
            assert!(!hidden.text().contains(name), "{}", hidden.text());
        }
    }
    assert_eq!(root.call("/a/add", &json!({"a": 1, "b": 2})).status, 200);
    assert_eq!(stage.journal("a", "call").len(), 1);
}

#[test]
fn address_with_too_many_wrong_credentials_waits_and_its_right_ones_are_accepted() {
    let proxies = |config: &mut Value| config["trusted_proxies"] = json!(["127.0.0.1"]);
    let (stage, ada, _) = stage_with(proxies);
    let address = stage.broker.address();
    let wrong = Key::new("unknown", &[]).text;
    let bearer = format!("Bearer {wrong}");
    let from = |client: &str| {
        let forwarded = [
            ("Authorization", bearer.as_str()),
            ("X-Forwarded-For", client),
        ];
        Caller::with(address, &forwarded).tree("/", 1)
    };
    // The limit of one address within a minute.
    for _ in 0..100 {
        refusal(&from("192.0.2.1"), 401, "unauthorized");
    }
    let limited = from("192.0.2.1");
    refusal(&limited, 429, "overloaded");
    let seconds = limited.header("retry-after").unwrap().parse::<u32>();
    assert!((1..=60).contains(&seconds.unwrap()));
    refusal(&from("192.0.2.2"), 401, "unauthorized");
    let mut same_address = ada.credential.clone();
    same_address.push(("X-Forwarded-For".to_owned(), "192.0.2.1".to_owned()));
    let headers: Vec<_> = same_address
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(Caller::with(address, &headers).tree("/", 1).status, 200);
    let (_, log) = stage.broker.terminate();
    assert!(log.contains("last_address=192.0.2.1"), "{log}");
}

/// Requests about `/NODE/add`, `/NODE` and `NODE-add`, and the replies with the name of the node replaced.
fn about(caller: &Caller, node: &str) -> Vec<Comparable> {
    let (tool, top) = (format!("/{node}/add"), format!("/{node}"));
    let flat = format!("{node}-add");
    let session = caller.session("/mcp/direct");
    let meta = caller.session("/mcp");
    let mut replies = Vec::new();
    for path in [&tool, &top, &format!("{tool}s"), &format!("/{node}/")] {
        replies.extend([
            caller.tree(path, 2),
            caller.describe(path),
            caller.post("/meta_desc", &json!({"paths": [path, "/b/echo", path]})),
            caller.call(path, &json!({})),
            caller.call(path, &json!({"a": 1, "b": 2})),
            caller.call(path, &json!({"a": "one", "more": [1]})),
            caller.call(path, &json!([])),
            meta.ask(
                "tools/call",
                &json!({"name": "meta_call", "arguments": {"path": path}}),
            ),
        ]);
        for route in ["/mcp", "/mcp/direct"] {
            let under = format!("{route}?under={path}");
            let begun = caller.try_session(&under);
            replies.push(begun.expect_err("there is no such part of the tree"));
            replies.push(caller.modern(&under, "tools/list", &json!({})));
        }
    }
    for arguments in [json!({}), json!({"a": 1, "b": 2}), json!({"a": []})] {
        let params = json!({"name": flat, "arguments": arguments});
        replies.push(session.ask("tools/call", &params));
        replies.push(caller.modern("/mcp/direct", "tools/call", &params));
    }
    replies.push(session.ask("tools/list", &json!({"cursor": flat})));
    let other = format!("\"{node}\"");
    let replies = replies.iter().map(comparable);
    let replies = replies.map(|(status, headers, body)| {
        let mut body = body.replace(&other, "\"NODE\"").replace(&flat, "NODE-add");
        for after in ["/", "`", "\"", "\\"] {
            body = body.replace(&format!("/{node}{after}"), &format!("/NODE{after}"));
        }
        (status, headers, body)
    });
    replies.collect()
}

#[test]
fn denied_path_has_the_bytes_of_one_that_never_was() {
    // The names are equally far from that of the node that the caller sees.
    let node = |config: &mut Value| config["tree"][0] = harness::node("zq", json!({}));
    let (stage, ada, root) = stage_with(node);
    let (denied, absent) = (about(&ada, "zq"), about(&ada, "zx"));
    for (denied, absent) in denied.iter().zip(&absent) {
        assert_eq!(denied, absent);
        assert!(!matches!(denied.0, 401 | 403), "{denied:?}");
    }
    assert!(denied.iter().any(|(status, ..)| *status == 404));
    assert_ne!(
        about_tool(&root, "zq"),
        about_tool(&root, "zx"),
        "for one who may"
    );
    assert_eq!(stage.journal("zq", "call").len(), 0);
}

fn about_tool(caller: &Caller, node: &str) -> u16 {
    caller.describe(&format!("/{node}/add")).status
}

#[test]
fn document_of_the_resource_is_made_from_the_config_only() {
    let url = |config: &mut Value| {
        config["public_url"] = json!("https://broker.example");
        config["identities"]["issuers"] = json!([{
            "issuer": "https://idp.example", "audience": ["https://broker.example"],
            "algorithms": ["ES256"], "jwks": "https://idp.example/keys",
            "groups_claim": "scope", "map": {"tools:read": ["reader"]},
        }]);
    };
    let (stage, ..) = stage_with(url);
    let expected = json!({
        "resource": "https://broker.example",
        "authorization_servers": ["https://idp.example"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["tools:read"],
    });
    let address = stage.broker.address();
    for credential in [&[][..], &[("Authorization", "Bearer wrong")]] {
        let caller = Caller::with(address, credential);
        for path in [METADATA.to_owned(), format!("{METADATA}/mcp")] {
            let reply = caller.get(&path);
            named(&reply);
            assert_eq!((reply.status, reply.json()), (200, expected.clone()));
            let reply = caller.post(&path, &json!({}));
            assert_eq!(reply.status, 405, "{}", reply.text());
        }
    }
    let (without, ..) = stage_with(|_| {});
    let caller = Caller::with(without.broker.address(), &[]);
    refusal(&caller.get(METADATA), 404, "route_not_found");
}

#[test]
fn health_shows_each_caller_what_it_may_know() {
    let operators = |config: &mut Value| config["access"]["operators"] = json!(["admin"]);
    let (stage, ada, root) = stage_with(operators);
    let anonymous = Caller::with(stage.broker.address(), &[]);
    let wrong = Caller::with(stage.broker.address(), &[("X-API-Key", "wrong")]);
    for caller in [&anonymous, &wrong] {
        assert_eq!(caller.get("/healthz").json(), json!({"status": "ok"}));
    }
    let short = json!({"ready": true});
    // A client whose token has expired must learn it, so that it gets another one.
    refusal(&wrong.get("/sources"), 401, "unauthorized");
    for caller in [&anonymous, &ada] {
        assert_eq!(caller.get("/readyz").json(), short);
        refusal(&caller.get("/sources"), 403, "forbidden");
    }
    for caller in [&root, &by_secret(&stage)] {
        let sources = caller.get("/sources").json();
        assert_eq!(sources["sources"][0]["path"], "/a", "{sources}");
        let ready = caller.get("/readyz").json();
        assert_eq!(ready["sources"][0]["path"], "/a", "{ready}");
    }
    // Without operators, groups do not matter.
    let (stage, _, root) = stage_with(|_| {});
    refusal(&root.get("/sources"), 403, "forbidden");
    assert_eq!(root.get("/readyz").json(), short);
    assert_eq!(by_secret(&stage).get("/sources").status, 200);
}

/// The broker of the smoke config with these groups of callers without a credential, on every address.
fn public(key: &Key, anonymous: &Value) -> (tempfile::TempDir, Run) {
    binary("toolbox-mcp");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("smoke_config.json")).expect("the config");
    let mut config: Value = serde_json::from_str(&text).expect("it is JSON");
    config["access"] = json!({
        "groups": ["reader"],
        "rules": [{"allow": ["/text/**"], "to": ["reader"]}],
        "anonymous": anonymous,
    });
    config["identities"] = json!({"keys": [key.entry]});
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("given.json");
    std::fs::write(&file, config.to_string()).expect("it is writable");
    let run = Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker"))).folder(root);
    let file = file.to_str().expect("the path is text").to_owned();
    (folder, run.args(["0.0.0.0:0", &file]))
}

#[test]
fn public_address_needs_identities_and_no_rights_without_one() {
    let key = Key::new("ada", &["reader"]);
    let (_folder, run) = public(&key, &json!(["reader"]));
    let refused = run.output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(&refused.stderr, &["error[bind_open]"]);

    let (_folder, run) = public(&key, &json!([]));
    let broker = Broker::start(run);
    let port = broker.address().rsplit_once(':').expect("it has a port").1;
    let address = format!("127.0.0.1:{port}");
    harness::wait_until("it is ready", || {
        harness::get(&address, "/readyz").status == 200
    });
    let ada = key.at(&address);
    // The compiled-in config has no rules: those that are given only narrow it.
    let top = ada.tree("/", 1).json();
    let children = top["children"].as_array().expect("a list");
    assert_eq!((children.len(), &children[0]["path"]), (1, &json!("/text")));
    let call = ada.call("/text/text_case", &json!({"text": "a b", "to": "title"}));
    assert_eq!(call.status, 200, "{}", call.text());
    refusal(&ada.call("/util/hex", &json!({})), 404, "path_not_found");
    refusal(
        &Caller::with(&address, &[]).tree("/", 1),
        401,
        "unauthorized",
    );
}
