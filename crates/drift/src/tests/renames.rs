//! Tools and properties under another name.

use serde_json::{Value, json};

use super::super::class::Class;
use super::check;

#[test]
fn tool_under_another_name_is_one_rename_with_both_sides() {
    let schema = json!({"type": "object", "properties": {"path": {}, "lines": {}}});
    let of = |name: &str, text: &str| json!([{"name": name, "description": text, "inputSchema": schema}]);
    let old = of("read_file", "Reads a file.");
    let plain = check(old.clone(), json!([]));
    let renamed = check(old.clone(), of("read_text_file", "Reads a file."));
    assert_eq!(renamed.tools[0].rules(), ["tool-renamed"]);
    assert_eq!(renamed.tools[0].class, plain.tools[0].class);
    assert_eq!(
        renamed.exit(Default::default()),
        plain.exit(Default::default())
    );
    let found = &renamed.tools[0].findings[0];
    let name = |side: &Option<Value>| side.as_ref().expect("a side")["name"].clone();
    assert_eq!(
        (name(&found.old), name(&found.new)),
        (json!("read_file"), json!("read_text_file"))
    );
    assert!(
        found.message.ends_with("with the same definition"),
        "{}",
        found.message
    );
    // Programs see the new tool too, and people one row.
    assert_eq!(renamed.tools[1].class, Class::Added);
    let shown: Vec<_> = renamed.shown_tools().map(|tool| &tool.tool).collect();
    assert_eq!(shown, ["read_file"]);
    let other = check(old, of("read_text_file", "Reads a text file."));
    let message = &other.tools[0].findings[0].message;
    assert!(message.ends_with("the worst of class `text`"), "{message}");
}

#[test]
fn property_under_another_name_is_one_rename_with_both_sides() {
    let tool = |schema: Value| json!([{"name": "t", "inputSchema": schema}]);
    let of = |name: &str, required: &[&str]| {
        let path = json!({"type": "string", "description": "The file to read."});
        tool(json!({"type": "object", "properties": {name: path}, "required": required}))
    };
    let renamed = check(of("file_path", &["file_path"]), of("path", &["path"]));
    let found = &renamed.tools[0].findings;
    assert_eq!(renamed.tools[0].rules(), ["input-property-renamed"]);
    assert_eq!(renamed.tools[0].class, Class::Breaking);
    assert_eq!(found[0].pointer, "/inputSchema/properties/file_path");
    let text = json!({"type": "string", "description": "The file to read."});
    assert_eq!(found[0].old, Some(json!({"file_path": text})));
    assert_eq!(found[0].new, Some(json!({"path": text})));
    assert!(found[0].witness.is_some(), "an example of a refused call");
    // Another schema, or neither a similar name nor a similar text, is a removal and an addition.
    let number = tool(json!({"type": "object", "properties": {"path": {"type": "number"}}}));
    for (old, new) in [
        (of("file_path", &[]), number),
        (of("a", &[]), {
            let other = json!({"type": "string", "description": "Words to look for."});
            tool(json!({"type": "object", "properties": {"b": other}}))
        }),
    ] {
        let report = check(old, new);
        let rules = report.tools[0].rules();
        for rule in ["input-property-added", "input-property-removed"] {
            assert!(rules.contains(&rule), "{rules:?}");
        }
        assert!(!rules.contains(&"input-property-renamed"), "{rules:?}");
    }
}

#[test]
fn property_of_results_under_another_name_is_one_rename() {
    let of = |name: &str| {
        let size = json!({"type": "integer", "description": "The size in bytes."});
        json!([{"name": "t", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object", "properties": {name: size}, "required": [name]}}])
    };
    let report = check(of("size"), of("size_bytes"));
    assert_eq!(report.tools[0].rules(), ["output-property-renamed"]);
    assert_eq!(report.tools[0].class, Class::Breaking);
}

#[test]
fn tools_without_properties_are_no_rename_by_their_schemas() {
    let of = |name: &str, properties: Value| {
        let schema = json!({"type": "object", "properties": properties});
        json!([{"name": name, "description": name, "inputSchema": schema}])
    };
    let is_renamed = |old: Value, new: Value| check(old, new).tools[0].rules() == ["tool-renamed"];
    let none = || json!({});
    // A third of the words is the same, which is enough only beside equal members.
    assert!(!is_renamed(of("get_time", none()), of("get_user", none())));
    let one = || json!({"zone": {"type": "string"}});
    assert!(is_renamed(of("get_time", one()), of("get_user", one())));
    let other = || json!({"id": {"type": "string"}});
    assert!(!is_renamed(of("get_time", one()), of("get_user", other())));
}

#[test]
fn tools_that_share_one_property_name_alone_are_not_a_rename() {
    let schema = json!({"type": "object", "properties": {"url": {}}});
    let of = |name: &str, text: &str| json!([{"name": name, "description": text, "inputSchema": schema}]);
    let report = check(
        of("fetch_page", "Downloads the text of a page."),
        of("delete_user", "Removes an account for ever."),
    );
    assert_eq!(report.tools[0].rules(), ["tool-gone"]);
    assert_eq!(report.tools[1].class, Class::Added);
}
