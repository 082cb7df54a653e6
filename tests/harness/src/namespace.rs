//! Programs in namespaces of an unprivileged user: file systems of a test, which no other program sees, and processes as a
//! container numbers them.

use std::path::Path;

use crate::program::Run;

/// Lets the tests pass where the kernel refuses namespaces.
const WITHOUT: &str = "CI_NO_NAMESPACES";
/// A process namespace with its own `/proc`.
const PROCESSES: [&str; 3] = ["-p", "-f", "--mount-proc"];

/// Whether the kernel has mount namespaces for this user. It panics if it has not, unless `CI_NO_NAMESPACES=1` is set.
pub fn has_mount_namespaces() -> bool {
    is_entered(&["-m"])
}

/// Whether the kernel has process namespaces for this user. It panics if it has not, unless `CI_NO_NAMESPACES=1` is set.
pub fn has_process_namespaces() -> bool {
    is_entered(&PROCESSES)
}

fn is_entered(options: &[&str]) -> bool {
    let entered = Run::new(Path::new("unshare")).args(["-r"]);
    let entered = entered.args(options).args(["true"]).output();
    if entered.code != Some(0) {
        let is_allowed = std::env::var(WITHOUT).is_ok_and(|value| value == "1");
        let options = options.join(" ");
        assert!(
            is_allowed,
            "the kernel refuses namespaces (`unshare -r {options}`): {}allow them, or set {WITHOUT}=1 to leave out the tests that need them",
            entered.stderr
        );
    }
    entered.code == Some(0)
}

/// The program in a new mount namespace, after this shell script. The script may mount file systems, and must end with
/// `exec "$0" "$@"`.
pub fn in_mount_namespace(run: Run, script: &str) -> Run {
    run.through("unshare", &["-r", "-m", "/bin/sh", "-c", script])
}

/// The program as process 1 of a new process namespace. Its parent here is `unshare`.
pub fn as_process_1(run: Run) -> Run {
    let mut options = vec!["-r"];
    options.extend(PROCESSES);
    run.through("unshare", &options)
}
