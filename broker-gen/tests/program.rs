//! The program as Cargo builds it, which the tests in `tests/cli` run.

use std::path::Path;

use harness::Run;

#[test]
fn program_prints_its_name_and_version() {
    let program = Run::new(Path::new(env!("CARGO_BIN_EXE_broker-gen")));
    let output = program.args(["--version"]).output();
    let version = concat!("broker-gen ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), version));
}
