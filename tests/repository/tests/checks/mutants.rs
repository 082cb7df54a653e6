//! The lists of mutants, compared with the code that they name.

use std::path::Path;

use harness::Run;

use crate::workspace;

#[test]
fn lists_of_mutants_fit_the_code() {
    let run = workspace().join("tests/mutants/run");
    let run = run.to_str().expect("the path is text");
    let output = Run::new(Path::new("/usr/bin/env"))
        .args(["python3", run, "--check"])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}
