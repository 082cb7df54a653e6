//! Determines the era of a request, checks the request against the rules of that era, and answers all methods
//! except `tools/call`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::calls;
use crate::faults::{self, Behaviour};
use crate::paging;
use crate::reply::{Outcome, cacheable, subscribed};
use crate::script::{Era, RpcError, Script};
use crate::server::{Handshake, Request, Server};
use crate::startup::end_process;

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const LISTEN: &str = "subscriptions/listen";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Answers a request, now, later or not at all.
pub(crate) fn answer(server: &Arc<Server>, request: Request) {
    let script = server.script();
    let modern = match admit(server, &script, &request) {
        Ok(modern) => modern,
        Err(None) => return,
        Err(Some(error)) => return server.output.line(&Outcome::Error(error).line(&request.id)),
    };
    if request.method == "tools/call" {
        return calls::call(server, &script, request, modern);
    }
    let behaviour = match script.on_method.get(&request.method) {
        Some(behaviour) => Some(behaviour.clone()),
        None if request.method == "tools/list" && script.list_delay_ms > 0 => {
            Some(Behaviour::Delay {
                ms: script.list_delay_ms,
                then: Box::new(Behaviour::Ok),
            })
        }
        None => None,
    };
    let outcome = match &behaviour {
        // A subscription with a fault is never opened.
        Some(_) if request.method == LISTEN => Some(Outcome::Result("{}".to_owned())),
        _ => outcome(server, &script, &request, modern),
    };
    match (behaviour, outcome) {
        (Some(behaviour), Some(outcome)) => {
            let shared = Arc::clone(server);
            let id = request.id.clone();
            let play = faults::Play {
                request,
                modern,
                is_call: false,
            };
            server.on_thread(&id, move || play.run(&shared, &behaviour, outcome));
        }
        (None, Some(outcome)) => server.output.line(&outcome.line(&request.id)),
        (_, None) => {}
    }
}

/// Whether the request is a modern one; or the error that answers it, if it is answered.
fn admit(server: &Server, script: &Script, request: &Request) -> Result<bool, Option<RpcError>> {
    let method = request.method.as_str();
    let meta = &request.params["_meta"];
    let probe = method == "server/discover";
    if probe {
        server.journal.write("discover", json!({"id": request.id}));
    }
    let modern = match script.era {
        Era::Modern => true,
        Era::Both => probe || meta.get(META_VERSION).is_some(),
        Era::Legacy if probe => return Err(Some(script.probe_error.clone())),
        Era::SilentProbe if probe => return Err(None),
        Era::ProbeDies if probe => end_process(1),
        Era::Legacy | Era::SilentProbe | Era::ProbeDies => false,
    };
    if modern {
        let legacy_only = matches!(method, "initialize" | "ping" | "logging/setLevel");
        check_meta(script, meta, legacy_only)?;
    } else if !matches!(method, "initialize" | "ping") {
        let handshake = server.session().handshake;
        if handshake != Handshake::Done {
            let error = RpcError::new(-32600, "the handshake is not done");
            return Err(Some(error));
        }
    }
    Ok(modern)
}

fn check_meta(script: &Script, meta: &Value, legacy_only: bool) -> Result<(), RpcError> {
    let supported = script.modern_versions();
    let unsupported = |asked: &Value| {
        let mut error = RpcError::new(-32022, "the protocol version is not supported");
        error.data = Some(json!({"supported": supported, "requested": asked}));
        error
    };
    let version = &meta[META_VERSION];
    if legacy_only {
        return Err(match version {
            // A legacy client gets the supported revisions.
            Value::Null => unsupported(&Value::Null),
            _ => RpcError::new(-32601, "method not found"),
        });
    }
    if !version.is_string() || !meta[META_CAPABILITIES].is_object() {
        return Err(RpcError::new(-32602, "`_meta` lacks a required key"));
    }
    if supported.iter().any(|known| *version == *known.as_str()) {
        Ok(())
    } else {
        Err(unsupported(version))
    }
}

/// The answer to any method except `tools/call`; `None` if the request stays open.
fn outcome(server: &Server, script: &Script, request: &Request, modern: bool) -> Option<Outcome> {
    let params = &request.params;
    let result = match (request.method.as_str(), modern) {
        ("initialize", false) => {
            server
                .journal
                .write("initialize", json!({"params": params}));
            server.session().handshake = Handshake::Asked;
            let version = script.legacy_version(params["protocolVersion"].as_str());
            let info = &script.server_info;
            let members = format!(
                r#""protocolVersion":{},"serverInfo":{info}"#,
                json!(version)
            );
            about(script, &members)
        }
        ("ping", false) => "{}".to_owned(),
        ("logging/setLevel", false) => {
            let level = &params["level"];
            server.journal.write("set-level", json!({"level": level}));
            "{}".to_owned()
        }
        ("server/discover", true) => {
            let versions = json!(script.modern_versions());
            let about = about(script, &format!(r#""supportedVersions":{versions}"#));
            cacheable(&about, script)
        }
        ("tools/list", _) => {
            let cursor = &params["cursor"];
            server.journal.write("list", json!({"cursor": cursor}));
            if paging::hangs(script, cursor) {
                return None;
            }
            let begun = u64::from(cursor.is_null());
            let lists = server.lists.fetch_add(begun, Ordering::SeqCst) + begun;
            match paging::page(script, cursor, lists) {
                Outcome::Result(page) if modern => cacheable(&page, script),
                Outcome::Result(page) => page,
                error => return Some(error),
            }
        }
        (LISTEN, true) => {
            listen(server, request);
            return None;
        }
        _ => {
            server
                .journal
                .write("unknown-method", json!({"method": request.method}));
            return Some(Outcome::Error(RpcError::new(-32601, "method not found")));
        }
    };
    Some(Outcome::Result(result))
}

/// The server info, as a JSON object that begins with the given members.
fn about(script: &Script, members: &str) -> String {
    let instructions = script.instructions.as_ref().map_or(String::new(), |text| {
        format!(r#","instructions":{}"#, json!(text))
    });
    let capabilities = &script.capabilities;
    format!(r#"{{{members},"capabilities":{capabilities}{instructions}}}"#)
}

/// Opens a subscription; it ends with `notifications/cancelled` for its id.
fn listen(server: &Server, request: &Request) {
    let wanted = request.params["notifications"]["toolsListChanged"] == true;
    server
        .journal
        .write("listen", json!({"id": request.id, "tools": wanted}));
    let honoured = if wanted {
        json!({"toolsListChanged": true})
    } else {
        json!({})
    };
    let method = "notifications/subscriptions/acknowledged";
    let params = json!({"notifications": honoured});
    // The lock is held until the acknowledgement is written, since it must be the first message.
    let mut session = server.session();
    server.output.line(&subscribed(method, &request.id, params));
    if wanted {
        session.subscriptions.push(request.id.clone());
    }
}
