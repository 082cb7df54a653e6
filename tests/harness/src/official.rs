//! Where `tests/clients/install` and `tests/conformance/install` put the official clients and the suite.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of `tests` that its `install` has filled.
fn installed(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let folder = tests.expect("the harness lies in `tests`").join(name);
    assert!(
        folder.join("installed").exists(),
        "tests/{name} is not installed; run tests/conformance/install"
    );
    folder
}

/// The folder of the official clients, and of the issuer of tokens.
pub fn official_clients() -> PathBuf {
    installed("clients")
}

/// The Python with the SDK of a generation, `v1` or `v2`.
pub fn official_python(generation: &str) -> PathBuf {
    let environments = official_clients().join("venv");
    environments.join(generation).join("bin/python")
}

/// The private Node 22 of the conformance suite.
pub fn private_node() -> PathBuf {
    let packages = fs::read_dir(installed("conformance").join("node_modules"));
    let packages = packages.into_iter().flatten().flatten();
    let mut nodes = packages
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("node-"))
        .map(|entry| entry.path().join("bin/node"));
    let found = nodes.find(|node| node.exists());
    found.expect("the suite has a Node for this system")
}
