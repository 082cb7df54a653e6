//! The packages of the programs and the packages that each may use: one table, compared with the manifests and with the
//! picture at the top of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use harness::Run;
use serde_json::Value;

use crate::workspace;

/// The packages, from the ones that use no other package up to the programs, each with the packages that it uses.
const ARROWS: [(&str, &[&str]); 36] = [
    ("broker-files", &[]),
    ("broker-http-client", &[]),
    ("broker-memory", &[]),
    ("broker-model", &[]),
    ("broker-search", &[]),
    ("broker-web", &[]),
    ("broker-store", &["broker-model"]),
    ("broker-audit", &["broker-files", "broker-model"]),
    ("broker-audits-file", &["broker-files", "broker-model"]),
    ("broker-config", &["broker-model"]),
    ("broker-client-files", &["broker-config", "broker-model"]),
    ("broker-metrics", &["broker-model"]),
    ("broker-process", &["broker-model"]),
    ("broker-schema", &["broker-model"]),
    ("broker-terminal", &["broker-model"]),
    ("broker-wire", &["broker-memory", "broker-model"]),
    ("broker-drift", &["broker-model", "broker-schema"]),
    (
        "broker-embed",
        &[
            "broker-config",
            "broker-files",
            "broker-http-client",
            "broker-model",
            "broker-search",
        ],
    ),
    (
        "broker-identity",
        &[
            "broker-config",
            "broker-files",
            "broker-http-client",
            "broker-model",
        ],
    ),
    (
        "broker-mcp",
        &[
            "broker-config",
            "broker-files",
            "broker-http-client",
            "broker-memory",
            "broker-model",
            "broker-process",
            "broker-wire",
        ],
    ),
    (
        "broker-core",
        &[
            "broker-config",
            "broker-drift",
            "broker-embed",
            "broker-mcp",
            "broker-memory",
            "broker-model",
            "broker-process",
            "broker-schema",
            "broker-search",
            "broker-wire",
        ],
    ),
    (
        "broker-observe",
        &[
            "broker-audit",
            "broker-core",
            "broker-metrics",
            "broker-model",
            "broker-process",
            "broker-wire",
        ],
    ),
    (
        "broker-jobs",
        &["broker-core", "broker-model", "broker-store"],
    ),
    (
        "broker-otlp",
        &[
            "broker-audit",
            "broker-core",
            "broker-http-client",
            "broker-metrics",
            "broker-observe",
        ],
    ),
    (
        "broker-surface",
        &[
            "broker-core",
            "broker-metrics",
            "broker-model",
            "broker-wire",
        ],
    ),
    (
        "broker-surface-mcp",
        &[
            "broker-config",
            "broker-core",
            "broker-drift",
            "broker-model",
            "broker-observe",
            "broker-surface",
            "broker-wire",
        ],
    ),
    (
        "broker-surface-http",
        &[
            "broker-config",
            "broker-core",
            "broker-identity",
            "broker-metrics",
            "broker-model",
            "broker-observe",
            "broker-surface",
            "broker-surface-mcp",
            "broker-web",
            "broker-wire",
        ],
    ),
    (
        "broker-doctor",
        &[
            "broker-config",
            "broker-core",
            "broker-drift",
            "broker-mcp",
            "broker-model",
            "broker-process",
            "broker-terminal",
            "broker-wire",
        ],
    ),
    (
        "broker-audit-query",
        &[
            "broker-audit",
            "broker-audits-file",
            "broker-config",
            "broker-files",
            "broker-model",
            "broker-process",
            "broker-schema",
        ],
    ),
    (
        "mcp-broker",
        &[
            "broker-audit",
            "broker-audit-query",
            "broker-config",
            "broker-core",
            "broker-doctor",
            "broker-drift",
            "broker-files",
            "broker-http-client",
            "broker-identity",
            "broker-jobs",
            "broker-mcp",
            "broker-metrics",
            "broker-model",
            "broker-observe",
            "broker-otlp",
            "broker-process",
            "broker-surface",
            "broker-surface-http",
            "broker-surface-mcp",
            "broker-terminal",
            "broker-wire",
        ],
    ),
    (
        "broker-build",
        &[
            "broker-audits-file",
            "broker-config",
            "broker-files",
            "broker-model",
            "broker-schema",
            "broker-search",
        ],
    ),
    (
        "broker-review",
        &[
            "broker-audits-file",
            "broker-build",
            "broker-config",
            "broker-doctor",
            "broker-drift",
            "broker-files",
            "broker-model",
            "broker-process",
            "broker-schema",
            "broker-search",
            "broker-terminal",
        ],
    ),
    (
        "broker-gen",
        &[
            "broker-audits-file",
            "broker-build",
            "broker-client-files",
            "broker-config",
            "broker-core",
            "broker-doctor",
            "broker-drift",
            "broker-embed",
            "broker-files",
            "broker-http-client",
            "broker-mcp",
            "broker-model",
            "broker-process",
            "broker-review",
            "broker-schema",
            "broker-search",
            "broker-terminal",
            "broker-web",
            "broker-wire",
            "mcp-broker",
        ],
    ),
    ("broker-binary", &["mcp-broker"]),
    ("broker-runtime", &["mcp-broker"]),
    // Test servers and the harness share no code with the broker.
    ("harness", &[]),
];

/// Packages for tests alone, whose arrows do not matter to users.
const OF_TESTS: [&str; 9] = [
    "chaos-broker",
    "chaos-mcp",
    "corpus-broker",
    "fuzz",
    "hot-path",
    "oracle-mcp",
    "repository",
    "soak",
    "toolbox-mcp",
];

/// Reads the packages of the workspace, each with the packages that its manifest uses at run time.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let output = Run::new(std::path::Path::new(env!("CARGO")))
        .folder(workspace())
        .args(["metadata", "--offline", "--locked", "--no-deps"])
        .args(["--format-version", "1"])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let metadata: Value = serde_json::from_str(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    let uses = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("a list");
        let normal = dependencies.iter().filter(|it| it["kind"].is_null());
        normal
            .map(name)
            .filter(|used| ours.contains(used))
            .collect()
    };
    packages.iter().map(|it| (name(it), uses(it))).collect()
}

#[test]
fn packages_use_only_packages_below_as_the_table_says() {
    let mut manifests = manifests();
    for name in OF_TESTS {
        manifests.remove(name).expect("it is a package");
    }
    let table: BTreeMap<String, BTreeSet<String>> = ARROWS
        .iter()
        .map(|(name, uses)| {
            let uses = uses.iter().map(|used| (*used).to_owned());
            ((*name).to_owned(), uses.collect())
        })
        .collect();
    assert_eq!(manifests, table);
    let mut below = BTreeSet::new();
    for (name, uses) in ARROWS {
        for used in uses {
            assert!(
                below.contains(used),
                "`{name}` uses `{used}`, which is not below it"
            );
        }
        below.insert(name);
    }
}

/// Whether a package uses another one through a third one, so that the picture needs no arrow.
fn is_indirect(uses: &[&str], used: &str) -> bool {
    let of = |name: &str| {
        let row = ARROWS.iter().find(|(known, _)| *known == name);
        row.expect("the table has it").1
    };
    let mut open: Vec<&str> = uses
        .iter()
        .copied()
        .filter(|other| *other != used)
        .collect();
    while let Some(name) = open.pop() {
        if of(name).contains(&used) {
            return true;
        }
        open.extend(of(name));
    }
    false
}

/// Draws the packages and their arrows for Mermaid, without arrows that follow from others.
fn picture() -> String {
    let arrows = ARROWS.iter().rev().flat_map(|(name, uses)| {
        let direct = uses.iter().filter(|used| !is_indirect(uses, used));
        direct.map(move |used| format!("    {name} --> {used}\n"))
    });
    format!("flowchart TD\n{}", arrows.collect::<String>())
}

#[test]
fn picture_of_the_packages_is_drawn_from_the_table() {
    const BEGIN: &str = "```mermaid\n";
    const END: &str = "```\n";
    let file = workspace().join("ARCHITECTURE.md");
    let page = fs::read_to_string(&file).expect("the page can be read");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a picture");
    let (drawn, after) = rest.split_once(END).expect("the picture ends");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let page = format!("{before}{BEGIN}{}{END}{after}", picture());
        fs::write(&file, page).expect("the page can be written");
        return;
    }
    let picture = picture();
    assert!(
        drawn == picture,
        "`UPDATE_EXPECT=1 cargo test -p repository --locked` draws it again:\n{}",
        harness::text_difference(drawn, &picture)
    );
}
