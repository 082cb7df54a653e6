//! The random value in the environment of each server, by which its descendants are found.

use std::sync::OnceLock;

use crate::random_u64;

/// The variable that holds the cookie.
pub(crate) const VARIABLE: &str = "MCP_BROKER_COOKIE";

pub(crate) static COOKIE: OnceLock<String> = OnceLock::new();

/// Returns a value unique to this broker, in the environment of every server and its descendants.
pub(crate) fn broker_cookie() -> &'static str {
    COOKIE.get_or_init(|| format!("{:016x}{:016x}", random_u64(), random_u64()))
}

/// Whether the process was started with such a `NAME=value`.
#[cfg(target_os = "linux")]
pub(crate) fn has_variable(pid: i32, is_it: impl Fn(&[u8]) -> bool) -> bool {
    // Unreadable: a process of another user, or an ended one. Empty: a zombie, or a kernel thread.
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(is_it))
}
