//! The script: all settings of a test, with their defaults. Tools and capabilities stay raw JSON text, since
//! unusual numbers and orders are part of tests; `fields` reads the file.

mod fields;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

pub(crate) use self::fields::one_line;
use crate::faults::Behaviour;
use crate::http::Settings;
use crate::tasks::TaskPlan;

/// The supported eras, and the reaction to the probe for the modern one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
    Both,
    /// Legacy; `server/discover` is never answered.
    SilentProbe,
    /// Legacy; `server/discover` ends the process.
    ProbeDies,
}

/// The error of the script.
#[derive(Clone, Debug)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grandchild {
    /// In the group and session of the server.
    Plain,
    /// In a separate process group.
    Group,
    /// In a separate session.
    Session,
    /// In a separate session, with an empty environment.
    Bare,
}

/// Tools that are made when they are listed: `bulk-0` and so on, each with `times` times `text` as the
/// items of a list in its schema.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    pub(crate) tools: usize,
    pub(crate) text: String,
    pub(crate) times: usize,
}

impl Bulk {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let number = |name: &str| {
            let number = value[name].as_u64().and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| format!("`{name}` must be a number"))
        };
        Ok(Self {
            tools: number("tools")?,
            text: value["text"]
                .as_str()
                .ok_or("`text` must be a string")?
                .to_owned(),
            times: number("times")?,
        })
    }

    pub(crate) fn tool(&self, at: usize) -> String {
        let items = vec![self.text.as_str(); self.times].join(",");
        format!(r#"{{"name":"bulk-{at}","inputSchema":{{"type":"object","default":[{items}]}}}}"#)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) era: Era,
    pub(crate) protocol_version: Option<String>,
    pub(crate) supported_versions: Option<Vec<String>>,
    pub(crate) probe_error: RpcError,
    pub(crate) server_info: Value,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: String,
    pub(crate) ttl_ms: Value,
    /// One raw JSON text per tool, without newlines.
    pub(crate) tools: Vec<String>,
    /// The names in `tools`.
    pub(crate) names: Vec<String>,
    /// Whether tools with the names of the built-in ones act like them.
    pub(crate) built_in: bool,
    pub(crate) page_size: Option<usize>,
    pub(crate) list_loop: bool,
    pub(crate) list_endless: bool,
    pub(crate) list_error: Option<RpcError>,
    pub(crate) list_delay_ms: u64,
    /// Number of pages of a list after which no page is answered.
    pub(crate) list_hang_after: Option<usize>,
    /// Minimum length of a cursor.
    pub(crate) cursor_bytes: usize,
    /// Tools that are listed after the others, too large for a script.
    pub(crate) bulk: Option<Bulk>,
    pub(crate) start_delay_ms: u64,
    /// A shell script that runs to its end before the first message; its output is journalled.
    pub(crate) start_shell: Option<String>,
    pub(crate) start_exit: Option<u8>,
    pub(crate) start_stderr: Option<String>,
    pub(crate) start_noise: Vec<String>,
    pub(crate) stderr_lines: Vec<String>,
    pub(crate) stderr_flood: u64,
    pub(crate) ignore_eof: bool,
    pub(crate) ignore_sigterm: bool,
    pub(crate) ignore_cancel: bool,
    pub(crate) no_drain_after: Option<u64>,
    pub(crate) fork_grandchild: Option<Grandchild>,
    pub(crate) on_call: BTreeMap<String, Behaviour>,
    pub(crate) on_method: BTreeMap<String, Behaviour>,
    /// The tools that are called as tasks.
    pub(crate) tasks: HashMap<String, TaskPlan>,
    pub(crate) plain: bool,
    pub(crate) generation: u64,
    pub(crate) notify: u64,
    /// The transport over HTTP and its faults.
    pub(crate) http: Settings,
}

impl Default for Script {
    fn default() -> Self {
        let tools = crate::default_tools::descriptions();
        Self {
            era: Era::Both,
            protocol_version: None,
            supported_versions: None,
            probe_error: RpcError::new(-32601, "method not found"),
            server_info: json!({"name": "chaos-mcp", "version": env!("CARGO_PKG_VERSION")}),
            instructions: None,
            capabilities: r#"{"tools":{"listChanged":true}}"#.to_owned(),
            ttl_ms: json!(0),
            names: fields::names(&tools),
            tools,
            built_in: true,
            page_size: None,
            list_loop: false,
            list_endless: false,
            list_error: None,
            list_delay_ms: 0,
            list_hang_after: None,
            cursor_bytes: 0,
            bulk: None,
            start_delay_ms: 0,
            start_shell: None,
            start_exit: None,
            start_stderr: None,
            start_noise: Vec::new(),
            stderr_lines: Vec::new(),
            stderr_flood: 0,
            ignore_eof: false,
            ignore_sigterm: false,
            ignore_cancel: false,
            no_drain_after: None,
            fork_grandchild: None,
            on_call: BTreeMap::new(),
            on_method: BTreeMap::new(),
            tasks: HashMap::new(),
            plain: false,
            generation: 0,
            notify: 0,
            http: Settings::default(),
        }
    }
}

const LEGACY_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

impl Script {
    /// The revision that `initialize` is answered with.
    pub(crate) fn legacy_version(&self, asked: Option<&str>) -> String {
        let negotiated = || {
            asked
                .filter(|asked| LEGACY_VERSIONS.contains(asked))
                .unwrap_or(LEGACY_VERSIONS[0])
        };
        match &self.protocol_version {
            Some(version) => version.clone(),
            None => negotiated().to_owned(),
        }
    }

    /// Whether a legacy session may have this revision.
    pub(crate) fn is_legacy_version(&self, version: &str) -> bool {
        LEGACY_VERSIONS.contains(&version)
            || (self.era != Era::Modern && self.protocol_version.as_deref() == Some(version))
    }

    /// The revisions that `server/discover` names.
    pub(crate) fn modern_versions(&self) -> Vec<String> {
        match (&self.supported_versions, self.era, &self.protocol_version) {
            (Some(versions), _, _) => versions.clone(),
            (None, Era::Modern, Some(version)) => vec![version.clone()],
            _ => vec!["2026-07-28".to_owned()],
        }
    }
}

impl RpcError {
    pub(crate) fn new(code: i64, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            data: None,
        }
    }

    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        match (value["code"].as_i64(), value["message"].as_str()) {
            (Some(code), Some(message)) => Ok(Self {
                code,
                message: message.to_owned(),
                data: value.get("data").cloned(),
            }),
            _ => Err("an error needs an integer `code` and a string `message`".to_owned()),
        }
    }
}
