//! The web page of a broker. `page/` has its files, written by hand: a browser runs them as they are. `document` makes one
//! file of them for a lock. Pure: the surface over HTTP serves the files, and `broker-gen page` writes the document.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

mod document;

pub use document::document;

/// The headers of the page and of each of its files. Only scripts of the page run, and no text becomes markup.
pub const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    // A browser asks each time whether its copy is current.
    ("cache-control", "no-cache"),
];

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// Its name below the folder of the page. The page itself has none.
    pub name: &'static str,
    /// Its media type.
    pub media: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl PageFile {
    /// Returns its entity tag: the SHA-256 of its bytes, with quotes.
    pub fn etag(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        format!("\"{}\"", HEXLOWER.encode(&digest))
    }
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! module {
    ($name:literal) => {
        PageFile {
            name: $name,
            media: SCRIPT,
            text: include_str!(concat!("../page/", $name)),
        }
    };
}

/// Every file that is served.
pub const FILES: &[PageFile] = &[
    PageFile {
        name: "",
        media: HTML,
        text: include_str!("../page/index.html"),
    },
    PageFile {
        name: "style.css",
        media: CSS,
        text: include_str!("../page/style.css"),
    },
    module!("access.js"),
    module!("activity.js"),
    module!("api.js"),
    module!("dom.js"),
    module!("drift.js"),
    module!("form.js"),
    module!("jobs.js"),
    module!("main.js"),
    module!("rows.js"),
    module!("sources.js"),
    module!("text.js"),
    module!("tool.js"),
    module!("tree.js"),
];

/// Returns the file with a name.
pub fn file(name: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entity_tag_is_the_digest_of_the_bytes() {
        let empty = PageFile {
            name: "x",
            media: SCRIPT,
            text: "",
        };
        assert_eq!(
            empty.etag(),
            "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""
        );
        let tags: std::collections::BTreeSet<_> = FILES.iter().map(PageFile::etag).collect();
        assert_eq!(tags.len(), FILES.len());
    }

    #[test]
    fn page_has_at_most_1500_lines_and_no_way_to_make_markup_of_text() {
        let texts: Vec<&str> = document::sources();
        let lines: usize = texts.iter().map(|text| text.lines().count()).sum();
        assert!(lines <= 1500, "{lines} lines");
        for text in texts {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "localStorage",
                "sessionStorage",
                "document.cookie",
                "indexedDB",
                "setAttribute(\"style\"",
                "http://",
                "https://",
            ] {
                assert!(!text.contains(forbidden), "{forbidden}");
            }
        }
    }

    #[test]
    fn every_module_that_a_module_imports_is_a_file() {
        for file in FILES.iter().filter(|file| file.media == SCRIPT) {
            for line in file.text.lines() {
                let named = line.split_once(" from \"./");
                let Some((_, rest)) = named.or_else(|| line.split_once("import(\"./")) else {
                    continue;
                };
                let name = rest.split('"').next().unwrap_or_default();
                assert!(super::file(name).is_some(), "{} imports {name}", file.name);
            }
        }
    }
}
