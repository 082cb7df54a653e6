//! Tree paths: `/` or segments of 1 to 128 characters, at most 512 bytes, case-sensitive.
//!
//! A segment has ASCII letters, digits, `_`, `.` and `-`, and other characters that identifiers may have (XID of UAX 31)
//! and that a reader sees. It is in the form NFKC, so that two paths that look the same by equivalence of Unicode are
//! the same bytes. A [`NodePath`] is valid once it is parsed; it is not a path of a file system.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::look::is_nfkc;
use crate::text::is_invisible;

/// Maximum length of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 512;
/// Maximum length of a segment, in characters.
pub const MAX_SEGMENT_CHARS: usize = 128;

/// A checked absolute path in the tree. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, description = "")
)]
pub struct NodePath(Arc<str>);

/// The rule that a path breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin with `/`.
    #[error("a path is absolute and begins with `/`")]
    Relative,
    /// It is longer than [`MAX_PATH_BYTES`].
    #[error("a path has at most {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// It has an empty segment: `//` or a trailing slash.
    #[error("a path has no empty segment and no trailing slash")]
    EmptySegment,
    /// A segment is longer than [`MAX_SEGMENT_CHARS`].
    #[error("a segment has at most {MAX_SEGMENT_CHARS} characters")]
    SegmentTooLong,
    /// A segment is `.` or `..`.
    #[error("`.` and `..` are not segments")]
    Dots,
    /// A character outside the grammar.
    #[error("a segment consists of letters, digits, `_`, `.` and `-`")]
    Character,
    /// A segment is not in the form NFKC.
    #[error("a segment is in the form NFKC of Unicode")]
    NotNormal,
}

impl NodePath {
    /// The root, `/`.
    pub fn root() -> Self {
        Self(Arc::from("/"))
    }

    /// Checks `text` against the grammar.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        check(text)?;
        Ok(Self(Arc::from(text)))
    }

    /// The path as text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `/`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// Returns this path with one more segment. The segment must match the grammar.
    pub fn join(&self, segment: &str) -> Result<Self, PathError> {
        check_segment(segment)?;
        let text = if self.is_root() {
            format!("/{segment}")
        } else {
            format!("{}/{segment}", self.0)
        };
        if text.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        Ok(Self(Arc::from(text)))
    }

    /// The parent path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        match self.0.rfind('/') {
            Some(0) | None => Some(Self::root()),
            Some(at) => Some(Self(Arc::from(&self.0[..at]))),
        }
    }

    /// The last segment; empty for the root.
    pub fn leaf(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or("")
    }

    /// Whether `self` is strictly below `ancestor`.
    pub fn is_below(&self, ancestor: &Self) -> bool {
        if self.is_root() {
            return false;
        }
        ancestor.is_root()
            || (self.0.len() > ancestor.0.len()
                && self.0.starts_with(&*ancestor.0)
                && self.0.as_bytes()[ancestor.0.len()] == b'/')
    }
}

/// Checks a path without allocating; used for paths of requests.
pub fn check(text: &str) -> Result<(), PathError> {
    let Some(rest) = text.strip_prefix('/') else {
        return Err(PathError::Relative);
    };
    if text.len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    if rest.is_empty() {
        return Ok(());
    }
    rest.split('/').try_for_each(check_segment)
}

/// Checks one segment without allocating.
pub fn check_segment(segment: &str) -> Result<(), PathError> {
    if segment.is_empty() {
        return Err(PathError::EmptySegment);
    }
    if segment == "." || segment == ".." {
        return Err(PathError::Dots);
    }
    // A mark at the begin would be drawn on the `/` before it.
    let is_allowed = |(at, c): (usize, char)| match at {
        0 => is_segment_start(c),
        _ => is_segment_char(c),
    };
    if !segment.char_indices().all(is_allowed) {
        return Err(PathError::Character);
    }
    if segment.len() > MAX_SEGMENT_CHARS && segment.chars().count() > MAX_SEGMENT_CHARS {
        return Err(PathError::SegmentTooLong);
    }
    match is_nfkc(segment) {
        true => Ok(()),
        false => Err(PathError::NotNormal),
    }
}

/// Whether a segment may have this character.
pub fn is_segment_char(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'),
        false => unicode_ident::is_xid_continue(c) && !is_invisible(c),
    }
}

/// Whether a segment may begin with this character.
fn is_segment_start(c: char) -> bool {
    match c.is_ascii() {
        true => is_segment_char(c),
        false => {
            (unicode_ident::is_xid_start(c) || c.is_numeric() && is_segment_char(c))
                && !is_invisible(c)
        }
    }
}

impl TryFrom<String> for NodePath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl From<NodePath> for String {
    fn from(path: NodePath) -> Self {
        path.0.as_ref().to_owned()
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for NodePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for NodePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_outside_the_grammar_is_refused() {
        let wide = format!("/{}", "字".repeat(128));
        for good in [
            "/",
            "/a",
            "/a/b.c",
            "/A-1_/...",
            "/ä",
            "/查询天气/नमस्ते",
            "/सं_2",
            "/٣",
            &wide,
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let long = format!("/{}", "a".repeat(129));
        let long_wide = format!("/{}", "字".repeat(129));
        let deep = "/abcdefgh".repeat(57);
        for (bad, error) in [
            ("", PathError::Relative),
            ("a", PathError::Relative),
            ("//", PathError::EmptySegment),
            ("/a/", PathError::EmptySegment),
            ("/a//b", PathError::EmptySegment),
            ("/.", PathError::Dots),
            ("/a/../b", PathError::Dots),
            ("/%2e", PathError::Character),
            ("/a b", PathError::Character),
            ("/a\u{308}", PathError::NotNormal),
            ("/ｒead", PathError::NotNormal),
            ("/\u{301}a", PathError::Character),
            ("/🚀", PathError::Character),
            ("/a\u{200d}b", PathError::Character),
            ("/a\u{202e}b", PathError::Character),
            ("/a\u{fe0f}", PathError::Character),
            ("/ㅤ", PathError::Character),
            ("/a\\b", PathError::Character),
            ("/a\0", PathError::Character),
            (&long, PathError::SegmentTooLong),
            (&long_wide, PathError::SegmentTooLong),
            (&deep, PathError::TooLong),
        ] {
            assert_eq!(check(bad), Err(error), "{bad}");
        }
    }

    #[test]
    fn path_parent_leaf_and_descent_are_derived() {
        let root = NodePath::root();
        let a = root.join("a").unwrap();
        let ab = a.join("b").unwrap();
        assert_eq!(ab.as_str(), "/a/b");
        assert_eq!(ab.parent(), Some(a.clone()));
        assert_eq!(a.parent(), Some(root.clone()));
        assert_eq!(root.parent(), None);
        assert_eq!(ab.leaf(), "b");
        assert!(ab.is_below(&a) && ab.is_below(&root) && a.is_below(&root));
        assert!(!a.is_below(&a) && !root.is_below(&root));
        assert!(!NodePath::parse("/ab").unwrap().is_below(&a));
    }
}
