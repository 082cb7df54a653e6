//! Locks: a lock that is read is written with the same bytes, and a refused one has a place. Some
//! inputs get valid digests, since others would be refused there.

use broker_model::digest::Digest;
use broker_model::lock::{Lock, tool_digests};
use fuzz::behaviour;
use serde_json::{Value, json};

use crate::config::check;

#[test]
fn lock_of_any_text_is_read_exactly_or_refused_with_a_place() {
    let words = [
        "sources",
        "exposed",
        "hidden",
        "digests",
        "raw",
        "inputSchema",
        "description",
        "volatile",
        "/tools/*/x",
        "<<<<<<< HEAD",
        "=======",
        ">>>>>>> b",
        "lock_version",
        "root_digest",
        "generator",
        "sha256/1:",
        "path",
        "/s1/x",
        "instructions",
        "server_info",
        "capabilities",
        "upstream_name",
        "exposed_name",
        "command",
        "shell",
        "digest",
        "tool_filter",
        "path_aliases",
        "summary",
    ];
    fuzz::run("lock", &words, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Ok(0);
        };
        let as_given = read(text)?;
        let signed = match serde_json::from_str::<Value>(text) {
            Ok(value) => read(&signed(value).to_string())?,
            Err(_) => 0,
        };
        Ok(behaviour((as_given, signed)))
    });
}

fn read(text: &str) -> Result<u64, String> {
    let lock = match Lock::parse("given.lock.json", text) {
        Ok(lock) => lock,
        Err(problems) => {
            if problems.is_empty() {
                return Err("refused without a reason".to_owned());
            }
            for problem in &problems {
                check(problem, text)?;
            }
            let codes: Vec<_> = problems
                .iter()
                .map(|problem| problem.code.as_str())
                .take(4)
                .collect();
            return Ok(behaviour(codes));
        }
    };
    let written = lock.to_text();
    let again = Lock::parse("written.lock.json", &written)
        .map_err(|problems| format!("what was written is refused: {problems:?}"))?;
    if again != lock || again.to_text() != written {
        return Err("what was written reads back as something else".to_owned());
    }
    let shape: Vec<_> = lock
        .sources
        .iter()
        .map(|source| (source.exposed.len(), source.hidden.len()))
        .collect();
    Ok(behaviour(shape))
}

/// The input with valid digests, if it has the shape of a lock.
fn signed(mut lock: Value) -> Value {
    for source in list(&mut lock, "sources") {
        for tool in list(source, "exposed") {
            let Some(mut raw) = tool.get("raw").and_then(Value::as_object).cloned() else {
                continue;
            };
            if let Some(lines) = raw.get("description").and_then(Value::as_array) {
                let lines: Vec<_> = lines.iter().filter_map(Value::as_str).collect();
                raw.insert("description".to_owned(), json!(lines.concat()));
            }
            tool["digests"] = json!(tool_digests(&raw));
        }
    }
    if let Some(members) = lock.as_object_mut() {
        let mut covered = members.clone();
        covered.remove("generator");
        covered.remove("root_digest");
        let digest = Digest::new("mcp-broker:lock:1", &Value::Object(covered));
        members.insert("root_digest".to_owned(), json!(digest.as_str()));
    }
    lock
}

fn list<'a>(of: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let items = of.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten()
}
