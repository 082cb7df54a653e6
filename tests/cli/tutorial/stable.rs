//! Replaces values that differ between machines and runs by a stable form: the two folders, the port,
//! times, ids of requests, and progress lines.

/// The text with that form.
pub(crate) fn stable(text: &str, repo: &str, work: &str, port: u16) -> String {
    let mut text = text.replace(&format!(":{port}"), ":8100");
    // One may contain the other; the longer name comes first.
    let mut folders = [(repo, "$repo"), (work, "$work")];
    folders.sort_by_key(|(folder, _)| std::cmp::Reverse(folder.len()));
    for (folder, name) in folders {
        if !folder.is_empty() {
            text = text.replace(folder, name);
        }
    }
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("waiting for /"));
    lines.map(|line| request_ids(&times(line)) + "\n").collect()
}

/// `1.7 s` as `0.0 s`.
fn times(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let is_number = words[at - 1].parse::<f64>().is_ok() && words[at - 1].contains('.');
        if is_number && words[at].trim_end_matches([')', ',', ';', ':']) == "s" {
            words[at - 1] = "0.0".to_owned();
        }
    }
    words.join(" ")
}

/// `"request_id":"1b2c3d4e-5"` as `"request_id":"…"`.
fn request_ids(line: &str) -> String {
    const KEY: &str = "\"request_id\":\"";
    match line.split_once(KEY) {
        Some((before, rest)) => {
            let after = rest.split_once('"').map_or("", |(_, after)| after);
            format!("{before}{KEY}…\"{after}")
        }
        None => line.to_owned(),
    }
}

#[test]
fn stable_output_replaces_only_varying_values() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            stable(text, "/a", "/a/tmp/w", 41234),
            format!("{expected}\n")
        );
    };
    check(
        "waiting for /x (5 s)\nin /a and /a/tmp/w/b",
        "in $repo and $work/b",
    );
    check("http://127.0.0.1:41234/x", "http://127.0.0.1:8100/x");
    check(
        "/x: 2 tools (MCP 2025-11-25, 1.7 s)",
        "/x: 2 tools (MCP 2025-11-25, 0.0 s)",
    );
    check("mcp-broker 0.1.0 s", "mcp-broker 0.1.0 s");
    check(
        r#"{"request_id":"12ab-3","a":1}"#,
        r#"{"request_id":"…","a":1}"#,
    );
}
