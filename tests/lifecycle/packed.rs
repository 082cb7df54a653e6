//! A broker that was packed from the smoke config, compared with the compiled one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use harness::{Broker, DirectServer, Output, Run, binary, contains, json_text};
use serde_json::json;
use tempfile::TempDir;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/smoke_config.json");

/// A folder with a packed broker.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            folder: TempDir::new().expect("a folder"),
        };
        let packed = bench.pack(&runtime(), "broker");
        assert_eq!(packed.code, Some(0), "{}", packed.stderr);
        contains(&packed.stderr, &["broker: catalog sha256/1:"]);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn pack(&self, runtime: &Path, out: &str) -> Output {
        Run::new(&binary("broker-gen"))
            .args(["pack", "--config", CONFIG, "--runtime"])
            .args([runtime, Path::new("-o"), &self.path(out)])
            .output()
    }

    fn verify(&self, name: &str, runtime: Option<&Path>) -> Output {
        let file = self.path(name);
        let run = Run::new(&binary("broker-gen"))
            .args(["verify", "--config", CONFIG, "--binary"])
            .args([&file]);
        match runtime {
            Some(runtime) => run.args([Path::new("--runtime"), runtime]).output(),
            None => run.output(),
        }
    }

    /// A packed broker with a changed byte, that many bytes before its end.
    fn changed(&self, before_end: usize) -> PathBuf {
        let mut bytes = fs::read(self.path("broker")).expect("it was packed");
        let at = bytes.len() - before_end;
        bytes[at] ^= 1;
        self.executable("changed", &bytes)
    }

    /// Writes a program by another process, as [`harness::copy_program`] does.
    fn executable(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path("bytes"), bytes).expect("the folder is writable");
        fs::set_permissions(self.path("bytes"), fs::Permissions::from_mode(0o755)).expect("mine");
        harness::copy_program(&self.path("bytes"), &self.path(name));
        self.path(name)
    }
}

/// The runtime of the packages.
fn runtime() -> PathBuf {
    binary("mcp-broker-runtime")
}

/// A broker that finds the servers of the smoke config.
fn with_servers(program: &Path) -> Run {
    let servers = binary("toolbox-mcp");
    let folder = servers.parent().expect("it is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    Run::new(program).env("PATH", format!("{folder}:{path}"))
}

fn run(program: &Path, args: &[&str]) -> Output {
    with_servers(program).args(args).output()
}

/// The statuses and bodies of replies, with the identifier of the catalog. Request ids begin with a random number of the
/// process, and are left out.
fn replies(program: &Path) -> Vec<(u16, String, Option<String>)> {
    let broker = Broker::start_ready(with_servers(program).args(["127.0.0.1:0"]));
    let meta = [
        ("/meta_tree", json!({})),
        ("/meta_tree", json!({"depth": 3})),
        ("/meta_tree", json!({"query": "sort json", "limit": 3})),
        ("/meta_desc", json!({"path": "/text/format"})),
        ("/meta_desc", json!({"path": "/util/none"})),
        (
            "/meta_call",
            json!({"path": "/text/format", "args": {"text": "{\"b\":1,\"a\":2}"}}),
        ),
        (
            "/meta_call",
            json!({"path": "/text/format", "args": {"other": 1}}),
        ),
    ];
    let mut replies: Vec<_> = meta
        .into_iter()
        .map(|(route, body)| broker.post(route, &body))
        .collect();
    replies.push(broker.get("/healthz"));
    replies
        .into_iter()
        .map(|reply| {
            let digest = reply.header("x-catalog-digest").map(str::to_owned);
            (reply.status, without_request_id(&reply.text()), digest)
        })
        .collect()
}

fn without_request_id(text: &str) -> String {
    let member = "\"request_id\":\"";
    match text.split_once(member) {
        Some((before, rest)) => {
            let (_, after) = rest.split_once('"').expect("the end of the id");
            format!("{before}{member}\"{after}")
        }
        None => text.to_owned(),
    }
}

#[test]
fn packed_broker_answers_byte_for_byte_like_the_compiled_one() {
    let bench = Bench::new();
    let (compiled, packed) = (binary("mcp-broker"), bench.path("broker"));
    for args in [&["--version"][..], &["--dump-tree"], &["--dump-tree=json"]] {
        let outputs = [&compiled, &packed].map(|program| run(program, args));
        for output in &outputs {
            assert_eq!(output.code, Some(0), "{}", output.stderr);
        }
        assert_eq!(outputs[0].stdout, outputs[1].stdout);
        contains(&outputs[1].stdout, &["sha256/1:"]);
    }
    let (expected, found) = (replies(&compiled), replies(&packed));
    assert_eq!(expected.len(), 8);
    assert!(
        expected[5].1.contains("a"),
        "the call succeeds: {expected:?}"
    );
    assert_eq!(found, expected);
}

#[test]
fn packs_of_equal_inputs_are_equal_programs_of_mode_755_also_behind_a_link() {
    let bench = Bench::new();
    let first = fs::read(bench.path("broker")).expect("it was packed");
    fs::write(bench.path("real"), "old").expect("writable");
    fs::set_permissions(bench.path("real"), fs::Permissions::from_mode(0o600)).expect("mine");
    symlink("real", bench.path("link")).expect("a link");
    // A packed broker is a runtime too: its catalog is replaced.
    for (runtime, out, file) in [
        (runtime(), "second", "second"),
        (bench.path("broker"), "link", "real"),
        (bench.path("broker"), "broker", "broker"),
    ] {
        let packed = bench.pack(&runtime, out);
        assert_eq!(packed.code, Some(0), "{}", packed.stderr);
        assert!(
            fs::read(bench.path(file)).expect("it was packed") == first,
            "{out}"
        );
        let metadata = fs::symlink_metadata(bench.path(file)).expect("it is there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o755, "{out}");
    }
    assert!(bench.path("link").is_symlink());
    let files = fs::read_dir(bench.folder.path()).expect("a folder").count();
    assert_eq!(files, 4, "no draft is left");
}

#[test]
fn packed_broker_with_a_changed_byte_of_its_catalog_does_nothing() {
    let bench = Bench::new();
    // The mark at the end, the digest, the lengths, the mark before them, the catalog.
    for before_end in [1, 40, 90, 112, 113, 1000] {
        let changed = bench.changed(before_end);
        for args in [
            &["--version"][..],
            &["--help"],
            &["--dump-tree"],
            &["--wrong"],
            &["key", "new", "a"],
            &["127.0.0.1:0"],
        ] {
            let output = run(&changed, args);
            assert_eq!(
                output.code,
                Some(5),
                "{before_end} {args:?}: {}",
                output.stderr
            );
            assert_eq!(output.stdout, "", "{before_end} {args:?}");
            contains(&output.stderr, &["error[catalog_damaged]", "pack it again"]);
        }
        let refused = bench.verify("changed", None);
        assert_eq!(refused.code, Some(5), "{}", refused.stderr);
        contains(&refused.stderr, &["catalog_damaged"]);
    }
}

#[test]
fn client_over_stdio_gets_the_reason_from_a_damaged_or_missing_catalog() {
    let bench = Bench::new();
    for (program, code) in [
        (bench.changed(1000), "catalog_damaged"),
        (runtime(), "catalog_missing"),
    ] {
        let mut client = DirectServer::start(with_servers(&program).args(["stdio"]));
        let answer = client.call("meta_tree", &json!({}));
        let error = json_text(&answer["result"]);
        assert_eq!(error["code"], "start_refused", "{answer}");
        assert_eq!(error["details"]["problems"][0]["code"], code, "{answer}");
        assert_eq!(error["details"]["exit"], 5, "{answer}");
    }
}

#[test]
fn verify_of_a_packed_broker_compares_catalog_and_runtime() {
    let bench = Bench::new();
    let fine = bench.verify("broker", Some(&runtime()));
    assert_eq!(fine.code, Some(0), "{}", fine.stderr);
    let sum = Run::new(Path::new("sha256sum")).args([runtime()]).output();
    let sum = sum.stdout.split(' ').next().expect("a sum").to_owned();
    contains(
        &fine.stdout,
        &["packed into ", &format!("with the runtime sha256:{sum}\n")],
    );
    assert_eq!(bench.verify("broker", None).stdout, fine.stdout);

    // A byte of the header of the program that no start reads: the broker cannot notice it.
    let mut other = fs::read(bench.path("broker")).expect("it was packed");
    other[12] ^= 1;
    bench.executable("other", &other);
    assert_eq!(run(&bench.path("other"), &["--version"]).code, Some(0));
    let refused = bench.verify("other", None);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    contains(
        &refused.stderr,
        &["the runtime of", "was changed after it was packed"],
    );

    // A broker that was packed with another runtime is only found by comparison with the right one.
    let compiled = binary("mcp-broker");
    assert_eq!(bench.pack(&compiled, "foreign").code, Some(0));
    assert_eq!(bench.verify("foreign", Some(&compiled)).code, Some(0));
    let refused = bench.verify("foreign", Some(&runtime()));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(&refused.stderr, &["runtime_unusable", &sum]);

    // The catalog of another config.
    let config = bench.path("c.json");
    fs::write(&config, r#"{"tree": [{"path": "/a"}]}"#).expect("writable");
    let file = config.to_str().expect("a text");
    let gen_in = |args: &[&str]| Run::new(&binary("broker-gen")).args(args).output();
    let locked = gen_in(&["lock", "--config", file]);
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    let packed = bench.path("broker");
    let binary = packed.to_str().expect("a text");
    let refused = gen_in(&["verify", "--config", file, "--binary", binary]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    contains(&refused.stderr, &["generated_stale", "Pack it again"]);
}

#[test]
fn runtime_without_a_catalog_prints_its_version_and_names_the_remedy() {
    let version = run(&runtime(), &["--version"]);
    assert_eq!(version.code, Some(0), "{}", version.stderr);
    contains(
        &version.stdout,
        &["mcp-broker 0.", "no catalog: `broker-gen pack`"],
    );
    for args in [&["--dump-tree"][..], &["127.0.0.1:0"]] {
        let refused = run(&runtime(), args);
        assert_eq!(
            (refused.code, &refused.stdout[..]),
            (Some(5), ""),
            "{args:?}"
        );
        contains(
            &refused.stderr,
            &["error[catalog_missing]", "`broker-gen pack --config"],
        );
    }
    // It is the program of a client as well.
    assert_eq!(run(&runtime(), &["key", "new", "a"]).code, Some(0));
}

#[test]
fn program_that_is_not_a_broker_of_this_version_is_not_packed() {
    let bench = Bench::new();
    for other in ["/bin/sh", "/none", "/"] {
        let refused = bench.pack(Path::new(other), "out");
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        contains(&refused.stderr, &["error[runtime_unusable]", other]);
    }
    let refused = bench.pack(&binary("broker-gen"), "out");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    contains(&refused.stderr, &["it is not a broker of version"]);
    assert!(!bench.path("out").exists());
}
