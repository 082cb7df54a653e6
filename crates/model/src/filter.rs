//! The tool filter of a source: glob patterns, `!` denies, the order does not matter.
//!
//! A name that is not ASCII is compared in several forms: a deny matches the name, its form NFKC or its skeleton, so that
//! no look-alike escapes it. An allow matches only the name or its form NFKC.

use std::collections::BTreeSet;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::glob::Forms;
use crate::look::nfkc;

/// A checked `tool_filter`. If it is empty, all tools are exposed.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    patterns: Vec<String>,
    /// Those without a `!`.
    positive: BTreeSet<String>,
    allow: GlobSet,
    deny: GlobSet,
    allow_forms: Forms,
    deny_forms: Forms,
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
        let (deny_forms, allow_forms): (Vec<_>, Vec<_>) =
            written.iter().partition(|pattern| pattern.starts_with('!'));
        let forms = |patterns: Vec<&String>| {
            let globs = patterns.into_iter();
            let globs = globs.map(|one| one.strip_prefix('!').unwrap_or(one).to_owned());
            Forms::new(globs.collect(), false)
        };
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
            allow_forms: forms(allow_forms),
            deny_forms: forms(deny_forms),
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
        (self.allow.is_empty() || self.allows(name)) && !self.denies(name)
    }

    fn allows(&self, name: &str) -> bool {
        match name.is_ascii() && self.allow_forms.is_ascii() {
            true => self.allow.is_match(name),
            false => self.allow_forms.match_name(name),
        }
    }

    fn denies(&self, name: &str) -> bool {
        let is_ascii = name.is_ascii() && self.deny_forms.is_ascii();
        self.deny.is_match(name) || (!is_ascii && self.deny_forms.match_look(name))
    }

    /// Whether it has a pattern without a `!`.
    pub fn has_positive(&self) -> bool {
        !self.positive.is_empty()
    }

    /// Whether a positive pattern is this name itself or its form NFKC, without a wildcard.
    pub fn names(&self, name: &str) -> bool {
        let has = |name: &str| self.positive.contains(&literal_pattern(name));
        has(name) || has(&nfkc(name))
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

    /// Names that a reader or a server may take for `dropcafé`, with the reason.
    const ALIKE: [(&str, &str); 3] = [
        ("full width", "ｄropcafé"),
        ("Cyrillic", "drорсаfé"),
        ("NFD", "dropcafe\u{301}"),
    ];
    /// Each form of a pattern that matches `dropcafé`.
    const FORMS: [&str; 9] = [
        "dropcafé",
        "drop*",
        "*café",
        "**café",
        "drop**",
        "dr?pcafé",
        "dr[aou]pcaf[à-ü]",
        "{drop,put}{café,tea}",
        "[!x]rop*",
    ];

    #[test]
    fn deny_pattern_of_each_form_matches_look_alikes() {
        for pattern in FORMS {
            let deny = format!("!{pattern}");
            for (form, name) in ALIKE {
                assert!(!admits(&[&deny], name), "{deny} {form}");
                assert!(!admits(&["*", &deny], name), "{deny} {form}");
            }
            assert!(!admits(&[&deny], "dropcafé") && admits(&[&deny], "readtea"));
        }
        // A pattern may be written with look-alikes as well.
        for (form, name) in ALIKE {
            assert!(!admits(&[&format!("!{name}")], "dropcafé"), "{form}");
        }
        assert!(!admits(&["!ｄrop"], "drop") && !admits(&["!drор*"], "drop_x"));
    }

    #[test]
    fn allow_pattern_of_each_form_matches_no_skeleton() {
        for pattern in FORMS {
            for (form, name) in ALIKE {
                let expected = form != "Cyrillic";
                assert_eq!(admits(&[pattern], name), expected, "{pattern} {form}");
            }
            assert!(admits(&[pattern], "dropcafé"), "{pattern}");
        }
    }

    #[test]
    fn names_in_ascii_are_compared_as_they_are() {
        assert!(admits(&["!list_1", "![A-Z]*", "!modern"], "list_l"));
        assert!(admits(&["![A-Z]*"], "0_x") && admits(&["!rn"], "m"));
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
