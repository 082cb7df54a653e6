//! Entries are inserted into JSON as its author wrote it: comments, indentation and line ends stay.

use super::super::edit::Edit;
use super::super::value::{EntryValue, Layout};
use super::*;

const SERVERS: &str = "mcpServers";

fn edit(text: &str) -> Edit {
    insert(text, SERVERS, "broker", &EntryValue::stdio()).unwrap()
}

/// The text after the entry was added; a second run finds it.
fn added(text: &str) -> String {
    let Edit::Added(changed) = edit(text) else {
        panic!("{text}");
    };
    assert_eq!(edit(&changed), Edit::Same, "{changed}");
    changed
}

/// `text` without its marks `<` and `>`, after the check that the entry is added between them.
fn added_at_mark(text: &str) {
    let (before, rest) = text.split_once('<').unwrap();
    let (inserted, after) = rest.split_once('>').unwrap();
    let (before, comma) = match before.split_once('^') {
        Some((value, comment)) => (format!("{value}{comment}"), format!("{value},{comment}")),
        None => (before.to_owned(), before.to_owned()),
    };
    assert_eq!(
        added(&format!("{before}{after}")),
        format!("{comma}{inserted}{after}")
    );
}

#[test]
fn entry_is_added_to_a_file_without_content() {
    let document = document(
        SERVERS,
        "broker",
        &EntryValue::stdio(),
        &Layout::default_for(""),
    );
    for text in ["", "\n", "// mine\n", "/* mine */"] {
        let line_end = if text.ends_with('/') { "\n" } else { "" };
        assert_eq!(added(text), format!("{text}{line_end}{document}"));
    }
    assert_eq!(
        added("\r\n"),
        format!("\r\n{}", document.replace('\n', "\r\n"))
    );
}

#[test]
fn entry_is_added_in_the_layout_of_the_file() {
    // `^` is the place of a comma, the text between `<` and `>` is inserted.
    for text in [
        // No servers yet.
        "{<\n  \"mcpServers\": {\n    \"broker\": {\n      \"command\": \"/b\",\n      \"args\": [\"stdio\"]\n    }\n  }\n>}",
        "{\n\t\"a\": [1, 2]^ // the list, { \"<\n\t\"mcpServers\": {\n\t\t\"broker\": {\n\t\t\t\"command\": \"/b\",\n\t\t\t\"args\": [\"stdio\"]\n\t\t}\n\t}>\n}\n",
        // Three spaces, and a comment behind the last member.
        "{\n   \"mcpServers\": {\n      \"x\": {}^ /* x */ // y, }<\n      \"broker\": {\n         \"command\": \"/b\",\n         \"args\": [\"stdio\"]\n      }>\n      // end\n   }, // more\n   \"z\": null\n}",
        // A comment that begins with a slash, and has a comma.
        "{\n  \"a\": 1^ /*/ , */<\n  \"mcpServers\": {\n    \"broker\": {\n      \"command\": \"/b\",\n      \"args\": [\"stdio\"]\n    }\n  }>\n}",
        // A trailing comma stays one.
        "{\n  \"mcpServers\": {\n    \"x\": {}, // y<\n    \"broker\": {\n      \"command\": \"/b\",\n      \"args\": [\"stdio\"]\n    },>\n  },\n}\n",
        // No line end before the brace.
        "{\n    \"mcpServers\": {\n        \"x\": 1^<\n        \"broker\": {\n            \"command\": \"/b\",\n            \"args\": [\"stdio\"]\n        }>}}",
        // An object without members.
        "{\n  \"mcpServers\": {<\n    \"broker\": {\n      \"command\": \"/b\",\n      \"args\": [\"stdio\"]\n    }\n  >}\n}",
        "{\n  \"mcpServers\": {<\n    \"broker\": {\n      \"command\": \"/b\",\n      \"args\": [\"stdio\"]\n    }> // none yet\n  }\n}",
        // One line.
        "{\"mcpServers\": {<\"broker\": {\"command\": \"/b\", \"args\": [\"stdio\"]}>}}",
        "{\"mcpServers\": {\"x\": {}^< \"broker\": {\"command\": \"/b\", \"args\": [\"stdio\"]}>}, \"y\": 1}",
        "{\"mcpServers\": {\"x\": {}^ // y<\n\"broker\": {\"command\": \"/b\", \"args\": [\"stdio\"]}>\n}}",
        "{\"a\": 1^< \"mcpServers\": {\"broker\": {\"command\": \"/b\", \"args\": [\"stdio\"]}}>}",
    ] {
        added_at_mark(text);
    }
}

#[test]
fn entry_is_added_with_the_line_ends_of_the_file() {
    let text = "{\r\n  \"mcpServers\": {\r\n    \"x\": {} // y\r\n  }\r\n}\r\n";
    let changed = added(text);
    assert_eq!(
        changed.matches('\n').count(),
        changed.matches("\r\n").count()
    );
    assert!(
        changed.contains("{}, // y\r\n    \"broker\": {\r\n"),
        "{changed}"
    );
    assert!(changed.ends_with("\r\n    }\r\n  }\r\n}\r\n"), "{changed}");
}

#[test]
fn entry_that_differs_is_replaced_in_its_span() {
    let before = "{\n  \"mcpServers\": {\n    // ours\n    \"broker\":   ";
    let after = " , // old\n    \"x\": [1,]\n  }\n}";
    for old in [
        "{\n  \"command\": \"/old\", // old\n}",
        "null",
        "[{\"}\": 1}]",
    ] {
        let Edit::Replaced(changed) = edit(&format!("{before}{old}{after}")) else {
            panic!("{old}");
        };
        let value = EntryValue::stdio().json(&Layout::default_for(""), "    ");
        assert_eq!(changed, format!("{before}{value}{after}"));
        assert_eq!(edit(&changed), Edit::Same);
    }
}

#[test]
fn entry_in_another_form_is_the_same() {
    for text in [
        r#"{"mcpServers": {"broker": {"args": ["stdio",], /* c */ "command": "\u002fb"}}}"#,
        "{\"mcpServers\": {\"broker\": {\"command\": \"/b\", \"args\": [\"stdio\"]}},}",
    ] {
        assert_eq!(edit(text), Edit::Same);
    }
    for text in [
        r#"{"mcpServers": {"broker": {"command": "/b", "args": ["stdio"], "env": {}}}}"#,
        r#"{"mcpServers": {"broker": {"command": "/b", "args": ["stdio", "x"]}}}"#,
        r#"{"mcpServers": {"broker": {"command": "/b"}}}"#,
    ] {
        assert!(matches!(edit(text), Edit::Replaced(_)), "{text}");
    }
}

#[test]
fn file_that_is_not_valid_is_refused_with_the_place() {
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    for (text, part) in [
        ("{\"a\": }", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ("{a: 1}", "not valid JSON"),
        ("{\"a\": 1 \"b\": 2}", "not valid JSON"),
        ("{} {}", "not valid JSON"),
        ("{\"a\": 1", "not valid JSON"),
        (&deep, "not valid JSON"),
        ("[]", "not a JSON object"),
        ("{\"mcpServers\": []}", "`mcpServers` is not an object"),
        (
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "`mcpServers` is there twice",
        ),
        (
            "{\"mcpServers\": {\"broker\": 1, \"br\\u006fker\": 2}}",
            "`broker` is there twice",
        ),
    ] {
        let refusal = insert(text, SERVERS, "broker", &EntryValue::stdio()).unwrap_err();
        assert!(refusal.message.contains(part), "{refusal:?}");
        assert!(refusal.at.is_some());
    }
    let refusal = insert(
        "{\n  \"mcpServers\": 1\n}",
        SERVERS,
        "broker",
        &EntryValue::stdio(),
    )
    .unwrap_err();
    assert_eq!(refusal.at, Some(18));
}

#[test]
fn moved_entries_are_removed_and_comments_stay() {
    let broker = "\"broker\": {\"command\": \"/b\", \"args\": [\"stdio\"]}";
    let others = |name: &str| name != "broker";
    for (text, expected) in [
        // The last entry that stays has a comma only if the last one before had one.
        ("{\"mcpServers\": {\"a\": {}, B}}", "{\"mcpServers\": { B}}"),
        ("{\"mcpServers\": {B, \"a\": {}}}", "{\"mcpServers\": {B }}"),
        (
            "{\n  \"mcpServers\": {\n    // about a\n    \"a\": {\n      \"x\": 1\n    },\n    B,\n    \"c\": {} // c\n  }, // end\n  \"d\": 1\n}",
            "{\n  \"mcpServers\": {\n    // about a\n    B\n     // c\n  }, // end\n  \"d\": 1\n}",
        ),
        (
            "{\n  \"mcpServers\": {\n    B,\n    \"a\": {},\n  }\n}",
            "{\n  \"mcpServers\": {\n    B,\n  }\n}",
        ),
    ] {
        let (text, expected) = (text.replace('B', broker), expected.replace('B', broker));
        let removed = without(&text, SERVERS, &others).unwrap();
        assert_eq!(removed.text, expected);
        assert_eq!(edit(&removed.text), Edit::Same);
    }
    let text = "{\"mcpServers\": {\"a\": {}, \"b\": {}}}";
    let one = without(text, SERVERS, &|name| name == "a").unwrap();
    assert_eq!(
        (one.text.as_str(), &one.names[..]),
        ("{\"mcpServers\": { \"b\": {}}}", &["a".to_owned()][..])
    );
    for text in ["", "{}", "{\"mcpServers\": 1}"] {
        assert_eq!(
            without(text, SERVERS, &|_| true).unwrap(),
            Removal::none(text)
        );
    }
}
