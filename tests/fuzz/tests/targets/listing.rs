//! Tool lists by bytes: pages, one on each line. Each tool is accepted within the limits or left out; a list of which
//! nothing can be read is refused with a reason.

use std::collections::BTreeSet;

use broker_mcp::fuzzing::listing;
use fuzz::behaviour;

/// Bytes of a complete list.
const LIMIT: usize = 4096;

#[test]
fn tool_list_of_any_bytes_is_accepted_by_tool_or_refused() {
    let words = [
        "{\"tools\":[",
        "]}",
        "\n",
        "\"nextCursor\":\"x\"",
        "\"nextCursor\":\"\"",
        "{\"name\":\"a\"}",
        "{\"name\":\"b\",\"inputSchema\":{\"type\":\"object\"}}",
        "\"\\u006eame\"",
        "\"resultType\":\"complete\"",
        "\"result\\u0054ype\":\"task\"",
        "{\"\":0},",
        "{\"name\":\"a\",\"title\":null}",
        "{\"name\":7}",
        "null",
        "[[[[",
    ];
    fuzz::run("listing", &words, |bytes| {
        let pages: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let outcome = listing(&pages, LIMIT);
        if outcome != listing(&pages, LIMIT) {
            return Err("it is not the same twice".to_owned());
        }
        let tools = match &outcome {
            Ok(tools) => tools,
            Err(reason) if reason.is_empty() => return Err("refused without a reason".to_owned()),
            Err(reason) => return Ok(behaviour(reason.get(..24))),
        };
        let names: BTreeSet<_> = tools.iter().map(|(name, _)| name).collect();
        if names.len() != tools.len() {
            return Err("a name occurs twice".to_owned());
        }
        for (name, members) in tools {
            if members.get("name").and_then(|name| name.as_str()) != Some(name) {
                return Err(format!("`{name}` is not what its text says"));
            }
        }
        let text: usize = pages.iter().map(|page| page.len()).sum();
        let used = tools.iter().map(|(name, _)| name.len()).sum::<usize>();
        if used > LIMIT.min(text) {
            return Err(format!("{used} bytes of names in {text}"));
        }
        Ok(behaviour((tools.len().min(4), text > LIMIT)))
    });
}
