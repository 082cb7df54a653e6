//! Entries of registries, in the forms of 2025-07 and of 2025-12, and those that a stranger wrote to do harm.

use super::*;

/// The server of an entry.
#[track_caller]
fn server(entry: &Value) -> Value {
    match convert("server.json", entry) {
        Ok(foreign) => foreign.servers["mcpServers"]["tools"].clone(),
        Err(problems) => panic!("{problems:#?}"),
    }
}

fn entry(package: Value) -> Value {
    json!({"name": "io.example/tools", "description": "Tools.", "version": "1.2.3", "packages": [package]})
}

fn refusal(entry: &Value) -> String {
    let problems = convert("server.json", entry).expect_err("it is refused");
    problems[0].message.clone()
}

#[test]
fn packages_become_commands_with_exact_versions() {
    let digest = "ab".repeat(32);
    for (package, command, args, origin) in [
        (
            json!({"registryType": "npm", "identifier": "@x/tools", "version": "1.2.3", "transport": {"type": "stdio"}, "fileSha256": digest}),
            "npx",
            json!(["-y", "@x/tools@1.2.3"]),
            format!("npm @x/tools@1.2.3, sha256:{digest}"),
        ),
        (
            json!({"registry_type": "npm", "identifier": "tools", "version": "1.2.3-rc.1", "package_arguments": [
                {"type": "positional", "value": "start"},
                {"type": "named", "name": "--mode", "default": "local"},
                {"type": "named", "name": "--port", "value_hint": "port"},
                {"type": "named", "name": "--key", "is_required": true, "is_secret": true},
                {"type": "named", "name": "--verbose"},
                {"type": "positional", "value": "{a}/x", "variables": {"a": {"is_required": true}}},
            ]}),
            "npx",
            json!([
                "-y",
                "tools@1.2.3-rc.1",
                "start",
                "--mode",
                "local",
                "--key",
                "${TOOLS_KEY}",
                "--verbose",
                "${TOOLS_A}/x"
            ]),
            "npm tools@1.2.3-rc.1".to_owned(),
        ),
        (
            json!({"registryType": "pypi", "identifier": "tools", "version": "0.5.0", "runtimeHint": "sh"}),
            "uvx",
            json!(["tools==0.5.0"]),
            "pypi tools==0.5.0".to_owned(),
        ),
        (
            json!({"registryType": "oci", "identifier": "docker.io/x/tools:1.0", "environmentVariables": [{"name": "A", "isRequired": true}]}),
            "docker",
            json!(["run", "-i", "--rm", "-e", "A", "docker.io/x/tools:1.0"]),
            "oci docker.io/x/tools:1.0".to_owned(),
        ),
        (
            json!({"registryType": "oci", "identifier": format!("x/tools@sha256:{digest}")}),
            "docker",
            json!(["run", "-i", "--rm", format!("x/tools@sha256:{digest}")]),
            format!("oci x/tools@sha256:{digest}"),
        ),
    ] {
        let server = server(&entry(package));
        assert_eq!(
            (&server["command"], &server["args"]),
            (&json!(command), &args)
        );
        assert_eq!(server["description"], format!("Tools. ({origin})"));
    }
}

#[test]
fn variables_and_remotes_have_no_value_of_this_machine() {
    let package = json!({"registryType": "npm", "identifier": "tools", "version": "1.0.0", "environmentVariables": [
        {"name": "TOKEN", "isSecret": true}, {"name": "LEVEL", "default": "info"}, {"name": "FIXED", "value": "x"}, {"name": "FREE"},
    ]});
    assert_eq!(
        server(&entry(package))["env"],
        json!({"TOKEN": "${TOKEN}", "LEVEL": "${LEVEL:-info}", "FIXED": "x"})
    );
    let remote = json!({"server": {"name": "io.example/tools", "version": "1.0.0", "remotes": [
        {"type": "streamable-http", "url": "https://{tenant}.example/mcp", "variables": {"tenant": {}},
            "headers": [{"name": "X-Key", "isRequired": true, "isSecret": true}, {"name": "X-Region", "default": "eu"}]},
        {"type": "sse", "url": "https://example.org/sse"},
    ]}, "_meta": {}});
    let foreign = convert("a", &remote).expect("valid");
    assert_eq!(foreign.notes.len(), 1, "{foreign:?}");
    let server = &foreign.servers["mcpServers"]["tools"];
    assert_eq!(server["url"], "https://${TOOLS_TENANT}.example/mcp");
    assert_eq!(
        server["headers"],
        json!({"X-Key": "${TOOLS_X_KEY}", "X-Region": "eu"})
    );
}

#[test]
fn entry_that_could_do_harm_is_refused() {
    let npm = |change: &dyn Fn(&mut Value)| {
        let mut package = json!({"registryType": "npm", "identifier": "tools", "version": "1.0.0"});
        change(&mut package);
        entry(package)
    };
    for (key, value, part) in [
        ("version", json!("latest"), "not an exact one"),
        ("version", json!("^1.0.0"), "not an exact one"),
        ("version", json!("1.x"), "not an exact one"),
        ("version", json!(">=1,<2"), "not an exact one"),
        ("version", json!(""), "not an exact one"),
        ("version", json!("1.0.0 --eval"), "not an exact one"),
        ("identifier", json!("--registry=http://evil"), "identifier"),
        ("identifier", json!("../../x"), "identifier"),
        (
            "identifier",
            json!("https://evil.example/x.tgz"),
            "identifier",
        ),
        ("identifier", json!("x;rm"), "identifier"),
        ("fileSha256", json!("abc"), "SHA-256"),
        (
            "packageArguments",
            json!([{"type": "positional", "value": "${AWS_SECRET_ACCESS_KEY}"}]),
            "`${`",
        ),
        (
            "packageArguments",
            json!([{"type": "named", "name": "${HOME}"}]),
            "`${`",
        ),
        (
            "packageArguments",
            json!([{"value": "{a}", "variables": {"a": {"default": "${B}"}}}]),
            "`${`",
        ),
        (
            "environmentVariables",
            json!([{"name": "A", "value": "${SECRET}"}]),
            "`${`",
        ),
        (
            "environmentVariables",
            json!([{"name": "A=B"}]),
            "name of a variable",
        ),
        ("registryType", json!("cargo"), "not started by a config"),
        ("registryType", json!("mcpb"), "download it"),
        ("transport", json!({"type": "sse"}), "stdio"),
    ] {
        let refused = refusal(&npm(&|package| package[key] = value.clone()));
        assert!(refused.contains(part), "{key}: {refused}");
    }
    let mut described = npm(&|_| {});
    described["description"] = json!("Reads ${HOME}");
    assert!(refusal(&described).contains("`${`"));
    assert!(refusal(&json!({"name": "a/b", "packages": []})).contains("neither"));
}
