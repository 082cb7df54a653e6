//! Walks the members of one object in a JSON text: names are decoded, values stay unread.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Gives every member of the object `json` to `each`, in order, those of one name each time. Collects
/// nothing. Fails where the text is not one JSON object; what came before the error was given then.
pub fn each_member<'a>(
    json: &'a [u8],
    each: impl FnMut(Cow<'a, str>, &'a RawValue),
) -> serde_json::Result<()> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.deserialize_map(MembersVisitor(each))?;
    reader.end()
}

struct MembersVisitor<F>(F);

impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue)> Visitor<'de> for MembersVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Name<'de>>()? {
            (self.0)(name.0, members.next_value()?);
        }
        Ok(())
    }
}

/// A decoded name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_and_equal_names_come_each_time() {
        let read = |text: &str| {
            let mut found = Vec::new();
            let outcome = each_member(text.as_bytes(), |name, value| {
                found.push((name.into_owned(), value.get().to_owned()));
            });
            outcome.map(|()| found)
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read(r#" {"a\u0062": [1, 2 ],"ab":1.00} "#).unwrap(),
            [pair("ab", "[1, 2 ]"), pair("ab", "1.00")]
        );
        for broken in ["[]", "{} {}", r#"{"a":1"#, r#"{"a":}"#, ""] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }
}
