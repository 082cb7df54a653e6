//! The hints of a tool's annotations, as reviewed.

use serde_json::{Map, Value};

use crate::null_members::remove_nulls;

/// A boolean annotation of a tool (MCP, `ToolAnnotations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// `readOnlyHint`: the tool only reads.
    ReadOnly,
    /// `destructiveHint`: the tool may delete or overwrite.
    Destructive,
    /// `idempotentHint`: a second call has no further effect.
    Idempotent,
    /// `openWorldHint`: the tool reaches systems outside its server.
    OpenWorld,
}

impl Hint {
    /// Every hint.
    pub const ALL: [Self; 4] = [
        Self::ReadOnly,
        Self::Destructive,
        Self::Idempotent,
        Self::OpenWorld,
    ];

    /// The member of the annotations.
    pub const fn key(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnlyHint",
            Self::Destructive => "destructiveHint",
            Self::Idempotent => "idempotentHint",
            Self::OpenWorld => "openWorldHint",
        }
    }

    /// The hint with this key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hint| hint.key() == key)
    }

    /// The value that claims less safety. An absent hint has this value.
    pub const fn unsafe_value(self) -> bool {
        matches!(self, Self::Destructive | Self::OpenWorld)
    }
}

/// The values of all hints of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints([bool; 4]);

impl Hints {
    /// The hints of reviewed annotations. A hint that is absent or not a boolean has its unsafe value.
    pub fn read(annotations: Option<&Value>) -> Self {
        Self(Hint::ALL.map(|hint| {
            let value = annotations.and_then(|all| all.get(hint.key()));
            value
                .and_then(Value::as_bool)
                .unwrap_or(hint.unsafe_value())
        }))
    }

    /// The value of one hint.
    pub const fn get(self, hint: Hint) -> bool {
        self.0[hint as usize]
    }

    /// Returns the hints that claim more safety here than in the server's hints. For a read-only tool,
    /// `destructiveHint` and `idempotentHint` have no meaning.
    pub fn safer_than(self, server: Self) -> Vec<Hint> {
        let is_read_only = self.get(Hint::ReadOnly);
        let counts =
            |hint: &Hint| !(is_read_only && matches!(hint, Hint::Destructive | Hint::Idempotent));
        let is_safer = |hint: &Hint| {
            self.get(*hint) != server.get(*hint) && server.get(*hint) == hint.unsafe_value()
        };
        let all = Hint::ALL.into_iter();
        all.filter(counts).filter(is_safer).collect()
    }
}

/// The effects that a call of a tool may have, by the hints of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSafety {
    /// It only reads: `readOnlyHint` is true.
    Read,
    /// It changes something, and neither deletes nor overwrites: `destructiveHint` is false.
    Write,
    /// Everything else, and every tool without these hints.
    Destructive,
}

impl CallSafety {
    /// Returns the kind of a tool with these hints.
    pub const fn from_hints(hints: Hints) -> Self {
        match (hints.get(Hint::ReadOnly), hints.get(Hint::Destructive)) {
            (true, _) => Self::Read,
            (false, false) => Self::Write,
            (false, true) => Self::Destructive,
        }
    }
}

/// Returns the annotations in force: the server's annotations, with the hints of the config in place of the same ones.
pub fn reviewed_annotations(
    server: Option<&Value>,
    config: Option<&Map<String, Value>>,
) -> Option<Value> {
    let mut listed = Map::from_iter(server.map(|value| ("annotations".to_owned(), value.clone())));
    remove_nulls(&mut listed);
    let server = listed.remove("annotations");
    let Some(config) = config.filter(|hints| !hints.is_empty()) else {
        return server;
    };
    let mut all = match server {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    for (key, value) in config {
        all.insert(key.clone(), value.clone());
    }
    Some(Value::Object(all))
}
