//! Servers in containers: a container is not a descendant of the broker, so it is removed by its name when its client was
//! killed, in whatever way client and broker ended. The daemon is a stand-in (`tests/servers/docker`).
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Child;

use harness::{Bench, Broker, Run, StandInDocker, contains, guarded_by, wait_until};
use serde_json::{Value, json};

/// A folder whose source `/a` runs in a container of the image `deaf` or `good`.
struct Stage {
    bench: Bench,
    docker: StandInDocker,
}

impl Stage {
    /// `command` is that of the source.
    fn new(command: &Value) -> Self {
        let bench = Bench::new();
        bench.configure([("a", json!({"command": command}))]);
        let docker = StandInDocker::with_source_of(&bench);
        Self { bench, docker }
    }

    fn run(&self, args: &[&str]) -> Run {
        self.docker.broker_gen(&self.bench, args)
    }

    fn locked(command: &Value) -> Self {
        let stage = Self::new(command);
        let output = stage.run(&["lock", "--once"]).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert_eq!(stage.docker.containers(), [""; 0], "{}", output.stderr);
        stage
    }

    fn serve(&self) -> Broker {
        let broker = Broker::start_ready(self.run(&["serve", "127.0.0.1:0"]));
        assert_eq!(self.docker.containers().len(), 1);
        broker
    }

    /// Waits until no container exists.
    fn await_none(&self, what: &str) {
        wait_until(what, || self.docker.containers().is_empty());
    }
}

fn kill(pids: &[u32]) {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let command = format!("kill -KILL {}", pids.join(" "));
    let killed = Run::new(Path::new("/bin/sh"))
        .args(["-c", &command])
        .output();
    assert_eq!(killed.code, Some(0), "{}", killed.stderr);
}

/// Kills a broker and its guard at once.
fn kill_both(broker: Broker) {
    let pid = broker.pid();
    kill(&[broker.guard(), pid]);
    drop(broker);
    // The process that adopts it may leave it as a zombie.
    wait_until("the broker has ended", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
}

/// The process ids of clients of the stand-in that run a container of this broker.
fn clients(broker: &Broker) -> Vec<u32> {
    clients_of(broker.pid())
}

fn clients_of(program: u32) -> Vec<u32> {
    let children = harness::children_of(program).into_iter();
    children
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("docker.py")
        })
        .collect()
}

#[test]
fn container_is_removed_after_sigkill_of_client_broker_and_both() {
    let stage = Stage::locked(&json!(["docker", "run", "-i", "--rm", "deaf"]));
    let broker = stage.serve();
    let name = stage.docker.containers()[0].clone();
    assert!(name.starts_with("mcp-broker-"), "{name}");
    kill(&clients(&broker));
    wait_until("the container of the killed client is removed", || {
        !stage.docker.containers().contains(&name)
    });
    wait_until("the source is up again", || {
        broker.source("/a")["state"] == "ready"
    });

    kill(&[broker.pid()]);
    stage.await_none("the guard removes the container");
    drop(broker);

    let broker = stage.serve();
    kill(&[clients(&broker), vec![broker.pid()]].concat());
    stage.await_none("the guard removes the container of a client that is gone");
    drop(broker);

    let broker = stage.serve();
    kill(&[clients(&broker), vec![broker.guard()]].concat());
    stage.await_none("the broker removes the container when its guard was killed");
    drop(broker);

    let broker = stage.serve();
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    assert_eq!(stage.docker.containers(), [""; 0], "{log}");
    contains(&log, &["the process did not end and was killed"]);
}

#[test]
fn container_with_a_name_of_the_config_is_removed_by_its_id() {
    let command = json!(["docker", "run", "-i", "--rm", "--name", "mine", "deaf"]);
    let stage = Stage::locked(&command);
    let broker = stage.serve();
    assert_eq!(stage.docker.containers(), ["mine"]);
    kill(&[clients(&broker), vec![broker.pid()]].concat());
    stage.await_none("the guard removes the container");
    drop(broker);

    // A container of this name that another program started is left as it is.
    let other = Run::new(&stage.docker.bin().join("docker"))
        .args(["run", "-i", "--name", "mine", "deaf"])
        .spawn_with_input();
    wait_until("it runs", || stage.docker.containers() == ["mine"]);
    let output = stage.run(&["doctor"]).output();
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert_eq!(stage.docker.containers(), ["mine"], "{}", output.stdout);
    drop(other);
}

#[test]
fn container_that_ends_by_itself_is_not_removed_by_the_broker() {
    let stage = Stage::locked(&json!(["docker", "run", "-i", "--rm", "good"]));
    let broker = stage.serve();
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    assert_eq!(stage.docker.containers(), [""; 0], "{log}");
    for word in ["was killed", "was removed", "cannot be removed"] {
        assert!(!log.contains(word), "{log}");
    }
}

#[test]
fn container_of_broker_and_guard_killed_at_once_is_removed_by_the_next_start() {
    for name in ["", "--name mine "] {
        let command = format!("docker run -i --rm {name}deaf");
        let command: Vec<&str> = command.split(' ').collect();
        let stage = Stage::locked(&json!(command));
        for next in ["serve", "doctor", "lock"] {
            let broker = stage.serve();
            let left = stage.docker.containers();
            kill_both(broker);
            assert_eq!(
                stage.docker.containers(),
                left,
                "no process is left that removes it"
            );
            if next == "serve" {
                // A name of the config is free again.
                let broker = stage.serve();
                let (status, log) = broker.terminate();
                assert!(status.success(), "{log}");
                contains(
                    &log,
                    &["a container was removed that a killed process had left"],
                );
            } else {
                // `doctor` warns of the container that does not end.
                let output = stage.run(&[next]).output();
                let expected = i32::from(next == "doctor");
                assert_eq!(
                    output.code,
                    Some(expected),
                    "{}{}",
                    output.stdout,
                    output.stderr
                );
            }
            assert_eq!(stage.docker.containers(), [""; 0], "after {next}");
        }
    }
}

/// `lock` or another command whose server does not answer, so that the command waits for it.
fn waiting(stage: &Stage, command: &str) -> Child {
    let child = stage.run(&[command]).spawn_with_input();
    wait_until("its container runs", || {
        stage.docker.containers().len() == 1
    });
    child
}

#[test]
fn container_of_lock_check_or_doctor_is_removed_after_sigkill() {
    let deaf = json!({"command": ["docker", "run", "-i", "--rm", "deaf"]});
    let mute = json!({"command": ["docker", "run", "-i", "--rm", "mute"]});
    for command in ["lock", "check", "doctor"] {
        let stage = Stage::new(&deaf["command"]);
        stage.bench.configure([("a", deaf.clone())]);
        if command == "check" {
            let output = stage.run(&["lock", "--once"]).output();
            assert_eq!(output.code, Some(0), "{}", output.stderr);
        }
        stage.bench.configure([("a", mute.clone())]);
        let kills: [fn(u32, u32) -> Vec<u32>; 3] = [
            // The program that waits for the server, without the guard that started it.
            |_, program| vec![program],
            |guard, _| vec![guard],
            |_, program| [clients_of(program), vec![program]].concat(),
        ];
        for (number, pids) in kills.iter().enumerate() {
            let mut child = waiting(&stage, command);
            let program = guarded_by(child.id());
            kill(&pids(child.id(), program));
            stage.await_none(&format!(
                "the container of `{command}` is removed after kill {number}"
            ));
            child.wait().expect("it was killed, or has ended");
        }
    }
}

#[test]
fn container_of_lock_and_guard_killed_at_once_is_removed_by_the_next_start() {
    for killed in ["lock", "doctor"] {
        let stage = Stage::new(&json!(["docker", "run", "-i", "--rm", "mute"]));
        let mut command = waiting(&stage, killed);
        kill(&[command.id(), guarded_by(command.id())]);
        command.wait().expect("it was killed");
        assert_eq!(stage.docker.containers().len(), 1);
        stage.bench.configure([(
            "a",
            json!({"command": ["docker", "run", "-i", "--rm", "deaf"]}),
        )]);
        let output = stage.run(&["lock", "--once"]).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert_eq!(stage.docker.containers(), [""; 0], "after {killed}");
    }
}

#[test]
fn container_is_found_by_a_start_with_other_variables() {
    // Its id is in a file beside the list.
    let command = json!(["docker", "run", "-i", "--rm", "--name", "mine", "deaf"]);
    let stage = Stage::locked(&command);
    let folders = ["one", "state"].map(|name| {
        let folder = stage.bench.path(name);
        fs::create_dir(&folder).expect("writable");
        folder
    });
    let variables = [
        ("TMPDIR", &folders[0], false),
        // A service starts again with its folder.
        ("STATE_DIRECTORY", &folders[1], true),
    ];
    for (name, folder, is_kept) in variables {
        let run = stage.run(&["serve", "127.0.0.1:0"]).env(name, folder);
        kill_both(Broker::start_ready(run));
        assert_eq!(stage.docker.containers().len(), 1);
        let next = stage.run(&["doctor"]);
        let next = if is_kept {
            next.env(name, folder)
        } else {
            next
        };
        next.output();
        assert_eq!(stage.docker.containers(), [""; 0], "{name}");
    }
}

#[test]
fn container_of_a_running_broker_or_of_another_program_is_left() {
    let stage = Stage::locked(&json!(["docker", "run", "-i", "--rm", "deaf"]));
    let first = stage.serve();
    let left = stage.docker.containers();
    let output = stage.run(&["doctor"]).output();
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert_eq!(stage.docker.containers(), left, "its broker runs");
    kill_both(first);

    let command = |program: &str| json!({"command": [program, "run", "-i", "--rm", "deaf"]});
    stage.bench.configure([("a", command("podman"))]);
    let output = stage.run(&["doctor"]).output();
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert_eq!(
        stage.docker.containers(),
        left,
        "another program started it"
    );
    stage.bench.configure([("a", command("docker"))]);
    stage.run(&["doctor"]).output();
    assert_eq!(stage.docker.containers(), [""; 0]);
}
