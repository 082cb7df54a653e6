//! Checks of the repository: its files, its pages, its dependencies.

use std::path::Path;

mod admission;
mod advisories;
mod arrows;
mod circles;
mod commands;
mod constants;
mod decisions;
mod dependencies;
mod docs;
mod faults_page;
mod mutants;
mod pages;
mod rust_text;
mod tidy;

/// The root of the workspace.
fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().and_then(Path::parent);
    root.expect("the package is in tests/repository")
}
