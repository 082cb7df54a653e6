//! Reads a script field by field, strictly, so that a typo in a test fails loudly.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Bulk, Era, Grandchild, RpcError, Script};
use crate::faults::Behaviour;
use crate::http::{Settings, Transport};
use crate::tasks::TaskPlan;

type Raw = Box<RawValue>;

/// Reads a field as the type of its target.
macro_rules! read {
    ($raw:expr) => {
        serde_json::from_str($raw.get()).map_err(|error| error.to_string())?
    };
}

impl Script {
    /// Reads a script; an absent field keeps its default.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fields: BTreeMap<String, Raw> =
            serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))?;
        let mut script = Self::default();
        for (name, raw) in &fields {
            script
                .set(name, raw)
                .map_err(|error| format!("field `{name}`: {error}"))?;
        }
        script.check_transport(fields.contains_key("era"))?;
        Ok(script)
    }

    /// The older transport is always legacy.
    fn check_transport(&mut self, has_era: bool) -> Result<(), String> {
        if self.http.transport == Transport::OldSse {
            if has_era && matches!(self.era, Era::Modern | Era::Both) {
                return Err("field `era`: the transport sse needs a legacy era".to_owned());
            }
            if !has_era {
                self.era = Era::Legacy;
            }
        }
        Ok(())
    }

    /// Replaces the tools by these.
    pub(crate) fn set_tools(&mut self, tools: &[Raw]) {
        self.tools = tools.iter().map(|tool| one_line(tool)).collect();
        self.names = names(&self.tools);
    }

    fn set(&mut self, name: &str, raw: &RawValue) -> Result<(), String> {
        let value = || -> Result<Value, String> { Ok(read!(raw)) };
        match name {
            "era" => self.era = Era::parse(&value()?)?,
            "protocol_version" => self.protocol_version = read!(raw),
            "supported_versions" => self.supported_versions = read!(raw),
            "probe_error" => self.probe_error = RpcError::parse(&value()?)?,
            "server_info" => self.server_info = value()?,
            "instructions" => self.instructions = read!(raw),
            "capabilities" => self.capabilities = one_line(raw),
            "ttl_ms" => self.ttl_ms = value()?,
            "tools" => {
                let tools: Vec<Raw> = read!(raw);
                self.set_tools(&tools);
            }
            "built_in" => self.built_in = read!(raw),
            "page_size" => {
                self.page_size = read!(raw);
                if self.page_size == Some(0) {
                    return Err("must be above 0".to_owned());
                }
            }
            "list_loop" => self.list_loop = read!(raw),
            "list_endless" => self.list_endless = read!(raw),
            "list_error" => {
                self.list_error = match value()? {
                    Value::Null | Value::Bool(false) => None,
                    Value::Bool(true) => Some(RpcError::new(-32603, "the list is broken")),
                    error => Some(RpcError::parse(&error)?),
                }
            }
            "list_delay_ms" => self.list_delay_ms = read!(raw),
            "list_hang_after" => self.list_hang_after = read!(raw),
            "cursor_bytes" => self.cursor_bytes = read!(raw),
            "bulk" => self.bulk = Some(Bulk::parse(&value()?)?),
            "start_delay_ms" => self.start_delay_ms = read!(raw),
            "start_shell" => self.start_shell = read!(raw),
            "start_exit" => self.start_exit = read!(raw),
            "start_stderr" => self.start_stderr = read!(raw),
            "start_noise" => self.start_noise = lines(&value()?, "noise on stdout")?,
            "stderr_lines" => self.stderr_lines = lines(&value()?, "a line on stderr")?,
            "stderr_flood" => self.stderr_flood = read!(raw),
            "ignore_eof" => self.ignore_eof = read!(raw),
            "ignore_sigterm" => self.ignore_sigterm = read!(raw),
            "ignore_cancel" => self.ignore_cancel = read!(raw),
            "no_drain_after" => self.no_drain_after = read!(raw),
            "fork_grandchild" => self.fork_grandchild = Grandchild::parse(&value()?)?,
            "on_call" => self.on_call = behaviours(raw)?,
            "on_method" => self.on_method = behaviours(raw)?,
            "tasks" => self.tasks = TaskPlan::parse_all(&value()?)?,
            "plain" => self.plain = read!(raw),
            "generation" => self.generation = read!(raw),
            "notify" => self.notify = read!(raw),
            "http" => self.http = Settings::parse(&value()?)?,
            _ => return Err("is not known".to_owned()),
        }
        Ok(())
    }
}

impl Era {
    fn parse(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            Some("legacy") => Ok(Self::Legacy),
            Some("modern") => Ok(Self::Modern),
            Some("both") => Ok(Self::Both),
            Some("silent-probe") => Ok(Self::SilentProbe),
            Some("probe-dies") => Ok(Self::ProbeDies),
            _ => Err("must be legacy, modern, both, silent-probe or probe-dies".to_owned()),
        }
    }
}

impl Grandchild {
    fn parse(value: &Value) -> Result<Option<Self>, String> {
        match value {
            Value::Bool(false) | Value::Null => Ok(None),
            Value::Bool(true) => Ok(Some(Self::Plain)),
            Value::String(kind) if kind == "group" => Ok(Some(Self::Group)),
            Value::String(kind) if kind == "setsid" => Ok(Some(Self::Session)),
            Value::String(kind) if kind == "bare" => Ok(Some(Self::Bare)),
            _ => Err("must be true, false, group, setsid or bare".to_owned()),
        }
    }
}

/// A raw JSON text on one line. A newline inside a JSON string is always escaped, so the bare ones
/// are white space between its parts.
pub(crate) fn one_line(raw: &RawValue) -> String {
    raw.get().replace(['\n', '\r'], "")
}

/// The names of raw tools, if they have one; the rest of a tool may be anything.
pub(super) fn names(tools: &[String]) -> Vec<String> {
    let name = |tool: &String| {
        let members: BTreeMap<String, Raw> = serde_json::from_str(tool).ok()?;
        serde_json::from_str(members.get("name")?.get()).ok()
    };
    tools.iter().filter_map(name).collect()
}

fn behaviours(raw: &RawValue) -> Result<BTreeMap<String, Behaviour>, String> {
    let given: BTreeMap<String, Value> = read!(raw);
    let parse = |(name, value): (String, Value)| {
        let behaviour = Behaviour::parse(&value).map_err(|error| format!("`{name}`: {error}"))?;
        Ok((name, behaviour))
    };
    given.into_iter().map(parse).collect()
}

/// Lines given one by one, or a number of lines to make up.
fn lines(value: &Value, made_up: &str) -> Result<Vec<String>, String> {
    let wrong = || "must be a number or a list of strings".to_owned();
    match value {
        Value::Number(count) => {
            let count = count.as_u64().ok_or_else(wrong)?;
            Ok((1..=count).map(|at| format!("{made_up} {at}")).collect())
        }
        Value::Array(lines) => {
            let lines = lines.iter().map(|line| line.as_str().map(str::to_owned));
            lines.collect::<Option<_>>().ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}
