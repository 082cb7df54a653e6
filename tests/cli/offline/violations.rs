//! `[[violations]]` of the audits file in `verify`: what it refuses stays refused, whatever audits and exemptions say.

use broker_model::lock::Lock;
use harness::{Bench, Output, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};

/// A config that requires audits, and its lock with these tools on `/a`; `hidden` is hidden.
fn bench(tools: &[Value]) -> Bench {
    let bench = Bench::new();
    let mut config = config(json!({"tool_filter": ["!hidden"]}));
    config["audits_required"] = true.into();
    write_lock(&bench, "c", &config, tools);
    bench.fine(&["accept", "--config", "c.json", "--all", "--who", "A"]);
    bench
}

/// An entry with these members.
fn violation(members: &str) -> String {
    format!(
        "[[violations]]\n{members}\nreason = \"sends secrets\"\nwho = \"B\"\ndate = 2026-03-01\n"
    )
}

/// Verifies with these entries besides the audits of everything, which were made before.
fn verify(bench: &Bench, entries: &str) -> Output {
    let audits = bench.read("c.audits.toml");
    let (audits, _) = audits.split_once("[[violations]]").unwrap_or((&audits, ""));
    let exemption = "[[exemptions]]\nsource = \"*\"\ntool = \"*\"\nreason = \"r\"\nwho = \"A\"\nexpires = \"2999-01-01\"\n";
    let known = audits.contains(exemption);
    let exemption = if known { "" } else { exemption };
    bench.write("c.audits.toml", &format!("{audits}{exemption}{entries}"));
    bench.verb(&["verify", "--offline"])
}

#[test]
fn violation_precedes_audits_and_exemptions() {
    let bench = bench(&[tool("x"), tool("y")]);
    let digest = |name: &str| {
        let lock = Lock::parse("c", &bench.read("c.lock.json")).expect("a lock");
        let mut tools = lock.sources[0].exposed.iter();
        let tool = tools
            .find(|tool| tool.upstream_name == name)
            .expect("it is locked");
        tool.digest.as_str().to_owned()
    };
    assert_eq!(verify(&bench, "").code, Some(0));
    let by_digest = format!("source = \"*\"\ndigest = \"{}\"", digest("x"));
    for members in [
        "source = \"/a\"\ntool = \"x\"",
        "source = \"/?\"\ntool = \"[x]\"",
        &by_digest,
    ] {
        let output = verify(&bench, &violation(members));
        assert_eq!(output.code, Some(5), "{members}: {}", output.stderr);
        contains(
            &output.stderr,
            &[
                "error[violation]: `x` of `/a` is refused by the violation of B on 2026-03-01: sends secrets",
                "c.audits.toml:",
                "Run `broker-gen lock --config c.json`",
            ],
        );
        assert!(!output.stderr.contains("`y` of"), "{}", output.stderr);
    }
    let output = verify(&bench, &violation("source = \"/a\""));
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &["the source `/a` is refused by the violation"],
    );
    assert_eq!(output.stderr.matches("error[violation]").count(), 1);
}

#[test]
fn violation_of_other_bytes_refuses_nothing_and_is_a_warning() {
    let bench = bench(&[tool("x"), tool("hidden")]);
    let other = format!(
        "source = \"/a\"\ntool = \"x\"\ndigest = \"sha256/1:{}\"",
        "0".repeat(64)
    );
    for members in [&other, "source = \"/b\"", "source = \"/a\"\ntool = \"z*\""] {
        let output = verify(&bench, &violation(members));
        assert_eq!(output.code, Some(0), "{members}: {}", output.stderr);
        contains(
            &output.stderr,
            &[
                "warning[violation_unmatched]: a violation matches nothing in the lock",
                "sends secrets",
            ],
        );
        contains(&output.stdout, &["verified: "]);
    }
    // A tool that the source hides is refused already.
    let output = verify(&bench, &violation("source = \"/a\"\ntool = \"hidden\""));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(
        !output.stderr.contains("violation_unmatched"),
        "{}",
        output.stderr
    );
}

#[test]
fn violation_matches_look_alikes_of_a_name() {
    // The second letter is Cyrillic; an alias gives the tool a path.
    let bench = Bench::new();
    let name = "r\u{435}ad";
    let config = config(json!({"path_aliases": {name: "read2"}}));
    write_lock(&bench, "c", &config, &[tool(name)]);
    bench.write("c.audits.toml", "");
    let output = verify(&bench, &violation("source = \"/a\"\ntool = \"read\""));
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(&output.stderr, &["error[violation]"]);
}

#[test]
fn violation_that_is_not_valid_is_refused_once() {
    let bench = bench(&[tool("x")]);
    for (members, said) in [
        ("source = \"!/a\"", "expected a glob without `!`"),
        ("source = \"/a\"\ntool = \"[\"", "expected a glob"),
        ("source = \"/a\"\ndigest = \"x\"", "audits_value"),
        (
            "source = \"/a\"\nexpires = \"2999-01-01\"",
            "audits_unknown_key",
        ),
        ("tool = \"x\"", "missing field `source`"),
    ] {
        let output = verify(&bench, &violation(members));
        assert_eq!(output.code, Some(2), "{members}: {}", output.stderr);
        assert_eq!(output.stderr.matches(said).count(), 1, "{}", output.stderr);
    }
    let no_reason = "[[violations]]\nsource = \"/a\"\nwho = \"B\"\ndate = 2026-03-01\n";
    contains(
        &verify(&bench, no_reason).stderr,
        &["missing field `reason`"],
    );
}

#[test]
fn violation_with_control_characters_is_shown_on_one_line() {
    let bench = bench(&[tool("x")]);
    let entry = "[[violations]]\nsource = \"/a\"\nreason = \"a\\n\\u001b[31mb\"\nwho = \"\\u202eB\"\ndate = 2026-03-01\n";
    let output = verify(&bench, entry);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    assert!(
        !output.stderr.contains('\u{1b}') && !output.stderr.contains('\u{202e}'),
        "{:?}",
        output.stderr
    );
}

#[test]
fn violations_are_kept_by_accept() {
    let bench = bench(&[tool("x")]);
    verify(&bench, &violation("source = \"/none\""));
    let before = bench.read("c.audits.toml");
    bench.fine(&["accept", "--config", "c.json", "--all", "--who", "C"]);
    let after = bench.read("c.audits.toml");
    assert!(after.starts_with(&before), "{after}");
    assert_eq!(after.matches("[[violations]]").count(), 1);
}

/// Each entry is compared with each tool, so a file of a fork with very many would take hours.
#[test]
fn violations_and_exemptions_over_the_limit_are_refused_with_the_count() {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    let entry = |list: &str, last: &str| {
        format!("[[{list}]]\nsource = \"/z\"\ntool = \"z*\"\nreason = \"r\"\nwho = \"W\"\n{last}\n")
    };
    for (list, last) in [
        ("violations", "date = \"2026-01-01\""),
        ("exemptions", "expires = \"2099-01-01\""),
    ] {
        bench.write("c.audits.toml", &entry(list, last).repeat(500));
        let output = bench.run(&["verify", "--config", "c.json"]);
        assert_eq!(output.code, Some(0), "{list}: {}", output.stderr);
        bench.write("c.audits.toml", &entry(list, last).repeat(501));
        let output = bench.run(&["verify", "--config", "c.json"]);
        assert_eq!(output.code, Some(2), "{list}: {}", output.stderr);
        let message = format!("`[[{list}]]` has 501 entries, and at most 500 are read");
        contains(&output.stderr, &["audits_value", &message]);
    }
}
