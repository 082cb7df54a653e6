//! The search for a value that the writer's schema takes and the reader's does not. What is found
//! was validated against both, each under its own dialect.

use serde_json::Value;

use super::candidates::Candidates;
use super::node::Conjunction;
use super::view::{Side, View};
use crate::schema::{Validator, compile};

/// Values that are tried.
const MAX_TRIED: usize = 6000;
/// Bytes of values that are tried: a validator is linear at best.
const MAX_BYTES: usize = 16 << 20;

/// Both schemas, ready to try values on.
#[derive(Debug)]
pub(super) struct Search<'s, 'a> {
    writer: &'s Conjunction<'a>,
    reader: &'s Conjunction<'a>,
    takes: [Validator; 2],
    comparable: bool,
    side: Side,
}

impl<'s, 'a> Search<'s, 'a> {
    /// The error says which side cannot be compiled.
    pub(super) fn new(
        side: Side,
        writer: &'s Conjunction<'a>,
        reader: &'s Conjunction<'a>,
    ) -> Result<Self, &'static str> {
        let root = |side: &Conjunction<'a>| side.spots[0].document;
        let (one, other) = (root(writer), root(reader));
        let validator = |document: &super::document::Document| {
            compile(document.root()).map_err(|_| "a schema cannot be compiled")
        };
        Ok(Self {
            takes: [validator(one)?, validator(other)?],
            writer,
            reader,
            side,
            comparable: super::numbers_mean_the_same(one, other),
        })
    }

    pub(super) const fn numbers_mean_the_same(&self) -> bool {
        self.comparable
    }

    /// The plainest value found.
    pub(super) fn witness(&self, view: View) -> Option<Value> {
        let mut bytes = 0;
        let tried = Candidates::new(self.side, view).of(self.writer, Some(self.reader), 0);
        tried
            .into_iter()
            .take(MAX_TRIED)
            .take_while(|value| {
                bytes += value.to_string().len();
                bytes <= MAX_BYTES
            })
            .find(|value| {
                value.is_object() && self.takes[0].is_valid(value) && !self.takes[1].is_valid(value)
            })
    }
}
