//! The flat name of a tool: its name for MCP clients that see every tool directly. It depends on the path and
//! the maximum length alone.

use sha2::{Digest as _, Sha256};

use crate::digest::hex;
use crate::path::NodePath;

/// Hexadecimal digits of the hash at the end of a changed name.
const HASH_DIGITS: usize = 8;

/// The names of tools that the broker itself has for MCP clients.
const META_TOOLS: [&str; 4] = ["meta_tree", "meta_desc", "meta_call", "job"];
/// Further ones, each also with one of [`VARIANTS`] behind it.
const META_TOOLS_WITH_VARIANTS: [&str; 2] = ["retrieve_tools", "call_tool"];
const VARIANTS: [&str; 4] = ["", "_read", "_write", "_destructive"];

/// The segments of `path`, joined with `-`. A name with other characters than letters, digits, `_` and `-`, or
/// with more than `max` characters, is cleaned, shortened, and ends in a hash of the path.
pub fn flat_name(path: &NodePath, max: usize) -> String {
    let joined = path.as_str().trim_start_matches('/').replace('/', "-");
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if joined.chars().all(allowed) && joined.len() <= max {
        return joined;
    }
    let clean: String = joined
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    hashed(&clean, max, path.as_str())
}

/// Cuts `name` so that it has at most `max` characters with a hash of `hashed` at its end.
pub(crate) fn hashed(name: &str, max: usize, hashed: &str) -> String {
    let mut out: String = name
        .chars()
        .take(max.saturating_sub(HASH_DIGITS + 1))
        .collect();
    out.push('-');
    out.push_str(&hex(&Sha256::digest(hashed))[..HASH_DIGITS]);
    out
}

/// Whether a meta-tool of the broker has this name.
pub fn is_meta_tool(name: &str) -> bool {
    let has_variant = |tool: &str| {
        name.strip_prefix(tool)
            .is_some_and(|rest| VARIANTS.contains(&rest))
    };
    META_TOOLS.contains(&name) || META_TOOLS_WITH_VARIANTS.into_iter().any(has_variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str, max: usize) -> String {
        flat_name(&NodePath::parse(path).unwrap(), max)
    }

    #[test]
    fn flat_name_joins_the_segments_of_the_path() {
        assert_eq!(name("/a/deep/get_File-2", 46), "a-deep-get_File-2");
        assert_eq!(name("/echo", 46), "echo");
        let long = format!("/a/{}", "b".repeat(22));
        assert_eq!(name(&long, 24), long[1..].replace('/', "-"));
    }

    #[test]
    fn flat_name_that_is_cleaned_or_shortened_ends_in_a_hash() {
        // printf '/a/b.c' | sha256sum
        assert_eq!(name("/a/b.c", 46), "a-b_c-a603d805");
        let long = format!("/a/{}", "b".repeat(23));
        let short = name(&long, 24);
        assert_eq!(short.len(), 24);
        assert!(short.starts_with("a-bbbbbbbbbbbbb-"), "{short}");
        let hash = &short[16..];
        assert!(hash.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')));
        let paths = ["/x.y/z", "/x/y.z", "/a.b", "/a..b"].map(|path| name(path, 46));
        let different: std::collections::BTreeSet<_> = paths.iter().collect();
        assert_eq!(different.len(), paths.len());
    }

    #[test]
    fn meta_tool_names_are_recognised_with_their_variants() {
        for name in [
            "meta_tree",
            "call_tool",
            "call_tool_destructive",
            "retrieve_tools_read",
        ] {
            assert!(is_meta_tool(name), "{name}");
        }
        for name in ["meta_tree_read", "call_tool_", "call_tools", "echo"] {
            assert!(!is_meta_tool(name), "{name}");
        }
    }
}
