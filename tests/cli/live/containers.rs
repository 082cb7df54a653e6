//! Commands that start a server in a container or elsewhere: the warnings of `lock` and `doctor`, and the variables for
//! which a command asks. The daemon is a stand-in (`tests/servers/docker`).

use harness::{Bench, Output, StandInDocker, contains};
use serde_json::{Value, json};

/// A source with this command and more members, and the daemon.
fn stage(command: &str, members: Value) -> (Bench, StandInDocker) {
    let bench = Bench::new();
    let words: Vec<&str> = command.split(' ').collect();
    let mut source = members;
    source["command"] = json!(words);
    bench.configure([("a", source)]);
    let docker = StandInDocker::with_source_of(&bench);
    (bench, docker)
}

fn run(stage: &(Bench, StandInDocker), args: &[&str]) -> Output {
    stage
        .1
        .broker_gen(&stage.0, args)
        .env("ASKED_ONE", "1")
        .output()
}

/// The codes and severities of the findings of `doctor`.
fn found(stage: &(Bench, StandInDocker)) -> Vec<(String, String, String)> {
    let output = run(stage, &["doctor", "--format", "json"]);
    let report: Value = serde_json::from_str(&output.stdout).expect(&output.stderr);
    let findings = report["sources"][0]["findings"].as_array().expect("a list");
    let text = |finding: &Value, name: &str| finding[name].as_str().expect(name).to_owned();
    let findings = findings.iter().map(|one| {
        (
            text(one, "code"),
            text(one, "severity"),
            text(one, "message"),
        )
    });
    findings.collect()
}

#[test]
fn container_without_init_that_does_not_end_is_a_warning_and_is_removed() {
    let deaf = stage("docker run -i --rm deaf", json!({}));
    let output = run(&deaf, &["lock"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "warning[did_not_end]: `/a`: its process did not end after its input was closed and after SIGTERM, and was killed; its container `mcp-broker-",
            "` was removed",
            "warning[container_init]: `/a`: `docker run` has no `--init`",
            "help: Write `--init` after `docker run`.",
        ],
    );
    assert_eq!(deaf.1.containers(), [""; 0], "of two launches none is left");
    let findings = found(&deaf);
    assert_eq!(deaf.1.containers(), [""; 0]);
    let codes: Vec<_> = findings
        .iter()
        .map(|one| (one.0.as_str(), one.1.as_str()))
        .collect();
    assert_eq!(
        codes,
        [("did_not_end", "warning"), ("container_init", "warning")]
    );
}

#[test]
fn container_with_init_or_a_program_that_ends_is_no_warning() {
    for command in [
        "docker run -i --rm --init deaf",
        "podman run --init -i --rm deaf",
        "docker run -i --rm good",
    ] {
        let stage = stage(command, json!({}));
        let output = run(&stage, &["lock", "--once"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        for word in ["did_not_end", "container_init"] {
            assert!(
                !output.stderr.contains(word),
                "{command}: {}",
                output.stderr
            );
        }
        assert_eq!(stage.1.containers(), [""; 0], "{command}");
        let output = run(&stage, &["doctor"]);
        assert_eq!(output.code, Some(0), "{}", output.stdout);
        let is_noted = output.stdout.contains("note[container_init]");
        assert_eq!(is_noted, command.ends_with("good"), "{}", output.stdout);
    }
}

#[test]
fn program_elsewhere_that_does_not_end_with_its_input_is_a_warning() {
    for (command, program) in [
        ("docker exec -i container deaf", "`docker exec`"),
        ("podman exec -i container deaf", "`podman exec`"),
        ("nerdctl exec -i container deaf", "`nerdctl exec`"),
        ("kubectl exec -i pod -- deaf", "`kubectl exec`"),
        ("ssh host deaf", "`ssh`"),
    ] {
        let stage = stage(command, json!({}));
        let findings = found(&stage);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let (code, _, message) = &findings[0];
        assert_eq!(code, "did_not_end");
        contains(message, &[program, "may still run"]);
        assert_eq!(
            stage.1.containers().len(),
            1,
            "the stand-in passes no signal on"
        );
    }
}

#[test]
fn variable_that_a_command_asks_for_is_named_where_it_is_withheld() {
    let command = "docker run -i --rm --init -e ASKED_ONE -e ASKED_NOT_SET -e ASKED_GIVEN=2 good";
    let withheld = stage(command, json!({}));
    let output = run(&withheld, &["lock", "--once"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "warning[variable_withheld]: `/a`: `docker run` asks for `ASKED_ONE`; set here and not passed on, it is missing",
        ],
    );
    let inherited = stage(command, json!({"inherit_env": ["ASKED_ONE"]}));
    let output = run(&inherited, &["lock", "--once"]);
    assert!(
        !output.stderr.contains("variable_withheld"),
        "{}",
        output.stderr
    );

    let from_file = stage("docker run -i --rm --init --env-file v.env good", json!({}));
    from_file.0.write("v.env", "# text\nASKED_ONE\nOTHER=1\n");
    let findings = found(&from_file);
    assert_eq!(findings.len(), 1, "{findings:?}");
    contains(&findings[0].2, &["`ASKED_ONE`"]);
}
