//! The classes of differences that fail a check.

use crate::class::Class;

/// The classes that fail a check: the mildest one and all worse ones, since a worse class must not be hidden
/// by a milder one; and optionally new tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailOn {
    least: Class,
    added: bool,
    pub(crate) package: bool,
}

impl Default for FailOn {
    fn default() -> Self {
        Self {
            least: Class::Equivalent,
            added: false,
            package: false,
        }
    }
}

impl FailOn {
    /// From named classes; `same` and `unchecked` have no effect. Without a class of drift, as with `added` alone, all of
    /// them fail: new tools are the mildest change.
    pub fn new(classes: &[Class]) -> Self {
        let named = classes.iter().copied();
        let named = named.filter(|class| class.refuses() && class.is_drift());
        Self {
            least: named.min().unwrap_or(Self::default().least),
            added: classes.contains(&Class::Added),
            package: false,
        }
    }

    /// The same, and whether every finding on the package of a source fails too: another, an unseen or an unrecorded one.
    #[must_use]
    pub fn with_packages(self, package: bool) -> Self {
        Self { package, ..self }
    }

    /// Whether this class fails.
    pub fn counts(self, class: Class) -> bool {
        match class {
            Class::Added => self.added,
            Class::Same => false,
            Class::Equivalent
            | Class::Text
            | Class::Compatible
            | Class::Unknown
            | Class::Breaking
            | Class::Security
            | Class::Gone
            | Class::Unchecked => class >= self.least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_without_a_difference_do_not_narrow_what_fails() {
        for named in [
            &[Class::Unchecked][..],
            &[Class::Same],
            &[Class::Added],
            &[],
        ] {
            let fail_on = FailOn::new(named);
            assert!(fail_on.counts(Class::Equivalent), "{named:?}");
            assert_eq!(fail_on.counts(Class::Added), named == [Class::Added]);
        }
        let fail_on = FailOn::new(&[Class::Unchecked, Class::Breaking]);
        assert!(fail_on.counts(Class::Breaking) && !fail_on.counts(Class::Compatible));
    }
}
