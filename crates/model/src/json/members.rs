//! Walks the members of an object or the elements of an array in a JSON text: names are decoded, values
//! are not parsed.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Passes every member of the object `json` to `each`, in order and with duplicates, without collecting
/// them. Fails if the text is not one JSON object; members before the error were already passed.
pub fn each_member<'a>(
    json: &'a [u8],
    each: impl FnMut(Cow<'a, str>, &'a RawValue),
) -> serde_json::Result<()> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.deserialize_map(MembersVisitor(each))?;
    reader.end()
}

/// Passes every element of the array `json` to `each`, in order, until `each` fails, without collecting
/// them. The outer error means that the text is not one JSON array.
pub fn each_element<'a, E>(
    json: &'a [u8],
    mut each: impl FnMut(&'a RawValue) -> Result<(), E>,
) -> serde_json::Result<Result<(), E>> {
    let mut failed = None;
    let walk = |element| match each(element) {
        Ok(()) => true,
        Err(error) => {
            failed = Some(error);
            false
        }
    };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = reader
        .deserialize_seq(ElementsVisitor(walk))
        .and_then(|()| reader.end());
    match failed {
        Some(error) => Ok(Err(error)),
        None => read.map(Ok),
    }
}

struct ElementsVisitor<F>(F);

impl<'de, F: FnMut(&'de RawValue) -> bool> Visitor<'de> for ElementsVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            if !(self.0)(element) {
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
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

/// A decoded name, borrowed if it has no escapes.
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
    fn member_names_are_decoded_and_repeated_names_reported() {
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

    #[test]
    fn elements_are_read_in_order_until_one_is_refused() {
        let read = |text: &str| {
            let mut found = Vec::new();
            let outcome = each_element(text.as_bytes(), |element| {
                found.push(element.get().to_owned());
                if element.get() == "7" {
                    Err("seven")
                } else {
                    Ok(())
                }
            });
            (outcome.map_err(|_| ()), found.join(" "))
        };
        assert_eq!(read("[1, {}]"), (Ok(Ok(())), "1 {}".to_owned()));
        assert_eq!(read("[1,7,x"), (Ok(Err("seven")), "1 7".to_owned()));
        assert_eq!(read("[1,x]").0, Err(()));
        assert_eq!(read("{}").0, Err(()));
    }
}
