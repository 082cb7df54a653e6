//! Programs in a mount namespace of an unprivileged user: file systems of a test, which no other program sees.

use std::path::Path;

use crate::program::Run;

/// Lets the tests pass where the kernel refuses namespaces.
const WITHOUT: &str = "CI_NO_NAMESPACES";

/// Whether the kernel has mount namespaces for this user. It panics if it has not, unless `CI_NO_NAMESPACES=1` is set.
pub fn has_mount_namespaces() -> bool {
    let entered = Run::new(Path::new("unshare")).args(["-r", "-m", "true"]);
    let entered = entered.output();
    if entered.code != Some(0) {
        let is_allowed = std::env::var(WITHOUT).is_ok_and(|value| value == "1");
        assert!(
            is_allowed,
            "the kernel refuses mount namespaces (`unshare -r -m`): {}allow them, or set {WITHOUT}=1 to leave out the faults of file systems",
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
