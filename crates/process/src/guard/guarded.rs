//! Detects whether this process is a broker with a guard. The environment variable counts only if it
//! names the parent process and that process is a guard, so setting it by hand has no effect.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Pid, getppid};

use super::VARIABLE;
use crate::containers;
use crate::cookie::COOKIE;
use crate::unix::inherited_file;

/// The name of a guard in the process table. No broker has this name.
const NAME: &CStr = c"mcp-guard";

/// Digits of a cookie.
const COOKIE_DIGITS: usize = 32;

/// Finds the guard of this process, if it has one. Its cookie becomes the cookie of this process, and its memory gets
/// the list of containers.
pub(super) fn find_guard() -> Option<Pid> {
    let value = std::env::var(VARIABLE).ok()?;
    let (guard, cookie, memory) = parse(&value)?;
    if getppid() != Some(guard) || is_another_program(guard) || COOKIE.set(cookie).is_err() {
        return None;
    }
    take_name();
    if let Some(memory) = memory.and_then(|number| inherited_file(number).ok()) {
        containers::share_with_guard(memory);
    }
    Some(guard)
}

/// Returns the value that the guard writes for [`find_guard`].
/// `memory` is the number of a file that the broker inherits.
pub(super) fn value(guard: Pid, cookie: &str, memory: Option<RawFd>) -> String {
    let memory = memory.map_or_else(String::new, |number| format!(":{number}"));
    format!("{}:{cookie}{memory}", guard.as_raw_nonzero())
}

fn parse(value: &str) -> Option<(Pid, String, Option<RawFd>)> {
    let (pid, rest) = value.split_once(':')?;
    let (cookie, memory) = match rest.split_once(':') {
        // Standard streams are not meant.
        Some((cookie, number)) => (cookie, Some(number.parse().ok().filter(|fd| *fd > 2)?)),
        None => (rest, None),
    };
    let digits = cookie.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || cookie.len() != COOKIE_DIGITS {
        return None;
    }
    let pid = Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 0)?)?;
    Some((pid, cookie.to_owned(), memory))
}

/// Whether the process is certainly not a guard. A guard does not let other processes read its program, so its name in
/// the process table is compared. A process whose name cannot be read counts as a guard: a broker that mistook its
/// guard for another program would start a second guard.
fn is_another_program(pid: Pid) -> bool {
    let name = std::fs::read(format!("/proc/{}/comm", pid.as_raw_nonzero()));
    name.is_ok_and(|name| name.trim_ascii_end() != NAME.to_bytes())
}

/// Sets the process name of a guard. The broker recognises the guard by it, and a person does not
/// confuse the two processes.
pub(super) fn take_guard_name() -> io::Result<()> {
    rustix::thread::set_name(NAME)?;
    if is_another_program(rustix::process::getpid()) {
        // Without this name the broker could not recognise its guard.
        return Err(io::Error::other(
            "cannot set the name of the guard's process",
        ));
    }
    Ok(())
}

/// Sets the process name to the program's name: the guard executes it as `/proc/self/exe`, and would get the name
/// `exe`.
pub(super) fn take_name() {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    if let Ok(name) = CString::new(name.as_bytes()) {
        // Only people who read the process table use the broker's name, so an error is ignored.
        let _: rustix::io::Result<()> = rustix::thread::set_name(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_variable_is_read_only_as_a_guard_writes_it() {
        let guard = Pid::from_raw(17).expect("a number");
        let cookie = "0123456789abcdef0123456789abcdef";
        for memory in [None, Some(3)] {
            assert_eq!(
                parse(&value(guard, cookie, memory)),
                Some((guard, cookie.to_owned(), memory))
            );
        }
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
            "17:0123456789abcdef0123456789abcdef:",
            "17:0123456789abcdef0123456789abcdef:2",
            "17:0123456789abcdef0123456789abcdef:x",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn guard_is_not_another_program() {
        let parent = getppid().expect("a test has a parent");
        assert!(is_another_program(parent), "tests are started by cargo");
        assert!(!is_another_program(
            Pid::from_raw(i32::MAX).expect("a number")
        ));
    }
}
