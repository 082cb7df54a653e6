//! Checks dependencies between packages, licences, and duplicate versions. Reads the committed
//! `Cargo.lock` by `cargo metadata`, offline.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use harness::Run;
use serde_json::Value;

use crate::workspace;

/// Licences that may be linked, as SPDX identifiers.
pub(super) const LICENCES: [&str; 11] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that may have several versions in the tree, each with the reason.
pub(super) const TWICE: [(&str, &str); 8] = [
    ("base64", "0.22 for jsonwebtoken, 0.23 for hyper-util"),
    (
        "getrandom",
        "0.2 for ring, 0.3 for the hash maps of jsonschema, 0.4 for tempfile and proptest",
    ),
    (
        "rand",
        "0.9 for the SDK of OpenTelemetry, 0.10 for proptest",
    ),
    (
        "rand_core",
        "0.6 for the traits of jsonwebtoken, 0.9 for the SDK of OpenTelemetry, 0.10 for proptest",
    ),
    (
        "schemars",
        "0.8 for typify, 1 for rmcp and the schemas of our files",
    ),
    ("schemars_derive", "as schemars"),
    ("serde_derive_internals", "as schemars"),
    (
        "syn",
        "2 for the derive macros of jsonschema, 3 for other crates and for the generator",
    ),
];

/// The crates that only the generator needs.
const GENERATOR: [&str; 9] = [
    "broker-build",
    "broker-gen",
    "broker-review",
    "prettyplease",
    "proc-macro2",
    "quote",
    "syn",
    "typify",
    "typify-impl",
];

struct Tree {
    packages: BTreeMap<String, Value>,
    nodes: BTreeMap<String, Value>,
}

impl Tree {
    fn read() -> Self {
        let output = Run::new(Path::new(env!("CARGO")))
            .folder(workspace())
            .args([
                "metadata",
                "--offline",
                "--locked",
                "--format-version",
                "1",
                "--filter-platform",
                target(),
            ])
            .output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let metadata: Value = serde_json::from_str(&output.stdout).expect("cargo prints JSON");
        let by_id = |list: &Value| {
            let items = list.as_array().expect("a list").iter();
            items
                .map(|item| (item["id"].as_str().expect("an id").to_owned(), item.clone()))
                .collect()
        };
        Self {
            packages: by_id(&metadata["packages"]),
            nodes: by_id(&metadata["resolve"]["nodes"]),
        }
    }

    fn name(&self, id: &str) -> &str {
        self.packages[id]["name"].as_str().expect("a name")
    }

    fn id(&self, name: &str) -> &str {
        let found = self
            .packages
            .keys()
            .find(|id| self.name(id) == name && self.nodes.contains_key(*id));
        found.unwrap_or_else(|| panic!("{name} is not in the tree"))
    }

    /// Names of packages of the workspace with a dependency of this kind on the package.
    fn users_of(&self, name: &str, kind: &str) -> BTreeSet<String> {
        let uses = |package: &Value| {
            let dependencies = package["dependencies"].as_array().expect("dependencies");
            dependencies.iter().any(|dependency| {
                dependency["name"] == name
                    && dependency["kind"].as_str().unwrap_or("normal") == kind
            })
        };
        let ours = self.packages.values();
        ours.filter(|package| package["source"].is_null() && uses(package))
            .map(|package| package["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Names of everything that is compiled before this package: normal and build dependencies of all.
    fn reached(&self, name: &str) -> BTreeSet<String> {
        let mut open = vec![self.id(name).to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            for dependency in self.nodes[&id]["deps"].as_array().expect("deps") {
                let kinds = dependency["dep_kinds"].as_array().expect("kinds");
                if kinds.iter().any(|kind| kind["kind"] != "dev") {
                    open.push(dependency["pkg"].as_str().expect("an id").to_owned());
                }
            }
        }
        seen.iter().map(|id| self.name(id).to_owned()).collect()
    }

    fn is_proc_macro(&self, id: &str) -> bool {
        let targets = self.packages[id]["targets"].as_array().expect("targets");
        targets.iter().any(|target| {
            target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
        })
    }

    /// Names of everything that ends up in a binary of this package: normal dependencies, without
    /// what proc-macro crates need while they run in the compiler.
    fn linked(&self, name: &str) -> BTreeSet<String> {
        let mut open = vec![self.id(name).to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) || self.is_proc_macro(&id) {
                continue;
            }
            for dependency in self.nodes[&id]["deps"].as_array().expect("deps") {
                let normal = dependency["dep_kinds"]
                    .as_array()
                    .expect("kinds")
                    .iter()
                    .any(|kind| kind["kind"].is_null());
                if normal {
                    open.push(dependency["pkg"].as_str().expect("an id").to_owned());
                }
            }
        }
        seen.iter()
            .filter(|id| !self.is_proc_macro(id))
            .map(|id| self.name(id).to_owned())
            .collect()
    }
}

/// The tree of a selection of packages along these edges, one package in each line.
fn cargo_tree(selection: &[&str], edges: &str) -> String {
    let output = Run::new(Path::new(env!("CARGO")))
        .folder(workspace())
        .args(["tree", "--offline", "--locked"])
        .args(selection)
        .args(["--edges", edges, "--prefix", "none"])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    output.stdout
}

fn target() -> &'static str {
    if cfg!(target_os = "macos") {
        if cfg!(target_arch = "aarch64") {
            "aarch64-apple-darwin"
        } else {
            "x86_64-apple-darwin"
        }
    } else if cfg!(target_arch = "aarch64") {
        "aarch64-unknown-linux-gnu"
    } else {
        "x86_64-unknown-linux-gnu"
    }
}

#[test]
fn generator_is_not_linked_into_the_broker() {
    let linked = Tree::read().linked("broker-binary");
    for name in GENERATOR {
        assert!(
            !linked.contains(name),
            "{name} is in the broker's normal tree"
        );
    }
    assert!(
        linked.contains("axum") && linked.contains("broker-mcp"),
        "the tree was read"
    );
}

#[test]
fn sdk_of_the_tests_is_in_no_program_of_users() {
    let tree = Tree::read();
    assert!(
        tree.linked("oracle-mcp").contains("reqwest"),
        "the tree was read"
    );
    for program in ["broker-binary", "broker-gen", "toolbox-mcp"] {
        let reached = tree.reached(program);
        for name in ["oracle-mcp", "reqwest", "rmcp", "tower-http"] {
            assert!(!reached.contains(name), "{program} needs {name}");
        }
    }
}

#[test]
fn pure_packages_link_no_runtime_and_core_no_server() {
    let tree = Tree::read();
    let core = tree.linked("broker-core");
    // A source over HTTP needs an HTTP client; a server for callers is in the library of the broker.
    for transport in ["axum", "axum-core"] {
        assert!(
            !core.contains(transport),
            "core names no transport of callers, yet links {transport}"
        );
    }
    for pure in [
        "broker-client-files",
        "broker-drift",
        "broker-memory",
        "broker-metrics",
        "broker-model",
        "broker-schema",
        "broker-search",
        "broker-terminal",
        "broker-web",
        "broker-wire",
    ] {
        let linked = tree.linked(pure);
        for runtime in ["tokio", "mio", "tracing"] {
            assert!(
                !linked.contains(runtime),
                "{pure} is pure, yet links {runtime}"
            );
        }
    }
}

#[test]
fn packages_that_compile_a_catalog_are_leaves() {
    let tree = Tree::read();
    // The input of a build script changes with every lock; no other package may be compiled again then.
    let leaves = tree.users_of("broker-build", "build");
    assert!(
        leaves.contains("broker-binary") && leaves.len() > 4,
        "the manifests were read: {leaves:?}"
    );
    for leaf in &leaves {
        for kind in ["normal", "build", "dev"] {
            let users = tree.users_of(leaf, kind);
            assert!(users.is_empty(), "{users:?} depend on the leaf {leaf}");
        }
    }
    for reached in tree.reached("broker-gen") {
        assert!(
            !leaves.contains(&reached),
            "broker-gen depends on {reached}, which is built with broker-gen"
        );
    }
}

#[test]
fn build_script_compiles_no_runtime_and_launches_nothing() {
    let tree = Tree::read();
    let mut users = 0;
    for package in tree
        .packages
        .values()
        .filter(|package| package["source"].is_null())
    {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if dependency["name"] == "broker-build" {
                // The review, the verbs, and the tests in `tests/api` and `tests/cli` use its library.
                let is_test = dependency["kind"] == "dev" && package["name"] == "broker-binary";
                if is_test
                    || ["broker-gen", "broker-review"]
                        .contains(&package["name"].as_str().unwrap_or_default())
                {
                    continue;
                }
                users += 1;
                assert_eq!(
                    dependency["kind"], "build",
                    "{}: only build scripts, the review, the verbs and the tests of the areas use broker-build",
                    package["name"]
                );
            }
        }
    }
    assert!(users >= 4, "the manifests were read");
    let compiled = cargo_tree(&["--package", "broker-build"], "normal");
    assert!(compiled.contains("prettyplease"), "the tree was printed");
    for heavy in [
        "tokio",
        "clap",
        "jsonschema",
        "broker-mcp",
        "broker-process",
        "mcp-broker",
        "rmcp",
    ] {
        let is_compiled = compiled
            .lines()
            .any(|line| line.split(' ').next() == Some(heavy));
        assert!(!is_compiled, "{heavy} is compiled for build scripts");
    }
}

#[test]
fn programs_are_built_without_surfaces_in_memory() {
    // Features are unified over a selection, so the whole workspace shows that of every build.
    let has_scripted = |edges| {
        let tree = cargo_tree(&["--workspace"], edges);
        assert!(tree.contains("mcp-broker feature"), "the tree was printed");
        tree.contains(" feature \"scripted\"")
    };
    assert!(!has_scripted("normal,build,features"));
    assert!(
        has_scripted("normal,build,dev,features"),
        "tests have the feature under this name"
    );
}

#[test]
fn opentelemetry_is_in_a_program_only_with_its_feature() {
    let has_it = |selection: &[&str]| {
        let tree = cargo_tree(selection, "normal,build");
        assert!(tree.contains("broker-observe"), "the tree was printed");
        tree.contains("opentelemetry") || tree.contains("prost")
    };
    for program in ["broker-binary", "broker-gen"] {
        assert!(!has_it(&["--package", program, "--no-default-features"]));
        assert!(has_it(&["--package", program]));
    }
}

#[test]
fn serde_json_has_no_feature_that_changes_order_or_numbers() {
    let tree = Tree::read();
    let features = tree.nodes[tree.id("serde_json")]["features"]
        .as_array()
        .expect("features");
    for forbidden in ["preserve_order", "arbitrary_precision", "unbounded_depth"] {
        assert!(
            !features.iter().any(|feature| feature == forbidden),
            "some crate switches on serde_json's `{forbidden}`"
        );
    }
    assert!(
        features.iter().any(|feature| feature == "float_roundtrip"),
        "floats must read back exactly"
    );
}

#[test]
fn licences_are_allowed() {
    let tree = Tree::read();
    let mut refused = Vec::new();
    for id in tree.nodes.keys() {
        let licence = tree.packages[id]["license"].as_str().unwrap_or("none");
        // An OR needs one allowed alternative, an AND all of its parts.
        let allowed = licence
            .replace('/', " OR ")
            .split(" OR ")
            .any(|alternative| {
                alternative
                    .trim_matches(['(', ')', ' '])
                    .split(" AND ")
                    .all(|part| LICENCES.contains(&part.trim_matches(['(', ')', ' '])))
            });
        if !allowed {
            refused.push(format!("{}: {licence}", tree.name(id)));
        }
    }
    assert!(
        refused.is_empty(),
        "licences outside the list: {refused:#?}"
    );
}

#[test]
fn crate_versions_are_unique_or_have_a_reason() {
    let tree = Tree::read();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for id in tree.nodes.keys() {
        versions
            .entry(tree.name(id))
            .or_default()
            .insert(tree.packages[id]["version"].as_str().expect("a version"));
    }
    let twice: BTreeSet<_> = versions
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(name, _)| *name)
        .collect();
    let allowed: BTreeSet<_> = TWICE.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        twice, allowed,
        "crates in two versions, and the list of those that may: {versions:?}"
    );
}

#[test]
fn exact_pins_are_kept() {
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).expect("the manifest");
    assert!(
        manifest.contains("jsonschema = { version = \"=0.60.2\", default-features = false }"),
        "its proof engine is experimental"
    );
}

/// The tables of a manifest that begin with `[profile.`, without comments.
fn profiles(manifest: &str) -> BTreeSet<String> {
    let text =
        std::fs::read_to_string(workspace().join(manifest)).expect("the manifest can be read");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let without_comments: Vec<&str> = lines.collect();
    without_comments
        .join("\n")
        .split("\n[")
        .filter_map(|table| table.strip_prefix("profile."))
        .map(|table| table.trim().to_owned())
        .collect()
}

#[test]
fn new_crate_has_the_profiles_of_the_workspace() {
    // Other settings would compile every dependency a second time.
    let mut ours = profiles("Cargo.toml");
    // Packages that a new crate does not have.
    let absent = ["toolbox-mcp]", "candle-core]", "gemm"];
    ours.retain(|table| {
        !absent
            .iter()
            .any(|name| table.contains(&format!("package.{name}")))
    });
    let theirs = profiles("broker-gen/src/new/Cargo.toml.in");
    assert_eq!(ours, theirs);
    assert!(
        ours.iter().any(|table| table.starts_with("dist]")),
        "{ours:?}"
    );
}
