//! `mcp-broker connect`: the printed entry, and the entry in the file of a client.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use harness::{Output, Run, assert_inert, binary, contains};
use serde_json::{Value, json};
use tempfile::TempDir;

const URL: &str = "http://127.0.0.1:8100/mcp";
const SECRET: &str = "s3cret-value";

/// A home without files.
pub(super) struct Home(pub(super) TempDir);

impl Home {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder can be made"))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self) -> Run {
        let mut run = Run::new(&binary("mcp-broker"))
            .folder(self.0.path())
            .env("HOME", self.0.path())
            .env("MCP_BROKER_SECRET", SECRET);
        for name in [
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "GEMINI_CLI_HOME",
            "XDG_CONFIG_HOME",
            "COPILOT_HOME",
            "CONTINUE_GLOBAL_DIR",
        ] {
            // An empty variable counts as not set.
            run = run.env(name, "");
        }
        run
    }

    pub(super) fn connect(&self, args: &[&str]) -> Output {
        let output = self.run().args([&["connect"][..], args].concat()).output();
        assert_inert("stdout", &output.stdout);
        assert_inert("stderr", &output.stderr);
        output
    }

    /// Runs it, which must succeed.
    pub(super) fn connected(&self, args: &[&str]) -> Output {
        let output = self.connect(args);
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
        output
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("the file can be written");
        path
    }

    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the home is readable");
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            // The record of the writes.
            .filter(|name| !name.ends_with(".connect.json"))
            .collect();
        names.sort();
        names
    }
}

pub(super) fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("the file is text")
}

pub(super) fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("the file exists");
    metadata.permissions().mode() & 0o7777
}

pub(super) fn broker() -> String {
    let path = fs::canonicalize(binary("mcp-broker")).expect("the program is built");
    path.to_str().expect("a path in UTF-8").to_owned()
}

#[test]
fn connect_prints_only_the_entry_to_standard_output() {
    let home = Home::new();
    home.write("c.json", "{}");
    let config = fs::canonicalize(home.path("c.json")).expect("it exists");
    let output = home.connected(&["json", "c.json", "--name", "tools_1", "--under", "/files"]);
    let document: Value = serde_json::from_str(&output.stdout).expect("the output is JSON");
    let args = [
        "stdio",
        config.to_str().expect("UTF-8"),
        "--under",
        "/files",
    ];
    assert_eq!(
        document,
        json!({"mcpServers": {"tools_1": {"command": broker(), "args": args}}})
    );
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    let output = home.connected(&["codex", "--mode", "direct"]);
    assert_eq!(
        output.stdout,
        format!(
            "[mcp_servers.broker]\ncommand = \"{}\"\nargs = [\"stdio\", \"--mcp-mode\", \"direct\"]\n",
            broker()
        )
    );
    contains(&output.stderr, &["/.codex/config.toml", "`--write`"]);
    let output = home.connected(&["zed", "--http", URL, "--under", "/a b", "--mode", "meta"]);
    let document: Value = serde_json::from_str(&output.stdout).expect("the output is JSON");
    assert_eq!(
        document["context_servers"]["broker"],
        json!({"url": "http://127.0.0.1:8100/mcp/meta?under=/a%20b"})
    );
    assert_eq!(home.names(), ["c.json"]);
}

#[test]
fn connect_refuses_arguments_that_make_no_entry() {
    let home = Home::new();
    for (args, part) in [
        (&["claude", "--http", URL][..], "leave out `--http`"),
        (&["zed", "--http", URL, "--secret"], "`--with-secret`"),
        (&["json", "--write"], "`--file`"),
        (&["windsurf", "--write", "--scope", "project"], "`--file`"),
        (&["json", "--name", "a b"], "`--name`"),
        (&["json", "none.json"], "none.json"),
        (&["json", "--http", "http://h"], "no path"),
        (&["cursor", "--http", "http://u:pa55@h/mcp"], "`--secret`"),
        (
            &["cursor", "--http", URL, "--secret", "--secret-env", "a b"],
            "`--secret-env`",
        ),
        (
            &[
                "zed",
                "--http",
                URL,
                "--secret",
                "--secret-env",
                "NONE_OF_IT",
                "--with-secret",
            ],
            "`NONE_OF_IT` is not set",
        ),
    ] {
        let output = home.connect(args);
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
        contains(&output.stderr, &[part]);
        assert!(output.stdout.is_empty(), "{}", output.stdout);
        assert!(!output.stderr.contains("pa55"), "{}", output.stderr);
    }
    assert!(home.names().is_empty());
}

#[test]
fn connect_writes_the_entry_and_changes_no_other_byte() {
    let home = Home::new();
    let before = "\u{feff}// Mine.\r\n{\r\n   \"z\": [1,2 , ], /* odd */\r\n   \"mcpServers\": {\r\n      \"x\" : {\"command\": \"y\"}";
    let after = " // x, }\r\n      // the end\r\n   }, \"a\":1\r\n}";
    let path = home.write("mcp.json", &format!("{before}{after}"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
    let args = ["cursor", "--file", "mcp.json", "--write"];
    let output = home.connected(&args);
    assert!(output.stdout.is_empty(), "{}", output.stdout);
    contains(
        &output.stderr,
        &["added `broker`", "mcp.json.bak", "Cursor"],
    );
    let (comment, after) = after.split_at(" // x, }".len());
    let entry = format!(
        "\r\n      \"broker\": {{\r\n         \"command\": \"{}\",\r\n         \"args\": [\"stdio\"]\r\n      }}",
        broker()
    );
    let written = text(&path);
    assert_eq!(written, format!("{before},{comment}{entry}{after}"));
    assert_eq!(
        text(&home.path("mcp.json.bak")),
        format!("{before}{comment}{after}")
    );
    assert_eq!(
        (mode(&path), mode(&home.path("mcp.json.bak"))),
        (0o640, 0o640)
    );
    // A second run changes nothing.
    let inode =
        |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).expect("it exists"));
    let first = inode(&path);
    let output = home.connected(&args);
    contains(&output.stderr, &["nothing was changed"]);
    assert_eq!((inode(&path), text(&path)), (first, written));
    assert_eq!(home.names(), ["mcp.json", "mcp.json.bak"]);
    // Another entry replaces it, and the first backup stays.
    let output = home.connected(&[&args[..], &["--http", URL]].concat());
    contains(&output.stderr, &["replaced `broker`", "mcp.json.bak.1"]);
    let entry = format!("\r\n      \"broker\": {{\r\n         \"url\": \"{URL}\"\r\n      }}");
    assert_eq!(text(&path), format!("{before},{comment}{entry}{after}"));
    assert_eq!(home.names(), ["mcp.json", "mcp.json.bak", "mcp.json.bak.1"]);
}

#[test]
fn connect_writes_toml_and_changes_no_other_byte() {
    let home = Home::new();
    fs::create_dir(home.path(".codex")).expect("a folder can be made");
    let before = "# Mine.\nmodel  = 'x'   # odd\n\n[mcp_servers.a]\ncommand = \"a\"";
    let path = home.write(".codex/config.toml", before);
    let args = ["codex", "--http", URL, "--secret", "--write"];
    home.connected(&args);
    let entry = format!(
        "\n\n[mcp_servers.broker]\nurl = \"{URL}\"\nbearer_token_env_var = \"MCP_BROKER_SECRET\"\n"
    );
    assert_eq!(text(&path), format!("{before}{entry}"));
    contains(&home.connected(&args).stderr, &["nothing was changed"]);
    let output = home.connected(&["codex", "--http", URL, "--write"]);
    contains(&output.stderr, &["replaced `broker`"]);
    let entry = format!("\n\n[mcp_servers.broker]\nurl = \"{URL}\"\n");
    assert_eq!(text(&path), format!("{before}{entry}"));
}

#[test]
fn connect_makes_a_missing_file_for_its_owner_only() {
    let home = Home::new();
    let output = home.connected(&["windsurf", "--write"]);
    contains(&output.stderr, &["a new file"]);
    let path = home.path(".codeium/windsurf/mcp_config.json");
    let document: Value = serde_json::from_str(&text(&path)).expect("the file is JSON");
    assert_eq!(
        document,
        json!({"mcpServers": {"broker": {"command": broker(), "args": ["stdio"]}}})
    );
    assert_eq!(mode(&path), 0o600);
    home.connected(&["vscode", "--scope", "project", "--write"]);
    let document: Value =
        serde_json::from_str(&text(&home.path(".vscode/mcp.json"))).expect("the file is JSON");
    assert_eq!(document["servers"]["broker"]["type"], "stdio");
    // An empty file is a file without entries.
    let path = home.write("empty.json", "");
    home.connected(&["json", "--file", "empty.json", "--write"]);
    assert!(text(&path).starts_with("{\n  \"mcpServers\": {\n"));
}

#[test]
fn connect_follows_a_symbolic_link_to_its_target() {
    let home = Home::new();
    fs::create_dir(home.path("dotfiles")).expect("a folder can be made");
    let target = home.write("dotfiles/claude.json", "{}\n");
    symlink("dotfiles/claude.json", home.path(".claude.json")).expect("a link can be made");
    home.connected(&["claude-code", "--write"]);
    let link = fs::symlink_metadata(home.path(".claude.json")).expect("the link exists");
    assert!(link.is_symlink());
    assert!(text(&target).contains("\"type\": \"stdio\""));
    assert_eq!(text(&home.path("dotfiles/claude.json.bak")), "{}\n");
}

#[test]
fn connect_refuses_a_link_to_a_file_that_does_not_exist_by_name() {
    let home = Home::new();
    symlink("dotfiles/claude.json", home.path(".claude.json")).expect("a link can be made");
    let output = home.connect(&["claude-code", "--write"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    let said = ".claude.json` is a symbolic link to a file that does not exist";
    contains(&output.stderr, &[said]);
    assert_eq!(home.names(), [".claude.json"], "no file was made");
}

#[test]
fn audit_key_refuses_a_link_by_name_and_leaves_its_file() {
    let home = Home::new();
    home.write("stored", "old");
    for target in ["stored", "missing"] {
        for link in ["audit.key", "audit.key.pub"] {
            symlink(target, home.path(link)).expect("a link can be made");
            let output = home.run().args(["audit", "key", "audit.key"]).output();
            assert_eq!(output.code, Some(2), "{target}: {}", output.stderr);
            let said =
                format!("cannot write the key `{link}`: it already exists, as a file or a link");
            contains(&output.stderr, &[&said]);
            assert_eq!(
                home.names(),
                [link, "stored"],
                "one key without the other has no use"
            );
            fs::remove_file(home.path(link)).expect("it is ours");
        }
    }
    assert_eq!(text(&home.path("stored")), "old");
}

#[test]
fn connect_of_a_project_follows_no_symbolic_link_out_of_it() {
    let (home, other) = (Home::new(), Home::new());
    let target = other.write("mcp.json", "{}\n");
    fs::create_dir(home.path(".cursor")).expect("a folder can be made");
    symlink(&target, home.path(".cursor/mcp.json")).expect("a link can be made");
    symlink(other.0.path(), home.path(".vscode")).expect("a link can be made");
    fs::create_dir(home.path("own")).expect("a folder can be made");
    symlink(home.path("own"), home.path(".gemini")).expect("a link can be made");
    let project = |client| home.connect(&[client, "--scope", "project", "--write"]);
    // A link to the file, to the folder of a file, and to the folder of a file that does not exist.
    for client in ["cursor", "vscode"] {
        let output = project(client);
        assert_eq!(output.code, Some(2), "{client}: {}", output.stderr);
        contains(&output.stderr, &["leads out of the project"]);
    }
    fs::remove_file(&target).expect("it is ours");
    assert_eq!(project("vscode").code, Some(2));
    assert_eq!(other.names(), [""; 0]);
    // A link within the project, and a file that the user names.
    assert_eq!(project("gemini").code, Some(0));
    assert!(text(&home.path("own/settings.json")).contains("broker"));
    other.write("mcp.json", "{}\n");
    home.connected(&["cursor", "--file", ".cursor/mcp.json", "--write"]);
    assert!(text(&target).contains("broker"));
}

#[test]
fn backup_of_a_file_with_a_secret_has_the_mode_of_the_new_file() {
    let home = Home::new();
    let path = home.write("mcp.json", "{\"mcpServers\": {}}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let args = ["cursor", "--file", "mcp.json", "--http", URL, "--write"];
    home.connected(&args);
    let backup = home.path("mcp.json.bak");
    assert_eq!((mode(&path), mode(&backup)), (0o644, 0o644));
    home.connected(&[&args[..], &["--secret", "--with-secret"]].concat());
    let second = home.path("mcp.json.bak.1");
    assert_eq!((mode(&path), mode(&second)), (0o600, 0o600));
    assert!(text(&path).contains(SECRET));
}

#[test]
fn connect_leaves_a_file_that_it_cannot_change_untouched() {
    let home = Home::new();
    for (client, content, part) in [
        ("zed", "{\n  \"a\": }", "line 2, column 8"),
        ("zed", "{\"context_servers\": []}", "is not an object"),
        (
            "zed",
            "{\"context_servers\": {}, \"context_servers\": {}}",
            "is there twice",
        ),
        ("json", "[]", "not a JSON object"),
        ("json", "\u{1b}[2J{", "line 1, column 1"),
        ("codex", "a = 1\n[b\n", "line 2"),
        ("codex", "mcp_servers = {}\n", "inline table"),
    ] {
        let path = home.write("f", content);
        let output = home.connect(&[client, "--file", "f", "--write"]);
        assert_eq!(output.code, Some(2), "{content}: {}", output.stderr);
        contains(&output.stderr, &[part, "/f`"]);
        assert_eq!(text(&path), content);
        assert_eq!(home.names(), ["f"]);
    }
    fs::File::create(home.path("f"))
        .and_then(|file| file.set_len((8 << 20) + 1))
        .expect("a file with a hole can be made");
    let output = home.connect(&["zed", "--file", "f", "--write"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert_eq!(home.names(), ["f"]);
}

#[test]
fn connect_shows_the_secret_only_if_asked() {
    let home = Home::new();
    for client in [
        "claude-code",
        "cursor",
        "vscode",
        "codex",
        "gemini",
        "windsurf",
        "cline",
    ] {
        let args = [
            client,
            "--http",
            URL,
            "--secret",
            "--file",
            "f",
            "--secret-env",
            "MY_VAR",
        ];
        let output = home
            .run()
            .env("MY_VAR", SECRET)
            .args([&["connect"][..], &args].concat())
            .output();
        contains(&output.stdout, &["MY_VAR"]);
        contains(&output.stderr, &["`MY_VAR`"]);
        assert!(!format!("{output:?}").contains(SECRET), "{output:?}");
    }
    let path = home.write("f", "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let args = [
        "zed",
        "--http",
        URL,
        "--secret",
        "--with-secret",
        "--file",
        "f",
    ];
    assert!(home.connected(&args).stdout.contains(SECRET));
    let output = home.connected(&[&args[..], &["--write"]].concat());
    assert!(!output.stderr.contains(SECRET), "{}", output.stderr);
    let document: Value = serde_json::from_str(&text(&path)).expect("the file is JSON");
    assert_eq!(
        document["context_servers"]["broker"]["headers"]["Authorization"],
        format!("Bearer {SECRET}")
    );
    assert_eq!(mode(&path), 0o600);
    // An entry that is there already is also closed to others.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let output = home.connected(&[&args[..], &["--write"]].concat());
    contains(&output.stderr, &["nothing was changed, except"]);
    assert_eq!(mode(&path), 0o600);
}
