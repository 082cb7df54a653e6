//! Faults of a machine, for `broker-gen lock`, `broker-gen serve` and the broker: full and read-only file systems, files that
//! are mounted by themselves, no home, no folder for temporary files, file modes and locales. Each program works, or names
//! the cause.

use std::fs;
use std::path::PathBuf;

use harness::{Broker, Chaos, Output, Run, contains, has_mount_namespaces, in_mount_namespace};
use serde_json::json;

use crate::config::changed;

const LOCK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/chaos-broker/config.lock.json"
);
/// Mounts the folder of the files and goes there. The fault follows.
const MOUNT: &str = "mount -t tmpfs -o size=1m none \"$MOUNTED\" && cp \"$FILES\"/* \"$MOUNTED\" && cd \"$MOUNTED\" || exit 99\n";
/// Runs the program, then lists the files.
const RUN_AND_LIST: &str = "\n\"$0\" \"$@\"; code=$?; ls -lA; exit $code";
const FULL: &str = "dd if=/dev/zero of=fill bs=1k 2>/dev/null";
const READ_ONLY: &str = "mount -o remount,ro \"$MOUNTED\"";
const MOUNTED_FILE: &str =
    "echo {} > given.lock.json; mount --bind given.lock.json given.lock.json";
const MOUNTED_FILE_IN_READ_ONLY: &str = "echo {} > given.lock.json; mkdir \"$MOUNTED.2\"; mount -t tmpfs none \"$MOUNTED.2\"; \
     cp given.lock.json \"$MOUNTED.2\"; mount --bind \"$MOUNTED.2/given.lock.json\" given.lock.json; \
     mount -o remount,ro \"$MOUNTED\"";
/// Faults that no program minds.
const HARMLESS: [(&str, &str); 6] = [
    ("no home", "unset HOME"),
    (
        "no folder for temporary files",
        "export TMPDIR=/nonexistent",
    ),
    ("umask 077", "umask 077"),
    ("umask 000", "umask 000"),
    (
        "locale without UTF-8",
        "export LC_ALL=tr_TR.ISO-8859-9 LANG=tr_TR",
    ),
    ("locale C", "export LC_ALL=C"),
];

/// The config of the chaos broker and its lock, and an empty folder in which they are mounted.
struct Machine {
    chaos: Chaos,
    files: PathBuf,
    mounted: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Lock,
    Serve,
    Broker,
}

impl Machine {
    /// Prepares the files: the config, with an audit log or without, and its lock unless it is to be made.
    fn new(has_audit: bool, has_lock: bool) -> Self {
        let chaos = Chaos::new();
        let (files, mounted) = (chaos.path().join("files"), chaos.path().join("mounted"));
        for folder in [&files, &mounted] {
            fs::create_dir(folder).expect("a folder can be made");
        }
        let config = changed(&chaos, |config| {
            if has_audit {
                config["audit"] = json!({"file": "audit.jsonl"});
            }
        });
        fs::rename(config, files.join("given.json")).expect("a rename within one folder");
        if has_lock {
            fs::copy(LOCK, files.join("given.lock.json")).expect("the lock is there");
        }
        Self {
            chaos,
            files,
            mounted,
        }
    }

    /// The program behind the fault. `after` is the shell's way to run it.
    fn run(&self, program: Program, fault: &str, after: &str) -> Run {
        let run = match program {
            Program::Lock => {
                let args = ["lock", "--once", "--config", "given.json"];
                self.chaos.run("broker-gen", &args)
            }
            Program::Serve => {
                let args = ["serve", "--config", "given.json", "127.0.0.1:0"];
                self.chaos.run("broker-gen", &args)
            }
            Program::Broker => self
                .chaos
                .run("chaos-broker", &["127.0.0.1:0", "given.json"]),
        };
        let run = run.env("FILES", &self.files).env("MOUNTED", &self.mounted);
        in_mount_namespace(run, &format!("{MOUNT}{fault}{after}"))
    }

    /// The program to its end; the files in the folder are the end of its output.
    fn output(&self, program: Program, fault: &str) -> Output {
        self.run(program, fault, RUN_AND_LIST).output()
    }

    /// The program, which starts in spite of the fault.
    fn start(&self, program: Program, fault: &str) -> Broker {
        Broker::start_ready(self.run(program, fault, "\nexec \"$0\" \"$@\""))
    }
}

#[test]
fn lock_names_what_the_file_system_refuses_and_leaves_no_other_file() {
    if !has_mount_namespaces() {
        return;
    }
    for (fault, parts) in [
        (FULL, ["No space left on device", "Free disk space"]),
        (
            READ_ONLY,
            ["Read-only file system", "mount its folder for writing"],
        ),
        (
            MOUNTED_FILE_IN_READ_ONLY,
            [
                "Read-only file system",
                "mounted by itself, mount its folder instead",
            ],
        ),
    ] {
        let output = Machine::new(false, false).output(Program::Lock, fault);
        assert_ne!(output.code, Some(0), "{fault}: {}", output.stderr);
        contains(&output.stderr, &["`given.lock.json` cannot be written"]);
        contains(&output.stderr, &parts);
        let lists_others = output.stdout.contains(".given.") || output.stdout.contains(".bak");
        assert!(!lists_others, "{fault}: {}", output.stdout);
    }
}

#[test]
fn lock_that_is_mounted_by_itself_is_written_in_place() {
    if !has_mount_namespaces() {
        return;
    }
    let machine = Machine::new(false, false);
    let show = "\n\"$0\" \"$@\" && cat given.lock.json && ls -A";
    let output = machine.run(Program::Lock, MOUNTED_FILE, show).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["wrote given.lock.json"]);
    contains(&output.stdout, &["\"root_digest\""]);
    assert!(
        output.stdout.ends_with("}\ngiven.json\ngiven.lock.json\n"),
        "{}",
        output.stdout
    );
}

#[test]
fn broker_that_writes_no_file_starts_on_a_full_and_on_a_read_only_disk() {
    if !has_mount_namespaces() {
        return;
    }
    for program in [Program::Serve, Program::Broker] {
        for fault in [FULL, READ_ONLY] {
            let broker = Machine::new(false, true).start(program, fault);
            assert_eq!(broker.call("/a/add", json!({"a": 1, "b": 2})).status, 200);
            broker.terminate();
        }
    }
}

#[test]
fn broker_whose_audit_log_cannot_be_written_names_the_file_and_the_cause() {
    if !has_mount_namespaces() {
        return;
    }
    for program in [Program::Serve, Program::Broker] {
        let machine = Machine::new(true, true);
        let output = machine.output(program, READ_ONLY);
        assert_ne!(output.code, Some(0), "{program:?}: {}", output.stderr);
        contains(&output.stderr, &["audit.jsonl", "Read-only file system"]);

        let output = Machine::new(true, true).output(program, FULL);
        assert_ne!(output.code, Some(0), "{program:?}: {}", output.stderr);
        contains(
            &output.stderr,
            &[
                "audit.jsonl`: no storage space",
                "Free space on the file system",
            ],
        );
    }
}

#[test]
fn program_works_without_a_home_or_a_temporary_folder_and_with_any_umask_and_locale() {
    if !has_mount_namespaces() {
        return;
    }
    for (name, fault) in HARMLESS {
        let output = Machine::new(false, false).output(Program::Lock, fault);
        assert_eq!(output.code, Some(0), "{name}: {}", output.stderr);
        let mode = match fault {
            "umask 077" => "-rw------- ",
            _ => "-rw-r--r-- ",
        };
        let lock = output
            .stdout
            .lines()
            .find(|line| line.ends_with(" given.lock.json"));
        let lock = lock.unwrap_or_else(|| panic!("{name}: {}", output.stdout));
        assert!(lock.starts_with(mode), "{name}: {lock}");
        for program in [Program::Serve, Program::Broker] {
            let broker = Machine::new(true, true).start(program, fault);
            assert_eq!(
                broker.call("/a/add", json!({"a": 1, "b": 2})).status,
                200,
                "{name}"
            );
            broker.terminate();
        }
    }
}

#[test]
fn key_whose_second_file_cannot_be_written_leaves_no_first_one() {
    use std::os::unix::fs::symlink;

    let chaos = Chaos::new();
    let key = chaos.path().join("audit.key");
    let public = chaos.path().join("audit.key.pub");
    symlink("missing", &public).expect("a link can be made");
    let args = ["audit", "key", key.to_str().expect("UTF-8")];
    let refused = chaos.run("mcp-broker", &args).output();
    assert_ne!(refused.code, Some(0));
    contains(
        &refused.stderr,
        &["audit.key.pub`: it already exists, as a file or a link"],
    );
    assert!(!key.exists() && !chaos.path().join("missing").exists());
    fs::remove_file(&public).expect("the link can be removed");
    let made = chaos.run("mcp-broker", &args).output();
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(key.exists() && public.exists());
}
