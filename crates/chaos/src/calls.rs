//! Answers `tools/call`: finds the tool's entry in the script and runs it on a thread, so that a slow call does
//! not delay others.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::default_tools::{Act, act};
use crate::faults::{Behaviour, Play};
use crate::reply::{Outcome, text_result};
use crate::script::{RpcError, Script};
use crate::server::{Request, Server};

/// The entry of `on_call` for tools without an entry.
const ANY: &str = "*";

pub(crate) fn call(server: &Arc<Server>, script: &Arc<Script>, request: Request, modern: bool) {
    let sequence = server.sequence.fetch_add(1, Ordering::SeqCst) + 1;
    let name = request.params["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => json!({}),
        Some(arguments) => arguments.clone(),
    };
    let shown = server.journal.arguments(&arguments);
    let meta = server.journal.arguments(&request.params["_meta"]);
    let details =
        json!({"tool": name, "id": request.id, "seq": sequence, "arguments": shown, "meta": meta});
    server.journal.write("call", details);
    let scripted = script.on_call.get(&name).cloned();
    if scripted.is_none() && !script.names.contains(&name) {
        let error = Outcome::Error(RpcError::new(-32602, "the tool is not known"));
        return server.output.line(&error.line(&request.id));
    }
    let echo = |arguments: &Value| {
        let text = echoed(arguments, &name, sequence, script.plain).to_string();
        Outcome::Result(text_result(&text, false, modern).to_string())
    };
    let (behaviour, outcome) = match scripted.or_else(|| script.on_call.get(ANY).cloned()) {
        Some(behaviour) => (behaviour, echo(&arguments)),
        None if !script.built_in => (Behaviour::Ok, echo(&arguments)),
        None => match act(&name, &arguments, modern, &server.shown) {
            Act::Echo => (Behaviour::Ok, echo(&arguments)),
            Act::Answer(outcome) => (Behaviour::Ok, outcome),
            Act::Play(behaviour) => (behaviour, echo(&arguments)),
            Act::Notify => {
                server.notify_list_changed();
                (Behaviour::Ok, echo(&arguments))
            }
        },
    };
    let id = request.id.clone();
    let play = Play {
        request,
        modern,
        is_call: true,
    };
    let shared = Arc::clone(server);
    server.on_thread(&id, move || play.run(&shared, &behaviour, outcome));
}

/// The arguments, and unless plain also data that identifies the call.
fn echoed(arguments: &Value, tool: &str, sequence: u64, plain: bool) -> Value {
    let mut echoed = arguments.clone();
    if let (false, Some(members)) = (plain, echoed.as_object_mut()) {
        members.insert("tool".to_owned(), json!(tool));
        members.insert("pid".to_owned(), json!(std::process::id()));
        members.insert("seq".to_owned(), json!(sequence));
    }
    echoed
}
