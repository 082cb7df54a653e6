//! Entries are inserted into YAML as its author wrote it: comments, indentation and line ends stay.

use super::*;

const GOOSE: Form = Form {
    is_list: false,
    preamble: &[],
};
const CONTINUE: Form = Form {
    is_list: true,
    preamble: &[("name", "Local Config"), ("schema", "v1")],
};

fn entry() -> EntryValue {
    EntryValue::Members(vec![
        ("enabled", EntryValue::Flag(true)),
        ("cmd", EntryValue::text("/b")),
        ("args", EntryValue::List(vec!["stdio".to_owned()])),
    ])
}

fn item() -> EntryValue {
    EntryValue::Members(vec![
        ("name", EntryValue::text("broker")),
        ("command", EntryValue::text("/b")),
    ])
}

/// The text after an edit; a second one finds the entry.
fn edited(form: Form, text: &str) -> String {
    let (servers, entry) = match form.is_list {
        true => ("mcpServers", item()),
        false => ("extensions", entry()),
    };
    let insert = |text: &str| insert(form, text, servers, "broker", &entry);
    let changed = match insert(text).unwrap() {
        Edit::Added(changed) | Edit::Replaced(changed) => changed,
        Edit::Same => panic!("{text}"),
    };
    assert_eq!(insert(&changed), Ok(Edit::Same), "{changed}");
    changed
}

const BLOCK: &str = "  broker:\n    enabled: true\n    cmd: \"/b\"\n    args: [\"stdio\"]\n";
const ITEM: &str = "  - name: \"broker\"\n    command: \"/b\"\n";

#[test]
fn entry_of_an_object_is_added_below_its_key() {
    for (before, after) in [
        ("", ""),
        ("# mine\n", ""),
        ("a: 1\n", ""),
        ("a: |\n  text\n  more\n", ""),
    ] {
        let text = format!("{before}{after}");
        assert_eq!(
            edited(GOOSE, &text),
            format!("{before}extensions:\n{BLOCK}")
        );
    }
    for (before, after) in [
        (
            "a: 1\nextensions:\n",
            "  # about x\n  x:\n    cmd: y # z\nb: 2\n",
        ),
        ("extensions: # mine\n", ""),
        ("extensions:\n", "b: &c [1, {d: e}]\nf: *c\n"),
        ("extensions:\n", "  x: {cmd: y}"),
    ] {
        assert_eq!(
            edited(GOOSE, &format!("{before}{after}")),
            format!("{before}{BLOCK}{after}")
        );
    }
    let wide = "extensions:\r\n    x:\r\n        cmd: y\r\n";
    let indented: String = BLOCK.lines().map(|line| format!("  {line}\r\n")).collect();
    assert_eq!(
        edited(GOOSE, wide),
        format!("extensions:\r\n{indented}    x:\r\n        cmd: y\r\n")
    );
    assert_eq!(
        edited(GOOSE, "extensions: {} # x\nb: 1\n"),
        format!("extensions: # x\n{BLOCK}b: 1\n")
    );
    assert_eq!(edited(GOOSE, "a: 1"), format!("a: 1\nextensions:\n{BLOCK}"));
}

#[test]
fn entry_of_a_list_is_added_below_its_key() {
    assert_eq!(
        edited(CONTINUE, ""),
        format!("name: Local Config\nschema: v1\nmcpServers:\n{ITEM}")
    );
    for (before, after) in [
        (
            "name: a\nmcpServers:\n",
            "  - name: x\n    command: y\nmodels: []\n",
        ),
        ("mcpServers: # mine\n", ""),
    ] {
        assert_eq!(
            edited(CONTINUE, &format!("{before}{after}")),
            format!("{before}{ITEM}{after}")
        );
    }
    // The items of a list may be as far to the left as its key.
    assert_eq!(
        edited(CONTINUE, "mcpServers:\n- name: x\n  command: y\n"),
        "mcpServers:\n- name: \"broker\"\n  command: \"/b\"\n- name: x\n  command: y\n"
    );
}

#[test]
fn other_entry_of_the_name_is_replaced_as_a_whole() {
    let old = "  \"broker\":\n    cmd: old\n    envs:\n      A: |\n        x\n        y\n";
    assert_eq!(
        edited(
            GOOSE,
            &format!("extensions:\n  x:\n    cmd: y\n{old}# end\nb: 1\n")
        ),
        format!("extensions:\n  x:\n    cmd: y\n{BLOCK}# end\nb: 1\n")
    );
    assert_eq!(
        edited(
            CONTINUE,
            "mcpServers:\n  - command: old\n    name: broker\n  - name: x\n"
        ),
        format!("mcpServers:\n{ITEM}  - name: x\n")
    );
}

#[test]
fn moved_entries_are_removed_with_their_lines() {
    let text = format!("extensions:\n  # x\n  x:\n    cmd: y\n{BLOCK}  z: {{cmd: a}}\nb: 1\n");
    let removed = without(GOOSE, &text, "extensions", &|name| name != "broker").unwrap();
    assert_eq!(removed.names, ["x", "z"]);
    assert_eq!(removed.text, format!("extensions:\n  # x\n{BLOCK}b: 1\n"));
    let text = format!("mcpServers:\n  - name: x\n    args:\n      - y\n{ITEM}  - uses: z\nb: 1\n");
    let removed = without(CONTINUE, &text, "mcpServers", &|name| name != "broker").unwrap();
    assert_eq!(removed.names, ["x"]);
    assert_eq!(
        removed.text,
        format!("mcpServers:\n{ITEM}  - uses: z\nb: 1\n")
    );
    let none = without(GOOSE, "a: 1\n", "extensions", &|_| true).unwrap();
    assert_eq!(none.text, "a: 1\n");
}

#[test]
fn file_that_lines_cannot_be_inserted_into_is_refused() {
    let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    for (text, part) in [
        ("extensions: {x: {cmd: y}}\n", "separate lines"),
        ("extensions: text\n", "separate lines"),
        ("{extensions: {}}\n", "separate lines"),
        ("- a\n", "separate lines"),
        ("extensions: *x\n", "YAML"),
        ("a: &x\n  b: 1\nextensions: *x\n", "separate lines"),
        ("extensions:\nextensions:\n", "twice"),
        ("extensions:\n  broker: 1\n  broker: 2\n", "twice"),
        ("a: 1\n---\nb: 1\n", "more than one document"),
        ("a: 1\n...\n", "`...`"),
        ("a: [\n", "not valid YAML"),
        ("a: 1\rb: 2\n", "carriage return"),
        (&deep, "too deep"),
    ] {
        let error = insert(GOOSE, text, "extensions", "broker", &entry()).unwrap_err();
        assert!(error.message.contains(part), "{text}: {error:?}");
    }
    let error = insert(
        CONTINUE,
        "mcpServers:\n  a: 1\n",
        "mcpServers",
        "broker",
        &item(),
    );
    assert!(error.unwrap_err().message.contains("a list"));
}
