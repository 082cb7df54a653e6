//! Turns a recorded tool list into a script: a legacy server with the recorded name, capabilities
//! and tools, whose calls echo their arguments.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::value::RawValue;

use crate::script::{Era, Script, one_line};

pub(crate) fn script(file: &Path, page_size: usize) -> Result<Script, String> {
    let wrong = |error: String| format!("replay `{}`: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    parse(&text, page_size).map_err(|error| wrong(error.to_string()))
}

fn parse(text: &str, page_size: usize) -> Result<Script, serde_json::Error> {
    let recorded: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)?;
    let mut script = Script {
        era: Era::Legacy,
        page_size: Some(page_size),
        plain: true,
        // A recorded tool may have the name of a built-in one.
        built_in: false,
        ..Script::default()
    };
    script.set_tools(&[]);
    for (name, raw) in &recorded {
        match name.as_str() {
            "serverInfo" => script.server_info = serde_json::from_str(raw.get())?,
            "capabilities" => script.capabilities = one_line(raw),
            "instructions" => script.instructions = serde_json::from_str(raw.get())?,
            "protocolVersion" => script.protocol_version = serde_json::from_str(raw.get())?,
            "tools" => {
                let tools: Vec<Box<RawValue>> = serde_json::from_str(raw.get())?;
                script.set_tools(&tools);
            }
            // Other recorded members describe the origin of the list.
            _ => {}
        }
    }
    Ok(script)
}
