//! A stand-in for Docker, of `tests/servers/docker`: a daemon, and a folder with `docker` for `PATH`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench::Bench;
use crate::binaries::binary;
use crate::program::{Output, Run, wait_until};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../servers/docker/docker.py");

/// A running daemon. When it is dropped, it ends with all containers.
#[derive(Debug)]
pub struct StandInDocker {
    folder: TempDir,
    daemon: Child,
}

impl StandInDocker {
    /// Starts a daemon with these images: the command of each, by its name.
    pub fn start(images: &Value) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("bin")).expect("writable");
        fs::write(path("images.json"), images.to_string()).expect("writable");
        let socket = path("socket");
        for (name, verb) in [
            ("docker", ""),
            ("podman", ""),
            ("nerdctl", ""),
            ("kubectl", ""),
            ("ssh", "exec "),
        ] {
            let script = format!(
                "#!/bin/sh\nexec python3 '{PROGRAM}' client '{}' {verb}\"$@\"\n",
                socket.display()
            );
            let file = path("bin").join(name);
            fs::write(&file, &script).expect("writable");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        let args = [
            Path::new(PROGRAM),
            Path::new("daemon"),
            &socket,
            &path("images.json"),
        ];
        let daemon = Run::new(Path::new("python3")).args(args).spawn_with_input();
        wait_until("the daemon listens", || socket.exists());
        Self { folder, daemon }
    }

    /// Starts a daemon whose images run `chaos-mcp` with the script of the source `a` of a bench: `good`, and `deaf`,
    /// which does not end when its input ends; `mute` answers no request.
    pub fn with_source_of(bench: &Bench) -> Self {
        bench.script(
            "a",
            &json!({"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}),
        );
        let server = format!(
            "cd '{}' && '{}' --script a.json --journal a.log",
            bench.path("").display(),
            binary("chaos-mcp").display()
        );
        Self::start(&json!({
            "good": ["/bin/sh", "-c", server],
            "deaf": ["/bin/sh", "-c", format!("{server}; while :; do sleep 1; done")],
            "mute": ["/bin/sh", "-c", "while :; do sleep 1; done"],
        }))
    }

    /// Prepares `broker-gen` in the folder of a bench, with the command line of the stand-in.
    pub fn broker_gen(&self, bench: &Bench, args: &[&str]) -> Run {
        Run::new(&binary("broker-gen"))
            .args(&args[..1])
            .args(["--config", "c.json"])
            .args(&args[1..])
            .folder(&bench.path(""))
            .env("PATH", self.search_path())
    }

    /// The folder with its command line.
    pub fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// `PATH` with its command line before the other folders.
    pub fn search_path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.bin().display())
    }

    /// Runs `docker` with these arguments.
    pub fn run(&self, args: &[&str]) -> Output {
        Run::new(&self.bin().join("docker")).args(args).output()
    }

    /// The names of the containers that exist.
    pub fn containers(&self) -> Vec<String> {
        let output = self.run(&["ps"]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output
            .stdout
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for StandInDocker {
    fn drop(&mut self) {
        drop(self.daemon.stdin.take());
        // It ends when its input ends.
        let _ = self.daemon.wait();
    }
}
