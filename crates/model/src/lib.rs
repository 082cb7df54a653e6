//! Data of the broker: lock, digests, codes and diagnostics.
//!
//! Everything here is pure: no file, process, socket, clock or async. Callers pass bytes and get a value
//! that is valid, or every problem of the input.

#![forbid(unsafe_code)]

pub mod access;
pub mod address;
pub mod alias;
pub mod apps;
mod backend;
pub mod codes;
pub mod conflict_markers;
pub mod diagnostic;
pub mod digest;
pub mod exit;
pub mod extension;
pub mod filter;
pub mod flat_name;
mod glob;
pub mod header_params;
pub mod item;
pub mod job_state;
pub mod json;
#[cfg(feature = "schema")]
pub mod json_schema;
pub mod left_out;
pub mod lock;
pub mod look;
pub mod model_vendor;
pub mod name_safety;
pub mod null_members;
pub mod path;
pub mod path_words;
pub mod public_names;
pub mod redact;
mod request_id;
pub mod secret_text;
pub mod sensitive_words;
mod shown_forms;
pub mod snapshot;
pub mod suggest;
pub mod terminal;
pub mod text;
pub mod tool_names;
pub mod trust;
pub mod unseen;
pub mod uri;
mod uri_authority;
pub mod uri_filter;
pub mod uri_template;
mod uri_text;
pub mod url;
pub mod utc;

pub use backend::Backend;
pub use codes::{CallCode, DiagnosticCode, LeftOutCode, SourceCause};
pub use diagnostic::{Diagnostic, Severity};
pub use path::NodePath;
pub use request_id::RequestId;
pub use snapshot::Snapshot;
