//! The tree that this broker has compiled in. Cargo builds the program for the tests of this package, which
//! the tests of the areas run.

use std::path::Path;

use harness::{Run, assert_expected};

#[test]
fn compiled_tree_equals_the_expected_one() {
    let broker = Run::new(Path::new(env!("CARGO_BIN_EXE_costly-broker")));
    let output = broker.args(["--dump-tree"]).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let expected = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tree.txt");
    assert_expected(Path::new(expected), &output.stdout);
}
