//! URI templates of servers (RFC 6570): their variables, the URI for some values, and whether a URI is one of a template.

use iri_string::template::UriTemplateStr;
use serde_json::{Map, Value, json};

use crate::item::object_schema;
use crate::uri_text::{MAX_URI_BYTES, has_dot_segment};

/// Maximum number of expressions of a template.
const MAX_EXPRESSIONS: usize = 16;

/// A checked template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    variables: Vec<String>,
    parts: Vec<Part>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// An expression with its braces.
    Expression(String),
}

impl Part {
    /// Returns the operator of an expression; a space without one.
    fn operator(&self) -> char {
        let first = match self {
            Self::Literal(_) => None,
            Self::Expression(text) => text.chars().nth(1),
        };
        first.filter(|c| "+#./;?&".contains(*c)).unwrap_or(' ')
    }

    /// Whether the values of an expression may contain `/`, `?` and `#`, or the operator adds one of them.
    fn is_open(&self) -> bool {
        "+#/;?&".contains(self.operator())
    }

    /// Adds the text for these values, as RFC 6570 section 3.2 says for strings. The library that checks templates panics
    /// when it expands some values outside ASCII.
    fn expand_into(&self, uri: &mut String, values: &Map<String, Value>) {
        let text = match self {
            Self::Literal(text) => return uri.push_str(&encoded(text, true)),
            Self::Expression(text) => text.trim_start_matches('{').trim_end_matches('}'),
        };
        let operator = self.operator();
        let names = text.strip_prefix(operator).unwrap_or(text);
        let (first, separator) = match operator {
            ' ' | '+' => ("", ","),
            '#' => ("#", ","),
            '.' => (".", "."),
            '/' => ("/", "/"),
            ';' => (";", ";"),
            '?' => ("?", "&"),
            _ => ("&", "&"),
        };
        let mut before = first;
        for variable in names.split(',') {
            let (name, length) = match variable.split_once(':') {
                Some((name, length)) => (name, length.parse().unwrap_or(usize::MAX)),
                None => (variable.trim_end_matches('*'), usize::MAX),
            };
            let Some(value) = values.get(name).and_then(Value::as_str) else {
                continue;
            };
            // A name may occur often; the caller refuses the length.
            if uri.len() > MAX_URI_BYTES {
                return;
            }
            let value: String = value.chars().take(length).collect();
            uri.push_str(std::mem::replace(&mut before, separator));
            if matches!(operator, ';' | '?' | '&') {
                uri.push_str(name);
                if !value.is_empty() || operator != ';' {
                    uri.push('=');
                }
            }
            uri.push_str(&encoded(&value, matches!(operator, '+' | '#')));
        }
    }
}

/// Why a template cannot be used, or has no URI for some values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It does not follow RFC 6570.
    #[error("it is not a URI template of RFC 6570")]
    Syntax,
    /// It is too long.
    #[error("it has more than {MAX_URI_BYTES} bytes or {MAX_EXPRESSIONS} expressions")]
    Size,
    /// The URI for the values is too long.
    #[error("the URI for these values has more than {MAX_URI_BYTES} bytes")]
    UriSize,
    /// The URI for the values is not one of the template: a value changes its structure.
    #[error("the URI for these values leaves the template")]
    Leaves,
}

impl UriTemplate {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_URI_BYTES || text.matches('{').count() > MAX_EXPRESSIONS {
            return Err(TemplateError::Size);
        }
        let ascii = ascii(text);
        let template = UriTemplateStr::new(&ascii).map_err(|_| TemplateError::Syntax)?;
        let mut variables: Vec<String> = Vec::new();
        for variable in template.variables() {
            if !variables.iter().any(|known| known == variable.as_str()) {
                variables.push(variable.as_str().to_owned());
            }
        }
        Ok(Self {
            text: text.to_owned(),
            variables,
            parts: parts(text),
        })
    }

    /// The template as the server wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of its variables, each once.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The schema of its arguments: a string for each variable.
    pub fn schema(&self) -> Value {
        let properties = self.variables.iter();
        let properties: Map<_, _> = properties
            .map(|name| (name.clone(), json!({ "type": "string" })))
            .collect();
        let required = self.variables.iter().map(|name| json!(name)).collect();
        object_schema(properties, required)
    }

    /// The URI for the values of the variables, percent-encoded as the template says.
    pub fn expand(&self, values: &Map<String, Value>) -> Result<String, TemplateError> {
        let given = |name: &String| values.get(name).and_then(Value::as_str);
        let mut lengths = self.variables.iter().filter_map(given).map(str::len);
        if lengths.any(|length| length > MAX_URI_BYTES) {
            return Err(TemplateError::UriSize);
        }
        let mut uri = String::new();
        for part in &self.parts {
            part.expand_into(&mut uri, values);
            if uri.len() > MAX_URI_BYTES {
                return Err(TemplateError::UriSize);
            }
        }
        match self.covers(&uri) {
            true => Ok(uri),
            false => Err(TemplateError::Leaves),
        }
    }

    /// Whether a URI is one that the template can have. Dot segments are refused, since servers may resolve them.
    pub fn covers(&self, uri: &str) -> bool {
        uri.len() <= MAX_URI_BYTES && !has_dot_segment(uri) && self.matches(uri)
    }

    /// Whether a spelling of a URI, percent-decoded or not, is one that the template can have.
    pub(crate) fn matches_spelling(&self, spelling: &str) -> bool {
        self.matches(&encoded(spelling, true))
    }

    /// Compares in steps of the product of both lengths at most.
    fn matches(&self, uri: &str) -> bool {
        let bytes = uri.as_bytes();
        let mut reached = vec![false; bytes.len() + 1];
        reached[0] = true;
        for part in &self.parts {
            let mut next = vec![false; bytes.len() + 1];
            match part {
                Part::Literal(text) => {
                    let text = encoded(text, true);
                    for at in (0..=bytes.len()).filter(|at| reached[*at]) {
                        if bytes[at..].starts_with(text.as_bytes()) {
                            next[at + text.len()] = true;
                        }
                    }
                }
                Part::Expression(_) => {
                    let (is_open, mut is_running) = (part.is_open(), false);
                    for at in 0..=bytes.len() {
                        is_running |= reached[at];
                        next[at] = is_running;
                        let is_delimiter = bytes
                            .get(at)
                            .is_none_or(|byte| matches!(byte, b'/' | b'?' | b'#'));
                        if is_delimiter && !is_open {
                            is_running = false;
                        }
                    }
                }
            }
            reached = next;
        }
        reached[bytes.len()]
    }

    /// Whether another template may have a URI in common. It may say so of templates that differ only in literals
    /// between two expressions.
    pub fn may_overlap(&self, other: &Self) -> bool {
        let (first, second) = (self.ends(), other.ends());
        let either =
            |a: &str, b: &str, begins: fn(&str, &str) -> bool| begins(a, b) || begins(b, a);
        either(first.0, second.0, |a, b| a.starts_with(b))
            && either(first.1, second.1, |a, b| a.ends_with(b))
    }

    /// The literals before the first and after the last expression.
    fn ends(&self) -> (&str, &str) {
        let literal = |part: Option<&'_ Part>| match part {
            Some(Part::Literal(text)) => text.as_str().len(),
            _ => 0,
        };
        let (from, to) = (literal(self.parts.first()), literal(self.parts.last()));
        (&self.text[..from], &self.text[self.text.len() - to..])
    }
}

/// Percent-encodes the characters that a URI cannot have as data. If `keeps_reserved`, reserved characters and
/// percent-encoded parts stay (RFC 3986, section 2.2).
fn encoded(text: &str, keeps_reserved: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let digits = bytes.get(at + 1..at + 3).unwrap_or_default();
        let is_encoded =
            *byte == b'%' && digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let is_reserved = b":/?#[]@!$&'()*+,;=".contains(byte);
        if is_unreserved || (keeps_reserved && (is_reserved || is_encoded)) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Percent-encodes each character outside ASCII in a template: the library refuses them.
fn ascii(text: &str) -> String {
    let parts = text.chars().map(|c| match c.is_ascii() {
        true => c.to_string(),
        false => encoded(c.encode_utf8(&mut [0; 4]), true),
    });
    parts.collect()
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once('{') {
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        let (expression, after) = after.split_once('}').unwrap_or((after, ""));
        parts.push(Part::Expression(format!("{{{expression}}}")));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use iri_string::spec::UriSpec;
    use iri_string::template::simple_context::SimpleContext;
    use proptest::prelude::*;

    use super::*;

    fn template(text: &str) -> UriTemplate {
        UriTemplate::parse(text).expect("a template")
    }

    fn expand(text: &str, values: &Value) -> Result<String, TemplateError> {
        template(text).expand(values.as_object().expect("an object"))
    }

    #[test]
    fn values_are_percent_encoded() {
        assert_eq!(
            expand("test://{id}/data", &json!({"id": "a b/c"})),
            Ok("test://a%20b%2Fc/data".to_owned())
        );
        assert_eq!(
            expand("x://h{/path}", &json!({"path": "a/b"})),
            Ok("x://h/a%2Fb".to_owned())
        );
        assert_eq!(
            expand("x://h{?q,n}", &json!({"q": "1&2", "n": "3"})),
            Ok("x://h?q=1%262&n=3".to_owned())
        );
        for (template, uri) in [
            ("x://{+a}", "x://%C3%A9/%25/%20"),
            ("x://é/{a}", "x://%C3%A9/%C3%A9%2F%25%2F%20"),
            ("x://{a:2}", "x://%C3%A9%2F"),
            ("x://{+a:2}", "x://%C3%A9/"),
            (
                "x://h{;a,b}{.a*}",
                "x://h;a=%C3%A9%2F%25%2F%20;b.%C3%A9%2F%25%2F%20",
            ),
            ("x://h{?b}{&c}{#a}", "x://h?b=#%C3%A9/%25/%20"),
        ] {
            assert_eq!(
                expand(template, &json!({"a": "é/%/ ", "b": ""})),
                Ok(uri.to_owned())
            );
        }
    }

    #[test]
    fn uri_that_leaves_its_template_is_refused() {
        assert_eq!(
            expand("file:///docs/{+path}", &json!({"path": "../etc/passwd"})),
            Err(TemplateError::Leaves)
        );
        assert_eq!(
            expand("file:///docs/{name}", &json!({"name": ".."})),
            Err(TemplateError::Leaves)
        );
        for wrong in ["{", "x://{a b}", "x://{}"] {
            assert_eq!(
                UriTemplate::parse(wrong),
                Err(TemplateError::Syntax),
                "{wrong}"
            );
        }
        let long = "a".repeat(MAX_URI_BYTES);
        assert_eq!(
            expand("x://{a}", &json!({"a": long})),
            Err(TemplateError::UriSize)
        );
    }

    #[test]
    fn template_covers_its_uris_and_no_others() {
        let data = template("test://template/{id}/data");
        assert!(data.covers("test://template/1/data") && data.covers("test://template//data"));
        for other in [
            "test://template/1/2/data",
            "test://template/1/data/x",
            "test://other/1/data",
            "test://template/1/data?x",
        ] {
            assert!(!data.covers(other), "{other}");
        }
        let files = template("file:///docs/{+path}");
        assert!(files.covers("file:///docs/a/b.txt"));
        for other in [
            "file:///docs/../x",
            "file:///docs/%2e%2E/x",
            "file:///docs/%252e%25252E/x",
            "file:///docs/a%5c..%5Cx",
            "file:///docs/a/..",
            "file:///etc/x",
        ] {
            assert!(!files.covers(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn uri_of_any_values_begins_with_the_literal_and_has_no_dot_segment(
            operator in "[+#./;?&]?",
            value in "([a-z./%\\\\ ]|\\.\\.|%2e|%2F|\u{202e}|é){0,12}",
        ) {
            let template = template(&format!("x://docs/{{{operator}a}}/é/end"));
            let values = json!({ "a": value });
            if let Ok(uri) = template.expand(values.as_object().expect("an object")) {
                prop_assert!(uri.starts_with("x://docs/") && uri.ends_with("/%C3%A9/end"));
                prop_assert!(uri.is_ascii() && !has_dot_segment(&uri) && template.covers(&uri));
                prop_assert!(!uri.split('/').any(|segment| segment == ".."));
            }
        }
    }

    proptest! {
        #[test]
        fn values_of_ascii_are_expanded_as_by_the_library(
            operator in "[+#./;?&]?",
            value in "[ -~]{0,12}",
        ) {
            let text = format!("x://h{{{operator}a,b,c*}}");
            let values = json!({ "a": value, "b": "" });
            let mut context = SimpleContext::new();
            context.insert("a", value.as_str());
            context.insert("b", "");
            let library = UriTemplateStr::new(&text).expect("a template");
            let library = library.expand::<UriSpec, _>(&context).expect("it expands").to_string();
            let mut own = String::new();
            for part in &template(&text).parts {
                part.expand_into(&mut own, values.as_object().expect("an object"));
            }
            prop_assert_eq!(own, library);
        }
    }

    #[test]
    fn templates_that_may_have_a_common_uri_overlap() {
        assert!(template("x://a/{id}").may_overlap(&template("x://{rest}")));
        assert!(!template("x://a/{id}").may_overlap(&template("x://b/{id}")));
        assert!(!template("x://a/{id}/y").may_overlap(&template("x://a/{id}/z")));
    }
}
