//! `broker-gen page`: the lock as one file, without a network.

use std::fs;

use serde_json::{Value, json};

use crate::browser::Page;
use crate::stage::{config, locked, repo_tools, tool};

const MARKUP: &str =
    "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 1'>";

#[test]
fn page_of_a_lock_shows_the_tree_the_tools_and_what_is_left_out_without_a_network() {
    let mut tools = repo_tools();
    tools.push(tool(
        "odd",
        MARKUP,
        json!({MARKUP: {"type": "string"}}),
        json!({"readOnlyHint": true}),
    ));
    let config = config(&["repo"], json!({}));
    let scripts = [("repo", json!({"tools": tools, "built_in": false}))];
    let bench = locked(&config, &scripts);
    tools.push(tool("hidden_text", "Reads.\u{202e}", json!({}), json!({})));
    bench.script("repo", &json!({"tools": tools, "built_in": false}));
    // The lint leaves the last one out.
    assert_eq!(bench.verb(&["lock"]).code, Some(8));
    for out in ["one.html", "folder/two.html"] {
        let written = bench.verb(&["page", "--out", out]);
        assert_eq!(written.code, Some(0), "{}", written.stderr);
    }
    let document = bench.read("one.html");
    assert_eq!(document, bench.read("folder/two.html"));
    let (_, data) = document.split_once("id=\"data\">").expect("it has data");
    let (data, _) = data.split_once("</script>").expect("it ends");
    assert!(
        data.is_ascii() && data.ends_with('}'),
        "a character of a server is not escaped"
    );
    let file = fs::canonicalize(bench.path("one.html")).expect("it is there");
    let url = format!("file://{}", file.display());
    let mut page = Page::open(&url);
    page.wait_for_text(".rows", "get_file");
    page.value("document.getElementById('search').focus()");
    page.type_text("script");
    page.wait_for_text(".count", "1 of 6");
    page.view("#/tools/repo/odd");
    page.wait_for_text(".detail", MARKUP);
    let digest = bench.lock_json().to_string();
    let shown = page.text(".detail");
    let shown = shown
        .split_whitespace()
        .find(|word| word.starts_with("sha256/1:"));
    assert!(digest.contains(shown.expect("the digest is shown")));
    assert!(
        page.value("Boolean(document.querySelector('.detail form button[type=submit]'))") == false
    );
    page.view("#/tools/repo/no_such_tool");
    page.wait_for_text("#notice", "the lock has no entry");
    page.view("#/lock");
    page.wait_for_text("article", "hidden_text");
    let shown = page.text("article");
    for part in ["is left out of the lock", "/repo", "sha256/1:"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(page.value("window.owned ?? null"), Value::Null);
    assert_eq!(
        page.value("fetch('https://192.0.2.1/').then(() => 1, () => 2)"),
        2
    );
    assert_eq!(
        page.value("window.violations.length"),
        1,
        "the policy refuses the request"
    );
    page.value("window.violations = []");
    assert_eq!(page.requests(), [url.as_str()]);
}
