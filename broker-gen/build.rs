//! Embeds the repository and the revision of this working copy: `broker-gen new` names them in a new crate.
//! Starts no program and opens no socket.

use std::path::Path;

#[path = "origin.rs"]
mod origin;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=origin.rs");
    let Some(root) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() else {
        return;
    };
    let origin = origin::read(root);
    for path in &origin.watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    if let (Some(url), Some(revision)) = (origin.url, origin.revision) {
        println!("cargo::rustc-env=BROKER_GEN_ORIGIN={url}");
        println!("cargo::rustc-env=BROKER_GEN_REVISION={revision}");
    }
}
