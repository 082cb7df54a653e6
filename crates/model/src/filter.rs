//! The tool filter of a source: glob patterns, `!` denies, the order does not matter.

use std::collections::BTreeSet;

use globset::{Glob, GlobSet, GlobSetBuilder};

/// A checked `tool_filter`. If it is empty, all tools are exposed.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    patterns: Vec<String>,
    /// Those without a `!`.
    positive: BTreeSet<String>,
    allow: GlobSet,
    deny: GlobSet,
}

/// An invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a glob: {reason}")]
pub struct FilterError {
    /// The pattern as written, with its `!`.
    pub pattern: String,
    /// The message of the glob parser.
    pub reason: String,
    /// Its index in the list.
    pub index: usize,
}

impl ToolFilter {
    /// Compiles `patterns`; every invalid one is reported.
    pub fn compile<S: AsRef<str>>(patterns: &[S]) -> Result<Self, Vec<FilterError>> {
        let (mut allow, mut deny) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let mut written = Vec::new();
        let mut errors = Vec::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let pattern = pattern.as_ref();
            let (set, glob) = match pattern.strip_prefix('!') {
                Some(rest) => (&mut deny, rest),
                None => (&mut allow, pattern),
            };
            match Glob::new(glob) {
                Ok(compiled) if !glob.is_empty() => {
                    set.add(compiled);
                    written.push(pattern.to_owned());
                }
                outcome => errors.push(FilterError {
                    pattern: pattern.to_owned(),
                    reason: outcome.err().map_or_else(
                        || "it is empty".to_owned(),
                        |error| error.kind().to_string(),
                    ),
                    index,
                }),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        // A set compiles its patterns together, so it can be too large where each of them is not.
        let build = |set: GlobSetBuilder| {
            set.build().map_err(|error| {
                vec![FilterError {
                    pattern: written.join(" "),
                    reason: format!("together, {}", error.kind()),
                    index: 0,
                }]
            })
        };
        Ok(Self {
            allow: build(allow)?,
            deny: build(deny)?,
            positive: written
                .iter()
                .filter(|pattern| !pattern.starts_with('!'))
                .cloned()
                .collect(),
            patterns: written,
        })
    }

    /// The patterns as written.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Whether a tool of this upstream name is exposed: without a positive pattern all are, else those that
    /// match one; a deny always wins.
    pub fn admits(&self, name: &str) -> bool {
        (self.allow.is_empty() || self.allow.is_match(name)) && !self.deny.is_match(name)
    }

    /// Whether it has a pattern without a `!`.
    pub fn has_positive(&self) -> bool {
        !self.positive.is_empty()
    }

    /// Whether a positive pattern is this name itself, without a wildcard.
    pub fn names(&self, name: &str) -> bool {
        self.positive.contains(&literal_pattern(name))
    }
}

/// The pattern that matches only this name: the name, with every character that has a meaning in patterns
/// escaped.
pub fn literal_pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        match c {
            // A `!` is special only at the begin, and a class that begins with it is a negation.
            '!' if at == 0 => pattern.push_str("{!}"),
            '?' | '*' | '[' | ']' | '{' | '}' | '\\' => {
                pattern.push('[');
                pattern.push(c);
                pattern.push(']');
            }
            c => pattern.push(c),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn admits(patterns: &[&str], name: &str) -> bool {
        ToolFilter::compile(patterns).unwrap().admits(name)
    }

    #[test]
    fn filter_with_a_deny_pattern_hides_what_it_matches() {
        assert!(admits(&[], "anything"));
        assert!(admits(&["!get_secret_*"], "get_file"));
        assert!(!admits(&["!get_secret_*"], "get_secret_key"));
        assert!(admits(&["get_*", "!get_secret_*"], "get_file"));
        assert!(!admits(&["get_*", "!get_secret_*"], "get_secret_key"));
        assert!(!admits(&["get_*"], "put_file"));
        assert!(admits(&["{a,b}?"], "b1"));
    }

    #[test]
    fn filter_with_bad_patterns_reports_each() {
        let errors = ToolFilter::compile(&["[", "ok", "!{", ""]).unwrap_err();
        assert_eq!(
            errors.iter().map(|e| e.index).collect::<Vec<_>>(),
            [0, 2, 3]
        );
    }

    #[test]
    fn filter_that_is_too_large_as_a_whole_is_refused() {
        let pattern = |at: usize| format!("{at}{}", "?[a-z]".repeat(100));
        let patterns: Vec<String> = (0..2000).map(pattern).collect();
        assert!(ToolFilter::compile(&patterns[..1]).is_ok());
        let errors = ToolFilter::compile(&patterns).unwrap_err();
        assert!(errors[0].reason.starts_with("together, "), "{errors:?}");
    }

    proptest! {
        #[test]
        fn literal_pattern_matches_its_name_alone(
            name in r"[!\[\]{}*?\\,ab/-]{1,6}",
            other in r"[!\[\]{}*?\\,ab/-]{1,6}",
        ) {
            let pattern = literal_pattern(&name);
            let filter = ToolFilter::compile(&[&pattern]).unwrap();
            prop_assert!(filter.admits(&name) && filter.names(&name), "{pattern}");
            prop_assert_eq!(filter.admits(&other), name == other, "{}", pattern);
            prop_assert_eq!(filter.names(&other), name == other, "{}", pattern);
        }

        #[test]
        fn filter_patterns_in_any_order_give_the_same_decision(
            mut patterns in proptest::collection::vec("!?[ab*?]{1,3}", 0..6),
            name in "[ab]{1,4}",
            seed in any::<u64>(),
        ) {
            let before = ToolFilter::compile(&patterns).unwrap().admits(&name);
            let len = patterns.len().max(1);
            patterns.rotate_left(seed as usize % len);
            patterns.reverse();
            prop_assert_eq!(ToolFilter::compile(&patterns).unwrap().admits(&name), before);
        }
    }
}
