//! The members of one JSON object, in their order and unparsed: values that are only forwarded are not
//! parsed.

use std::borrow::Cow;
use std::collections::HashSet;

use broker_model::json::each_member;
use serde_json::value::RawValue;

/// Names and raw values.
#[derive(Debug, Default)]
pub struct JsonMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> JsonMembers<'a> {
    /// Reads `text`, which must be one object.
    pub fn parse(text: &'a (impl AsRef<[u8]> + ?Sized)) -> serde_json::Result<Self> {
        let mut members = Vec::new();
        each_member(text.as_ref(), |name, value| members.push((name, value)))?;
        Ok(Self(members))
    }

    /// The value of the last member of this name, as JSON.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.get())
    }

    /// The value of the last member of this name; `null` counts as absent.
    pub fn given(&self, name: &str) -> Option<&'a str> {
        self.get(name).filter(|value| *value != "null")
    }

    /// The first name that occurs twice.
    pub fn first_duplicate(&self) -> Option<&str> {
        let mut known = HashSet::with_capacity(self.0.len());
        let mut names = self.0.iter().map(|(name, _)| name.as_ref());
        names.find(|name| !known.insert(*name))
    }

    /// All members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.get()))
    }

    /// Whether there are no members.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
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
}
