//! The limit holds for the whole body, structure survives where it can, and what is not cut is
//! untouched.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Cut;

/// Returns the whole reply, in the form of `meta_call`, if the result has to be cut.
fn cut(path: &str, result: &[u8], beside: &str, limit: usize) -> Option<Vec<u8>> {
    let before = format!("{{\"path\":\"{path}\",\"result\":");
    let around = before.len() + beside.len() + 1;
    let (result, cut): (_, Cut) = super::cut(result, around, 0, limit)?;
    let cut = serde_json::to_string(&cut).unwrap();
    let after = format!("{beside},\"truncated\":{cut}}}");
    Some([before.as_bytes(), &result, after.as_bytes()].concat())
}

fn chars(body: &[u8]) -> usize {
    std::str::from_utf8(body)
        .expect("the body is UTF-8")
        .chars()
        .count()
}

fn value(body: &[u8]) -> Value {
    serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

#[test]
fn cut_of_a_reply_within_its_limit_changes_nothing() {
    let result = br#"{"content":[]}"#;
    let whole = br#"{"path":"/a","result":{"content":[]}}"#.len();
    assert_eq!(cut("/a", result, "", whole), None);
    assert!(
        cut(
            "/a",
            &[b"{\"content\":[\"", "x".repeat(600).as_bytes(), b"\"]}"].concat(),
            "",
            500
        )
        .is_some()
    );
}

#[test]
fn cut_shortens_the_longest_string_first() {
    let result = format!(
        r#"{{ "content":[{{"type":"text","text":"{}"}}] , "n":1.50,"short":"{}" }}"#,
        "é".repeat(5000),
        "s".repeat(100)
    );
    let body = cut("/a", result.as_bytes(), "", 1000).unwrap();
    assert!(
        chars(&body) <= 1000 && chars(&body) > 990,
        "{}",
        chars(&body)
    );
    let reply = value(&body);
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains(r#" , "n":1.50,"short":"sss"#), "{text}");
    assert_eq!(reply["result"]["short"], "s".repeat(100));
    assert!(
        reply["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .ends_with("é…")
    );
    let truncated = &reply["truncated"];
    assert_eq!(truncated["limit"], 1000);
    assert_eq!(
        truncated["original_chars"],
        result.chars().count() + r#"{"path":"/a","result":}"#.len()
    );
    assert_eq!(truncated["cuts"][0]["pointer"], "/content/0/text");
    assert_eq!(truncated["cuts"][0]["kind"], "string");
    assert_eq!(truncated["cuts"][0]["from"], 5000);
}

#[test]
fn cut_list_keeps_its_head_and_its_count() {
    let result =
        json!({"content": [], "data": {"rows/all": (0..2000).collect::<Vec<_>>()}, "isError": true})
            .to_string();
    let body = cut("/a", result.as_bytes(), "", 1000).unwrap();
    assert!(chars(&body) <= 1000);
    let reply = value(&body);
    let rows = reply["result"]["data"]["rows/all"].as_array().unwrap();
    assert!(rows.len() > 100 && rows.iter().enumerate().all(|(at, row)| *row == at));
    assert_eq!(
        reply["truncated"]["cuts"][0],
        json!({"pointer": "/data/rows~1all", "kind": "list", "from": 2000, "to": rows.len()})
    );
    assert_eq!(reply["result"]["isError"], true);
}

#[test]
fn cut_of_a_large_structure_gives_the_head_of_its_text() {
    let members: serde_json::Map<_, _> = (0..500).map(|n| (format!("key{n}"), json!(n))).collect();
    let result = json!({"data": members, "isError": true}).to_string();
    let body = cut("/a", result.as_bytes(), "", 700).unwrap();
    assert!(chars(&body) <= 700);
    let reply = value(&body);
    assert_eq!(reply["truncated"]["cuts"][0]["kind"], "head");
    assert_eq!(reply["result"]["isError"], true);
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        result.starts_with(text.trim_end_matches('…')) && text.len() > 200,
        "{text}"
    );
}

#[test]
fn cut_never_splits_an_escape() {
    let result = format!(r#"{{"t":"{}"}}"#, r"\ud83d\ude00\n".repeat(400));
    for limit in 500..530 {
        let reply = value(&cut("/a", result.as_bytes(), "", limit).unwrap());
        let text = reply["result"]["t"].as_str().unwrap();
        assert!(
            text.trim_end_matches('…')
                .chars()
                .all(|c| matches!(c, '😀' | '\n')),
            "{text:?}"
        );
    }
}

#[test]
fn cut_result_has_no_structured_content() {
    let rows: Vec<_> = (0..300)
        .map(|n| json!({"n": n, "name": "x".repeat(20)}))
        .collect();
    let structured = json!({"rows": rows});
    let both = json!({
        "content": [{"type": "text", "text": "short"}], "structuredContent": structured, "isError": false,
    });
    let body = cut("/a", both.to_string().as_bytes(), "", 2000).unwrap();
    let reply = value(&body);
    let kept = json!({"content": [{"type": "text", "text": "short"}], "isError": false});
    assert_eq!(reply["result"], kept);
    let left_out = &reply["truncated"]["cuts"][0];
    assert_eq!(left_out["pointer"], "/structuredContent");
    assert_eq!(
        (&left_out["kind"], &left_out["to"]),
        (&json!("member"), &json!(0))
    );
    // Without a text, its JSON is the text, and stays JSON.
    for content in [json!([]), json!(null)] {
        let mut alone = json!({"content": content, "structuredContent": structured});
        if content.is_null() {
            alone.as_object_mut().unwrap().remove("content");
        }
        let body = cut("/a", alone.to_string().as_bytes(), "", 2000).unwrap();
        assert!(chars(&body) <= 2000);
        let reply = value(&body);
        assert!(reply["result"].get("structuredContent").is_none());
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        let text: Value = serde_json::from_str(text).expect("the text is JSON");
        assert!(text["rows"].as_array().unwrap().len() > 3, "{text}");
        assert_eq!(
            reply["truncated"]["cuts"][0]["pointer"],
            "/content/0/text/rows"
        );
    }
}

#[test]
fn cut_keeps_the_structure_of_json_in_text_blocks() {
    let rows: Vec<_> = (0..3000).map(|n| json!({"n": n})).collect();
    let document = json!({"note": "a \"quoted\"\nline\u{1}", "rows": rows, "last": true});
    let text = format!("\n {document:#} ");
    for block in [
        json!({"type": "text", "text": text}),
        json!({"type": "resource", "resource": {"uri": "x:/y", "text": text}}),
    ] {
        let result = json!({"content": [block]});
        let body = cut("/a", result.to_string().as_bytes(), "", 3000).unwrap();
        assert!(
            chars(&body) <= 3000 && chars(&body) > 2500,
            "{}",
            chars(&body)
        );
        let reply = value(&body);
        let block = &reply["result"]["content"][0];
        let text = block["text"]
            .as_str()
            .or(block["resource"]["text"].as_str());
        let kept: Value = serde_json::from_str(text.unwrap()).expect("the text is JSON");
        assert_eq!(
            (&kept["note"], &kept["last"]),
            (&document["note"], &json!(true))
        );
        assert!(kept["rows"].as_array().unwrap().len() > 20);
    }
    // Text that only looks like JSON is cut as text.
    let result = json!({"content": [{"type": "text", "text": format!("{{{}", "x".repeat(5000))}]});
    let body = cut("/a", result.to_string().as_bytes(), "", 1000).unwrap();
    assert!(
        value(&body)["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .ends_with('…')
    );
}

#[test]
fn data_of_blocks_is_neither_counted_nor_cut() {
    let data = "A".repeat(50_000);
    let blocks = json!([
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "audio", "data": data, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x:/y", "blob": data}},
    ]);
    let result = json!({"content": blocks}).to_string();
    assert_eq!(
        cut("/a", result.as_bytes(), "", 1000),
        None,
        "there is little text"
    );
    let mut with_text = blocks.clone();
    let long = json!({"type": "text", "text": "é".repeat(9000), "data": "B".repeat(9)});
    with_text.as_array_mut().unwrap().push(long);
    let result = json!({"content": with_text}).to_string();
    let reply = value(&cut("/a", result.as_bytes(), "", 2000).unwrap());
    let kept = &reply["result"]["content"];
    assert_eq!(
        kept.as_array().unwrap()[..3],
        blocks.as_array().unwrap()[..]
    );
    assert!(kept[3]["text"].as_str().unwrap().chars().count() < 2000);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zé😀\"\\\\\n]{0,400}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 200, 30, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..30).prop_map(Value::from),
            proptest::collection::btree_map("[a-z/~\"]{1,8}", inner, 0..12)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Whether every value of `cut` is equal to the value at its place in `whole`, a prefix of it, or its head.
fn is_part_of(cut: &Value, whole: &Value) -> bool {
    match (cut, whole) {
        (Value::String(cut), Value::String(whole)) => {
            cut == whole
                || cut
                    .strip_suffix('…')
                    .is_some_and(|head| whole.starts_with(head))
        }
        (Value::Array(cut), Value::Array(whole)) => {
            cut.len() <= whole.len()
                && cut
                    .iter()
                    .zip(whole)
                    .all(|(cut, whole)| is_part_of(cut, whole))
        }
        (Value::Object(cut), Value::Object(whole)) => {
            cut.len() == whole.len()
                && cut.iter().all(|(key, value)| {
                    whole.get(key).is_some_and(|whole| is_part_of(value, whole))
                })
        }
        (cut, whole) => cut == whole,
    }
}

proptest! {
    #[test]
    fn cut_reply_is_within_its_limit_and_keeps_its_structure(inner in any_json(), document in any_json(), limit in 500usize..3000, pretty in any::<bool>()) {
        let result = json!({"content": [{"type": "text", "text": document.to_string()}], "data": inner});
        let text = if pretty { format!("{result:#}") } else { result.to_string() };
        match cut("/some/path", text.as_bytes(), "", limit) {
            None => {
                let whole = text.chars().count() + r#"{"path":"/some/path","result":}"#.len();
                prop_assert!(whole <= limit);
            }
            Some(body) => {
                prop_assert!(chars(&body) <= limit, "{} over {}", chars(&body), limit);
                let reply = value(&body);
                let head = reply["truncated"]["cuts"][0]["kind"] == "head";
                prop_assert!(head || is_part_of(&reply["result"]["data"], &inner));
                if !head && (document.is_object() || document.is_array()) {
                    let kept = reply["result"]["content"][0]["text"].as_str();
                    // As a last step before the head, a document is cut as text.
                    let parsed = kept.and_then(|kept| serde_json::from_str::<Value>(kept).ok());
                    let is_part = parsed.is_some_and(|kept| is_part_of(&kept, &document));
                    let is_text = kept.is_some_and(|kept| kept.ends_with('…'));
                    prop_assert!(is_part || is_text, "{:?}", kept);
                }
                // The same again is the same: equal input, equal bytes, and a cut reply needs no cut.
                prop_assert_eq!(cut("/some/path", text.as_bytes(), "", limit).unwrap(), body);
            }
        }
    }
}

#[test]
fn half_of_a_pair_of_escapes_is_one_character() {
    for (content, bytes) in [
        (&br"\ud83d\ude00x"[..], 12),
        (br"\ud83d\u0041", 6),
        (br"\u0041\ude00", 6),
        (br"\n\ude00", 2),
    ] {
        assert_eq!(super::walk::character(content), bytes, "{content:?}");
    }
}
