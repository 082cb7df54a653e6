//! Secrets: their variables, and that no text has one.

use proptest::prelude::*;

use super::*;

#[test]
fn variables_of_equal_names_and_other_values_have_the_name_of_the_server() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {
            "a": {"command": "x", "env": {"TOKEN": "canary1", "SHARED_KEY": "canary"}},
            "b-1": {"command": "x", "env": {"TOKEN": "canary2", "SHARED_KEY": "canary", "MCP_BROKER_KEY": "canary"}},
            "c": {"command": "x", "env": {"OTHER_KEY": "canary3"}, "args": ["${OTHER_KEY_2}", "--token", "canary3"]},
            "d": {"command": "x", "env": {"K": "${OTHER_KEY}"}, "cwd": "/${MCP_BROKER_HOME}"}
        }}"#,
    );
    let sources = sources(&imported);
    assert_eq!(
        sources["/a"]["env"],
        json!({"TOKEN": "${TOKEN}", "SHARED_KEY": "${SHARED_KEY}"})
    );
    assert_eq!(
        sources["/b-1"]["env"],
        json!({"TOKEN": "${B_1_TOKEN}", "SHARED_KEY": "${SHARED_KEY}", "MCP_BROKER_KEY": "${_MCP_BROKER_KEY}"})
    );
    assert_eq!(sources["/c"]["env"], json!({"OTHER_KEY": "${C_OTHER_KEY}"}));
    // The same value of the same server has one variable.
    assert_eq!(
        sources["/c"]["args"],
        json!(["${OTHER_KEY_2}", "--token", "${C_OTHER_KEY}"])
    );
    assert_eq!(sources["/d"]["cwd"], "/${_MCP_BROKER_HOME}");
    has(&texts(&imported), &["_MCP_BROKER_HOME  the file names it"]);
}

#[test]
fn secret_that_is_known_is_replaced_everywhere() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {
            "a": {"command": "x", "args": ["--show", "canary-secret-1"], "env": {"TOKEN": "canary-secret-1", "COPY": "x canary-secret-1"}, "description": "Has canary-secret-1."},
            "b": {"url": "https://h/canary-secret-1/mcp"}
        }}"#,
    );
    let sources = sources(&imported);
    assert_eq!(sources["/a"]["args"], json!(["--show", "${TOKEN}"]));
    assert_eq!(sources["/a"]["env"]["COPY"], "x ${TOKEN}");
    assert_eq!(sources["/b"]["url"], "https://h/${TOKEN}/mcp");
    has(&texts(&imported), &["`a`: not taken: `description`"]);
    for place in [
        r#""tool_filter": ["canary-secret-1"]"#,
        r#""tool_overrides": {"t": {"summary": "canary-secret-1"}}"#,
        r#""env": {"canary-secret-1": "x"}"#,
        r#""args": ["-y", "canary-secret-1"]"#,
        r#""args": ["run", "h/canary-secret-1:2"]"#,
        r#""env": {"HOME_PAGE": "https://canary-secret-1.h/"}"#,
    ] {
        let text = format!(
            r#"{{"mcpServers": {{"a": {{"command": "x", {place}}}, "b": {{"command": "x", "env": {{"TOKEN": "canary-secret-1"}}}}}}}}"#
        );
        let problems = refused("mcp.json", &text);
        assert_eq!(problems[0].code, DiagnosticCode::LiteralSecret, "{place}");
    }
}

#[test]
fn secret_in_a_script_is_a_private_variable_of_the_process() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "exec npx x --header 'Authorization: Bearer canary'"]}}}"#,
    );
    assert_eq!(
        sources(&imported)["/a"]["args"][1],
        "exec npx x --header 'Authorization: Bearer ${A_AUTHORIZATION}'"
    );
}

#[test]
fn variable_of_a_script_is_one_of_the_config() {
    let text = "[mcp_servers.a]\ncommand = 'bash'\nargs = ['-lc', 'x ${Y}']";
    let imported = imported("a.toml", text);
    assert_eq!(sources(&imported)["/a"]["args"][1], "x ${Y}");
    assert_eq!(names(&imported), ["Y"]);
    let problems = refused("a.toml", &text.replace("${Y}", "${Y%%canary}"));
    assert_eq!(problems[0].code, DiagnosticCode::EnvSyntax);
}

#[test]
fn secret_that_is_a_url_or_a_path_is_replaced_as_one() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {
            "a": {"command": "docker", "args": ["run", "-v", "/me/x.json:/app/canary.json", "image"],
                "env": {"MY_CREDENTIALS": "/app/canary.json", "HOOK_SECRET": "https://canary.h/x1"}},
            "b": {"url": "https://canary.h/x1/mcp"}
        }}"#,
    );
    let sources = sources(&imported);
    assert_eq!(
        sources["/a"]["args"],
        json!(["run", "-v", "/me/x.json:${MY_CREDENTIALS}", "image"])
    );
    assert_eq!(sources["/b"]["url"], "${HOOK_SECRET}/mcp");
}

#[test]
fn short_secret_is_replaced_in_its_server() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {
            "a": {"command": "x", "args": ["--show", "c4n4ry"], "env": {"TOKEN": "c4n4ry", "COPY": "x c4n4ry"}},
            "b": {"command": "x", "args": ["c4n4ry"]}
        }}"#,
    );
    let sources = sources(&imported);
    assert_eq!(sources["/a"]["args"], json!(["--show", "${TOKEN}"]));
    assert_eq!(sources["/a"]["env"]["COPY"], "x ${TOKEN}");
    assert_eq!(sources["/b"]["args"], json!(["c4n4ry"]));
}

#[test]
fn value_that_is_the_name_of_its_variable_is_replaced_there() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "GITHUB_PERSONAL_ACCESS_TOKEN"}}}}"#,
    );
    let name = "GITHUB_PERSONAL_ACCESS_TOKEN";
    assert_eq!(
        sources(&imported)["/a"]["env"][name],
        format!("${{{name}}}")
    );
}

#[test]
fn url_with_user_information_is_refused() {
    for url in [
        "https://u:canary@h/mcp",
        "https://${U}:${P}@h/",
        "https://canary@h/",
        "${SCHEME}://u:canary@h/",
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"url": "{url}"}}}}}}"#);
        let problems = refused("mcp.json", &text);
        assert_eq!(problems[0].code, DiagnosticCode::UrlInvalid, "{url}");
        has(
            &problems[0].to_string(),
            &["mcp.json:1:30", "help: send the secret in `headers`"],
        );
    }
}

/// A file with a canary in each place where clients have secrets.
const PLACES: &str = r#"{"mcpServers": {
  "a": {"command": "npx", "args": ["--api-key", "CANARY", "--header", "X-Key: CANARY", "https://h/?token=CANARY"],
        "env": {"API_KEY": "CANARY", "DB_URL": "postgres://u:CANARY@h/db"}},
  "b": {"url": "https://h/mcp?key=CANARY", "headers": {"Authorization": "Bearer CANARY", "Cookie": "CANARY"}}
}}"#;

#[test]
fn file_that_is_damaged_anywhere_shows_no_secret() {
    // A secret by its text, since names may be damaged.
    let canary = "sk-c4n4ry7Q2w9E1r5T8y3U";
    let json = PLACES.replace("CANARY", canary);
    let toml = format!(
        "[mcp_servers.a]\ncommand = \"x\"\nenv = {{ TOKEN = \"{canary}\", B = '{canary}' }}\n[mcp_servers.b]\nurl = 'https://h'\nhttp_headers = {{ T = \"\"\"{canary}\"\"\" }}\n"
    );
    for (file, text) in [("a.json", &json), ("a.toml", &toml)] {
        for at in 0..text.len() {
            let mut without = text.clone();
            without.remove(at);
            for damaged in [without, text[..at].to_owned()] {
                let shown = match convert_text(file, &damaged) {
                    Ok(imported) => format!("{}\n{}", imported.config, texts(&imported)),
                    Err(problems) => format!("{problems:?}"),
                };
                assert!(!shown.contains(canary), "{at}: {damaged}\n{shown}");
            }
        }
    }
}

/// Names with a secret-looking part, and values of any form.
fn secret_name() -> impl Strategy<Value = String> {
    "[A-Z]{0,3}_?(TOKEN|API_KEY|SECRET|PASSWORD|AUTH_KEY)[A-Z0-9_-]{0,3}"
}

fn text_of_any_form() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        r#"(Bearer |Basic |\$|\$\{|\$\{X\}|\$\{X:-|\}|https://|u:|@|\\|"|'|=|&){0,4}"#,
        "[a-zé\u{202e}\n]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20000))]

    #[test]
    fn import_of_any_values_shows_no_secret(
        name in secret_name(),
        header in "(X-)?(Api-Key|Token|Auth)",
        server in "[a-zA-Z0-9 ._/-]{1,8}",
        before in text_of_any_form(),
        after in text_of_any_form(),
        canary in "[a-f]{4}[0-9]{6}[g-k]{4}[0-9]{4}",
        client in 0..2usize,
    ) {
        let value = format!("{before}{canary}{after}");
        let entry = json!({
            "command": "npx",
            "args": ["-y", "x", format!("--{}", name.to_lowercase()), value, format!("https://h/?{name}={canary}")],
            "env": {name.clone(): value, "NOTE": format!("a {canary} b")},
        });
        let remote = json!({"url": format!("https://h/mcp?{name}={canary}"), "headers": {header: value}});
        let servers = json!({server: entry, "remote": remote});
        let (file, text) = match client {
            0 => ("mcp.json", json!({"mcpServers": servers}).to_string()),
            _ => ("mcp.json", json!({"servers": servers}).to_string()),
        };
        let shown = match convert_text(file, &text) {
            Ok(imported) => {
                let again = again(&imported);
                let config = Config::parse("c.json", imported.config.as_bytes());
                prop_assert!(config.is_ok(), "{config:?}");
                let second = convert_text("mcp.json", &again);
                prop_assert!(second.is_ok_and(|second| second.config == imported.config), "{again}");
                format!("{}\n{}", imported.config, texts(&imported))
            }
            Err(problems) => format!("{problems:?}"),
        };
        prop_assert!(!shown.contains(&canary), "{text}\n{shown}");
    }
}
