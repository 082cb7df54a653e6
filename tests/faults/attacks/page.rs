//! `docs/proxies.md`: its directives for a broker at another address, and its table.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use harness::{Proxy, assert_expected};

/// The address of the broker on the page.
const WRITTEN: &str = "127.0.0.1:8100";
/// The heading of the table.
const HEADING: &str = "| request | broker | nginx | Caddy |\n|---|---|---|---|\n";
/// The system whose packages the table is about, as `/etc/os-release` names it.
const SYSTEM: &str = "VERSION_CODENAME=bookworm";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/proxies.md")
}

fn text() -> String {
    fs::read_to_string(page()).expect("the page is there")
}

/// The blocks of the page in this language, for the broker at this address.
fn blocks(language: &str, address: &str) -> Vec<String> {
    let (text, begin) = (text(), format!("```{language}\n"));
    let parts = text.split(&begin).skip(1);
    let blocks = parts.map(|part| part.split("```").next().unwrap_or_default());
    blocks
        .map(|block| {
            assert!(
                block.contains(WRITTEN) || block.contains("proxy_pass"),
                "{block}"
            );
            block.replace(WRITTEN, address)
        })
        .collect()
}

/// Starts nginx with the directives of the page for the broker at this address; `change` makes other ones of those in `server`.
pub(super) fn nginx(address: &str, change: impl FnOnce(String) -> String) -> Proxy {
    let blocks: [String; 2] = blocks("nginx", address)
        .try_into()
        .expect("the page has a block for `http` and one for `server`");
    let [http, server] = blocks;
    Proxy::nginx(&http, &change(server))
}

/// Starts Caddy with the directives of the page for the broker at this address, and these in front.
pub(super) fn caddy(address: &str, more: &str) -> Proxy {
    let blocks: [String; 1] = blocks("caddyfile", address)
        .try_into()
        .expect("the page has a block for Caddy");
    Proxy::caddy(&format!("{more}\n{}", blocks[0]))
}

/// Starts both.
pub(super) fn both(address: &str) -> [Proxy; 2] {
    [nginx(address, |server| server), caddy(address, "")]
}

/// Asserts that the table of the page has these rows.
pub(super) fn has_rows(rows: &str) {
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !system.lines().any(|line| line == SYSTEM) {
        // Not by a macro: the runner hides what a test prints that passes.
        let note = "the rows of docs/proxies.md are those of another system; the rows of this one:";
        writeln!(std::io::stderr(), "{note}\n{rows}").expect("standard error is open");
        return;
    }
    let text = text();
    let (before, rest) = text.split_once(HEADING).expect("the page has the table");
    let after: String = rest
        .split_inclusive('\n')
        .skip_while(|line| line.starts_with("| "))
        .collect();
    assert_expected(&page(), &format!("{before}{HEADING}{rows}{after}"));
}
