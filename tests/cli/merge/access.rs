//! Locks of branches of which one changed the rules of access: with the config of the merge, and by its digest alone.

use broker_model::lock::{LOCK_VERSION, Lock, PARTIAL_LOCK_VERSION};
use harness::{Bench, Output};
use serde_json::{Value, json};

use super::repository::{CONFIG, Clone, LOCK};
use crate::offline::bench::{config, tool, write_lock_of_version};

/// Adds rules by which the group `g` may call tools of this pattern.
fn with_rules(config: &mut Value, allowed: &str) {
    config["access"] = json!({"groups": ["g"], "rules": [{"allow": [allowed], "to": ["g"]}]});
}

/// Writes the sources of the repository; the rules are far from them, so that git merges the texts.
fn configure(clone: &Clone, filter: &str, allowed: Option<&str>) {
    clone.configure([("a", filter), ("b", "*")]);
    let Some(allowed) = allowed else { return };
    let mut rules = json!({});
    with_rules(&mut rules, allowed);
    let text = clone.bench.read(CONFIG);
    let sources = text.strip_prefix('{').expect("an object");
    let rules = format!("{{\"access\": {},\n\n\n\n\n", rules["access"]);
    clone.bench.write(CONFIG, &format!("{rules}{sources}"));
}

#[test]
fn branch_that_changed_the_rules_merges_with_one_that_changed_a_source() {
    for theirs in [Some("/a/*"), None] {
        let clone = Clone::new();
        for name in ["a", "b"] {
            clone.tools(name, &[format!("read_{name}")]);
        }
        clone.bench.write(".gitignore", "*.log\n");
        configure(&clone, "*", Some("/*/*"));
        clone.verb_fine(&["lock", "--once"]);
        clone.commit("base");
        clone.git_fine(&["checkout", "-q", "-b", "theirs"]);
        configure(&clone, "*", theirs);
        clone.verb_fine(&["lock", "--once"]);
        clone.commit("theirs");
        clone.git_fine(&["checkout", "-q", "-b", "ours", "main"]);
        configure(&clone, "*_*", Some("/*/*"));
        clone.verb_fine(&["lock", "--once"]);
        clone.commit("ours");
        clone.git_fine(&["merge", "-q", "theirs"]);
        let merged = Lock::parse(LOCK, &clone.bench.read(LOCK)).expect("a lock");
        assert_eq!(merged.access_digest.is_some(), theirs.is_some());
        clone.is_fresh("merged");
    }
}

/// The lock of these rules and tools, in a file of this name.
fn side(bench: &Bench, name: &str, version: u64, rules: Option<&str>, tools: &[&str]) -> Lock {
    let mut config = config(json!({}));
    if let Some(allowed) = rules {
        with_rules(&mut config, allowed);
    }
    let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
    write_lock_of_version(version, bench, name, &config, &tools);
    let file = format!("{name}.lock.json");
    Lock::parse(&file, &bench.read(&file)).expect("a lock")
}

/// Runs the driver on the sides without their config.
fn drive(bench: &Bench) -> Output {
    let files = ["base.lock.json", "ours.lock.json", "theirs.lock.json"];
    bench.run(&["lock", "--merge-driver", files[0], files[1], files[2]])
}

#[test]
fn driver_without_the_config_takes_the_rules_of_the_side_that_changed_them() {
    for rules in [Some("/a/x"), None] {
        let bench = Bench::new();
        let version = match rules {
            Some(_) => PARTIAL_LOCK_VERSION,
            None => LOCK_VERSION,
        };
        side(&bench, "base", PARTIAL_LOCK_VERSION, Some("/a/*"), &["x"]);
        let more = ["x", "y"];
        side(&bench, "ours", PARTIAL_LOCK_VERSION, Some("/a/*"), &more);
        let changed = side(&bench, "theirs", version, rules, &["x"]);
        let output = drive(&bench);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let merged = Lock::parse("ours", &bench.read("ours.lock.json")).expect("a lock");
        assert_eq!(
            (merged.version, &merged.config_digest, &merged.access_digest),
            (version, &changed.config_digest, &changed.access_digest)
        );
        assert_eq!(merged.sources[0].exposed.len(), more.len());
    }
}

#[test]
fn driver_does_not_guess_the_rules_that_no_side_records() {
    let bench = Bench::new();
    side(&bench, "base", LOCK_VERSION, Some("/a/*"), &["x"]);
    let mut ours = side(&bench, "ours", LOCK_VERSION, Some("/a/*"), &["x"]);
    ours.sources[0].kept = Some(broker_model::LeftOutCode::NotStarted);
    // The mark needs version 3, and this lock claims that there were no rules.
    ours.version = PARTIAL_LOCK_VERSION;
    let mut other = config(json!({"tool_filter": ["x"]}));
    with_rules(&mut other, "/a/*");
    bench.write("ours.lock.json", &ours.to_text());
    write_lock_of_version(LOCK_VERSION, &bench, "theirs", &other, &[tool("x")]);
    let text = bench.read("theirs.lock.json");
    let mut theirs = Lock::parse("theirs", &text).expect("a lock");
    theirs.sources = ours.sources.clone();
    theirs.sources[0].kept = None;
    bench.write("theirs.lock.json", &theirs.to_text());
    let output = drive(&bench);
    assert_ne!(output.code, Some(0), "{}", output.stderr);
    harness::contains(
        &output.stderr,
        &["a side has format version 2, which does not record `access`"],
    );
}
