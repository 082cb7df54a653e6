//! Each view shows what its route answers.

use serde_json::json;

use crate::stage::{Stage, config, locked, repo_tools};

#[test]
fn page_at_the_root_shows_the_tree_and_a_tool() {
    let stage = Stage::repo(json!({}));
    let mut page = crate::browser::Page::open(&stage.origin());
    page.wait_for("location.pathname === '/ui/'");
    page.wait_for_text(".rows", "get_file");
    assert_eq!(page.value("document.querySelectorAll('.row').length"), 5);
    page.view("#/tools/repo/get_file");
    page.wait_for_text(".detail", "Reads a file of a repository.");
    let shown = page.text(".detail");
    let digest = stage.bench.lock_json();
    let digest = digest.to_string();
    let shown_digest = shown
        .split_whitespace()
        .find(|word| word.starts_with("sha256/1:"))
        .expect("the digest is shown");
    assert!(digest.contains(shown_digest), "{shown_digest}");
    for part in [
        "readOnlyHint: true",
        "The repository, as owner/name",
        "\"minimum\": 1",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    page.assert_clean(&stage.origin());
}

#[test]
fn search_leaves_the_entries_that_have_its_words() {
    let stage = Stage::repo(json!({}));
    let mut page = stage.page();
    page.wait_for_text(".rows", "get_file");
    page.value("document.getElementById('search').focus()");
    page.type_text("branch delete");
    page.wait_for("document.querySelectorAll('.row').length === 1");
    assert!(page.text(".rows").contains("/repo/delete_branch"));
    page.press("Enter");
    page.wait_for("document.activeElement.matches('.rows')");
    page.wait_for_text(".row", "/repo/");
    page.assert_clean(&stage.origin());
}

#[test]
fn form_makes_the_body_of_a_call_and_calls_only_if_the_config_says_so() {
    for calls in [false, true] {
        let stage = Stage::repo(json!({"surfaces": {"web_calls": calls}}));
        let mut page = stage.page();
        page.wait_for_text(".rows", "get_file");
        page.view("#/tools/repo/get_file");
        page.wait_for("document.querySelectorAll('.detail form .field').length === 7");
        page.value("[...document.querySelectorAll('.detail label')].find((one) => one.innerText.trim() === 'repo').control.focus()");
        page.type_text("o/it's \u{202e}x");
        page.wait_for_text(
            ".detail pre[aria-label=Command]",
            r#""repo":"o/it'\''s \u202ex""#,
        );
        let curl = page.text(".detail pre[aria-label=Command]");
        assert!(
            curl.starts_with(&format!("curl -sS '{}meta_call'", stage.origin())),
            "{curl}"
        );
        let has_button = "Boolean(document.querySelector('.detail form button[type=submit]'))";
        page.wait_for(&format!("{has_button} === {calls}"));
        if calls {
            page.click(".detail form button[type=submit]");
            page.wait_for_text(".result", "\"content\"");
            page.view("#/tools/repo/create_issue");
            page.wait_for_text(".detail h2", "create_issue");
            page.wait_for(has_button);
            // Hints that are absent count as unsafe.
            page.view("#/tools/repo/delete_branch");
            page.wait_for_text(".detail", "may destroy something");
            page.wait_for(&format!("!{has_button}"));
        }
        let called = stage.bench.journal("repo", "call").len();
        assert_eq!(called, usize::from(calls));
        page.assert_clean(&stage.origin());
    }
}

#[test]
fn sources_view_shows_states_causes_and_next_attempts() {
    let scripts = [
        ("repo", json!({"tools": repo_tools(), "built_in": false})),
        ("down", json!({"plain": true})),
    ];
    let bench = locked(
        &config(&["repo", "down"], json!({"on_unreachable": "serve"})),
        &scripts,
    );
    bench.script("down", &json!({"start_exit": 3}));
    let stage = Stage::serve(bench);
    let cause = || stage.broker.source_details("/down")["instances"][0]["next_attempt"].clone();
    harness::wait_until("the source waits for its next attempt", || {
        cause().is_string()
    });
    let mut page = stage.page();
    page.wait_for_text("nav", "Sources");
    page.view("#/sources");
    page.wait_for_text("table", "/down");
    let row = page.value("[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes('/down')).innerText");
    let row = row.as_str().expect("a text").to_owned();
    let details = stage.broker.source_details("/down");
    assert!(
        row.contains(details["state"].as_str().expect("a state")),
        "{row}"
    );
    assert!(
        row.contains(details["cause"].as_str().expect("a cause")),
        "{row}"
    );
    assert!(page.text("table").contains("ready"));
    page.assert_clean(&stage.origin());
}

#[test]
fn caller_sees_only_what_it_may_see() {
    const READER: &str = "mbk_kqwklyfhlzomvdsoalv2dfumpepwnx3p";
    const ADMIN: &str = "mbk_vlq2eaarm7xvarhoew7ouadhsunjcdlr";
    let stage = Stage::repo(json!({
        "access": {
            "groups": ["reader", "admin"],
            "rules": [
                {"allow": ["/repo/get_file", "/repo/list_issues"], "to": ["reader"]},
                {"allow": ["/**"], "to": ["admin"]},
            ],
            "operators": ["admin"],
        },
        "identities": {"keys": [
            {"name": "reader", "groups": ["reader"],
             "sha256": "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7"},
            {"name": "admin", "groups": ["admin"],
             "sha256": "5f231824d36b7db81e7a2c33ea7661754a59621b874794a7ee4a4c2db2710a5b"},
        ]},
    }));
    let mut page = stage.page();
    page.wait_for_text("#notice", "Enter a key");
    assert!(!page.text("body").contains("get_file"));
    page.wait_for("document.activeElement.id === 'key'");
    page.enter_key(READER);
    page.wait_for_text(".rows", "get_file");
    page.wait_for_text("nav", "Tools");
    let shown = page.text("body");
    for hidden in [
        "delete_branch",
        "create_issue",
        "Sources",
        "Access",
        "Drift",
    ] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
    page.view("#/tools/repo/delete_branch");
    page.wait_for_text("#notice", "no tool or node is at");
    page.view("#/access");
    page.wait_for_text("main", "no access rules");
    page.view("#/tools");
    page.wait_for_text(".rows", "get_file");
    // The key is in memory only: not in the field, an address, a cookie or a storage.
    assert_eq!(page.value("document.getElementById('key').value"), "");
    assert_eq!(
        page.value(
            "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"
        ),
        "{}{}"
    );
    assert!(page.requests().iter().all(|url| !url.contains("mbk_")));
    page.enter_key(ADMIN);
    page.wait_for_text(".rows", "delete_branch");
    page.wait_for_text("nav", "Sources");
    page.assert_clean(&stage.origin());
}

#[test]
fn page_below_the_path_of_a_proxy_asks_below_it() {
    let scripts = [("repo", json!({"tools": repo_tools(), "built_in": false}))];
    let bench = locked(&config(&["repo"], json!({})), &scripts);
    let stage = Stage::serve_with(bench, &["--base-path", "/gateway"]);
    let mut page = crate::browser::Page::open(&format!("{}gateway", stage.origin()));
    page.wait_for("location.pathname === '/gateway/ui/'");
    page.wait_for_text(".rows", "get_file");
    let requests = page.requests();
    let first = format!("{}gateway", stage.origin());
    assert!(
        requests
            .iter()
            .all(|url| url.starts_with(&first) || url.starts_with("data:")),
        "{requests:?}"
    );
    page.assert_clean(&stage.origin());
}
