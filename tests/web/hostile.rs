//! Texts of servers stay texts: markup, ends of scripts, hidden and bidirectional characters, names of members of objects.

use serde_json::{Value, json};

use crate::browser::Page;
use crate::stage::{Stage, config, locked, tool};

const MARKUP: &str = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'></script><svg onload=window.owned=1>javascript:window.owned=1";

/// The lint refuses hidden characters in a lock, so that the page gets them in place of this text.
const MARK: &str = "@@";
const HIDDEN: &str = r"
const real = window.fetch;
window.fetch = async (...request) => {
  const reply = await real(...request);
  const text = (await reply.text()).replaceAll('@@', '\\u202e\\u2066\\u200b\\udb40\\udc41\\u0007\\ud800');
  return new Response(text, { status: reply.status, headers: reply.headers });
};";

/// A lock has no schema above 256 KiB, so that the page gets a longer one in place of this text.
const BIG: &str = r"
const real = window.fetch;
window.fetch = async (...request) => {
  const reply = await real(...request);
  const text = (await reply.text()).replaceAll('@BIG@', 'x'.repeat(1 << 20));
  return new Response(text, { status: reply.status, headers: reply.headers });
};";

fn hostile_tools() -> Vec<Value> {
    let hidden = format!("{MARKUP} abc{MARK}end");
    vec![
        tool(
            "poison",
            &hidden,
            json!({
                MARKUP: {"type": "string", "description": hidden},
                "__proto__": {"type": "string"},
                "constructor": {"enum": [MARKUP, MARK, {"a": 1}]},
                "toString": {"type": ["null", "integer"]},
                "odd": true,
                "x' onfocus=window.owned=1 '": {"type": "object", "description": MARK},
            }),
            json!({"title": MARKUP, "readOnlyHint": true}),
        ),
        json!({"name": "bare", "description": MARKUP, "inputSchema": {"type": "object", "properties": {}}}),
    ]
}

#[test]
fn texts_of_servers_stay_texts_in_every_view() {
    let scripts = [("bad", json!({"tools": hostile_tools(), "built_in": false}))];
    let config = config(&["bad"], json!({"surfaces": {"web_calls": true}}));
    let bench = locked(&config, &scripts);
    let stage = Stage::serve(bench);
    let mut page = Page::blank();
    page.before_scripts(HIDDEN);
    page.go(&format!("{}ui/", stage.origin()));
    page.wait_for_text(".rows", "poison");
    assert!(page.text(".rows").contains("<script>window.owned"));
    page.view("#/tools/bad/poison");
    page.wait_for_text(".detail h2", "poison");
    page.wait_for("document.querySelectorAll('.detail form .field').length === 6");
    let shown = page.text(".detail");
    for part in [
        MARKUP, "U+202E", "U+2066", "U+200B", "U+E0041", "U+0007", "U+D800",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let raw = page.value(
        "[...document.querySelectorAll('.detail, .rows')].map((one) => one.textContent).join('').match(/[\\u202e\\u2066\\u200b\\u0007]/u)",
    );
    assert_eq!(raw, Value::Null, "a hidden character is shown as it is");
    page.value("document.querySelectorAll('.detail form input')[0].focus()");
    page.type_text("</script><script>window.owned=1</script>");
    page.wait_for_text(".detail pre[aria-label=Command]", "</script>");
    page.click(".detail form button[type=submit]");
    page.wait_for("document.querySelector('.result').innerText !== ''");
    page.view("#/sources");
    page.wait_for_text("table", "/bad");
    page.view("#/tools/<img src=x onerror=window.owned=1>/%zz/__proto__");
    page.wait_for("document.querySelector('.two')");
    page.view("#/constructor/__proto__");
    page.wait_for("document.querySelector('.two')");
    assert_eq!(page.value("window.owned ?? null"), Value::Null);
    assert_eq!(
        page.value("document.querySelectorAll('main script, main img, main svg, [onerror], [onload], [onfocus]').length"),
        0
    );
    page.assert_clean(&stage.origin());
}

#[test]
fn schema_of_a_mebibyte_is_shown_in_parts() {
    let choices: Vec<String> = (0..12_000).map(|at| format!("choice-{at:07}")).collect();
    let big = tool(
        "big",
        "Has a long schema.",
        json!({"which": {"enum": choices}, "long": {"default": "@BIG@"}}),
        json!({}),
    );
    let many: Value = (0..3_000)
        .map(|at| (format!("p{at}"), json!({"type": "string"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let tools = json!([big, tool("many", "Has many properties.", many, json!({}))]);
    let scripts = [("big", json!({"tools": tools, "built_in": false}))];
    let config = config(&["big"], json!({}));
    let stage = Stage::serve(locked(&config, &scripts));
    let mut page = Page::blank();
    page.before_scripts(BIG);
    page.go(&format!("{}ui/", stage.origin()));
    page.wait_for_text(".rows", "big");
    page.view("#/tools/big/big");
    page.wait_for_text(".detail", "Show more");
    let length = page.value("document.querySelector('.detail').textContent.length");
    assert!(length.as_u64().expect("a length") < 60_000, "{length}");
    assert_eq!(
        page.value("document.querySelectorAll('.detail option').length"),
        201
    );
    page.view("#/tools/big/many");
    page.wait_for_text(".detail h2", "many");
    assert_eq!(
        page.value("document.querySelectorAll('.detail form .field').length"),
        101
    );
    page.assert_clean(&stage.origin());
}
