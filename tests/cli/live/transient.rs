//! Servers whose start fails once or always in the era of the lock: they are tried once more in it, and the reason is the
//! failure in it.

use harness::figure::Watch;
use harness::{Bench, HttpSources, Output, contains, http_script};
use serde_json::{Value, json};

/// The shell script of a server that crashes at its first starts; `crashes` has their number.
const START: &str = "echo start >> starts
if [ \"$(wc -l < starts)\" -le \"$(cat crashes)\" ]; then echo 'registry timed out' >&2; exit 7; fi
exec chaos-mcp --script a.json --journal a.log
";

/// A folder with such a server, locked in this era.
fn crashing(era: &str) -> Bench {
    let bench = Bench::new();
    bench.write("start.sh", START);
    bench.script("a", &json!({ "era": era }));
    bench.configure([("a", json!({"command": ["sh", "start.sh"]}))]);
    crashes(&bench, 0);
    bench.lock();
    bench
}

/// Lets the next starts crash.
fn crashes(bench: &Bench, count: usize) {
    bench.write("crashes", &count.to_string());
    bench.write("starts", "");
}

/// Everything that was shown, on one line.
fn shown(output: &Output) -> String {
    let all = format!("{} {}", output.stdout, output.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number of starts since.
fn starts(bench: &Bench) -> usize {
    bench.read("starts").lines().count()
}

#[test]
fn start_that_crashes_once_is_checked_at_its_second_try() {
    for era in ["legacy", "modern"] {
        let bench = crashing(era);
        crashes(&bench, 1);
        let checked = bench.verb(&["check"]);
        assert_eq!(checked.code, Some(0), "{era}: {}", checked.stderr);
        assert_eq!(starts(&bench), 2, "{era}");
        crashes(&bench, 1);
        let doctor = bench.verb(&["doctor"]);
        assert_eq!(doctor.code, Some(0), "{era}: {}", doctor.stdout);
        assert_eq!(starts(&bench), 2, "{era}");
    }
}

#[test]
fn start_that_always_crashes_is_named_by_its_exit_and_last_line() {
    for era in ["legacy", "modern"] {
        let bench = crashing(era);
        crashes(&bench, 9);
        let checked = bench.verb(&["check"]);
        assert_eq!(checked.code, Some(4), "{era}: {}", checked.stderr);
        let shown = shown(&checked);
        contains(
            &shown,
            &[
                "exit_before_ready",
                "exited with code 7",
                "registry timed out",
            ],
        );
        for wrong in ["too old", "-32601", "handshake_failed"] {
            assert!(!shown.contains(wrong), "{era}: {shown}");
        }
        assert_eq!(starts(&bench), 2, "{era}");
    }
}

#[test]
fn new_lock_keeps_the_era_of_a_server_whose_first_start_crashes() {
    for era in ["legacy", "modern"] {
        let bench = crashing(era);
        let before = bench.lock_text();
        crashes(&bench, 1);
        let locked = bench.verb(&["lock", "--once"]);
        assert_eq!(locked.code, Some(0), "{era}: {}", locked.stderr);
        assert_eq!(starts(&bench), 2, "{era}");
        assert_eq!(bench.lock_text(), before, "{era}");
    }
}

#[test]
fn first_lock_detects_a_server_that_dies_at_the_probe_and_check_asks_its_era_first() {
    let bench = Bench::with_sources(&["a"]);
    bench.script("a", &json!({"era": "probe-dies"}));
    bench.lock();
    let revision = &bench.lock_json()["sources"][0]["protocol_version"];
    assert_ne!(*revision, "2026-07-28");
    assert_eq!(bench.journal("a", "discover").len(), 1);
    assert_eq!(bench.verb(&["check"]).code, Some(0));
    assert_eq!(bench.journal("a", "discover").len(), 1);
}

#[test]
fn lock_takes_a_modern_server_that_is_legacy_now_and_dies_at_the_probe() {
    let bench = crashing("modern");
    let before = bench.lock_text();
    bench.script("a", &json!({"era": "probe-dies"}));
    crashes(&bench, 0);
    let checked = bench.verb(&["check"]);
    assert_eq!(checked.code, Some(4), "{}", checked.stderr);
    assert_eq!(
        starts(&bench),
        2,
        "`check` asks in the era of the lock only"
    );

    crashes(&bench, 0);
    let locked = bench.verb(&["lock", "--once"]);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    assert_eq!(starts(&bench), 3);
    contains(
        &locked.stderr,
        &["/a: it was locked with MCP 2026-07-28, and answers MCP 2025-11-25 now"],
    );
    assert_ne!(bench.lock_text(), before);
    assert_eq!(bench.verb(&["check"]).code, Some(0));
    // A server that crashes in every era is named by its exit, and the lock keeps it.
    crashes(&bench, 9);
    bench.write("c.lock.json", &before);
    let crashed = bench.verb(&["lock", "--once"]);
    assert_eq!(crashed.code, Some(8), "{}", crashed.stderr);
    assert_eq!(starts(&bench), 3);
    contains(
        &crashed.stderr,
        &["exited with code 7", "registry timed out", "kept"],
    );
}

#[test]
fn first_lock_names_the_crash_before_the_refusal_of_the_other_era() {
    let bench = crashing("modern");
    std::fs::remove_file(bench.path("c.lock.json")).expect("it was locked");
    crashes(&bench, 1);
    let locked = bench.verb(&["lock"]);
    assert_ne!(locked.code, Some(0), "{}", locked.stderr);
    contains(
        &locked.stderr,
        &["exited with code 7", "registry timed out"],
    );
}

/// Sources over HTTP, locked in this era. The opening requests of `/a` from `first` to `last` have the fault.
fn failing(era: &str, fault: &Value, last: u64, timeout: u64) -> HttpSources {
    let sources = HttpSources::with(&http_script(era, &json!({})), |config| {
        let tree = config["tree"].as_array_mut().expect("a list");
        tree.truncate(1);
        tree[0]["source"]["startup_timeout"] = timeout.into();
    });
    sources.lock();
    let method = match era {
        "modern" => "server/discover",
        _ => "initialize",
    };
    let rule = json!({"on": {"method": method}, "nth": [1, last], "do": fault});
    sources
        .chaos
        .script("a", &http_script(era, &json!({ "rules": [rule] })));
    sources
}

/// The number of requests that open a session.
fn openings(sources: &HttpSources) -> usize {
    let of = |method: &str| sources.chaos.requests("a", &json!({"rpc_method": method}));
    of("server/discover").len() + of("initialize").len()
}

fn busy(status: u16, retry_after: Option<&str>) -> Value {
    match retry_after {
        Some(wait) => json!({"status": status, "headers": {"Retry-After": wait}}),
        None => json!({"status": status}),
    }
}

#[test]
fn server_over_http_that_fails_once_is_checked_at_its_second_try() {
    for era in ["legacy", "modern"] {
        for fault in [
            busy(500, None),
            busy(502, None),
            busy(503, Some("1")),
            busy(429, Some("1")),
        ] {
            let sources = failing(era, &fault, 1, 20);
            let before = openings(&sources);
            let checked = sources.verb("check", &[]).output();
            assert_eq!(checked.code, Some(0), "{era} {fault}: {}", checked.stderr);
            assert_eq!(openings(&sources) - before, 2, "{era} {fault}");
        }
    }
}

#[test]
fn server_over_http_that_always_fails_is_named_by_its_status() {
    for era in ["legacy", "modern"] {
        for status in [502, 503] {
            let sources = failing(era, &busy(status, Some("1")), u64::MAX, 20);
            let before = openings(&sources);
            let checked = sources.verb("check", &[]).output();
            assert_eq!(checked.code, Some(4), "{era}: {}", checked.stderr);
            let shown = shown(&checked);
            contains(&shown, &["unreachable", &format!("HTTP status {status}")]);
            assert!(!shown.contains("too old"), "{era}: {shown}");
            assert_eq!(openings(&sources) - before, 2, "{era} {status}");
        }
    }
}

#[test]
fn pause_beyond_the_startup_timeout_is_refused_with_its_figure() {
    for (given, figure) in [("120", "120 s"), ("99999999999999999999", "3600 s")] {
        let sources = failing("legacy", &busy(503, Some(given)), 1, 20);
        let before = openings(&sources);
        let checked = sources.verb("check", &[]).output();
        assert_eq!(checked.code, Some(4), "{}", checked.stderr);
        let shown = shown(&checked);
        contains(
            &shown,
            &["HTTP status 503", figure, "`startup_timeout` is 20 s"],
        );
        assert_eq!(openings(&sources) - before, 1, "{given}");
    }
}

#[test]
fn second_try_that_hangs_ends_with_the_time_of_the_first() {
    let sources = failing("legacy", &json!("hang"), u64::MAX, 3);
    let post = json!({"http_method": "POST"});
    let rules = json!([
        {"on": post, "nth": 1, "do": busy(503, Some("1"))},
        {"on": post, "do": "hang"},
    ]);
    sources
        .chaos
        .script("a", &http_script("legacy", &json!({ "rules": rules })));
    let watch = Watch::start();
    let checked = sources.verb("check", &[]).output();
    let took = watch.passed();
    assert_eq!(checked.code, Some(4), "{}", checked.stderr);
    // Two tries of 3 s each would take more.
    assert!(took.as_secs_f64() < 5.5, "{took:?}");
    contains(
        &shown(&checked),
        &["HTTP status 503", "a second try got no answer within 3 s"],
    );
}
