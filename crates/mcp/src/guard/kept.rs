//! Whether this process is a broker that has a guard. A variable says so, and is believed only where
//! it names our parent and that runs our program: set by hand it changes nothing.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::{Pid, getppid};

use super::{COOKIE, VARIABLE};

/// Digits of a cookie.
const COOKIE_DIGITS: usize = 32;

/// The guard of this process, where it has one. The cookie that it chose becomes ours.
pub(super) fn guard() -> Option<Pid> {
    let value = std::env::var(VARIABLE).ok()?;
    let (guard, cookie) = parse(&value)?;
    if getppid() != Some(guard) || is_another_program(guard) || COOKIE.set(cookie).is_err() {
        return None;
    }
    take_name();
    Some(guard)
}

/// What the guard writes for [`guard`] to read.
pub(super) fn value(guard: Pid, cookie: &str) -> String {
    format!("{}:{cookie}", guard.as_raw_nonzero())
}

fn parse(value: &str) -> Option<(Pid, String)> {
    let (pid, cookie) = value.split_once(':')?;
    let digits = cookie.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || cookie.len() != COOKIE_DIGITS {
        return None;
    }
    let pid = Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 0)?)?;
    Some((pid, cookie.to_owned()))
}

/// Whether it can be seen that the process runs something else than this one. What cannot be seen is
/// no reason: a broker that took its guard for a stranger would start another one.
fn is_another_program(pid: Pid) -> bool {
    let program = |process: &str| std::fs::metadata(format!("/proc/{process}/exe"));
    let theirs = program(&pid.as_raw_nonzero().to_string());
    match (program("self"), theirs) {
        (Ok(ours), Ok(theirs)) => (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()),
        _ => false,
    }
}

/// The guard starts its own file by way of `/proc`, whose name there would be ours.
fn take_name() {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    if let Ok(name) = CString::new(name.as_bytes()) {
        // Another name would be of help only to people.
        let _: rustix::io::Result<()> = rustix::thread::set_name(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_guard_writes_is_read() {
        let guard = Pid::from_raw(17).expect("a number");
        let cookie = "0123456789abcdef0123456789abcdef";
        assert_eq!(
            parse(&value(guard, cookie)),
            Some((guard, cookie.to_owned()))
        );
        for wrong in [
            "",
            "1",
            "off",
            "17:",
            "17:short",
            ":0123456789abcdef0123456789abcdef",
            "0:0123456789abcdef0123456789abcdef",
            "-1:0123456789abcdef0123456789abcdef",
            "x:0123456789abcdef0123456789abcdef",
            "17:0123456789abcdef0123456789abcdeg",
            "17:0123456789abcdef0123456789abcdef0",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn another_program_is_told_from_ours() {
        let ourselves = rustix::process::getpid();
        assert!(!is_another_program(ourselves));
        let parent = getppid().expect("a test has a parent");
        assert!(is_another_program(parent), "tests are started by cargo");
        assert!(!is_another_program(
            Pid::from_raw(i32::MAX).expect("a number")
        ));
    }
}
