//! Determines the era of a request, checks the request against the rules of that era, and determines the
//! reaction to it; `calls` does so for `tools/call`.

use serde_json::{Value, json};

use crate::calls;
use crate::faults::Behaviour;
use crate::paging;
use crate::reply::{Outcome, cacheable};
use crate::script::{Era, RpcError, Script};
use crate::startup::end_process;
use crate::state::{Handshake, Request, State};
use crate::tasks;

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LISTEN: &str = "subscriptions/listen";

/// The reaction to a request.
pub(crate) enum Reaction {
    /// No answer.
    Silence,
    /// The rules of the era refuse the request.
    Refuse(RpcError),
    Answer(Outcome),
    /// The outcome with a fault.
    Play(Behaviour, Outcome),
    /// A subscription, to tool changes if they are wanted.
    Subscribe {
        wanted: bool,
    },
    /// Announces a changed tool list before the answer.
    Announce(Outcome),
}

/// Whether the script treats the request as a modern one.
pub(crate) fn is_modern(script: &Script, request: &Request) -> bool {
    match script.era {
        Era::Modern => true,
        Era::Both => has_modern_frame(request),
        Era::Legacy | Era::SilentProbe | Era::ProbeDies => false,
    }
}

/// Whether only a modern client sends the request.
pub(crate) fn has_modern_frame(request: &Request) -> bool {
    request.method == "server/discover"
        || request.marked_modern
        || request.params["_meta"].get(META_VERSION).is_some()
}

/// Whether only the legacy era has the method.
pub(crate) fn is_legacy_only(method: &str) -> bool {
    matches!(method, "initialize" | "ping" | "logging/setLevel")
}

pub(crate) fn react(
    state: &State,
    script: &Script,
    handshake: &Handshake,
    request: &Request,
) -> Reaction {
    let modern = is_modern(script, request);
    match admit(state, script, handshake, request) {
        Ok(()) => {}
        Err(None) => return Reaction::Silence,
        Err(Some(error)) => return Reaction::Refuse(error),
    }
    if request.method == "tools/call" {
        return calls::call(state, script, request, modern);
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
    match behaviour {
        // A subscription with a fault is never opened.
        Some(behaviour) if request.method == LISTEN => {
            Reaction::Play(behaviour, Outcome::Result("{}".to_owned()))
        }
        Some(behaviour) => match outcome(state, script, handshake, request, modern) {
            Reaction::Answer(outcome) => Reaction::Play(behaviour, outcome),
            Reaction::Refuse(error) => Reaction::Play(behaviour, Outcome::Error(error)),
            other => other,
        },
        None => outcome(state, script, handshake, request, modern),
    }
}

/// Checks the request against the rules of its era; the error is `None` if it is never answered.
fn admit(
    state: &State,
    script: &Script,
    handshake: &Handshake,
    request: &Request,
) -> Result<(), Option<RpcError>> {
    let method = request.method.as_str();
    let probe = method == "server/discover";
    if probe {
        let mut details = json!({"id": request.id});
        request.add_number(&mut details);
        state.journal.write("discover", details);
    }
    match script.era {
        Era::Legacy if probe => return Err(Some(script.probe_error.clone())),
        Era::SilentProbe if probe => return Err(None),
        Era::ProbeDies if probe => end_process(1),
        _ => {}
    }
    if is_modern(script, request) {
        let meta = &request.params["_meta"];
        if is_legacy_only(method) {
            return Err(Some(legacy_only_error(script, &meta[META_VERSION])));
        }
        check_meta(meta).map_err(Some)?;
        check_version(script, &meta[META_VERSION]).map_err(Some)?;
    } else if !matches!(method, "initialize" | "ping") && !handshake.is_done() {
        let error = RpcError::new(-32600, "the handshake is not done");
        return Err(Some(error));
    }
    Ok(())
}

/// The error for a legacy method; a legacy client gets the supported revisions.
fn legacy_only_error(script: &Script, version: &Value) -> RpcError {
    match version {
        Value::Null => unsupported(script, version),
        _ => RpcError::new(-32601, "method not found"),
    }
}

/// Checks that the required keys of a modern request are there.
pub(crate) fn check_meta(meta: &Value) -> Result<(), RpcError> {
    if meta[META_VERSION].is_string() && meta[META_CAPABILITIES].is_object() {
        Ok(())
    } else {
        Err(RpcError::new(-32602, "`_meta` lacks a required key"))
    }
}

/// Checks the revision of a modern request.
pub(crate) fn check_version(script: &Script, version: &Value) -> Result<(), RpcError> {
    let supported = script.modern_versions();
    if supported.iter().any(|known| *version == *known.as_str()) {
        Ok(())
    } else {
        Err(unsupported(script, version))
    }
}

fn unsupported(script: &Script, asked: &Value) -> RpcError {
    let mut error = RpcError::new(-32022, "the protocol version is not supported");
    error.data = Some(json!({"supported": script.modern_versions(), "requested": asked}));
    error
}

/// The reaction to any method except `tools/call`.
fn outcome(
    state: &State,
    script: &Script,
    handshake: &Handshake,
    request: &Request,
    modern: bool,
) -> Reaction {
    let journal = |event: &str, mut details: Value| {
        request.add_number(&mut details);
        state.journal.write(event, details);
    };
    if let Some(answer) = tasks::answer(state, script, request, modern) {
        return Reaction::Answer(answer);
    }
    let params = &request.params;
    let result = match (request.method.as_str(), modern) {
        ("initialize", false) => {
            journal("initialize", json!({"params": params}));
            handshake.ask();
            let version = script.legacy_version(params["protocolVersion"].as_str());
            let info = &script.server_info;
            let members = format!(
                r#""protocolVersion":{},"serverInfo":{info}"#,
                json!(version)
            );
            about(script, &members)
        }
        ("ping", false) => {
            journal("ping", json!({}));
            "{}".to_owned()
        }
        ("logging/setLevel", false) => {
            journal("set-level", json!({"level": params["level"]}));
            "{}".to_owned()
        }
        ("server/discover", true) => {
            let versions = json!(script.modern_versions());
            let about = about(script, &format!(r#""supportedVersions":{versions}"#));
            cacheable(&about, script)
        }
        ("tools/list", _) => {
            let cursor = &params["cursor"];
            journal("list", json!({"cursor": cursor, "meta": params["_meta"]}));
            if paging::hangs(script, cursor) {
                return Reaction::Silence;
            }
            match paging::page(script, cursor) {
                Outcome::Result(page) if modern => cacheable(&page, script),
                Outcome::Result(page) => page,
                error => return Reaction::Answer(error),
            }
        }
        (LISTEN, true) => {
            let wanted = params["notifications"]["toolsListChanged"] == true;
            journal("listen", json!({"id": request.id, "tools": wanted}));
            return Reaction::Subscribe { wanted };
        }
        _ => {
            journal("unknown-method", json!({"method": request.method}));
            return Reaction::Refuse(RpcError::new(-32601, "method not found"));
        }
    };
    Reaction::Answer(Outcome::Result(result))
}

/// The server info, as a JSON object that begins with the given members.
fn about(script: &Script, members: &str) -> String {
    let instructions = script.instructions.as_ref().map_or(String::new(), |text| {
        format!(r#","instructions":{}"#, json!(text))
    });
    let capabilities = &script.capabilities;
    format!(r#"{{{members},"capabilities":{capabilities}{instructions}}}"#)
}
