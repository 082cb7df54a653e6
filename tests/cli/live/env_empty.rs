//! Servers that refuse the credentials while a variable of the config is set and empty, as in CI for forks and bots.

use harness::{HttpSources, Output, contains, http_script};
use serde_json::json;

/// Sources over HTTP of which `/a` sends `API_TOKEN` in a header.
fn sources() -> HttpSources {
    let sources = HttpSources::with(&http_script("legacy", &json!({})), |config| {
        let tree = config["tree"].as_array_mut().expect("a list");
        tree.truncate(1);
        tree[0]["source"]["headers"] = json!({
            "Authorization": "Bearer ${API_TOKEN}", "X-Team": "${TEAM:-blue}",
        });
    });
    sources.variable("TEAM", "")
}

/// The server requires a token.
fn require(sources: &HttpSources) {
    let required = json!({"require_headers": {"Authorization": "Bearer t0ken-of-the-test"}});
    sources.chaos.script("a", &http_script("legacy", &required));
}

fn run(sources: &HttpSources, verb: &str, token: &str) -> Output {
    sources.verb(verb, &[]).env("API_TOKEN", token).output()
}

/// Everything that was shown, on one line.
fn shown(output: &Output) -> String {
    let all = format!("{} {}", output.stdout, output.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn empty_variable_is_named_when_the_server_refuses_the_credentials() {
    let sources = sources();
    let locked = run(&sources, "lock", "t0ken-of-the-test");
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    require(&sources);
    for verb in ["check", "lock", "doctor"] {
        let output = run(&sources, verb, "");
        assert_ne!(output.code, Some(0), "{verb}: {}", output.stderr);
        let shown = shown(&output);
        contains(
            &shown,
            &[
                "needs_auth",
                "HTTP status 401",
                "`API_TOKEN` of its config is set and empty",
                "forks and bots get empty secrets",
            ],
        );
        // Its default applies.
        assert!(!shown.contains("TEAM"), "{verb}: {shown}");
    }
}

#[test]
fn wrong_value_is_neither_shown_nor_called_empty() {
    let sources = sources();
    let locked = run(&sources, "lock", "t0ken-of-the-test");
    assert_eq!(locked.code, Some(0), "{}", locked.stderr);
    require(&sources);
    for verb in ["check", "lock", "doctor"] {
        let shown = shown(&run(&sources, verb, "wr0ng-token-of-the-test"));
        contains(&shown, &["needs_auth", "HTTP status 401"]);
        for part in ["empty", "wr0ng", "API_TOKEN"] {
            assert!(!shown.contains(part), "{verb}: {shown}");
        }
    }
}
