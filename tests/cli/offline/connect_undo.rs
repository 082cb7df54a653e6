//! `connect` for each client: the entry in a file with other servers, `--replace`, and `--undo`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use harness::{assert_inert, contains};

use super::connect::{Home, broker, mode, text};

const JSON: &str = "{\n  // mine\n  \"SERVERS\": {\n    \"github\": {\"command\": \"npx\", \"env\": {\"TOKEN\": \"s3cret-value\"}}, // work\n    \"time\": {\"command\": \"uvx\"}\n  },\n  \"z\": [1, 2,]\n}\n";
const TOML: &str = "# mine\nmodel = 'x'\n\n[mcp_servers.github]\ncommand = \"npx\"\n\n[mcp_servers.time]\ncommand = \"uvx\"\n\n[z]\na = 1\n";
const GOOSE: &str = "# mine\nGOOSE_MODEL: x\nextensions:\n  github:\n    enabled: true\n    cmd: npx # work\n    envs: {}\n  time:\n    cmd: uvx\nz: 1\n";
const CONTINUE: &str = "name: x # mine\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: github\n    command: npx\n  - name: time\n    command: uvx\nmodels: []\nz: 1\n";

/// The clients, each with its file below the home, what the file has, and the lines or words of the entry.
fn clients() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let json = |servers: &str| JSON.replace("SERVERS", servers);
    #[cfg(target_os = "macos")]
    const APPLICATION: &str = "Library/Application Support";
    #[cfg(not(target_os = "macos"))]
    const APPLICATION: &str = ".config";
    let application = |name: &str| -> &'static str { format!("{APPLICATION}/{name}").leak() };
    vec![
        (
            "claude",
            application("Claude/claude_desktop_config.json"),
            json("mcpServers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "claude-code",
            ".claude.json",
            json("mcpServers"),
            "\"type\": \"stdio\"",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            json("mcpServers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "vscode",
            application("Code/User/mcp.json"),
            json("servers"),
            "\"type\": \"stdio\"",
        ),
        (
            "codex",
            ".codex/config.toml",
            TOML.to_owned(),
            "args = [\"stdio\"]",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            json("mcpServers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "copilot",
            ".copilot/mcp-config.json",
            json("mcpServers"),
            "\"tools\": [\"*\"]",
        ),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            json("mcpServers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "zed",
            ".config/zed/settings.json",
            json("context_servers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            json("mcp"),
            "\"type\": \"local\"",
        ),
        (
            "cline",
            application(
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            json("mcpServers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "roo",
            application(
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            json("mcpServers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "continue",
            ".continue/config.yaml",
            CONTINUE.to_owned(),
            "  - name: \"broker\"\n",
        ),
        (
            "lmstudio",
            ".lmstudio/mcp.json",
            json("mcpServers"),
            "\"args\": [\"stdio\"]",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            GOOSE.to_owned(),
            "  broker:\n    enabled: true\n    type: \"stdio\"\n",
        ),
    ]
}

#[test]
fn connect_adds_moves_and_takes_back_in_the_file_of_each_client() {
    let home = Home::new();
    assert_eq!(clients().len(), 15);
    for (client, name, before, entry) in clients() {
        let path = home.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(&path, &before).expect("it can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
        home.connected(&[client, "--write"]);
        let added = text(&path);
        contains(&added, &[entry, &broker(), "github", "time", "mine"]);
        // The other servers are moved behind the broker, and come back.
        let output = home.connected(&[client, "--write", "--replace"]);
        contains(&output.stderr, &["`github`, `time`", "`--undo`"]);
        assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
        let moved = text(&path);
        contains(&moved, &[entry, "mine", "z"]);
        assert!(!moved.contains("npx") && !moved.contains("uvx"), "{moved}");
        contains(
            &home.connected(&[client, "--write"]).stderr,
            &["nothing was changed"],
        );
        home.connected(&[client, "--undo"]);
        assert_eq!(text(&path), added, "{client}");
        home.connected(&[client, "--undo"]);
        assert_eq!((text(&path), mode(&path)), (before, 0o644), "{client}");
        let output = home.connect(&[client, "--undo"]);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        contains(&output.stderr, &["no write of `connect`"]);
        let folder = fs::read_dir(path.parent().expect("a folder")).expect("it is readable");
        let left: Vec<_> = folder
            .map(|entry| entry.expect("an entry").file_name())
            .filter(|name| {
                name.to_string_lossy().contains(".bak")
                    || name.to_string_lossy().contains(".connect")
            })
            .collect();
        assert!(left.is_empty(), "{client}: {left:?}");
        // A file that did not exist.
        fs::remove_file(&path).expect("it is ours");
        home.connected(&[client, "--write"]);
        contains(&text(&path), &[entry]);
        contains(&home.connected(&[client, "--undo"]).stderr, &["removed `"]);
        assert!(!path.exists());
    }
}

#[test]
fn undo_after_edits_of_others_refuses_and_names_the_old_file() {
    let home = Home::new();
    let path = home.write("mcp.json", "{}\n");
    let file = ["cursor", "--file", "mcp.json"];
    home.connected(&[&file[..], &["--write"]].concat());
    let edited = format!("{}\n", text(&path));
    fs::write(&path, &edited).expect("it is ours");
    let output = home.connect(&[&file[..], &["--undo"]].concat());
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &["was changed after `connect` wrote it", "mcp.json.bak`"],
    );
    assert_eq!(text(&path), edited);
}

#[test]
fn undo_and_replace_of_odd_files_change_nothing() {
    let home = Home::new();
    // Names of the file reach the terminal escaped.
    let odd = "{\"mcpServers\": {\"a\\u001b[2J\\u202eb\": {\"command\": \"x\"}}}";
    let path = home.write("odd.json", odd);
    let args = ["json", "--file", "odd.json", "--write", "--replace"];
    let output = home.connected(&args);
    contains(&output.stderr, &["took `a"]);
    assert_inert("stderr", &output.stderr);
    home.connected(&["json", "--file", "odd.json", "--undo"]);
    assert_eq!(text(&path), odd);
    // A byte order mark and line ends stay.
    let marked = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}\r\n\t}\r\n}";
    let path = home.write("bom.json", marked);
    home.connected(&["json", "--file", "bom.json", "--write", "--replace"]);
    assert!(text(&path).starts_with("\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"broker\": {\r\n"));
    home.connected(&["json", "--file", "bom.json", "--undo"]);
    assert_eq!(text(&path), marked);
    symlink("missing", home.path("dangling")).expect("a link can be made");
    fs::write(home.path("bytes"), [0xff, 0xfe, b'{']).expect("it can be written");
    fs::write(home.path("large"), vec![b' '; 10 << 20]).expect("it can be written");
    home.write("locked", "{}");
    fs::set_permissions(home.path("locked"), fs::Permissions::from_mode(0o400))
        .expect("it is ours");
    let before = home.names();
    for (name, part) in [
        ("dangling", "symbolic link to a file that does not exist"),
        ("bytes", "UTF-8"),
        ("large", "8388608 bytes"),
        ("locked", "read-only"),
    ] {
        let output = home.connect(&["json", "--file", name, "--write"]);
        assert_eq!(output.code, Some(2), "{name}: {}", output.stderr);
        contains(&output.stderr, &[part]);
        let output = home.connect(&["json", "--file", name, "--undo"]);
        assert_eq!(output.code, Some(2), "{name}: {}", output.stderr);
    }
    assert_eq!(home.names(), before);
}
