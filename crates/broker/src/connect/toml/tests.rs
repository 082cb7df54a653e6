//! Entries are inserted into TOML at its end or in place of the old entry; every other byte stays.

use super::super::edit::Edit;
use super::super::value::EntryValue;
use super::*;

const SERVERS: &str = "mcp_servers";
const TABLE: &str = "[mcp_servers.broker]\ncommand = \"/b\"\nargs = [\"stdio\"]";

fn edit(text: &str) -> Edit {
    insert(text, SERVERS, "broker", &EntryValue::stdio()).unwrap()
}

#[test]
fn entry_is_added_at_the_end_of_the_file() {
    for (text, separator) in [
        ("", ""),
        ("\n", ""),
        ("# mine", "\n\n"),
        ("model = \"x\" # y\n", "\n"),
        ("[mcp_servers]\n\n[a]\nb = { c = 1 }\n\n", ""),
        (
            "[mcp_servers.x]\ncommand = 'c'\n[mcp_servers.x.env]\nA = '''\n[b]\n'''\n",
            "\n",
        ),
    ] {
        let changed = format!("{text}{separator}{TABLE}\n");
        assert_eq!(edit(text), Edit::Added(changed.clone()));
        assert_eq!(edit(&changed), Edit::Same);
    }
    let windows = TABLE.replace('\n', "\r\n");
    assert_eq!(
        edit("a = 1\r\n"),
        Edit::Added(format!("a = 1\r\n\r\n{windows}\r\n"))
    );
}

#[test]
fn entry_that_differs_is_replaced_in_its_span() {
    let before = "# top\n[mcp_servers.a]\ncommand = \"a\"\n\n# ours\n";
    let after = " # old\n\n# next\n[mcp_servers.z] # z\ncommand = \"z\"\n[[x]]\n";
    for old in [
        "[mcp_servers.broker]\ncommand = \"/old\"",
        "[mcp_servers.broker]",
        "[ mcp_servers . \"broker\" ] # b\nenv.A = \"x\"\n\n[mcp_servers.broker.env2]\nB = '''\n[c]\n'''",
        "[mcp_servers.broker.env]\nA = [\n1, # one\n]",
    ] {
        assert_eq!(
            edit(&format!("{before}{old}{after}")),
            Edit::Replaced(format!("{before}{TABLE}{after}")),
        );
        assert_eq!(edit(old), Edit::Replaced(TABLE.to_owned()));
    }
    let inline = |value: &str| format!("[mcp_servers]\nx = 1\nbroker =  {value} # c\ny = 2\n");
    assert_eq!(
        edit(&inline("{ command = \"/old\" }")),
        Edit::Replaced(inline("{ command = \"/b\", args = [\"stdio\"] }"))
    );
    assert_eq!(
        edit(&inline("{ args = ['stdio'], command = '/b' }")),
        Edit::Same
    );
}

#[test]
fn file_that_is_not_valid_is_refused_with_the_place() {
    let deep = format!("a = {}", "[".repeat(100_000));
    for (text, part) in [
        ("a = \n", "not valid TOML"),
        ("a = 1\na = 2\n", "not valid TOML"),
        (
            "[mcp_servers.broker]\n[mcp_servers.broker]\n",
            "not valid TOML",
        ),
        (&deep, "not valid TOML"),
        ("mcp_servers = 1\n", "not a table"),
        ("[[mcp_servers]]\n", "not a table"),
        ("mcp_servers = { a = {} }\n", "inline table"),
        ("[mcp_servers]\nbroker = 1\n", "separate table"),
        ("[mcp_servers]\nbroker.command = \"x\"\n", "separate table"),
        (
            "[mcp_servers.broker]\na = 1\n[b]\n[mcp_servers.broker.c]\nd = 1\n",
            "between the tables",
        ),
    ] {
        let refusal = insert(text, SERVERS, "broker", &EntryValue::stdio()).unwrap_err();
        assert!(refusal.message.contains(part), "{refusal:?}");
        assert!(!refusal.message.contains('\n'), "{refusal:?}");
    }
    let refusal = insert("a = 1\nb = !\n", SERVERS, "broker", &EntryValue::stdio()).unwrap_err();
    assert_eq!(refusal.at, Some(10));
}

#[test]
fn moved_tables_are_removed_and_other_tables_stay() {
    let text = "model = 1\n\n[mcp_servers.a]\ncommand = \"x\" # x\n\n[mcp_servers.a.env]\nA = \"1\"\n\n# mine\n[mcp_servers.broker]\ncommand = \"/b\"\n\n[mcp_servers.c]\nurl = \"u\"\n\n[tui]\nx = 1\n";
    let removed = without(text, "mcp_servers", &|name| name != "broker").unwrap();
    assert_eq!(removed.names, ["a", "c"]);
    assert_eq!(
        removed.text,
        "model = 1\n\n# mine\n[mcp_servers.broker]\ncommand = \"/b\"\n\n[tui]\nx = 1\n"
    );
    let inline = "[mcp_servers]\na = {command = \"x\"}\n";
    let error = without(inline, "mcp_servers", &|_| true).unwrap_err();
    assert!(error.message.contains("separate table"), "{error:?}");
    assert_eq!(
        without("a = 1\n", "mcp_servers", &|_| true).unwrap(),
        Removal::none("a = 1\n")
    );
}
