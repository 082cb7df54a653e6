//! Tests of the metrics by their text: what a scrape has, how large it can be, and that the programs of Prometheus read it.

mod bounds;
mod deploy;
mod exposition;
mod page;
mod promtool;
mod scrape;
mod stage;

use std::path::Path;

/// The root of the workspace.
fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().and_then(Path::parent);
    root.expect("the package is in crates/metrics")
}
