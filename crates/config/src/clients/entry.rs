//! The server of a client that is converted, its notes, and the members of an object.

use super::note::{Note, NoteKind};
use super::{Converted, Rules};
use crate::spanned::{Member, Spanned};
use broker_model::json::child_pointer;

/// The conversion of one server.
#[derive(Debug)]
pub(super) struct Entry<'c, 'r> {
    pub(super) rules: Rules<'r>,
    pub(super) name: String,
    /// The offset of the server's name.
    pub(super) at: usize,
    pub(super) pointer: String,
    pub(super) converted: &'c mut Converted,
}

impl<'c, 'r> Entry<'c, 'r> {
    pub(super) fn new(
        server: &Member,
        key: &str,
        rules: Rules<'r>,
        converted: &'c mut Converted,
    ) -> Self {
        Self {
            rules,
            name: server.key.clone(),
            at: server.at,
            pointer: child_pointer(&child_pointer("", key), &server.key),
            converted,
        }
    }

    /// Adds a note about the server, or about a place in it.
    pub(super) fn note(&mut self, at: usize, pointer: Option<String>, kind: NoteKind) {
        self.converted.notes.push(Note {
            at,
            pointer: pointer.unwrap_or_else(|| self.pointer.clone()),
            server: self.name.clone(),
            kind,
        });
    }

    /// Remembers the place in the file of a key that got another name. Both are relative to the server.
    pub(super) fn renamed(&mut self, ours: &str, theirs: &str) {
        let ours = format!("{}/{ours}", self.pointer);
        let theirs = format!("{}/{theirs}", self.pointer);
        self.converted.renamed.push((ours, theirs));
    }

    /// Notes a key that has no equal.
    pub(super) fn not_taken(&mut self, at: usize, key: &str, reason: Option<&'static str>) {
        let pointer = key.split('.').fold(self.pointer.clone(), |pointer, token| {
            child_pointer(&pointer, token)
        });
        let key = key.to_owned();
        self.note(at, Some(pointer), NoteKind::NotTaken { key, reason });
    }
}

/// The index of the last member of this name.
pub(super) fn position(members: &[Member], key: &str) -> Option<usize> {
    members.iter().rposition(|member| member.key == key)
}

/// The value of the last member of this name.
pub(super) fn value<'m>(members: &'m [Member], key: &str) -> Option<&'m Spanned> {
    position(members, key).and_then(|at| Some(&members.get(at)?.value))
}
