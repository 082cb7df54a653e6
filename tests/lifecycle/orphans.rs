//! Processes that detached from their servers, on Linux: with another parent, session and group and an
//! empty environment. They end with the broker in every case; while it runs, they leave no zombie.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Broker, Chaos, Run, is_alive, wait_until};
use serde_json::json;

/// Forks twice, and leaves a process that only its parentage shows. Prints its id.
const DAEMON: &str = "env -i setsid sh -c 'sleep 1000 < /dev/null > /dev/null 2>&1 & echo $!'";

/// The ways in which a broker ends: which process gets which signal.
const ENDS: [(&str, bool); 3] = [("TERM", true), ("KILL", true), ("KILL", false)];

fn signal(name: &str, pid: u32) {
    let kill = Run::new(Path::new("/bin/sh"))
        .args(["-c", &format!("kill -{name} {pid}")])
        .output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
}

/// Ends a broker in one of the ways.
fn end(broker: Broker, (name, guard): (&str, bool)) {
    let pids = [broker.guard(), broker.pid()];
    signal(name, pids[usize::from(!guard)]);
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.success(), name == "TERM", "{status}: {stderr}");
    wait_until("guard and broker are gone", || {
        !pids.iter().any(|pid| is_alive(*pid))
    });
}

/// The output of the start script of a source.
fn printed(chaos: &Chaos, source: &str) -> Vec<String> {
    let shells = chaos.events(source, "shell");
    let printed = shells.iter().filter_map(|event| event["stdout"].as_str());
    printed.map(str::to_owned).collect()
}

/// The fields of `/proc/PID/stat` after the name, of every process.
fn stats() -> Vec<(u32, Vec<String>)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stat = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(')')?.1.split_whitespace();
        Some((pid, fields.map(str::to_owned).collect()))
    };
    pids.filter_map(stat).collect()
}

/// The number of processes whose command line names this folder.
fn commands_naming(folder: &Path) -> usize {
    let folder = folder.to_str().expect("the path is text").as_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .filter(|line| line.windows(folder.len()).any(|part| part == folder))
        .count()
}

#[test]
fn daemon_with_an_empty_environment_ends_with_broker_and_guard() {
    for way in ENDS {
        let chaos = Chaos::new();
        chaos.script("a", &json!({"start_shell": DAEMON}));
        let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
        let daemon = printed(&chaos, "a")[0].parse().expect("a number");
        assert!(is_alive(daemon));
        end(broker, way);
        assert!(!is_alive(daemon), "{way:?}");
    }
}

#[test]
fn fork_loop_ends_with_broker_and_guard() {
    let _machine = harness::whole_machine();
    for way in ENDS {
        let chaos = Chaos::new();
        let folder = chaos.path().to_str().expect("the path is text");
        // Each process starts the next one and ends. However this test ends, the loop ends with the
        // folder, or with its count.
        let fork = r#"f() { [ "$1" -gt 0 ] && echo >> "$0/forks" && f $(($1 - 1)) & }; f 300000"#;
        let start = format!("setsid env -i sh -c '{fork}' {folder} < /dev/null > /dev/null 2>&1 &");
        chaos.script("a", &json!({"start_shell": start}));
        let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
        // Each process adds a line before it starts the next one.
        let forks = chaos.path().join("forks");
        let count = || fs::metadata(&forks).map_or(0, |file| file.len());
        wait_until("the loop runs", || count() > 100);
        end(broker, way);
        let count_at_end = count();
        // A moment between two of its processes does not count as its end.
        let left = (0..50).map(|_| commands_naming(chaos.path())).max();
        assert_eq!(left, Some(0), "{way:?}");
        assert_eq!(count(), count_at_end, "{way:?}");
    }
}

/// MCP_BROKER_DAEMONS sets the number of daemons; 10000 take a minute.
#[test]
fn daemons_leave_no_zombie_and_lose_no_exit_status() {
    let _machine = harness::whole_machine();
    let count = std::env::var("MCP_BROKER_DAEMONS");
    let count = count.map_or(500, |count| count.parse::<u32>().expect("a number"));
    let chaos = Chaos::new();
    let done = chaos.path().join("done");
    let start = format!(
        "(i=0; while [ $i -lt {count} ]; do (true &); i=$((i + 1)); done; echo $i > {}) \
         > /dev/null 2>&1 &",
        done.display()
    );
    chaos.script("a", &json!({"start_shell": start}));
    chaos.script("b", &json!({"on_call": {"echo": "exit:7"}}));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let mut ends = 0;
    while !done.exists() || ends < 2 {
        wait_until("the other source serves", || {
            broker.source("/b")["state"] == "ready"
        });
        let response = broker.call("/b/echo", json!({"text": "go"}));
        let text = response.text();
        assert_eq!(
            response.json()["error"]["details"]["exit_code"],
            7,
            "{text}"
        );
        ends += 1;
    }
    wait_until("no zombie is left", || {
        let ours = [broker.guard(), broker.pid()].map(|pid| pid.to_string());
        let zombies = stats().into_iter().filter(|(_, stat)| stat[0] == "Z");
        zombies.filter(|(_, stat)| ours.contains(&stat[1])).count() == 0
    });
    assert_eq!(broker.terminate().0.code(), Some(0));
}

#[test]
fn descendants_of_a_replaced_source_end_with_it() {
    let chaos = Chaos::new();
    // In a separate session, with an empty environment, and a child of the server.
    chaos.script("a", &json!({"fork_grandchild": "bare"}));
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let file = chaos.config(compiled, |_| {});
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &file]));
    let child = chaos.events("a", "grandchild")[0]["child"].as_u64();
    let child = child.and_then(|pid| pid.try_into().ok()).expect("a number");
    chaos.script("a", &json!({}));
    chaos.config(compiled, |config| {
        config["tree"][0]["source"]["env"]["A_TOKEN"] = json!("another");
    });
    broker.signal("HUP");
    wait_until("the source is replaced", || chaos.pids("a").len() == 2);
    wait_until("what was below it is gone", || !is_alive(child));
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(broker.terminate().0.code(), Some(0));
}

/// A control group for one broker, removed with all groups below it when dropped.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// A group below that of this test, or why it cannot be created.
    fn make() -> Result<Self, String> {
        let read = |file: &str| fs::read_to_string(file).map_err(|error| error.to_string());
        let (groups, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or("this process is in no group of version 2")?;
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let mount = mount.ok_or("groups of version 2 are not mounted")?;
        let place = mount.split(' ').nth(4).ok_or("the mount has no place")?;
        let name = format!("mcp-test-{}", std::process::id());
        let group = Self(Path::new(place).join(own).join(name));
        let because = |error| format!("{}: {error}", group.0.display());
        fs::create_dir(&group.0).map_err(because)?;
        // Only joining shows whether a process may join.
        let join = Run::new(Path::new("/bin/sh")).args(["-c", &group.join_and("true")]);
        match join.output() {
            output if output.code == Some(0) => Ok(group),
            output => Err(output.stderr),
        }
    }

    fn join_and(&self, what: &str) -> String {
        format!("echo 0 > {}/cgroup.procs && {what}", self.0.display())
    }

    /// The groups that the broker made below this one.
    fn below(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("the group is there").flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.path()).collect()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // The test has already failed if a process or group cannot be removed here.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        for _ in 0..500 {
            for below in fs::read_dir(&self.0).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(below.path());
            }
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn control_group_of_a_source_ends_with_it() {
    for way in ENDS {
        let group = match ControlGroup::make() {
            Ok(group) => group,
            Err(why) => {
                println!("did not run: no control group can be made: {why}");
                return;
            }
        };
        let chaos = Chaos::new();
        chaos.script("a", &json!({"start_shell": DAEMON}));
        let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
        let join = group.join_and(r#"exec "$0" "$@""#);
        let broker = Broker::start_ready(run.through("/bin/sh", &["-c", &join]));
        assert_eq!(group.below().len(), 3, "one for each source");
        let daemon: u32 = printed(&chaos, "a")[0].parse().expect("a number");
        let of = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
        assert_eq!(of(daemon), of(chaos.pids("a")[0]));
        assert_ne!(of(daemon), of(broker.pid()));
        // A crashed server leaves no process either, even a hidden one.
        signal("KILL", chaos.pids("a")[0]);
        wait_until("what it left behind is gone", || !is_alive(daemon));
        chaos.await_events("a", "shell", 2);
        wait_until("the group of the dead process is removed", || {
            group.below().len() == 3
        });
        let controllers = fs::read_to_string(group.0.join("cgroup.subtree_control"));
        assert_eq!(controllers.expect("it can be read").trim(), "");
        let daemon: u32 = printed(&chaos, "a")[1].parse().expect("a number");
        end(broker, way);
        assert!(!is_alive(daemon), "{way:?}");
        assert!(group.below().is_empty(), "{way:?}: {:?}", group.below());
    }
}
