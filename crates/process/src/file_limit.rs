//! The limit of open files: raised for the broker, because it serves many connections, and as it was for children,
//! since programs that close all possible files, or use `select`, expect a small one.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit at the start of the program, if it was raised.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of open files to `wanted`, or to the hard limit if that is less. Children get the limit that
/// the program was started with. A limit that cannot be raised stays as it is.
pub fn raise_file_limit(wanted: u64) {
    let original = getrlimit(Resource::Nofile);
    let most = original.maximum.unwrap_or(u64::MAX).min(wanted);
    if original.current.is_none_or(|current| current >= most) {
        return;
    }
    let raised = Rlimit {
        current: Some(most),
        ..original
    };
    let original = ORIGINAL.get_or_init(|| original);
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, ?original, "the limit of open files was not raised");
    }
}

/// Returns the limit for children, if it differs from the program's limit.
pub(super) fn for_children() -> Option<Rlimit> {
    ORIGINAL.get().copied()
}
