//! The rule that derives the last segment of a path from a name that is outside the grammar of paths.
//!
//! A name that is a segment keeps itself. In any other name each character that a segment cannot have becomes `_`; the
//! result, cut to `MAX_KEPT_CHARS` characters, ends in `-` and the first hexadecimal digits of the SHA-256 of the
//! name, so that two names never meet. Names of prompts and resources are cleaned in the same way, and have the digits
//! only if another entry of the node has the same segment. A segment that is derived from one name and is another name
//! itself belongs to neither of them: both get digits.
//!
//! The rule needs only the names. The result is written to the lock, and only the lock is read later.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::digest::hex;
use crate::look::nfkc;
use crate::path::{check_segment, is_segment_char};

/// The numbers of hexadecimal digits. The first one without a clash is used.
const HASH_DIGITS: [usize; 4] = [8, 16, 32, 64];
/// Maximum number of characters of a name that its alias keeps; with the longest hash it is a segment.
const MAX_KEPT_CHARS: usize = 60;

/// A name that needs a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<'n> {
    /// The name as the server or the file has it.
    pub name: &'n str,
    /// The input of the digest that gives the digits. It differs for every two entries.
    pub key: &'n str,
    /// The segment.
    pub wanted: Wanted,
}

/// The segment that a name gets if no other entry has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The config gives it. It never changes.
    Fixed(String),
    /// The name itself if it is a segment, else one with digits.
    Unique,
    /// This segment: the name, or a form of it.
    Short(String),
}

/// The segments of `entries`, in their order. Only segments that the config gives, and equal names, can be equal.
pub fn segments(entries: &[Named<'_>]) -> Vec<String> {
    let mut levels = vec![0_usize; entries.len()];
    loop {
        let current: Vec<String> = entries
            .iter()
            .zip(&levels)
            .map(|(entry, level)| entry.segment(*level))
            .collect();
        let mut by_segment: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, segment) in current.iter().enumerate() {
            by_segment.entry(segment).or_default().push(at);
        }
        let mut is_changed = false;
        for members in by_segment.values().filter(|members| members.len() > 1) {
            // Two entries that have this name themselves are an error of the server or the config.
            let is_derived = |at: &usize| entries[*at].is_derived(&current[*at]);
            if !members.iter().any(is_derived) {
                continue;
            }
            for at in members {
                if !matches!(entries[*at].wanted, Wanted::Fixed(_))
                    && levels[*at] < HASH_DIGITS.len()
                {
                    levels[*at] += 1;
                    is_changed = true;
                }
            }
        }
        if !is_changed {
            return current;
        }
    }
}

impl Named<'_> {
    /// Returns the segment with more digits the higher the level; the segment of level 0 is wanted.
    fn segment(&self, level: usize) -> String {
        let digits = match &self.wanted {
            Wanted::Fixed(segment) => return segment.clone(),
            Wanted::Short(segment) if level == 0 => return segment.clone(),
            Wanted::Unique if check_segment(self.name).is_err() => level,
            Wanted::Unique if level == 0 => return self.name.to_owned(),
            Wanted::Short(_) | Wanted::Unique => level - 1,
        };
        let longest = HASH_DIGITS.len() - 1;
        with_digits(self.name, self.key, HASH_DIGITS[digits.min(longest)])
    }

    fn is_derived(&self, segment: &str) -> bool {
        match self.wanted {
            Wanted::Fixed(_) => false,
            Wanted::Unique | Wanted::Short(_) => segment != self.name,
        }
    }
}

/// Returns the path of an entry without the digits of its derived alias, as a reader understands it; `None` if its last
/// segment is not derived from the server's name in this way. `key` identifies the entry: that name, or the key of an item.
pub fn readable_path(path: &str, name: &str, key: &str) -> Option<String> {
    let (parent, leaf) = path.rsplit_once('/')?;
    if leaf == name {
        return None;
    }
    let mut derived = HASH_DIGITS.iter();
    let is_derived = derived.any(|digits| leaf == with_digits(name, key, *digits));
    is_derived.then(|| format!("{parent}/{}", cleaned(name)))
}

/// The form NFKC of a name, cut, with `_` for each character that a segment cannot have.
fn cleaned(name: &str) -> String {
    let chars = nfkc(name);
    let chars = chars.chars().take(MAX_KEPT_CHARS);
    chars
        .map(|c| if is_segment_char(c) { c } else { '_' })
        .collect()
}

/// The name as a segment that ends in digits of the SHA-256 of `key`.
fn with_digits(name: &str, key: &str, digits: usize) -> String {
    let hash = hex(&Sha256::digest(key));
    let segment = format!("{}-{}", cleaned(name), &hash[..digits]);
    match check_segment(&segment) {
        Ok(()) => segment,
        // It begins with a mark.
        Err(_) => format!("_-{}", &hash[..digits]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of_tools(names: &[&str]) -> Vec<String> {
        let entries: Vec<_> = names
            .iter()
            .map(|name| Named {
                name,
                key: name,
                wanted: Wanted::Unique,
            })
            .collect();
        segments(&entries)
    }

    #[test]
    fn readable_path_is_that_of_a_derived_alias_without_its_digits() {
        for (name, readable) in [
            ("ｐaint", Some("/a/paint")),
            ("cafe\u{301}", Some("/a/café")),
            ("github/git_commit", Some("/a/github_git_commit")),
            ("paint", None),
        ] {
            let path = format!("/a/{}", of_tools(&[name])[0]);
            assert_eq!(
                readable_path(&path, name, name).as_deref(),
                readable,
                "{name}"
            );
        }
        // The config gives it.
        assert_eq!(readable_path("/a/paint-b4a63a78", "other", "other"), None);
        assert_eq!(readable_path("/a/paint", "ｐaint", "ｐaint"), None);
    }

    #[test]
    fn name_outside_the_grammar_gets_a_hash_of_itself() {
        // printf 'github/git_commit' | sha256sum
        for (name, segment) in [
            ("good", "good"),
            ("查询天气", "查询天气"),
            ("github/git_commit", "github_git_commit-2c67b297"),
            ("New Tool", "New_Tool-"),
            ("@scope/x", "_scope_x-"),
            ("..", "..-"),
            ("", "-"),
            ("\u{301}a", "_-"),
            ("ｒead", "read-"),
            ("cafe\u{301}", "café-"),
            ("🚀go\u{202e}", "_go_-"),
        ] {
            let found = &of_tools(&[name])[0];
            assert!(found.starts_with(segment), "{name}: {found}");
            assert_eq!(check_segment(found), Ok(()), "{found}");
        }
        let long = "x".repeat(129);
        let found = &of_tools(&[&long])[0];
        assert_eq!(found.len(), MAX_KEPT_CHARS + 9, "{found}");
    }

    #[test]
    fn alias_of_a_name_does_not_depend_on_other_names() {
        let alone = of_tools(&["a/b"]);
        let beside = of_tools(&["a b", "a/b", "a_b", "x"]);
        assert_eq!(beside[1], alone[0]);
        assert_eq!((&*beside[2], &*beside[3]), ("a_b", "x"));
    }

    #[test]
    fn alias_that_equals_a_real_name_goes_to_neither() {
        let derived = of_tools(&["a/b"]).remove(0);
        let both = of_tools(&["a/b", &derived]);
        assert!(both.iter().all(|segment| *segment != derived), "{both:?}");
        assert_ne!(both[0], both[1]);
        // A name that was made to equal the next form as well.
        let three = of_tools(&["a/b", &derived, &both[0]]);
        let different: BTreeSet<_> = three.iter().collect();
        assert_eq!(different.len(), 3, "{three:?}");
        assert!(
            !three.contains(&derived) && !three.contains(&both[0]),
            "{three:?}"
        );
    }

    #[test]
    fn segment_that_the_config_gives_stays() {
        let derived = of_tools(&["a/b"]).remove(0);
        let entry = |name, wanted| Named {
            name,
            key: name,
            wanted,
        };
        let found = segments(&[
            entry("x", Wanted::Fixed(derived.clone())),
            entry("a/b", Wanted::Unique),
        ]);
        assert_eq!(found[0], derived);
        assert_ne!(found[1], derived);
        let equal = segments(&[
            entry("x", Wanted::Fixed("y".to_owned())),
            entry("y", Wanted::Unique),
        ]);
        assert_eq!(equal, ["y", "y"]);
    }

    proptest! {
        #[test]
        fn segments_of_different_names_are_different_segments(
            names in proptest::collection::btree_set(r"[ab_/ .é\u{301}ａ-]{0,3}", 0..12),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = of_tools(&names);
            let different: BTreeSet<_> = found.iter().collect();
            prop_assert_eq!(different.len(), names.len(), "{:?} {:?}", names, found);
            for segment in &found {
                prop_assert_eq!(check_segment(segment), Ok(()), "{}", segment);
            }
        }
    }
}
