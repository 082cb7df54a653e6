//! The people who sign audits. Two texts are the same person unless they clearly are not: an e-mail address decides if
//! both have one, else the name.

use std::collections::BTreeSet;

use broker_model::look::nfc;
use broker_model::text::is_invisible;

/// A person, by the forms of name and e-mail address that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    name: String,
    email: Option<String>,
}

impl Person {
    /// Reads a person from `Name <address>`, or from a name alone.
    pub fn parse(text: &str) -> Self {
        let address = text.rsplit_once('<').and_then(|(name, rest)| {
            let (address, _) = rest.split_once('>')?;
            address.contains('@').then_some((name, address))
        });
        match address {
            Some((name, address)) => Self::new(name, address),
            // Git may have an address and no name.
            None if is_address(text.trim()) => Self::new("", text),
            None => Self {
                name: form(text),
                email: None,
            },
        }
    }

    /// The person of a name and an e-mail address.
    pub fn new(name: &str, address: &str) -> Self {
        let address = form(address);
        Self {
            name: form(name),
            email: (!address.is_empty()).then_some(address),
        }
    }

    /// Whether both are the same person.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.email, &other.email) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => self.name == other.name,
        }
    }

    /// Whether both may be the same person: one of name and address is the same.
    pub fn is_like(&self, other: &Self) -> bool {
        let is_named = !self.name.is_empty() && self.name == other.name;
        is_named || (self.email.is_some() && self.email == other.email)
    }
}

fn is_address(text: &str) -> bool {
    text.contains('@') && !text.contains(char::is_whitespace)
}

/// Returns the form for comparing names and addresses: NFC without case, without characters that a reader does not see,
/// and with single blanks.
fn form(text: &str) -> String {
    let seen: String = nfc(text)
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_invisible(*c))
        .collect();
    // Both ways, since some letters have a lower case only by their upper case: `ß` and `ẞ`, `ς` and `σ`.
    let folded = seen.to_uppercase().to_lowercase();
    let words: Vec<_> = folded.split_whitespace().collect();
    nfc(&words.join(" ")).into_owned()
}

/// Returns one text for each different person. A name without an address is another person only if no address has the
/// same name, and a name without visible characters is not a person.
pub fn different<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<&'t str> {
    let all: Vec<_> = texts
        .into_iter()
        .map(|text| (Person::parse(text), text))
        .collect();
    let with_address = all.iter().filter(|(person, _)| person.email.is_some());
    let named: BTreeSet<&str> = with_address.map(|(one, _)| one.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut different = Vec::new();
    for (person, text) in &all {
        let is_new = match &person.email {
            Some(email) => seen.insert((true, email.as_str())),
            None => {
                let name = person.name.as_str();
                !name.is_empty() && !named.contains(name) && seen.insert((false, name))
            }
        };
        if is_new {
            different.push(*text);
        }
    }
    different
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_person_in_every_form() {
        for (one, other) in [
            ("A. Reviewer", " a. reviewer "),
            ("Zoe\u{301}", "ZO\u{c9}"),
            ("Strauß", "STRAUSS"),
            ("A", "A\u{200b}"),
            ("A  B", "A B"),
            ("A <a@example.org>", "B <A@Example.org>"),
            ("A <a@example.org>", "a"),
            ("A <>", "a <>"),
            ("a@example.org", "A <a@example.org>"),
            ("x <y> <a@example.org>", "A <a@example.org>"),
        ] {
            let people = [one, other].map(Person::parse);
            assert!(people[0].is_same(&people[1]), "{one} {other}");
            assert_eq!(different([one, other]).len(), 1, "{one} {other}");
        }
        for (one, other) in [
            ("A", "B"),
            ("A <a@example.org>", "A <b@example.org>"),
            ("A <a@example.org>", "B"),
            ("A", "A <none>"),
        ] {
            let people = [one, other].map(Person::parse);
            assert!(!people[0].is_same(&people[1]), "{one} {other}");
            assert_eq!(different([one, other]).len(), 2, "{one} {other}");
        }
    }

    #[test]
    fn name_without_address_is_not_another_person_than_those_with_one() {
        assert_eq!(
            different(["A", "A <a@x>", "A <b@x>"]),
            ["A <a@x>", "A <b@x>"]
        );
        assert_eq!(different(["B <a@x>", "A", "A <a@x>"]), ["B <a@x>"]);
        assert_eq!(different([]), Vec::<&str>::new());
    }
}
