//! The filter of a source for URIs. A server may read several spellings of a URI as the same, so that a pattern with `!`
//! excludes all of them; a pattern without `!` matches the URI as it is written.

use percent_encoding::percent_decode_str;

use crate::filter::{FilterError, ToolFilter, literal_pattern};
use crate::look::nfkc;
use crate::uri::{MAX_DECODINGS, UriSpellings, folded_case, with_single_slashes};
use crate::uri_authority::{Split, default_port};

/// A checked `resource_filter`. Without a positive pattern it refuses every resource.
#[derive(Clone, Debug, Default)]
pub struct UriFilter {
    written: ToolFilter,
    /// The patterns with a `!`, for the spellings of a URI.
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
            .flat_map(pattern_forms)
            .map(|glob| format!("!{glob}"))
            .collect();
        let excluded = ToolFilter::compile(&excluded)?;
        Ok(Self { written, excluded })
    }

    /// The filter that admits everything.
    pub fn allow_all() -> Self {
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

    /// Whether a positive pattern matches a URI, and no pattern with `!` matches one of its spellings. With such a pattern,
    /// it admits no URI whose authority parsers read differently.
    pub fn admits(&self, uri: &str) -> bool {
        self.has_positive() && self.written.admits(uri) && !self.excludes(uri, UriSpellings::new)
    }

    /// Whether a positive pattern matches the text of a template, and no pattern with `!` matches one of its spellings.
    /// [`Self::admits`] decides about each URI of the template.
    pub fn admits_template(&self, text: &str) -> bool {
        let spell = UriSpellings::from_known;
        self.has_positive() && self.written.admits(text) && !self.excludes(text, spell)
    }

    fn excludes(&self, uri: &str, spell: fn(&str) -> UriSpellings) -> bool {
        if self.excluded.patterns().is_empty() {
            return false;
        }
        let spellings = spell(uri);
        !spellings
            .all()
            .is_some_and(|all| all.iter().all(|uri| self.excluded.admits(uri)))
    }
}

/// The patterns for the spellings of a URI that stand for one as it is written; the pattern itself if it has no such form.
fn pattern_forms(glob: &str) -> Vec<String> {
    let mut pattern = glob.to_owned();
    for _ in 0..MAX_DECODINGS {
        pattern = decoded_once(&pattern);
    }
    let pattern = folded(&pattern);
    let mut forms = vec![with_single_slashes(&pattern)];
    if let Some(split) = Split::parse(&pattern) {
        if let Some((authority, rest)) = split.authority {
            forms.extend(with_host(&split, authority, rest));
        }
        if !split.after.starts_with(['/', '*', '?', '[', '{', '\\']) {
            forms.push(format!("{}:/{}", split.scheme, split.after));
        }
    }
    for at in 0..forms.len() {
        if let Some(form) = forms[at].strip_suffix('/') {
            forms.push(form.to_owned());
        }
    }
    forms.retain(|form| ToolFilter::compile(&[form]).is_ok());
    if forms.is_empty() {
        forms.push(glob.to_owned());
    }
    forms
}

/// The pattern with the first form of its authority, if that has no wildcard.
fn with_host(split: &Split<'_>, authority: &str, rest: &str) -> Option<String> {
    let address = authority.strip_prefix('[');
    let address = address.and_then(|text| text.split_once(']'));
    let is_address = address.is_some_and(|(text, _)| text.parse::<std::net::Ipv6Addr>().is_ok());
    let literal = match is_address {
        true => authority.to_owned(),
        false => match literal_text(authority) {
            Some(literal) => literal,
            None => {
                let port = format!(":{}", default_port(split.scheme)?);
                let host = authority.strip_suffix(&port)?;
                return Some(with_single_slashes(&format!(
                    "{}:/{host}{rest}",
                    split.scheme
                )));
            }
        },
    };
    let literal = Split {
        scheme: split.scheme,
        after: split.after,
        authority: Some((&literal, rest)),
    };
    let head = literal.heads().into_iter().next()?;
    let rest = match rest.is_empty() {
        true => "/",
        false => rest,
    };
    Some(with_single_slashes(&format!(
        "{}{rest}",
        literal_pattern(&head)
    )))
}

/// The only text that a pattern matches; `None` if it has a wildcard.
fn literal_text(glob: &str) -> Option<String> {
    let mut text = String::with_capacity(glob.len());
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' | '?' | '{' | '}' | ']' => return None,
            '[' => {
                let one = chars.next().filter(|one| *one != '!')?;
                chars.next().filter(|end| *end == ']')?;
                text.push(one);
            }
            '\\' => text.push(chars.next()?),
            c => text.push(c),
        }
    }
    Some(text)
}

/// A pattern as [`folded_case`]. A character whose form NFKC has a meaning in patterns matches that form alone.
fn folded(glob: &str) -> String {
    if glob.is_ascii() {
        return folded_case(glob);
    }
    let has_meaning = |text: &str| text.contains(['*', '?', '[', ']', '{', '}', '\\', ',', '!']);
    let parts = glob.chars().map(|c| match c {
        c if c.is_ascii() => c.to_string(),
        c => {
            let text = c.to_string();
            let normal = nfkc(&text);
            match has_meaning(&normal) {
                true => literal_pattern(&normal),
                false => text.clone(),
            }
        }
    });
    folded_case(&parts.collect::<String>())
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
    use serde_json::Value;

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

    /// The spellings whose readings by Node, Python and Java `uri_spellings/make_table.py` wrote down.
    fn table() -> Vec<(String, String, bool, bool)> {
        let rows: Vec<Value> = serde_json::from_str(include_str!("uri_spellings/table.json"))
            .expect("the table is JSON");
        let text = |row: &Value, name: &str| row[name].as_str().expect("a text").to_owned();
        let rows = rows.iter().map(|row| {
            let is_same = !row["same"].as_array().expect("programs").is_empty();
            let is_other = text(row, "differs").starts_with("another");
            (
                text(row, "excluded"),
                text(row, "spelling"),
                is_same,
                is_other,
            )
        });
        rows.collect()
    }

    #[test]
    fn spelling_that_a_program_reads_as_the_excluded_uri_is_excluded() {
        let rows = table();
        assert!(rows.iter().filter(|(.., is_same, _)| *is_same).count() >= 60);
        for (excluded, spelling, is_same, is_other) in rows {
            let filter = filter(&["*", &format!("!{excluded}")]);
            let admits = filter.admits(&spelling);
            if is_same {
                assert!(!admits, "{spelling} of {excluded}");
            }
            if is_other {
                assert!(admits && !is_same, "{spelling} beside {excluded}");
            }
            // A pattern with the spelling excludes the spelling too, if it has an authority in one form.
            let reverse = format!("!{}", literal_pattern(&spelling));
            if is_same && UriSpellings::new(&spelling).all().is_some() {
                let reverse = self::filter(&["*", &reverse]);
                assert!(!reverse.admits(&spelling), "{spelling}");
            }
        }
    }

    #[test]
    fn pattern_with_an_authority_excludes_its_other_forms() {
        let filter = filter(&[
            "*",
            "!http://*.inner.example:80/*",
            "!http://[[]::1[]]:8080/*",
            "!http://xn--bcher-kva.example",
            "!file:secret*",
            "!ssh://root@h/*",
            "!docs://{files,notes}/private/",
            "!docs://\u{ff0a}/x",
        ]);
        for uri in [
            "http://a.INNER.example/x",
            "http://a.inner.example.:80/x",
            "http://127.0.0.1:8080/x",
            "http://b\u{fc}cher.example/",
            "http://b\u{fc}cher.example:/#f",
            "file:///secret.txt",
            "ssh://%72oot@H./x",
            "docs://files:1/private",
            "docs://x:1/x@y:",
            "docs://x:y/x",
            "docs://*/x",
        ] {
            assert_eq!(filter.admits(uri), uri == "docs://x:1/x@y:", "{uri}");
        }
        for uri in [
            "http://inner.example/x",
            "http://localhost/x",
            "http://b\u{fc}cher.example/a",
            "file:///x/secret.txt",
            "ssh://anna@h/x",
            "docs://any/x",
            "docs://a:b@c:1/x",
        ] {
            assert!(filter.admits(uri), "{uri}");
        }
    }

    #[test]
    fn template_is_not_judged_by_the_authority_of_its_uris() {
        let filter = filter(&["*", "!docs://private/*"]);
        for template in ["docs://{area}/{name}", "{+uri}", "docs://{a}@{b}:{c}/x"] {
            assert!(filter.admits_template(template), "{template}");
        }
        assert!(!filter.admits_template("docs://Private:1/{name}"));
        assert!(!filter.admits("docs://{a}@{b}:{c}/x"));
    }

    #[test]
    fn uri_with_too_many_readings_is_excluded() {
        let filter = filter(&["*", "!docs://private/*"]);
        let many = |times: usize| format!("docs://a/{}", "%253bx/..;%3f".repeat(times));
        assert!(filter.admits(&many(0)) && !filter.admits(&format!("{}%2525252523", many(600))));
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
