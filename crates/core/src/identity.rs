//! The caller of a request, as a surface authenticated it. Every operation takes it as a parameter.

use std::cmp::Ordering;
use std::ops::Range;

use crate::catalog::Catalog;

/// A caller: who it is, which groups it belongs to, which rules of admission apply to it, and
/// which part of the tree it sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    subject: Subject,
    groups: Vec<String>,
    class: AdmissionClass,
    subtree: Option<Subtree>,
}

/// A part of the tree: an entry and everything below it, as indices of a catalog's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subtree {
    /// The entry itself.
    pub(crate) root: u32,
    /// The first entry below it,
    first: u32,
    /// and the one after the last.
    end: u32,
}

/// The way in which a caller was authenticated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The caller sent no secret, and the broker has none.
    Anonymous,
    /// The caller sent the broker's secret.
    Secret,
    /// The program that started the broker and uses its standard input and output, or that contains it.
    Local,
}

/// The rules of admission that apply to a caller, one bit for each. Callers of one class see and may
/// call the same entries, so caches are kept for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdmissionClass(u64);

impl AdmissionClass {
    /// The class that every entry of the catalog allows.
    pub const ALL: Self = Self(u64::MAX);

    /// The class to which these rules apply.
    pub const fn new(rules: u64) -> Self {
        Self(rules)
    }

    /// Whether an entry with these allowed rules exists for this class.
    pub(crate) const fn is_allowed(self, allow: u64) -> bool {
        self.0 & allow != 0
    }
}

impl Subtree {
    /// The entry with this index, and everything below it.
    pub(crate) fn of(catalog: &Catalog, root: u32) -> Self {
        let path = catalog.entry(root).path.trim_end_matches('/').as_bytes();
        // In the order of bytes the paths below an entry follow each other, though not always the entry
        // itself: `/a`, `/a-b`, `/a/c`.
        let is_before = |known: &str, separator: u8| {
            let known = known.as_bytes();
            match known.get(..path.len()).unwrap_or(known).cmp(path) {
                Ordering::Equal => known.get(path.len()).is_none_or(|at| *at < separator),
                order => order == Ordering::Less,
            }
        };
        let before = |separator| {
            let entries = catalog.entries;
            entries.partition_point(|entry| is_before(entry.path, separator)) as u32
        };
        Self {
            root,
            first: before(b'/'),
            end: before(b'/' + 1),
        }
    }

    /// Whether an entry is in it.
    pub(crate) fn contains(self, at: u32) -> bool {
        at == self.root || self.below().contains(&at)
    }

    /// The entries below its own.
    pub(crate) const fn below(self) -> Range<u32> {
        self.first..self.end
    }
}

impl Identity {
    /// An identity with its groups and the class that follows from them.
    pub const fn new(subject: Subject, groups: Vec<String>, class: AdmissionClass) -> Self {
        Self {
            subject,
            groups,
            class,
            subtree: None,
        }
    }

    /// A caller that sent no secret to a broker without one.
    pub const fn anonymous() -> Self {
        Self::unrestricted(Subject::Anonymous)
    }

    /// A caller that sent the broker's secret.
    pub const fn secret() -> Self {
        Self::unrestricted(Subject::Secret)
    }

    /// The program that started or contains the broker.
    pub const fn local() -> Self {
        Self::unrestricted(Subject::Local)
    }

    const fn unrestricted(subject: Subject) -> Self {
        Self::new(subject, Vec::new(), AdmissionClass::ALL)
    }

    /// Whether the broker knows more of the caller than its address.
    pub const fn is_authenticated(&self) -> bool {
        !matches!(self.subject, Subject::Anonymous)
    }

    /// The way in which the caller was authenticated.
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The groups that the caller belongs to.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The same identity that sees only this part of the tree.
    pub(crate) fn restricted_to(&self, subtree: Subtree) -> Self {
        Self {
            subtree: Some(subtree),
            ..self.clone()
        }
    }

    /// The part of the tree that the caller is restricted to.
    pub(crate) const fn subtree(&self) -> Option<Subtree> {
        self.subtree
    }

    /// The class that decides what the caller sees and may call.
    pub const fn class(&self) -> AdmissionClass {
        self.class
    }
}
