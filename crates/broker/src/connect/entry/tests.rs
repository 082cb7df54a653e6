//! The entry of each client, over stdio and over HTTP.

use super::*;
use clap::ValueEnum as _;

const URL: &str = "http://127.0.0.1:8100/mcp";

fn broker(program: &str) -> Command<'_> {
    Command {
        program: Path::new(program),
        words: &["stdio"],
        config: None,
        variables: &[],
    }
}

fn http_line(client: Client, credential: Credential<'_>) -> Result<String, String> {
    let made = http(client, "broker", URL, credential, View::default());
    made.map(|entry| entry.json_line())
        .map_err(|error| error.to_string())
}

#[test]
fn stdio_entry_of_each_client_has_command_and_arguments() {
    let rest = r#""command": "/b/mcp-broker", "args": ["stdio", "/c.json"]}"#;
    for client in Client::value_variants() {
        let command = Command {
            config: Some(Path::new("/c.json")),
            ..broker("/b/mcp-broker")
        };
        let made = stdio(*client, "broker", command, View::default());
        let expected = match client {
            Client::ClaudeCode | Client::VsCode => format!(r#"{{"type": "stdio", {rest}"#),
            Client::Copilot => {
                let rest = rest.replace("]}", r#"], "tools": ["*"]}"#);
                format!(r#"{{"type": "local", {rest}"#)
            }
            Client::Continue => format!(r#"{{"name": "broker", {rest}"#),
            Client::OpenCode => r#"{"type": "local", "command": ["/b/mcp-broker", "stdio", "/c.json"], "enabled": true}"#.to_owned(),
            Client::Goose => r#"{"enabled": true, "type": "stdio", "name": "broker", "description": "The tools of mcp-broker", "cmd": "/b/mcp-broker", "args": ["stdio", "/c.json"]}"#.to_owned(),
            _ => format!("{{{rest}"),
        };
        assert_eq!(made.unwrap().json_line(), expected);
    }
    let view = View {
        under: Some("/files/x y"),
        mode: Some(ModeOption::Direct),
    };
    let made = stdio(Client::Zed, "broker", broker("/b"), view).unwrap();
    assert_eq!(
        made.json_line(),
        r#"{"command": "/b", "args": ["stdio", "--under", "/files/x y", "--mcp-mode", "direct"]}"#
    );
}

#[test]
fn http_entry_of_each_client_refers_to_the_variable() {
    let found = |client| http_line(client, Credential::Variable("V")).unwrap();
    for (client, expected) in [
        (
            Client::ClaudeCode,
            r#"{"type": "http", "url": "URL", "headers": {"Authorization": "Bearer ${V}"}}"#,
        ),
        (
            Client::Cursor,
            r#"{"url": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
        ),
        (
            Client::VsCode,
            r#"{"type": "http", "url": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
        ),
        (
            Client::Codex,
            r#"{"url": "URL", "bearer_token_env_var": "V"}"#,
        ),
        (
            Client::Gemini,
            r#"{"httpUrl": "URL", "headers": {"Authorization": "Bearer ${V}"}}"#,
        ),
        (
            Client::Windsurf,
            r#"{"serverUrl": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
        ),
        (
            Client::Cline,
            r#"{"type": "streamableHttp", "url": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
        ),
        (
            Client::Roo,
            r#"{"type": "streamable-http", "url": "URL", "headers": {"Authorization": "Bearer ${env:V}"}}"#,
        ),
        (
            Client::Copilot,
            r#"{"type": "http", "url": "URL", "headers": {"Authorization": "Bearer ${V}"}, "tools": ["*"]}"#,
        ),
        (
            Client::OpenCode,
            r#"{"type": "remote", "url": "URL", "enabled": true, "headers": {"Authorization": "Bearer {env:V}"}}"#,
        ),
        (
            Client::Continue,
            r#"{"name": "broker", "type": "streamable-http", "url": "URL", "requestOptions": {"headers": {"Authorization": "Bearer ${{ secrets.V }}"}}}"#,
        ),
        (
            Client::Goose,
            r#"{"enabled": true, "type": "streamable_http", "name": "broker", "description": "The tools of mcp-broker", "uri": "URL", "headers": {"Authorization": "Bearer ${V}"}}"#,
        ),
    ] {
        assert_eq!(found(client), expected.replace("URL", URL));
    }
    for client in [Client::Zed, Client::LmStudio, Client::Json] {
        let error = http_line(client, Credential::Variable("V")).unwrap_err();
        assert!(error.contains("`--with-secret`"), "{error}");
    }
    let error = http_line(Client::Claude, Credential::None).unwrap_err();
    assert!(error.contains("leave out `--http`"), "{error}");
}

#[test]
fn http_entry_has_no_header_without_a_secret_and_the_secret_in_clear_if_asked() {
    let found = |client, credential| http_line(client, credential).unwrap();
    assert_eq!(
        found(Client::Zed, Credential::None),
        format!(r#"{{"url": "{URL}"}}"#)
    );
    assert_eq!(
        found(Client::Zed, Credential::Clear("s")),
        format!(r#"{{"url": "{URL}", "headers": {{"Authorization": "Bearer s"}}}}"#)
    );
    assert_eq!(
        found(Client::Codex, Credential::Clear("s")),
        format!(r#"{{"url": "{URL}", "http_headers": {{"Authorization": "Bearer s"}}}}"#)
    );
    let error = http_line(Client::Gemini, Credential::Clear("s3cret$")).unwrap_err();
    assert!(!error.contains("s3cret"), "{error}");
}

#[test]
fn url_gets_mode_and_path_or_is_refused() {
    let view = |under, mode| View { under, mode };
    for (url, view, expected) in [
        (URL, View::default(), URL),
        (
            URL,
            view(Some("/a b/ü"), Some(ModeOption::Meta)),
            "http://127.0.0.1:8100/mcp/meta?under=/a%20b/%C3%BC",
        ),
        (
            "https://h/x/mcp?k=1",
            view(Some("/a&b"), Some(ModeOption::Direct)),
            "https://h/x/mcp/direct?k=1&under=/a%26b",
        ),
    ] {
        assert_eq!(endpoint(url, view).unwrap(), expected);
    }
    let long = format!("http://h/{}", "x".repeat(MAX_BYTES));
    for url in [
        "",
        "/mcp",
        "127.0.0.1:8100",
        "ftp://h/mcp",
        "http:///mcp",
        "http://h",
        "http://h/",
        "http://h/mcp#x",
        "http://h/a b",
        &long,
    ] {
        assert!(endpoint(url, View::default()).is_err(), "{url}");
    }
    for url in [
        "http://u:s3cret@h/mcp",
        "http://h/?s3cret",
        "http://h/mcp?s3cret#x",
    ] {
        let error = endpoint(url, View::default()).unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert!(endpoint("http://h/mcp/meta", view(None, Some(ModeOption::Meta))).is_err());
    assert!(endpoint(URL, view(Some("a"), None)).is_err());
    assert!(endpoint(URL, view(Some("/a\n"), None)).is_err());
}

#[test]
fn text_that_the_client_would_expand_is_refused() {
    let made = |client, program| stdio(client, "broker", broker(program), View::default());
    assert!(made(Client::Cursor, "/a/${b}").is_err());
    assert!(made(Client::Gemini, "/a/$b").is_err());
    assert!(made(Client::Cursor, "/a/$b").is_ok());
    assert!(made(Client::Zed, "/a/${b}").is_ok());
    for name in ["", "1A", "A-B", "A}", "ä"] {
        assert!(checked_variable(name).is_err(), "{name}");
    }
    assert_eq!(checked_variable("_A1").unwrap(), "_A1");
}

#[test]
fn variables_of_the_client_are_in_the_member_that_it_reads() {
    let variables = [("A_KEY".to_owned(), Secret::new("x${y"))];
    for (client, member) in [
        (Client::Cursor, r#""env": {"A_KEY": "x${y"}"#),
        (Client::Goose, r#""envs": {"A_KEY": "x${y"}"#),
        (Client::OpenCode, r#""environment": {"A_KEY": "x${y"}"#),
    ] {
        let command = Command {
            variables: &variables,
            ..broker("/b")
        };
        let made = stdio(client, "broker", command, View::default()).unwrap();
        assert!(made.json_line().contains(member), "{}", made.json_line());
        assert!(!format!("{command:?}").contains("x${y"));
    }
}
