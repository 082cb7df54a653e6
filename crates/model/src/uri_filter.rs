//! The filter of a source for URIs. A server may read several spellings of a URI as the same, so that a pattern with `!`
//! excludes all of them; a pattern without `!` matches the URI as it is written.

use percent_encoding::percent_decode_str;

use crate::filter::{FilterError, ToolFilter, literal_pattern};
use crate::uri::{MAX_DECODINGS, canonical, with_single_slashes};

/// A checked `resource_filter`. Without a positive pattern it admits nothing.
#[derive(Clone, Debug, Default)]
pub struct UriFilter {
    written: ToolFilter,
    /// The patterns with a `!`, for the spelling of [`canonical`].
    excluded: ToolFilter,
}

impl UriFilter {
    /// The filter of these patterns.
    ///
    /// # Errors
    ///
    /// The patterns are too large together.
    pub fn new(written: ToolFilter) -> Result<Self, Vec<FilterError>> {
        let patterns = written.patterns().iter();
        let excluded: Vec<String> = patterns
            .filter_map(|pattern| pattern.strip_prefix('!'))
            .map(|glob| format!("!{}", canonical_pattern(glob)))
            .collect();
        let excluded = ToolFilter::compile(&excluded)?;
        Ok(Self { written, excluded })
    }

    /// The filter that admits everything.
    pub fn of_everything() -> Self {
        let written = ToolFilter::compile(&["*"]).unwrap_or_default();
        Self {
            written,
            excluded: ToolFilter::default(),
        }
    }

    /// The patterns.
    pub const fn written(&self) -> &ToolFilter {
        &self.written
    }

    /// Whether it admits anything.
    pub fn has_positive(&self) -> bool {
        self.written.has_positive()
    }

    /// Whether a positive pattern matches a URI, or the text of a template, and no pattern with `!` matches one of its
    /// spellings, with or without what follows its path.
    pub fn admits(&self, uri: &str) -> bool {
        self.has_positive() && self.written.admits(uri) && !self.excludes(uri)
    }

    fn excludes(&self, uri: &str) -> bool {
        if self.excluded.patterns().is_empty() {
            return false;
        }
        let Some(uri) = canonical(uri) else {
            return true;
        };
        // A server in C ends a text at NUL, a file system may ignore points and spaces at the end.
        let base = uri.split(['?', '#', '\0']).next().unwrap_or_default();
        let name = base.trim_end_matches(['/', '.', ' ']);
        let spellings = [uri.as_str(), base, name];
        !spellings.iter().all(|uri| self.excluded.admits(uri))
    }
}

/// A pattern for the spelling of [`canonical`]; as it is written if it has no such form.
fn canonical_pattern(glob: &str) -> String {
    let mut pattern = glob.to_owned();
    for _ in 0..MAX_DECODINGS {
        pattern = decoded_once(&pattern);
    }
    let pattern = with_single_slashes(&pattern.to_lowercase());
    match ToolFilter::compile(&[&pattern]) {
        Ok(_) => pattern,
        Err(_) => glob.to_owned(),
    }
}

/// A pattern without its percent-encoding. A decoded character matches itself alone.
fn decoded_once(glob: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(glob.len()), glob);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let triplets = rest.as_bytes().chunks_exact(3);
        let encoded = triplets.take_while(|it| {
            it[0] == b'%' && it[1].is_ascii_hexdigit() && it[2].is_ascii_hexdigit()
        });
        match 3 * encoded.count() {
            0 => {
                out.push('%');
                rest = &rest[1..];
            }
            length => {
                let decoded = percent_decode_str(&rest[..length]).decode_utf8_lossy();
                out.push_str(&literal_pattern(&decoded));
                rest = &rest[length..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(patterns: &[&str]) -> UriFilter {
        UriFilter::new(ToolFilter::compile(patterns).expect("globs")).expect("small")
    }

    #[test]
    fn exclusion_covers_every_spelling_of_a_uri() {
        let filter = filter(&[
            "*",
            "!x://docs/private*",
            "!x://docs/n\u{e4}he",
            "!x://docs/a%2fb",
        ]);
        for uri in [
            "x://docs/private",
            "x://docs/%70rivate",
            "x://docs/%2570rivate/1",
            "x://docs/%25%37%30rivate",
            "X://docs/private",
            "x://DOCS/private",
            "x://docs/Private",
            "x://docs//private",
            "x://docs%2Fprivate",
            "x://docs\\private",
            "x:/docs/private",
            "x://docs/pri\tvate",
            "x://docs/pri%0Avate",
            "x://docs/n%C3%A4he",
            "x://docs/n\u{c4}he/?q#f",
            "x://docs/a/b",
            "x://docs/a%2Fb",
            "x://docs/a%2Fb/?q",
            "x://docs/a/b%00.txt",
            "x://docs/a/b%20.",
        ] {
            assert!(!filter.admits(uri), "{uri}");
        }
        for uri in [
            "x://docs/public",
            "x://docs/pri",
            "x://docs/n%E4he",
            "x://docs/a%2fbc",
            "%",
        ] {
            assert!(filter.admits(uri), "{uri}");
        }
    }

    #[test]
    fn positive_pattern_matches_the_uri_as_it_is_written() {
        let filter = filter(&["x://docs/my%20*"]);
        assert!(filter.admits("x://docs/my%20file"));
        assert!(!filter.admits("x://docs/my file") && !filter.admits("X://docs/my%20file"));
        assert!(!UriFilter::default().admits("x://a"));
    }

    #[test]
    fn encoded_character_of_a_pattern_matches_itself_alone() {
        let filter = filter(&["*", "!x://a%2A", "!x://b%5B%5Dc", "!x://d[Z-_]"]);
        for (uri, is_admitted) in [
            ("x://a%2A", false),
            ("x://a*", false),
            ("x://abc", true),
            ("x://b[]c", false),
            ("x://bc", true),
            ("x://d_", false),
        ] {
            assert_eq!(filter.admits(uri), is_admitted, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn excluded_uri_is_excluded_however_it_is_encoded(
            uri in "x://[a-zA-Z/%*?\\[\\]{}é]{1,8}",
            encoded in proptest::collection::vec(any::<bool>(), 64),
        ) {
            let filter = filter(&["*", &format!("!{}", literal_pattern(&uri))]);
            let spelled: String = uri.bytes().zip(encoded).map(|(byte, is_encoded)| {
                match is_encoded || !byte.is_ascii() {
                    true => format!("%{byte:02x}"),
                    false => char::from(byte).to_string(),
                }
            }).collect();
            prop_assert!(!filter.admits(&uri), "{uri}");
            prop_assert!(!filter.admits(&spelled), "{spelled}");
        }
    }
}
