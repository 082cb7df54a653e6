//! `lock` with `[[violations]]` in the audits file: it leaves out what they refuse, and nothing accepts that.

use harness::{Bench, Output, contains};
use serde_json::json;

use super::bench::{names, tool};

fn violation(members: &str) -> String {
    format!(
        "[[violations]]\n{members}\nreason = \"sends secrets\"\nwho = \"B\"\ndate = 2026-03-01\n"
    )
}

/// Two sources with two tools each, locked.
fn bench() -> Bench {
    let bench = Bench::with_sources(&["a", "b"]);
    for name in ["a", "b"] {
        bench.script(name, &json!({"tools": [tool("x"), tool("y")]}));
    }
    bench.lock();
    bench
}

fn verify(bench: &Bench) -> Output {
    bench.verb(&["verify", "--offline"])
}

#[test]
fn tool_that_a_violation_refuses_is_left_out_and_never_accepted() {
    let bench = bench();
    bench.write("c.audits.toml", &violation("source = \"/a\"\ntool = \"x\""));
    assert_eq!(verify(&bench).code, Some(5));
    let refused = bench.lock_fails(5);
    contains(&refused, &["error[violation]: `x` of `/a` is refused"]);
    let output = bench.lock();
    contains(
        &output.stderr,
        &[
            "warning[violation]: `x` of `/a` is refused by the violation of B",
            "1 part left out, 1 accepted (by check: violations 1)",
        ],
    );
    let lock = bench.lock_json();
    let source = &lock["sources"][0];
    assert_eq!(names(&source["exposed"], "upstream_name"), ["y"]);
    assert_eq!(source["left_out"][0]["code"], "violation");
    // The lock without the tool is what the violation asks for.
    let output = verify(&bench);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(
        !output.stderr.contains("violation_unmatched"),
        "{}",
        output.stderr
    );
    let (code, report) = bench.check();
    assert_eq!(code, Some(0), "{report:#}");

    let accept = ["accept", "--who", "A", "--left-out", "--source", "/a"];
    let output = bench.verb(&accept);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &["a violation refuses `x` of `/a`, and nothing accepts it"],
    );

    // An entry by hand accepts nothing either, once the violation is gone.
    let digest = source["left_out"][0]["digest"].as_str().expect("a digest");
    bench.write(
        "c.audits.toml",
        &format!("[[left_out]]\nsource = \"/a\"\ntool = \"x\"\nreason = \"violation\"\ndigest = \"{digest}\"\nwho = \"A\"\ndate = 2026-03-01\n"),
    );
    let output = verify(&bench);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "left_out_unaccepted",
            "No violation refuses it any more: run `broker-gen lock",
        ],
    );
    bench.write("c.audits.toml", "");
    bench.lock();
    assert_eq!(
        names(&bench.lock_json()["sources"][0]["exposed"], "upstream_name"),
        ["x", "y"]
    );
}

#[test]
fn source_that_a_violation_refuses_is_not_launched() {
    let bench = bench();
    std::fs::remove_file(bench.path("a.log")).expect("it was launched before");
    bench.write("c.audits.toml", &violation("source = \"/a\""));
    let output = bench.lock();
    contains(
        &output.stderr,
        &["warning[violation]: the source `/a` is refused by the violation of B"],
    );
    assert!(!bench.path("a.log").exists());
    let lock = bench.lock_json();
    assert_eq!(names(&lock["sources"], "path"), ["/b"]);
    assert_eq!(lock["left_out"][0]["code"], "violation");
    assert_eq!(verify(&bench).code, Some(0));
    let before = bench.lock_state();
    bench.lock();
    assert_eq!(bench.lock_state(), before);

    bench.write("c.audits.toml", &violation("source = \"*\""));
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "error[violation]: the source `/b`",
            "the lock was not written",
        ],
    );
    assert!(!bench.path("a.log").exists());
}

#[test]
fn lock_of_another_source_leaves_out_what_a_violation_refuses() {
    let bench = bench();
    std::fs::remove_file(bench.path("a.log")).expect("it was launched before");
    bench.write("c.audits.toml", &violation("source = \"/a\"\ntool = \"y\""));
    let output = bench.verb(&["lock", "--source", "/b"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(!bench.path("a.log").exists());
    let lock = bench.lock_json();
    assert_eq!(
        names(&lock["sources"][0]["exposed"], "upstream_name"),
        ["x"]
    );
    assert_eq!(verify(&bench).code, Some(0));
}

#[test]
fn audits_that_are_not_valid_launch_nothing() {
    let bench = bench();
    std::fs::remove_file(bench.path("a.log")).expect("it was launched before");
    let before = bench.lock_state();
    bench.write("c.audits.toml", "[[violations]]\nsource = \"/a\"\n");
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["audits_value", "missing field `reason`"]);
    assert!(!bench.path("a.log").exists());
    assert_eq!(bench.lock_state(), before);
}
