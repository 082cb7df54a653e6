//! The build script over configs and locks: its output for cargo, and the files that it writes.
//!
//! The script runs in a separate process: this program again, with a variable that selects it.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use broker_config::Config;
use broker_model::LeftOutCode;
use broker_model::item::ItemKind;
use broker_model::left_out::LeftOut;
use broker_model::lock::Lock;
use broker_model::snapshot::Snapshot;
use harness::again;
use serde_json::{Value, json};
use tempfile::TempDir;

const AS_SCRIPT: &str = "BROKER_GEN_TEST_AS_SCRIPT";
const OWN: &str = "cargo build -p broker-gen -p toolbox-mcp && target/debug/broker-gen lock";

/// Not a test by itself: what the other tests start.
#[test]
fn build_script_runs_in_this_process() {
    match std::env::var(AS_SCRIPT).as_deref() {
        Ok("default") => broker_build::build(),
        Ok(config) => broker_build::build_config(config),
        Err(_) => {}
    }
}

/// A package with a config, its lock and a folder for what is built.
struct Package {
    folder: TempDir,
}

impl Package {
    /// Locked by hand: two tools on `/a`.
    fn new(config: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        fs::create_dir(folder.path().join("out")).expect("a folder");
        let package = Self { folder };
        package.configure(config, &json!({}));
        package.lock(config, &["x", "y"]);
        package
    }

    /// The workspace that the broker itself is built in, by what tells it apart.
    fn own_workspace(&self) {
        for folder in ["broker-gen", "tests/servers/toolbox"] {
            fs::create_dir_all(self.path(folder)).expect("a folder");
        }
        self.write("broker-gen/Cargo.toml", "");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    fn configure(&self, config: &str, members: &Value) {
        let mut source = json!({"command": "server"});
        for (key, value) in members.as_object().expect("members") {
            source[key] = value.clone();
        }
        let node = json!({"path": "/a", "type": "node", "source": source});
        self.write(config, &json!({"tree": [node]}).to_string());
    }

    /// Makes the lock of a config whose sources all have these tools.
    fn lock(&self, config: &str, tools: &[&str]) {
        let bytes = fs::read(self.path(config)).expect("a config");
        let parsed = Config::parse(config, &bytes)
            .expect("the config is right")
            .config;
        let snapshot = Snapshot {
            resources: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            server_info: json!({"name": "s", "version": "1"}),
            protocol_version: "2025-11-25".to_owned(),
            capabilities: json!({}),
            instructions: None,
            tools: tools
                .iter()
                .map(|name| {
                    let tool = json!({"name": name, "description": "One. Two.", "inputSchema": {"type": "object"}});
                    tool.as_object().expect("an object").clone().into()
                })
                .collect(),
        };
        let mut sources: Vec<_> = parsed
            .sources()
            .map(|source| {
                let mut locked = source.to_locked(&snapshot);
                parsed.describe(&mut locked, |_, tool| tool.upstream_name.clone());
                locked
            })
            .collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let lock = Lock {
            version: broker_model::lock::LOCK_VERSION,
            config_digest: parsed.digest(),
            access_digest: None,
            generator: "test".to_owned(),
            sources,
            left_out: Vec::new(),
        };
        self.write(&lock_name(config), &lock.to_text());
    }

    fn lock_text(&self, config: &str) -> String {
        fs::read_to_string(self.path(&lock_name(config))).expect("a lock")
    }

    /// Runs the build script; what it says to cargo.
    fn build(&self, config: &str, variable: Option<&str>) -> (Option<i32>, String) {
        let mut run = again(module_path!(), "build_script_runs_in_this_process")
            .env(AS_SCRIPT, config)
            .env("CARGO_MANIFEST_DIR", self.folder.path())
            .env("OUT_DIR", self.path("out"));
        if let Some(name) = variable {
            run = run.env("MCP_BROKER_CONFIG", name);
        }
        let output = run.output();
        (output.code, output.stdout)
    }

    /// A build that must succeed.
    fn builds(&self, config: &str) -> String {
        let (code, said) = self.build(config, None);
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("cargo::error"), "{said}");
        said
    }

    /// A build that must fail: its error lines. Nothing may be written.
    fn refuses(&self, config: &str) -> Vec<String> {
        let before = self.written();
        let (code, said) = self.build(config, None);
        assert_eq!(code, Some(1), "{said}");
        assert_eq!(self.written(), before, "a failing build wrote");
        let errors: Vec<_> = said
            .lines()
            .filter_map(|line| Some(line.split_once("cargo::error=")?.1.to_owned()))
            .collect();
        assert!(!errors.is_empty(), "{said}");
        errors
    }

    /// Every built file with its text and time.
    fn written(&self) -> Vec<(PathBuf, String, SystemTime)> {
        let mut files: Vec<_> = fs::read_dir(self.path("out"))
            .expect("a folder")
            .flatten()
            .map(|entry| {
                let time = entry
                    .metadata()
                    .expect("a file")
                    .modified()
                    .expect("files have times");
                // One character for each byte: the search index is not text.
                let bytes = fs::read(entry.path()).expect("readable").into_iter();
                (entry.path(), bytes.map(char::from).collect(), time)
            })
            .collect();
        files.sort();
        files
    }
}

fn lock_name(config: &str) -> String {
    config.replace(".json", ".lock.json")
}

#[track_caller]
fn one(errors: &[String], starts: &str, ends: &str) {
    let found = errors
        .iter()
        .any(|error| error.starts_with(starts) && error.ends_with(ends));
    assert!(found, "no line `{starts}…{ends}` in {errors:#?}");
}

#[test]
fn build_from_a_current_lock_writes_only_changed_files() {
    let package = Package::new("c.json");
    let said = package.builds("c.json");
    for file in ["c.json", "c.lock.json"] {
        let line = format!("cargo::rerun-if-changed={}", package.path(file).display());
        assert!(
            said.lines().any(|said| said.ends_with(&line)),
            "{line}: {said}"
        );
    }
    let first = package.written();
    let names: Vec<_> = first
        .iter()
        .map(|(path, ..)| path.file_name().expect("a name").to_owned())
        .collect();
    assert_eq!(
        names,
        ["catalog.json", "catalog.rs", "search.index", "tools.rs"]
    );
    assert!(
        first[0].1.contains("\"/a/x\"") && first[1].1.starts_with("// @generated"),
        "{first:?}"
    );
    package.builds("c.json");
    assert_eq!(
        package.written(),
        first,
        "an equal file is not written again"
    );

    package.lock("c.json", &["x", "y", "z"]);
    package.builds("c.json");
    assert_ne!(package.written(), first);
    assert!(package.written()[0].1.contains("\"/a/z\""));
}

#[test]
fn build_output_has_no_path_of_the_machine() {
    let package = Package::new("c.json");
    package.builds("c.json");
    let folder = package.folder.path().to_string_lossy().into_owned();
    for (path, text, _) in package.written() {
        assert!(!text.contains(&folder), "{}", path.display());
    }
    let elsewhere = Package::new("c.json");
    elsewhere.builds("c.json");
    let texts = |package: &Package| {
        package
            .written()
            .into_iter()
            .map(|(_, text, _)| text)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&package),
        texts(&elsewhere),
        "equal inputs give equal bytes"
    );
}

#[test]
fn server_moved_in_the_config_keeps_the_lock_and_moves_in_listings() {
    let package = Package::new("c.json");
    let mut locks = Vec::new();
    for order in [["s2", "s10", "a"], ["a", "s10", "s2"], ["s10", "a", "s2"]] {
        let entries = order.map(|name| format!("\"{name}\": {{\"command\": \"{name}\"}}"));
        let servers = entries.join(", ");
        package.write("c.json", &format!("{{\"mcpServers\": {{{servers}}}}}"));
        package.lock("c.json", &["x"]);
        locks.push(package.lock_text("c.json"));
        package.builds("c.json");
        let [(_, text, _), (_, tables, _), ..] = &package.written()[..] else {
            panic!("three files are written");
        };
        let follow = |text: &str, wanted: [String; 3]| {
            let places =
                wanted.map(|wanted| text.find(&wanted).unwrap_or_else(|| panic!("{wanted}")));
            assert!(places.is_sorted(), "{order:?}: {text}");
        };
        let (_, tree) = text.split_once("\"children\":").expect("the root's tree");
        follow(tree, order.map(|name| format!("{{\"path\":\"/{name}\"")));
        let (_, config) = tables
            .split_once("config: ")
            .expect("the compiled-in config");
        follow(config, order.map(|name| format!("{name}\\\":{{")));
        let (_, sources) = tables.split_once("sources: &[").expect("the sources");
        follow(sources, order.map(|name| format!("path: \"/{name}\"")));
    }
    locks.dedup();
    assert_eq!(locks.len(), 1, "the lock does not depend on the order");
}

#[test]
fn build_reads_no_device_and_no_file_over_its_limit() {
    let package = Package::new("c.json");
    for name in ["c.json", "c.lock.json"] {
        let kept = package.path("kept");
        fs::rename(package.path(name), &kept).expect("moved");
        std::os::unix::fs::symlink("/dev/full", package.path(name)).expect("a link");
        let code = if name == "c.json" {
            "[config_unreadable]"
        } else {
            "[lock_corrupt]"
        };
        let errors = package.refuses("c.json");
        assert!(errors[0].starts_with(code), "{errors:?}");
        assert!(errors[0].contains("it is a device"), "{errors:?}");
        fs::remove_file(package.path(name)).expect("removed");
        let sparse = fs::File::create(package.path(name)).expect("a file");
        sparse.set_len(1 << 40).expect("a file without content");
        let errors = package.refuses("c.json");
        assert!(errors[0].contains("it has more than"), "{errors:?}");
        fs::rename(&kept, package.path(name)).expect("moved back");
    }
    package.builds("c.json");
}

#[test]
fn build_config_is_named_by_variable_or_call() {
    let package = Package::new("smoke_config.json");
    let (code, said) = package.build("default", None);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("cargo::rerun-if-env-changed=MCP_BROKER_CONFIG\n"),
        "{said}"
    );
    assert!(said.contains("smoke_config.lock.json\n"), "{said}");
    let names = |said: &str, config: &str| {
        said.contains(&format!("cargo::warning={config} is compiled in; "))
    };
    assert!(names(&said, "smoke_config.json"), "{said}");
    let (code, said) = package.build("default", Some(""));
    assert_eq!(code, Some(0), "{said}");
    assert!(names(&said, "smoke_config.json"), "{said}");
    let (code, said) = package.build("default", Some("smoke_config.json"));
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("cargo::warning"), "{said}");
    let both = Package::new("config.json");
    both.write("smoke_config.json", "{}");
    let (code, said) = both.build("default", None);
    assert_eq!(code, Some(0), "{said}");
    assert!(names(&said, "config.json"), "{said}");
    let (code, said) = package.build("default", Some("other.json"));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("cargo::error=[config_unreadable] the config `other.json` cannot be read"),
        "{said}"
    );
}

#[test]
fn lock_missing_is_refused_with_the_command_that_writes_it() {
    let package = Package::new("c.json");
    fs::remove_file(package.path("c.lock.json")).expect("removed");
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[lock_missing] the lock `c.lock.json` cannot be read: ",
        "; run: broker-gen lock --config c.json",
    );
    package.own_workspace();
    one(
        &package.refuses("c.json"),
        "[lock_missing] ",
        &format!("; run: {OWN} --config c.json"),
    );

    let own = Package::new("smoke_config.json");
    own.own_workspace();
    fs::remove_file(own.path("smoke_config.lock.json")).expect("removed");
    let errors = own.refuses("smoke_config.json");
    assert_eq!(errors.len(), 1, "{errors:?}");
    one(
        &errors,
        "[lock_missing] the lock `smoke_config.lock.json` cannot be read: ",
        &format!("; run: {OWN} --config smoke_config.json"),
    );

    // The command can be typed as it is shown, for any name of the config.
    let spaced = Package::new("my $config's.json");
    fs::remove_file(spaced.path("my $config's.lock.json")).expect("removed");
    let errors = spaced.refuses("my $config's.json");
    one(
        &errors,
        "[lock_missing] ",
        r"; run: broker-gen lock --config 'my $config'\''s.json'",
    );
}

#[test]
fn lock_of_another_version_is_refused() {
    let package = Package::new("c.json");
    let whole = package.lock_text("c.json");
    for (version, starts) in [
        (
            "4",
            "[lock_version] the lock has format version 4, this program reads 1 to 3",
        ),
        (
            "0",
            "[lock_version] the lock has format version 0, this program reads 1 to 3",
        ),
    ] {
        package.write(
            "c.lock.json",
            &whole.replace(
                "\"lock_version\": 2",
                &format!("\"lock_version\": {version}"),
            ),
        );
        let errors = package.refuses("c.json");
        one(&errors, starts, "broker-gen lock --config c.json");
        assert_eq!(errors.len(), 1, "{errors:?}");
    }
    let other = whole.replace(
        "\"hash_model\": \"sha256/1\"",
        "\"hash_model\": \"sha256/9\"",
    );
    package.write("c.lock.json", &other);
    one(
        &package.refuses("c.json"),
        "[lock_version] the lock's digests have the formula `sha256/9`",
        "broker-gen lock --config c.json",
    );
}

#[test]
fn lock_edited_torn_or_conflicting_fails_the_build_with_the_line() {
    let package = Package::new("c.json");
    package.builds("c.json");
    let whole = package.lock_text("c.json");
    let edited_digest = {
        let at = whole.find("sha256/1:").expect("a digest") + 9;
        let flipped = if whole.as_bytes()[at] == b'0' {
            '1'
        } else {
            '0'
        };
        format!("{}{flipped}{}", &whole[..at], &whole[at + 1..])
    };
    for (text, starts, line) in [
        (
            whole.replace("One. Two.", "One. Other."),
            "[lock_corrupt] the digest of `x` does not match the tool",
            "(c.lock.json:",
        ),
        (edited_digest, "[lock_corrupt] ", "(c.lock.json:"),
        (
            whole[..whole.len() - 40].to_owned(),
            "[lock_corrupt] the lock is incomplete: ",
            "(c.lock.json:",
        ),
        (
            format!("<<<<<<< HEAD\n{whole}"),
            "[lock_corrupt] the lock has merge-conflict markers",
            "(c.lock.json:1:1)",
        ),
        (
            String::new(),
            "[lock_corrupt] the lock is incomplete: ",
            "(c.lock.json:1:",
        ),
        (
            "[]".to_owned(),
            "[lock_corrupt] the lock is not a JSON object",
            "(c.lock.json:1:1)",
        ),
    ] {
        package.write("c.lock.json", &text);
        let errors = package.refuses("c.json");
        let remedy = match text.starts_with('<') {
            true => "; run: broker-gen lock --merge --config c.json",
            false => "; run: broker-gen lock --config c.json",
        };
        one(&errors, starts, remedy);
        assert!(errors[0].contains(line), "{errors:?}");
    }
}

#[test]
fn lock_stale_orphaned_or_duplicate_fails_the_build() {
    let package = Package::new("c.json");
    package.builds("c.json");
    package.configure("c.json", &json!({"tool_filter": ["x"]}));
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[lock_stale] the config of the source `/a` has changed since it was locked: `tool_filter` has the new pattern `x` (c.json:1:",
        "; run: broker-gen lock --config c.json",
    );

    let nodes = |paths: &[&str]| -> String {
        let nodes: Vec<_> = paths
            .iter()
            .map(|path| json!({"path": path, "type": "node", "source": {"command": "server"}}))
            .collect();
        json!({"tree": nodes}).to_string()
    };
    package.write("c.json", &nodes(&["/a", "/b"]));
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[lock_stale] the source `/b` is not in the lock",
        "; run: broker-gen lock --config c.json",
    );
    assert_eq!(errors.len(), 1, "{errors:?}");
    package.lock("c.json", &["x"]);
    package.write("c.json", &nodes(&["/a"]));
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[lock_orphan] the lock has the source `/b`, which the config does not have",
        "; run: broker-gen lock --config c.json",
    );

    package.write("c.json", &nodes(&["/a"]));
    package.lock("c.json", &["x", "x"]);
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[lock_orphan] the source has the tool `x` twice",
        "; run: broker-gen lock --config c.json",
    );
}

#[test]
fn lock_with_other_white_space_or_order_builds_the_same_bytes() {
    let package = Package::new("c.json");
    package.builds("c.json");
    let built = package.written();
    let whole = package.lock_text("c.json");
    let compact = serde_json::from_str::<Value>(&whole)
        .expect("JSON")
        .to_string();
    for text in [
        whole.replace('\n', "\r\n"),
        compact,
        format!("\u{feff}{whole}"),
    ] {
        package.write("c.lock.json", &text);
        package.builds("c.json");
        assert_eq!(package.written(), built);
    }
}

#[test]
fn config_problem_in_a_build_is_reported_with_its_remedy() {
    let package = Package::new("c.json");
    package.write("c.json", "{\n  \"tree\": [{\"path\": \"a\", \"type\": \"node\"}, {\"path\": \"/b\", \"typ\": \"node\"}]\n}\n");
    let errors = package.refuses("c.json");
    assert!(errors.len() >= 2, "{errors:?}");
    for (starts, place) in [
        ("[path_invalid] ", "(c.json:2:"),
        ("[config_unknown_key] ", "(c.json:2:"),
    ] {
        let error = errors
            .iter()
            .find(|error| error.starts_with(starts))
            .unwrap_or_else(|| panic!("{starts}: {errors:?}"));
        assert!(
            error.contains(place) && !error.contains("broker-gen lock"),
            "{error}"
        );
    }
}

#[test]
fn override_of_an_unknown_tool_fails_the_build() {
    let package = Package::new("c.json");
    // Overrides are not covered by the config's digest, so the lock stays fresh.
    package.configure(
        "c.json",
        &json!({"tool_overrides": {"xx": {"summary": "s"}}}),
    );
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[override_unknown] `tool_overrides` names `xx`, which `/a` does not have (c.json:1:",
        "Did you mean `x`, `y`?",
    );
}

#[test]
fn build_needs_an_entry_for_a_hint_that_claims_more_safety() {
    let package = Package::new("c.json");
    // Hints are not covered by the config's digest, so the lock stays fresh.
    package.configure(
        "c.json",
        &json!({"tool_overrides": {"x": {"annotations": {"readOnlyHint": true}}}}),
    );
    let errors = package.refuses("c.json");
    let error = errors.join("\n");
    assert!(
        error.contains("[hint_unaudited] ") && error.contains("`/a/x`"),
        "{error}"
    );
    let digest = error
        .rsplit("--digest ")
        .next()
        .and_then(|rest| rest.split('`').next());
    let digest = digest.expect("the command has the digest");
    package.write(
        "c.audits.toml",
        &format!("[[hints]]\nsource = \"/a\"\ntool = \"x\"\ndigest = \"{digest}\"\nvalues = {{ readOnlyHint = true }}\nwho = \"A\"\ndate = 2026-01-02\n"),
    );
    package.builds("c.json");
    let (_, said) = package.build("c.json", None);
    assert!(said.contains("c.audits.toml\n"), "it is watched: {said}");
}

#[test]
fn build_error_is_one_line_with_any_quoted_text() {
    let package = Package::new("c.json");
    package.configure(
        "c.json",
        &json!({"tool_overrides": {"a\nb\u{1b}[31m\u{202e}": {"summary": "s"}}}),
    );
    let (code, said) = package.build("c.json", None);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(said.matches("cargo::error=").count(), 1, "{said}");
    assert!(
        !said.contains('\u{1b}') && !said.contains('\u{202e}'),
        "{said}"
    );
    assert!(said.lines().all(|line| !line.starts_with("b\\u")), "{said}");
}

#[test]
fn build_into_a_missing_folder_is_refused_with_its_path() {
    let package = Package::new("c.json");
    fs::remove_dir(package.path("out")).expect("removed");
    let (code, said) = package.build("c.json", None);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("cargo::error=[file_write] ")
            && said.contains(&*package.path("out").to_string_lossy()),
        "{said}"
    );
    assert!(!package.path("out").exists());
}

#[test]
fn build_of_a_lock_with_a_left_out_part_fails_until_it_is_accepted() {
    let package = Package::new("c.json");
    let text = package.lock_text("c.json");
    let mut lock = Lock::parse("c.lock.json", &text).expect("a lock");
    let digest = LeftOut::digest_of("z");
    lock.sources[0].leave_out([LeftOut {
        kind: ItemKind::Tool,
        name: Some("z".to_owned()),
        code: LeftOutCode::SchemaRefused,
        place: String::new(),
        reason: "a reason".to_owned(),
        digest: digest.clone(),
    }]);
    lock.version = lock.new_version();
    package.write("c.lock.json", &lock.to_text());
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[left_out_unaccepted] `z` of `/a` is left out of the lock: a reason",
        "`broker-gen accept --config c.json --source /a --tool z --left-out`.",
    );
    let entry = |digest: &str| {
        format!(
            "[[left_out]]\nsource = \"/a\"\ntool = \"z\"\nreason = \"schema_refused\"\ndigest = \"{digest}\"\nwho = \"A\"\ndate = \"2026-03-01\"\n"
        )
    };
    package.write(
        "c.audits.toml",
        &entry(LeftOut::digest_of("other").as_str()),
    );
    package.refuses("c.json");
    package.write("c.audits.toml", &entry(digest.as_str()));
    package.builds("c.json");
}

#[test]
fn build_of_a_lock_with_a_tool_that_a_violation_refuses_fails() {
    let package = Package::new("c.json");
    let entry = |tool: &str| {
        format!(
            "[[violations]]\nsource = \"/a\"\ntool = \"{tool}\"\nreason = \"sends secrets\"\nwho = \"B\"\ndate = 2026-03-01\n"
        )
    };
    package.write("c.audits.toml", &entry("x"));
    let errors = package.refuses("c.json");
    one(
        &errors,
        "[violation] `x` of `/a` is refused by the violation of B on 2026-03-01: sends secrets (",
        "Run `broker-gen lock --config c.json`, which leaves it out.",
    );
    package.write("c.audits.toml", "[[violations]]\nsource = \"/a\"\n");
    let errors = package.refuses("c.json");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("[audits_value] missing field"),
        "{errors:?}"
    );
    package.write("c.audits.toml", &entry("z"));
    package.builds("c.json");
}
