//! The members of one JSON object, in their order and unparsed: values that are only forwarded are not
//! parsed.

use std::borrow::Cow;
use std::collections::HashSet;

use broker_model::json::each_member;
use memchr::memchr;

use crate::scan::after_value;

/// The maximum number of names that are compared with each other; more are put into a set.
const MAX_COMPARED: usize = 8;

/// Names and raw values.
#[derive(Debug, Default)]
pub struct JsonMembers<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> JsonMembers<'a> {
    /// Reads `text`. It must be one object.
    pub fn parse(text: &'a (impl AsRef<[u8]> + ?Sized)) -> serde_json::Result<Self> {
        let mut members = Vec::new();
        each_member(text.as_ref(), |name, value| {
            members.push((name, value.get()))
        })?;
        Ok(Self(members))
    }

    /// Reads `text`, valid JSON: strings are skipped and the text is not checked again. For long texts, this costs a
    /// fraction of [`Self::parse`]. `None` if it is not one object.
    pub fn from_valid(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        let mut rest = text.trim_ascii().strip_prefix('{')?.trim_ascii_start();
        while !rest.starts_with('}') {
            let (name, after) = rest.split_at_checked(after_value(rest.as_bytes()))?;
            let name = valid_string(name)?;
            let value = after
                .trim_ascii_start()
                .strip_prefix(':')?
                .trim_ascii_start();
            let (value, after) = value.split_at_checked(after_value(value.as_bytes()))?;
            members.push((name, value));
            let after = after.trim_ascii_start();
            rest = match after.strip_prefix(',') {
                Some(next) => next.trim_ascii_start(),
                None => after.starts_with('}').then_some(after)?,
            };
        }
        (rest == "}").then_some(Self(members))
    }

    /// Returns the value of the last member of this name, as JSON.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| *value)
    }

    /// Returns the value of the last member of this name; `null` counts as absent.
    pub fn given(&self, name: &str) -> Option<&'a str> {
        self.get(name).filter(|value| *value != "null")
    }

    /// Returns the first name that occurs twice.
    pub fn first_duplicate(&self) -> Option<&str> {
        let mut names = self.0.iter().map(|(name, _)| name.as_ref());
        if self.0.len() <= MAX_COMPARED {
            let is_earlier =
                |at: usize, name: &str| self.0[..at].iter().any(|(old, _)| old == name);
            let mut names = names.enumerate();
            return names.find_map(|(at, name)| is_earlier(at, name).then_some(name));
        }
        let mut known = HashSet::with_capacity(self.0.len());
        names.find(|name| !known.insert(*name))
    }

    /// Returns all members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// Returns the number of members.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the object is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the text of a valid JSON string; borrowed if it has no escapes. `None` for another value, or if an escape is
/// not a character.
pub fn valid_string(json: &str) -> Option<Cow<'_, str>> {
    match json.strip_prefix('"')?.strip_suffix('"')? {
        plain if memchr(b'\\', plain.as_bytes()).is_none() => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_bytes() {
        let members =
            JsonMembers::parse(" {\"b\" : 1.00, \"\\u0061\": {\"x\": [ ]}, \"n\":null}").unwrap();
        let all: Vec<_> = members.iter().collect();
        assert_eq!(all, [("b", "1.00"), ("a", "{\"x\": [ ]}"), ("n", "null")]);
        assert_eq!((members.get("n"), members.given("n")), (Some("null"), None));
        assert_eq!(members.first_duplicate(), None);
        assert_eq!(
            JsonMembers::parse("{\"a\":1,\"a\":2}")
                .unwrap()
                .first_duplicate(),
            Some("a")
        );
        assert!(JsonMembers::parse("[]").is_err());
    }

    #[test]
    fn first_name_that_occurs_twice_is_found_among_few_and_many() {
        for count in [3, MAX_COMPARED, MAX_COMPARED + 1, 64] {
            let names = |last: &str| {
                let names = (2..count).map(|number| format!("\"n{number}\":0,"));
                format!("{{\"a\":1,{}\"{last}\":2}}", names.collect::<String>())
            };
            let duplicate = |text: &str| {
                let members = JsonMembers::from_valid(text).unwrap();
                members.first_duplicate().map(str::to_owned)
            };
            assert_eq!(duplicate(&names("b")), None, "{count}");
            let found = duplicate(&names("\\u0061"));
            assert_eq!(found.as_deref(), Some("a"), "{count}");
        }
    }

    #[test]
    fn string_is_borrowed_if_it_has_no_escapes() {
        assert!(matches!(
            valid_string(r#""a b""#),
            Some(Cow::Borrowed("a b"))
        ));
        assert_eq!(valid_string(r#""\u00e9\"""#).as_deref(), Some("é\""));
        for other in ["1", "null", "{}", r#""\ud800""#] {
            assert_eq!(valid_string(other), None, "{other}");
        }
    }

    #[test]
    fn members_of_a_valid_text_are_those_of_the_parser() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":1}"#,
            r#"{"a" : "x\"},{\\" , "b":[{"c":"]}"},[]],"\u0061":null ,"d":-1.5e3, "e":true}"#,
            r#"{"":"","é":{"é":"\u00e9"},"n":[1,2, 3 ]}"#,
        ] {
            let fast = JsonMembers::from_valid(text).unwrap();
            let parsed = JsonMembers::parse(text).unwrap();
            assert!(fast.iter().eq(parsed.iter()), "{text}: {fast:?}");
        }
        for other in [
            "",
            "[]",
            "1",
            "{",
            r#"{"a":1"#,
            r#"{"a":1}}"#,
            r#"{"a":1} x"#,
        ] {
            assert!(JsonMembers::from_valid(other).is_none(), "{other}");
        }
    }
}
