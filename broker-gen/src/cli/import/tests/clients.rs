//! One file of each client.

use super::*;

#[test]
fn file_of_claude_code_becomes_a_config() {
    let imported = imported(
        ".claude.json",
        r#"{
  "numStartups": 12,
  "oauthAccount": {"token": "canary-account"},
  "mcpServers": {
    "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp/", "headers": {"Authorization": "Bearer ghp_canarycanary0000"}},
    "my db": {"type": "stdio", "command": "npx", "args": ["-y", "dbhub@1", "--dsn", "canary-dsn", "postgres://u:canary@h/db"], "env": {"PGPASSWORD": "canary", "PGHOST": "h", "PORT": 5432}},
    "linear": {"type": "sse", "url": "https://mcp.linear.app/sse"},
    "auth": {"type": "http", "url": "${BASE:-https://h}/mcp", "headers": {"X-Api-Key": "${KEY:-canary-default}"}, "headersHelper": "canary.sh"}
  },
  "projects": {"/home/me/a": {"mcpServers": {"x": {"command": "y", "env": {"T": "canary"}}}}}
}"#,
    );
    assert_eq!(
        sources(&imported),
        json!({
            "/github": {"url": "https://api.githubcopilot.com/mcp/", "headers": {"Authorization": "Bearer ${GITHUB_AUTHORIZATION}"}},
            "/my-db": {"command": "npx", "args": ["-y", "dbhub@1", "--dsn", "${MY_DB_DSN}", "postgres://${MY_DB_URL_USER}@h/db"],
                "env": {"PGPASSWORD": "${PGPASSWORD}", "PGHOST": "h", "PORT": "5432"}},
            "/linear": {"url": "https://mcp.linear.app/sse"},
            "/auth": {"url": "${BASE:-https://h}/mcp", "headers": {"X-Api-Key": "${KEY}"}},
        })
    );
    let paths: Vec<_> = ["/github", "/my-db", "/linear", "/auth"].into();
    let config = parsed(&imported.config);
    let found: Vec<_> = config
        .sources()
        .map(|source| source.path.as_str())
        .collect();
    assert_eq!(found, paths, "the order of the file");
    has(
        &texts(&imported),
        &[
            "not taken: `numStartups`, `oauthAccount`, `projects`",
            "`auth`: not taken: `default of KEY`, `headersHelper`",
            "GITHUB_AUTHORIZATION  secret: the header `Authorization` of `github` behind `Bearer`",
            "BASE  the file names it: `auth`; it has a default",
        ],
    );
}

#[test]
fn file_of_claude_desktop_becomes_a_config() {
    let imported = imported(
        "claude_desktop_config.json",
        r#"{"globalShortcut": "x", "mcpServers": {
            "notion": {"command": "npx", "args": ["-y", "@notionhq/notion-mcp-server"],
                "env": {"OPENAPI_MCP_HEADERS": "{\"Authorization\": \"Bearer ntn_canary1\", \"Notion-Version\": \"2022-06-28\"}"}},
            "remote": {"command": "npx", "args": ["mcp-remote", "https://h/sse", "--header", "Authorization:${AUTH_HEADER}"],
                "env": {"AUTH_HEADER": "Bearer canary-header-1"}},
            "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"]},
            "plain": {"command": "/opt/server"},
            "with blank": {"command": "my server"},
            "self": {"command": "/opt/broker/mcp-broker", "args": ["stdio"]}
        }}"#,
    );
    assert_eq!(
        sources(&imported),
        json!({
            "/notion": {"command": "npx", "args": ["-y", "@notionhq/notion-mcp-server"],
                "env": {"OPENAPI_MCP_HEADERS": "${OPENAPI_MCP_HEADERS}"}},
            "/remote": {"command": "npx", "args": ["mcp-remote", "https://h/sse", "--header", "Authorization:${AUTH_HEADER}"],
                "env": {"AUTH_HEADER": "${AUTH_HEADER}"}},
            "/files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"]},
            "/plain": {"command": "/opt/server"},
            "/with-blank": {"command": "my server", "args": []},
        })
    );
    assert_eq!(names(&imported), ["OPENAPI_MCP_HEADERS", "AUTH_HEADER"]);
    has(&texts(&imported), &["`self`: it is the broker itself"]);
}

#[test]
fn file_of_vscode_becomes_a_config() {
    let imported = imported(
        ".vscode/mcp.json",
        r#"{
  // "mcpServers" of the team
  "inputs": [
    {"type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true},
    {"type": "promptString", "id": "region", "description": "Region", "default": "canary"},
  ],
  "servers": {
    "perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "p@1", "${workspaceFolder}/x"],
      "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}", "A": "${env:A_VAR}", "R": "${input:region}"},
      "envFile": "${workspaceFolder}/.env", "dev": {"watch": "x"}},
    "http": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${input:perplexity-key}"}, /* no */ "gallery": true,},
    "python": {"command": "${config:python.path}", "args": ["${/}x"]},
  },
}"#,
    );
    assert_eq!(
        sources(&imported),
        json!({
            "/perplexity": {"command": "npx", "args": ["-y", "p@1", "${workspaceFolder}/x"],
                "env": {"PERPLEXITY_API_KEY": "${PERPLEXITY_KEY}", "A": "${A_VAR}", "R": "${REGION}"}},
            "/http": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${PERPLEXITY_KEY}"}},
            "/python": {"command": "${PYTHON_PATH}", "args": ["/x"]},
        })
    );
    has(
        &texts(&imported),
        &[
            "`perplexity`: `envFile` is not taken: the broker reads no file of variables",
            "`perplexity`: not taken: `dev`",
            "`http`: not taken: `gallery`",
            "PERPLEXITY_KEY  input `perplexity-key` Perplexity API Key: `PERPLEXITY_API_KEY` of `perplexity`, `Authorization` of `http`",
            "REGION  input `region` Region: ",
            "PYTHON_PATH  `${config:python.path}` of the client: ",
            "A_VAR  the file names it: `perplexity`",
        ],
    );
}

#[test]
fn file_of_cursor_becomes_a_config() {
    let imported = imported(
        "mcp.json",
        r#"{"mcpServers": {
            "api": {"url": "https://h/mcp?apiKey=canary&team=${env:TEAM}", "headers": {"X-Token": "${env:API_TOKEN}"},
                "auth": {"CLIENT_ID": "canary-id", "CLIENT_SECRET": "canary-secret"}},
            "local": {"type": "stdio", "command": "./server", "args": ["--key", "canary", "--root=${userHome}/x"], "envFile": ".env", "cwd": "sub"}
        }}"#,
    );
    assert_eq!(
        sources(&imported),
        json!({
            "/api": {"url": "https://h/mcp?apiKey=${API_APIKEY}&team=${TEAM}", "headers": {"X-Token": "${API_TOKEN}"}},
            "/local": {"command": "./server", "args": ["--key", "${LOCAL_KEY}", "--root=${HOME}/x"], "cwd": "sub"},
        })
    );
    has(
        &texts(&imported),
        &[
            "`api`: `auth` is not taken: the broker does not sign in as a user",
            "`local`: `envFile` is not taken",
        ],
    );
    assert!(!names(&imported).contains(&"HOME"));
}

#[test]
fn keys_of_other_clients_are_read_or_noted() {
    let imported = imported(
        "mcp_config.json",
        r#"{"mcpServers": {
            "gemini": {"httpUrl": "https://h/mcp", "url": "https://h/sse", "headers": {"Authorization": "Bearer $canary_0"}, "trust": true,
                "excludeTools": ["c*"], "description": "Does ${things}. Well."},
            "figma": {"serverUrl": "https://h/mcp", "headers": {"X-Figma-Token": "canary", "Accept": "*/*"}, "disabledTools": ["x"]},
            "files": {"command": "npx", "args": ["x"], "env": {}, "alwaysAllow": ["a"], "disabled": false, "timeout": 600},
            "events": {"type": "streamableHttp", "url": "https://h/${env:TENANT}/mcp", "autoApprove": [], "timeout": 60},
            "off": {"command": "x", "disabled": true, "env": {"TOKEN": "canary"}},
            "socket": {"type": "websocket", "url": "wss://h"}
        }}"#,
    );
    assert_eq!(
        sources(&imported),
        json!({
            "/gemini": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${GEMINI_AUTHORIZATION}"}, "tool_filter": ["!c[*]"]},
            "/figma": {"url": "https://h/mcp", "headers": {"X-Figma-Token": "${FIGMA_X_FIGMA_TOKEN}"}, "tool_filter": ["!x"]},
            "/files": {"command": "npx", "args": ["x"], "timeout": 600},
            "/events": {"url": "https://h/${TENANT}/mcp", "timeout": 60},
        })
    );
    has(
        &texts(&imported),
        &[
            "`gemini`: not taken: `url`, `trust`",
            "`figma`: not taken: `headers.Accept`",
            "`files`: not taken: `alwaysAllow`",
            "left out: `off`: it is disabled",
            "left out: `socket`: its type is not supported",
        ],
    );
    let config = parsed(&imported.config);
    let node = config.root.children.first().expect("a node");
    assert_eq!(node.description.as_deref(), Some("Does ${things}. Well."));
}

#[test]
fn file_of_codex_becomes_a_config() {
    let imported = imported(
        "config.toml",
        r#"model = "gpt-5"
[projects."/home/me"]
trust_level = "trusted"
[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp", "--api-key", "canary-1"]
env = { "LOCALE" = "de", "CONTEXT_TOKEN" = "canary", "PROMPT" = "${not a variable}" }
env_vars = ["LOCAL_TOKEN", { name = "OTHER", source = "local" }, { name = "FAR", source = "remote" }]
cwd = "/srv"
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["a", "b*"]
disabled_tools = ["a"]
required = true
[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
http_headers = { "X-Figma-Region" = "us-east-1", "X-Key" = "canary" }
env_http_headers = { "X-Other" = "OTHER_KEY", "X-Bad" = "not a name" }
startup_timeout_ms = 2500
scopes = ["read"]
[mcp_servers.disabled]
command = "x"
enabled = false
[mcp_servers.broker]
url = "http://127.0.0.1:8100/mcp"
bearer_token_env_var = "MCP_BROKER_SECRET"
"#,
    );
    assert_eq!(
        sources(&imported),
        json!({
            "/context7": {"command": "npx", "args": ["-y", "@upstash/context7-mcp", "--api-key", "${CONTEXT7_API_KEY}"],
                "env": {"LOCALE": "de", "CONTEXT_TOKEN": "${CONTEXT_TOKEN}", "PROMPT": "${PROMPT}"},
                "inherit_env": ["LOCAL_TOKEN", "OTHER"], "cwd": "/srv", "startup_timeout": 20, "timeout": 45.5,
                "tool_filter": ["a", "b[*]", "!a"], "required": true},
            "/figma": {"url": "https://mcp.figma.com/mcp", "startup_timeout": 2.5,
                "headers": {"Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}", "X-Figma-Region": "us-east-1",
                    "X-Key": "${FIGMA_X_KEY}", "X-Other": "${OTHER_KEY}"}},
        })
    );
    has(
        &texts(&imported),
        &[
            "not taken: `model`, `projects`",
            "`context7`: not taken: `env_vars`",
            "`figma`: not taken: `env_http_headers.X-Bad`",
            "`figma`: `scopes` is not taken",
            "left out: `disabled`",
            "left out: `broker`: it is the broker itself",
            "PROMPT  text with a `${` that a config cannot have: `env.PROMPT` of `context7`",
        ],
    );
}

#[test]
fn variables_that_a_command_asks_for_are_inherited() {
    let text = r#"{"mcpServers": {
        "a": {"command": "docker", "args": ["run", "-i", "--rm", "-e", "ASKED", "-e", "GIVEN_TOKEN", "-e", "SET=1",
            "--env-file", "v.env", "image"], "env": {"GIVEN_TOKEN": "canary-value"}, "inherit_env": ["OWN"]},
        "b": {"command": "ssh", "args": ["-o", "SendEnv=ONE TWO", "host", "server"]},
        "c": {"command": "docker", "args": ["run", "-e", "OPENAI_API_KEY", "image"]},
        "d": {"command": "npx", "args": ["-e", "NAME", "server"]}}}"#;
    let imported = imported("mcp.json", text);
    let sources = sources(&imported);
    assert_eq!(
        sources["/a"]["inherit_env"],
        json!(["OWN", "ASKED", "FROM_FILE"])
    );
    assert_eq!(sources["/b"]["inherit_env"], json!(["ONE", "TWO"]));
    assert_eq!(
        sources["/c"]["env"],
        json!({"OPENAI_API_KEY": "${OPENAI_API_KEY}"})
    );
    assert_eq!(sources["/d"].get("inherit_env"), None);
    let named = texts(&imported);
    for name in ["ASKED", "FROM_FILE", "ONE", "OPENAI_API_KEY"] {
        assert!(
            named.contains(&format!("{name}  the file names it: ")),
            "{named}"
        );
    }
}
