//! The reaction to `tools/call`: finds the tool's entry in the script.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::default_tools::{Act, act};
use crate::eras::Reaction;
use crate::faults::Behaviour;
use crate::reply::{Outcome, text_result};
use crate::script::{RpcError, Script};
use crate::state::{Request, State};
use crate::tasks;

/// The entry of `on_call` for tools without an entry.
const ANY: &str = "*";

pub(crate) fn call(state: &State, script: &Script, request: &Request, modern: bool) -> Reaction {
    let sequence = state.sequence.fetch_add(1, Ordering::SeqCst) + 1;
    let name = request.params["name"].as_str().unwrap_or_default();
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => json!({}),
        Some(arguments) => arguments.clone(),
    };
    let shown = state.journal.arguments(&arguments);
    let meta = state.journal.arguments(&request.params["_meta"]);
    let mut details =
        json!({"tool": name, "id": request.id, "seq": sequence, "arguments": shown, "meta": meta});
    request.add_number(&mut details);
    state.journal.write("call", details);
    if let Some(made) = tasks::make(state, script, request, modern, sequence) {
        return Reaction::Answer(made);
    }
    let scripted = script.on_call.get(name);
    if scripted.is_none() && !script.names.iter().any(|known| known == name) {
        let error = RpcError::new(-32602, "the tool is not known");
        return Reaction::Answer(Outcome::Error(error));
    }
    let text = echoed(&arguments, name, sequence, script.plain).to_string();
    let echo = Outcome::Result(text_result(&text, false, modern).to_string());
    match scripted.or_else(|| script.on_call.get(ANY)) {
        Some(behaviour) => Reaction::Play(behaviour.clone(), echo),
        None if !script.built_in => Reaction::Play(Behaviour::Ok, echo),
        None => match act(name, &arguments, modern, &state.shown) {
            Act::Echo => Reaction::Play(Behaviour::Ok, echo),
            Act::Answer(outcome) => Reaction::Play(Behaviour::Ok, outcome),
            Act::Play(behaviour) => Reaction::Play(behaviour, echo),
            Act::Notify => Reaction::Announce(echo),
        },
    }
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
