//! The page as one file for a lock: the same modules and sheet, the data of the lock, and a policy that admits exactly these.

use data_encoding::BASE64;
use sha2::{Digest as _, Sha256};

/// The sheet.
const STYLE: &str = include_str!("../page/style.css");

/// The modules, each behind those that it imports.
const MODULES: [&str; 7] = [
    include_str!("../page/dom.js"),
    include_str!("../page/text.js"),
    include_str!("../page/rows.js"),
    include_str!("../page/form.js"),
    include_str!("../page/tool.js"),
    include_str!("../page/tree.js"),
    include_str!("../page/static.js"),
];

/// Makes the document that shows `data`, the JSON of a lock as `page/static.js` reads it. Equal data gives equal bytes.
pub fn document(data: &str) -> String {
    let script = script();
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        source_of(&script),
        source_of(STYLE)
    );
    let data = escaped(data);
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Lock of an MCP broker</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>Lock of an MCP broker</h1>
<nav aria-label="Views" id="views"></nav>
</header>
<p id="notice" role="status"></p>
<main id="main" tabindex="-1"></main>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"##
    )
}

/// Returns the modules as one: their names are unique, so that imports and exports are not needed.
fn script() -> String {
    let lines = MODULES.iter().flat_map(|module| module.lines());
    let lines = lines.filter(|line| !line.starts_with("import "));
    let mut script = "\n".to_owned();
    for line in lines {
        script.push_str(line.strip_prefix("export ").unwrap_or(line));
        script.push('\n');
    }
    script
}

/// Returns the source of an element with this text, as a policy names it.
fn source_of(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text.as_bytes())))
}

/// Escapes JSON for an element: no character of it ends the element, and no character is hidden from a reader of the file.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{7f}'.. => {
                for unit in character.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(character),
        }
    }
    out
}

/// Returns every file that a browser gets, for checks of all of them.
#[cfg(test)]
pub(crate) fn sources() -> Vec<&'static str> {
    let served = super::FILES.iter().map(|file| file.text);
    served.chain([MODULES[6]]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn modules_of_the_document_have_unique_names_and_end_no_element() {
        let script = script();
        let mut names = BTreeSet::new();
        for line in script.lines() {
            let rest = ["function ", "async function ", "const ", "let ", "class "]
                .iter()
                .find_map(|word| line.strip_prefix(word));
            let Some(rest) = rest else { continue };
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            assert!(names.insert(name.to_owned()), "{name} is declared twice");
        }
        assert!(names.contains("treeView") && names.contains("visible"));
        for text in [&script, STYLE] {
            assert!(!text.contains("</") && !text.contains("<!--"), "{text}");
        }
    }

    #[test]
    fn data_of_the_document_is_ascii_and_ends_no_element() {
        let hostile = "{\"a\":\"</script><script>alert(1)</script><!-- & 𝄞 \u{202e}\"}";
        let escaped = escaped(hostile);
        assert!(
            escaped.is_ascii() && !escaped.contains(['<', '>', '&']),
            "{escaped}"
        );
        assert!(escaped.contains("\\ud834\\udd1e") && escaped.contains("\\u202e"));
        let whole = document(hostile);
        assert_eq!(whole.matches("</script>").count(), 2);
        assert_eq!(whole, document(hostile));
        assert!(!whole.contains("http://") && !whole.contains("https://"));
    }
}
