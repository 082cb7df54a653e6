//! The suite as the server of the broker's client: the example `http_client` of `broker-mcp`. Scenarios of
//! authorization are left out, since the example has no token.

use std::collections::BTreeSet;

use harness::{Bench, binary};

use super::{Failures, add_failures, read_results, suite_run, unexpected};

/// The runs: their names in `expected.tsv`, the version of the suite, what it runs.
const RUNS: [(&str, &str, [&str; 2]); 3] = [
    (
        "client-2026-07-28",
        "conformance-modern",
        ["--requirements", "2026-07-28"],
    ),
    (
        "client-2025-11-25",
        "conformance-modern",
        ["--requirements", "2025-11-25"],
    ),
    ("client-stable", "conformance-stable", ["--suite", "core"]),
];

/// The scenarios that no row may excuse; each is in at least one run.
pub(super) const REQUIRED: [&str; 9] = [
    "http-custom-headers",
    "http-invalid-tool-headers",
    "http-standard-headers",
    "initialize",
    "json-schema-2020-12-preservation",
    "json-schema-ref-no-deref",
    "request-metadata",
    "sse-retry",
    "tools_call",
];

#[test]
fn client_passes_the_suite_except_as_listed() {
    let bench = Bench::new();
    let client = binary("examples/http_client");
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (name, suite, args) in RUNS {
        let results = bench.path(name);
        let output = suite_run(suite)
            .args([&["client"][..], &args, &["--command"]].concat())
            .args([client.as_os_str(), "-o".as_ref(), results.as_os_str()])
            .output();
        let (mut ran, mut failures) = (BTreeSet::new(), Failures::new());
        for (scenario, checks) in read_results(&results, &output) {
            add_failures(&scenario, &checks, &mut failures);
            ran.insert(scenario);
        }
        wrong.extend(unexpected(name, "client", &ran, &failures));
        seen.extend(ran);
    }
    let missing = REQUIRED
        .iter()
        .filter(|scenario| !seen.contains(**scenario));
    wrong.extend(missing.map(|scenario| format!("no run has {scenario}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
