//! Resolves URI references against a base (RFC 3986, section 5).

/// The parts of a URI reference without its fragment.
struct Parts<'u> {
    scheme: Option<&'u str>,
    authority: Option<&'u str>,
    path: &'u str,
    query: Option<&'u str>,
}

impl<'u> Parts<'u> {
    fn parse(uri: &'u str) -> Self {
        let (rest, query) = match uri.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (uri, None),
        };
        let (scheme, rest) = match rest.split_once(':') {
            Some((scheme, after)) if is_scheme(scheme) => (Some(scheme), after),
            _ => (None, rest),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) => {
                let end = after.find('/').unwrap_or(after.len());
                (Some(&after[..end]), &after[end..])
            }
            None => (None, rest),
        };
        Self {
            scheme,
            authority,
            path,
            query,
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The URI that a reference without a fragment names. Scheme and host are in lower case.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let (base, to) = (Parts::parse(base), Parts::parse(reference));
    let (authority, path, query);
    if to.scheme.is_some() || to.authority.is_some() {
        (authority, path, query) = (to.authority, without_dots(to.path), to.query);
    } else if to.path.is_empty() {
        query = to.query.or(base.query);
        (authority, path) = (base.authority, base.path.to_owned());
    } else if to.path.starts_with('/') {
        (authority, path, query) = (base.authority, without_dots(to.path), to.query);
    } else {
        let folder = match base.path.rfind('/') {
            Some(end) => &base.path[..=end],
            None if base.authority.is_some() => "/",
            None => "",
        };
        let merged = without_dots(&format!("{folder}{}", to.path));
        (authority, path, query) = (base.authority, merged, to.query);
    }
    let mut out = String::new();
    if let Some(scheme) = to.scheme.or(base.scheme) {
        out.push_str(&scheme.to_ascii_lowercase());
        out.push(':');
    }
    if let Some(authority) = authority {
        out.push_str("//");
        out.push_str(&authority.to_ascii_lowercase());
    }
    out.push_str(&path);
    if let Some(query) = query {
        out.push('?');
        out.push_str(query);
    }
    out
}

/// A path without its segments `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." => {}
            // The first segment of an absolute path is empty and stays.
            ".." => {
                if segments.len() > usize::from(path.starts_with('/')) {
                    segments.pop();
                }
            }
            _ => {
                segments.push(part);
                continue;
            }
        }
        if is_last {
            segments.push("");
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_is_resolved_as_rfc_3986_shows() {
        let base = "http://a/b/c/d;p?q";
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("HTTP://A/x", "http://a/x"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{reference}");
        }
        assert_eq!(resolve("", "s.json"), "s.json");
        assert_eq!(resolve("urn:a:b", "c"), "urn:c");
        assert_eq!(resolve("http://a", "s.json"), "http://a/s.json");
    }
}
