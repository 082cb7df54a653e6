//! The page is used by keyboard alone, and each control has a name.

use serde_json::json;

use crate::stage::Stage;

/// The controls that have no name for a program that reads the page aloud.
const NAMELESS: &str = r"
[...document.querySelectorAll('a, button, input, select, textarea, [tabindex], [role=region]')]
  .filter((one) => one.id !== 'main' && !one.matches('h2'))
  .filter((one) => !(one.innerText?.trim() || one.getAttribute('aria-label') || one.labels?.[0]?.innerText))
  .map((one) => one.outerHTML)";

#[test]
fn tree_is_walked_by_keys_and_opens_an_entry() {
    let stage = Stage::repo(json!({"surfaces": {"web_calls": true}}));
    let mut page = stage.page();
    page.wait_for_text(".rows", "get_file");
    page.wait_for_text("nav", "Sources");
    let active = "document.getElementById(document.querySelector('.rows').getAttribute('aria-activedescendant'))";
    // From the top to the tree by Tab alone.
    let mut seen = Vec::new();
    while page.value("document.activeElement.getAttribute('role')") != "tree" {
        page.press("Tab");
        seen.push(page.value("document.activeElement.id || document.activeElement.innerText"));
        assert!(seen.len() < 20, "the tree is not reached: {seen:?}");
    }
    for expected in ["Tools", "Sources", "key", "search"] {
        assert!(
            seen.iter().any(|name| name == expected),
            "{expected}: {seen:?}"
        );
    }
    assert!(page.text(".rows").contains("delete_branch"));
    page.press("ArrowLeft");
    page.wait_for("document.querySelectorAll('.row').length === 1");
    assert_eq!(
        page.value(&format!("{active}.getAttribute('aria-expanded')")),
        "false"
    );
    page.press("ArrowRight");
    page.wait_for("document.querySelectorAll('.row').length === 5");
    page.press("End");
    let last = page.value(&format!("{active}.getAttribute('aria-posinset')"));
    assert_eq!(last, "5");
    page.press("Home");
    page.press("ArrowDown");
    page.press("Enter");
    page.wait_for_text(".detail h2", "/repo/");
    assert_eq!(
        page.value(&format!("{active}.getAttribute('aria-current')")),
        "true"
    );
    assert_eq!(page.value(NAMELESS), json!([]));
    for view in ["sources", "drift", "access", "jobs"] {
        page.view(&format!("#/{view}"));
        page.wait_for("document.querySelector('main article')");
        assert_eq!(page.value(NAMELESS), json!([]), "{view}");
    }
    page.assert_clean(&stage.origin());
}
