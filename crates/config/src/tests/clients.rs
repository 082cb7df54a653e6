//! Files of MCP clients that are given as a config.

use super::*;
use crate::client_file::Client;
use crate::{Backend, ProcessEndpoint};

/// The keys at the top of files of clients.
const KEYS: &str = include_str!("data/client-keys.txt");

/// Parses a file that a person named, on a machine with these programs.
fn parse_file(file: &str, text: &str, programs: &[&str]) -> Parsed {
    let exists = |name: &str| programs.contains(&name);
    Config::parse_file(file, text.as_bytes(), &exists)
        .unwrap_or_else(|found| panic!("{text}\n{}", shown(&found)))
}

fn process<'c>(config: &'c Config, path: &str) -> &'c ProcessEndpoint {
    let source = config.sources().find(|source| source.path.as_str() == path);
    source.unwrap().process().unwrap()
}

/// The compiled-in config has the same sources as the file, whatever its name is.
fn is_compiled_in(config: &Config) {
    let text = config.compiled_text();
    let again = parse(&text);
    assert_eq!(again.config.digest(), config.digest(), "{text}");
    let times = |config: &Config| config.sources().map(|one| one.timeout).collect::<Vec<_>>();
    assert_eq!(times(&again.config), times(config), "{text}");
    let named = parse_file(&config.file, &text, &[]);
    assert_eq!(times(&named.config), times(config), "{text}");
}

#[test]
fn settings_of_clients_are_ignored_in_silence() {
    let keys = KEYS.lines().filter(|line| !line.starts_with('#'));
    let keys: Vec<&str> = keys.filter_map(|line| line.split('\t').next()).collect();
    assert!(keys.len() > 130, "{}", keys.len());
    let servers = r#"{"a":{"command":"x"}}"#;
    for key in keys {
        for value in [
            r#""dark""#,
            "true",
            "3",
            "null",
            r#"["a"]"#,
            r#"{"allowed":["a"]}"#,
        ] {
            // The value of the key of the servers is the servers.
            if ["mcpServers", "servers", "mcp_servers", "context_servers"].contains(&key) {
                continue;
            }
            let text = format!(r#"{{"{key}":{value},"mcpServers":{servers}}}"#);
            let parsed = parse(&text);
            assert_eq!(parsed.warnings, [], "{text}");
            assert_eq!(parsed.config.sources().count(), 1, "{text}");
        }
    }
}

#[test]
fn key_of_a_config_counts_if_its_value_has_the_shape() {
    let parsed = parse(
        r#"{"theme":"x","mcp":{"mode":"direct"},"limits":{"body_bytes":65536},"audits_required":2,
            "trust":{"sensitive":["pay"]},"mcpServers":{"a":{"command":"x"}}}"#,
    );
    assert_eq!(parsed.warnings, []);
    assert_eq!(parsed.config.limits.body_bytes, 65_536);
    assert_eq!(parsed.config.audits_required, 2);
    assert_eq!(parsed.config.mcp.mode, crate::McpMode::Direct);
    for (key, value) in [
        ("access", r#""all""#),
        ("access", r#"{"users":[]}"#),
        ("identities", "[]"),
        ("audits_required", r#""yes""#),
        ("allowed_hosts", r#"{"a":1}"#),
        ("allowed_origins", r#""*""#),
        ("limits", r#"{"tokens":1}"#),
        ("trust", "true"),
        ("trust", r#"{"folders":[]}"#),
    ] {
        let found = only(&format!(
            r#"{{"{key}":{value},"mcpServers":{{"a":{{"command":"x"}}}}}}"#
        ));
        let place = format!("/{key}");
        assert_eq!(
            places(std::slice::from_ref(&found)),
            [(Code::ConfigShape, &*place)]
        );
        assert!(found.remedy().contains("--from"), "{found}");
    }
    // One key of a config is enough for the precise error.
    let found = only(r#"{"limits":{"body_bytes":65536,"x":1},"mcpServers":{"a":{"command":"x"}}}"#);
    assert_eq!(places(&[found]), [(Code::ConfigUnknownKey, "/limits/x")]);
    let parsed = parse(r#"{"acces":{"rules":[]},"mcpServers":{"a":{"command":"x"}}}"#);
    assert_eq!(places(&parsed.warnings), [(Code::ClientValue, "/acces")]);
    assert!(parsed.warnings[0].message.contains("`access`"));
}

#[test]
fn key_of_a_config_at_a_wrong_place_names_the_right_one() {
    for (text, place, right) in [
        (
            r#"{"tool_filter":["x"],"mcpServers":{"a":{"command":"x"}}}"#,
            "/tool_filter",
            "a source",
        ),
        (
            r#"{"body_bytes":1,"mcpServers":{"a":{"command":"x"}}}"#,
            "/body_bytes",
            "`limits`",
        ),
        (
            r#"{"mcpServers":{"a":{"command":"x","limits":{}}}}"#,
            "/mcpServers/a/limits",
            "the top level",
        ),
        (
            r#"{"mcpServers":{"a":{"command":"x","audits_required":1}}}"#,
            "/mcpServers/a/audits_required",
            "the top level",
        ),
    ] {
        let found = only(text);
        assert_eq!(
            places(std::slice::from_ref(&found)),
            [(Code::ConfigUnknownKey, place)]
        );
        assert!(found.remedy().contains(right), "{found}");
    }
}

#[test]
fn file_of_gemini_is_read() {
    let file = ".gemini/settings.json";
    let parsed = parse_file(
        file,
        r#"{
  // Written by hand.
  "theme": "Default", "mcp": {"allowed": ["a"]}, "ide": {"enabled": true},
  "mcpServers": {
    "a": {"command": "python3", "args": ["server.py"], "env": {"K": "$KEY"}, "cwd": null, "trust": false},
    "gh": {"httpUrl": "http://127.0.0.1:9931/mcp", "url": "", "headers": {"Authorization": "Bearer $GITHUB_MCP_PAT"},
      "timeout": 15000, "excludeTools": ["rm*"]},
  },
}"#,
        &[],
    );
    let config = &parsed.config;
    assert_eq!(config.client(), Some(Client::Gemini));
    assert_eq!(
        places(&parsed.warnings),
        [(Code::KeyIgnored, "/mcpServers/a/trust")]
    );
    assert_eq!(process(config, "/a").env["K"].raw(), "${KEY}");
    let gh = config.sources().nth(1).unwrap();
    let http = gh.endpoint.http().unwrap();
    assert_eq!(http.url.raw(), "http://127.0.0.1:9931/mcp");
    assert_eq!(
        http.headers["Authorization"].raw(),
        "Bearer ${GITHUB_MCP_PAT}"
    );
    assert_eq!(gh.timeout.as_secs(), 15);
    assert!(gh.exposure.filter().admits("ls") && !gh.exposure.filter().admits("rm*"));
    is_compiled_in(config);
    // By its content alone.
    let text = r#"{"mcp":{"allowed":["a"]},"mcpServers":{"a":{"command":"x","timeout":15000}}}"#;
    assert_eq!(parse(text).config.client(), Some(Client::Gemini));
    // A file with keys of several clients was copied together.
    let text = r#"{"mcpServers":{"a":{"httpUrl":"https://h/","timeout":30},"b":{"serverUrl":"https://h/"}}}"#;
    let config = parse(text).config;
    assert_eq!(config.client(), None);
    assert_eq!(config.sources().next().unwrap().timeout.as_secs(), 30);
    let text =
        r#"{"mcpServers":{"gh":{"httpUrl":"https://h/","headers":{"A":"$X"},"timeout":15000}}}"#;
    let config = parse(text).config;
    assert_eq!(config.client(), Some(Client::Gemini));
    assert_eq!(config.sources().next().unwrap().timeout.as_secs(), 15);
    assert_eq!(config.variables().into_iter().collect::<Vec<_>>(), ["X"]);
}

#[test]
fn file_of_copilot_opencode_or_zed_is_read() {
    let copilot = parse(
        r#"{"mcpServers":{"a":{"type":"local","command":"python3","args":["server.py"],"tools":["*"],"env":{"T":"$TOKEN"},"timeout":30000},
            "b":{"type":"http","url":"https://h/mcp","tools":["x"]}}}"#,
    );
    assert_eq!(copilot.warnings, []);
    let config = &copilot.config;
    assert_eq!(config.client(), Some(Client::Copilot));
    let sources: Vec<_> = config.sources().collect();
    assert_eq!(sources[0].backend(), Backend::Stdio);
    assert_eq!(process(config, "/a").env["T"].raw(), "${TOKEN}");
    assert_eq!(sources[0].timeout.as_secs(), 30);
    assert!(sources[0].exposure.filter().patterns().is_empty());
    assert_eq!(sources[1].exposure.filter().patterns(), ["x"]);
    is_compiled_in(config);

    let opencode = parse(
        r#"{"$schema":"https://opencode.ai/config.json","theme":"x","agent":{},
            "mcp":{"a":{"type":"local","command":["python3","server.py"],"environment":{"X":"1","K":"{env:KEY}"},"enabled":true,"timeout":5000},
                "h":{"type":"remote","url":"http://127.0.0.1:9/mcp","enabled":false},
                "r":{"type":"remote","url":"https://h/mcp","headers":{"A":"Bearer {env:T}"}}}, // more
            }"#,
    );
    let config = &opencode.config;
    assert_eq!(config.client(), Some(Client::Opencode));
    assert_eq!(places(&opencode.warnings), [(Code::KeyIgnored, "/mcp/h")]);
    let sources: Vec<_> = config.sources().collect();
    assert_eq!(sources.len(), 2);
    assert_eq!(sources[0].pointer, "/mcp/a");
    assert_eq!(sources[0].timeout.as_secs(), 5);
    assert_eq!(
        words(&process(config, "/a").command),
        ["python3", "server.py"]
    );
    assert_eq!(process(config, "/a").env["K"].raw(), "${KEY}");
    assert_eq!(
        sources[1].endpoint.http().unwrap().headers["A"].raw(),
        "Bearer ${T}"
    );
    is_compiled_in(config);

    let zed = parse(
        r#"{"buffer_font_size":13,"agent":{},"context_servers":{
            "a":{"source":"custom","command":"python3","args":["server.py"],"timeout":60},
            "b":{"command":{"path":"python3","args":["server.py"],"env":null},"settings":{}},
            "e":{"source":"extension","settings":{}}}}"#,
    );
    let config = &zed.config;
    assert_eq!(config.client(), Some(Client::Zed));
    assert_eq!(
        places(&zed.warnings),
        [(Code::KeyIgnored, "/context_servers/e")]
    );
    for path in ["/a", "/b"] {
        let command = &process(config, path).command;
        assert_eq!(words(command), ["python3", "server.py"], "{path}");
    }
    is_compiled_in(config);
    // A variable that Zed does not know is text there, and no config has such a text.
    let found = only(r#"{"context_servers":{"a":{"command":"x","env":{"K":"${KEY}"}}}}"#);
    assert_eq!(
        places(&[found]),
        [(Code::EnvSyntax, "/context_servers/a/env/K")]
    );
}

#[test]
fn command_line_is_split_if_it_names_no_program() {
    let text = r#"{"mcpServers":{"a":{"command":"python3 'my server.py'"},"b":{"command":"/opt/my server","args":[]},"c":{"command":"x | y"}}}"#;
    let parsed = parse_file("mcp.json", text, &["/opt/my server"]);
    let found =
        ["/a", "/b", "/c"].map(|path| words(&process(&parsed.config, path).command).join("|"));
    assert_eq!(found, ["python3|my server.py", "/opt/my server", "x | y"]);
    assert_eq!(
        places(&parsed.warnings),
        [
            (Code::ClientValue, "/mcpServers/a/command"),
            (Code::ClientValue, "/mcpServers/c/command"),
        ]
    );
    assert!(parsed.warnings[1].message.contains("`args`"));
    is_compiled_in(&parsed.config);
}

#[test]
fn home_and_the_shell_of_windows_get_a_hint() {
    let parsed = parse(
        r#"{"mcpServers":{"a":{"command":"cmd","args":["/c","npx","x"]},"b":{"command":"x","args":["~/b"],"env":{"D":"~/c"}}}}"#,
    );
    let found: Vec<_> = parsed
        .warnings
        .iter()
        .map(|one| one.message.as_str())
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("Windows") && found[1].contains("${HOME}/") && found[2].contains("`~/`")
    );
}

#[test]
fn file_that_is_not_json_names_the_command_that_reads_it() {
    for (file, text) in [("a.yaml", "mcpServers:\n"), ("a.toml", "[mcp_servers.a]\n")] {
        let found = Config::parse(file, text.as_bytes()).unwrap_err();
        assert!(
            found[0].remedy().contains("broker-gen import"),
            "{}",
            found[0]
        );
    }
    let found = &refused("{\"a\":1}")[0];
    assert!(found.remedy().contains("broker-gen import"), "{found}");
}
