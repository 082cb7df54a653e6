//! Paths: an accepted path is shown as it was written, and equals its parent joined with its leaf.

use broker_model::NodePath;
use broker_model::look::nfkc;
use broker_model::path::check;
use broker_model::text::is_invisible;
use fuzz::behaviour;

#[test]
fn path_of_any_text_is_its_parent_joined_with_its_leaf() {
    let words = [
        "/", "//", "..", "/.", "%2f", "\\", "a", "-", "_", ".a", "\0", "A", "é", "\u{301}", "ａ",
        "天", "\u{200d}",
    ];
    fuzz::run("path", &words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let parsed = NodePath::parse(&text);
        if parsed.as_ref().err() != check(&text).err().as_ref() {
            return Err("`parse` and `check` differ".to_owned());
        }
        let path = match parsed {
            Ok(path) => path,
            Err(error) => return Ok(behaviour(error.to_string())),
        };
        if path.to_string() != text || NodePath::parse(path.as_str()).ok().as_ref() != Some(&path) {
            return Err("it reads back as something else".to_owned());
        }
        let safe = |segment: &str| {
            let plain = |c: char| match c.is_ascii() {
                true => c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'),
                false => !c.is_whitespace() && !is_invisible(c),
            };
            !matches!(segment, "" | "." | "..")
                && segment.chars().count() <= 128
                && segment.chars().all(plain)
                && nfkc(segment) == segment
        };
        if text.len() > 512 || !(path.is_root() || text.split('/').skip(1).all(safe)) {
            return Err("it is accepted".to_owned());
        }
        match path.parent() {
            Some(parent) => {
                if parent.join(path.leaf()).ok().as_ref() != Some(&path)
                    || !path.is_below(&parent)
                    || parent.is_below(&path)
                {
                    return Err("parent and leaf do not make the path".to_owned());
                }
            }
            None if path.is_root() => {}
            None => return Err("it has no parent".to_owned()),
        }
        Ok(behaviour(text.split('/').count()))
    });
}
