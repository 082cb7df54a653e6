//! Five public MCP servers behind `broker-gen serve stdio`: the official SDK's client gets the same results
//! through the broker as from each server directly, in both eras.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Run, binary};
use serde_json::{Value, json};

pub(super) fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real-broker"))
}

/// A folder for one era, with the files of the servers.
pub(super) struct ServerFiles(PathBuf);

impl ServerFiles {
    pub(super) fn new(era: &str) -> Self {
        assert!(
            folder().join("servers/installed").exists(),
            "the real servers are not installed; run tests/real-broker/install"
        );
        let files = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("real-stdio-{era}-{}", std::process::id()));
        let data = files.join("data/sub");
        fs::create_dir_all(&data).expect("a folder");
        fs::write(files.join("data/a.txt"), "one\ntwo\n").expect("written");
        fs::write(data.join("c.txt"), "ünï\u{2028}\n").expect("written");
        let files = Self(files.canonicalize().expect("it exists"));
        let script = "git init -q -b main repository && cd repository && \
            printf 'one\\n' > a.txt && git add . && git commit -q -m First && printf 'two\\n' >> a.txt";
        let identity = ["AUTHOR", "COMMITTER"].iter().fold(
            Run::new(Path::new("/bin/sh"))
                .folder(&files.0)
                .args(["-c", script]),
            |run, who| {
                run.env(&format!("GIT_{who}_NAME"), "Ada")
                    .env(&format!("GIT_{who}_EMAIL"), "ada@example.org")
                    .env(&format!("GIT_{who}_DATE"), "2026-01-02T03:04:05Z")
            },
        );
        let output = identity.env("GIT_CONFIG_GLOBAL", "/dev/null").output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        files
    }

    pub(super) fn at(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// The results of a client with a server.
    pub(super) fn outcomes(&self, era: &str, server: &[&str], calls: &[Value]) -> Vec<Value> {
        let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
        fs::write(self.at("calls"), lines).expect("written");
        let output = Run::new(Path::new("/bin/sh"))
            .folder(folder())
            .args(["-c", "exec \"$@\" < \"$CALLS\"", "sh"])
            .env("CALLS", self.at("calls"))
            .env("REAL_DATA", self.at("data"))
            .env("REAL_MEMORY", self.at("memory-broker.jsonl"))
            .env("MEMORY_FILE_PATH", self.at("memory-direct.jsonl"))
            .args([binary("oracle-client")])
            .args([era])
            .args(server)
            .output();
        assert_eq!(output.code, Some(0), "{server:?}: {}", output.stderr);
        let lines = output.stdout.lines().skip(1);
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

impl Drop for ServerFiles {
    fn drop(&mut self) {
        // The rest is below the target folder and does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One source: how it is started directly, its era, and the calls with their paths.
struct Source {
    server: Vec<String>,
    is_modern: bool,
    calls: Vec<(&'static str, &'static str, Value)>,
}

fn sources(files: &ServerFiles) -> Vec<Source> {
    let of = |is_modern, server: &[&str], calls| Source {
        server: server.iter().map(|part| (*part).to_owned()).collect(),
        is_modern,
        calls,
    };
    let data = files.at("data");
    let repository = files.at("repository");
    let oslo = json!({"name": "Oslo", "entityType": "city", "observations": ["by a fjord"]});
    vec![
        of(
            false,
            &["servers/node_modules/.bin/mcp-server-filesystem", &data],
            vec![
                (
                    "/fs/read_text_file",
                    "read_text_file",
                    json!({"path": files.at("data/sub/c.txt")}),
                ),
                (
                    "/fs/directory_tree",
                    "directory_tree",
                    json!({"path": data}),
                ),
                (
                    "/fs/list_directory",
                    "list_directory",
                    json!({"path": data}),
                ),
                (
                    "/fs/read_text_file",
                    "read_text_file",
                    json!({"path": "/etc/passwd"}),
                ),
            ],
        ),
        of(
            false,
            &["servers/node_modules/.bin/mcp-server-memory"],
            vec![
                (
                    "/memory/create_entities",
                    "create_entities",
                    json!({"entities": [oslo]}),
                ),
                (
                    "/memory/search_nodes",
                    "search_nodes",
                    json!({"query": "fjord"}),
                ),
                ("/memory/read_graph", "read_graph", json!({})),
            ],
        ),
        of(
            false,
            &["servers/node_modules/.bin/mcp-server-everything"],
            vec![
                (
                    "/everything/echo",
                    "echo",
                    json!({"message": "héllo \u{2028} 😀"}),
                ),
                (
                    "/everything/get-sum",
                    "get-sum",
                    json!({"a": 0.1, "b": 0.2}),
                ),
                ("/everything/get-tiny-image", "get-tiny-image", json!({})),
                (
                    "/everything/get-resource-links",
                    "get-resource-links",
                    json!({"count": 3}),
                ),
                (
                    "/everything/get-structured-content",
                    "get-structured-content",
                    json!({"location": "New York"}),
                ),
                (
                    "/everything/get-annotated-message",
                    "get-annotated-message",
                    json!({"messageType": "error", "includeImage": true}),
                ),
            ],
        ),
        of(
            true,
            &["servers/venv/bin/mcp-server-git"],
            vec![
                (
                    "/dev/git/status",
                    "git_status",
                    json!({"repo_path": repository}),
                ),
                ("/dev/git/log", "git_log", json!({"repo_path": repository})),
                (
                    "/dev/git/git_show",
                    "git_show",
                    json!({"repo_path": repository, "revision": "HEAD"}),
                ),
            ],
        ),
        of(
            true,
            &["servers/venv/bin/mcp-server-time", "--local-timezone=UTC"],
            vec![(
                "/dev/time/convert_time",
                "convert_time",
                json!({"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
            )],
        ),
    ]
}

/// The broker needs all five servers, so it is started once for each era.
fn check(era: &str) {
    let files = ServerFiles::new(era);
    let sources = sources(&files);
    let through: Vec<Value> = sources
        .iter()
        .flat_map(|source| &source.calls)
        .map(|(path, _, args)| json!({"tool": "meta_call", "args": {"path": path, "args": args}}))
        .collect();
    let program = binary("broker-gen").to_string_lossy().into_owned();
    let serve = [&program, "serve", "stdio", "--config", "config.json"];
    let broker = [&serve[..], &["--log-level", "error"]].concat();
    let mut through = files.outcomes(era, &broker, &through).into_iter();
    for source in sources {
        let calls: Vec<Value> = source
            .calls
            .iter()
            .map(|(_, tool, args)| json!({"tool": tool, "args": args}))
            .collect();
        // A server that supports both eras is called in the client's era, others in theirs.
        let server_era = if source.is_modern { era } else { "legacy" };
        let server: Vec<&str> = source.server.iter().map(String::as_str).collect();
        let direct = files.outcomes(server_era, &server, &calls);
        for ((path, _, _), mut direct) in source.calls.iter().zip(direct) {
            if era == "modern" {
                // The members that a legacy server lacks and a modern client needs.
                direct["result"]["resultType"] = json!("complete");
            }
            assert_eq!(through.next(), Some(direct), "{era}: {path}");
        }
    }
}

#[test]
fn real_server_results_for_a_legacy_client_equal_direct_ones() {
    check("legacy");
}

#[test]
fn real_server_results_for_a_modern_client_equal_direct_ones() {
    check("modern");
}
