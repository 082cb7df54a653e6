//! Tests that need a whole process: what they measure belongs to the process and not to a test.

use crate::program::Run;

/// Set for the process that runs the test alone.
const ALONE: &str = "TEST_RUNS_ALONE";

/// Runs `test` in another process of this test program, which runs nothing else. `module` is the
/// `module_path!()` of the test, `name` its name.
pub fn alone(module: &str, name: &str, test: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let output = again(module, name).env(ALONE, "1").output();
    assert!(
        output.code == Some(0) && output.stdout.contains("1 passed"),
        "{}{}",
        output.stdout,
        output.stderr
    );
}

/// This test program with only this test.
pub fn again(module: &str, name: &str) -> Run {
    let program = std::env::current_exe().expect("the test has a path");
    let path = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{name}"),
        None => name.to_owned(),
    };
    Run::new(&program).args(["--exact", "--nocapture", "--test-threads=1", path.as_str()])
}
