//! Writes a JSON object that is the result of a message.

use super::{END_ROOM, HEAD_ROOM, Json, push_string};

/// A JSON object that is being written as the result of a message. There is room around it for the rest of the message,
/// so that the message needs no other memory.
#[derive(Debug)]
pub struct ObjectWriter(Json);

impl ObjectWriter {
    /// Makes a writer of an object of about this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(HEAD_ROOM + bytes + END_ROOM);
        buffer.resize(HEAD_ROOM, b' ');
        buffer.push(b'{');
        Self(Json {
            buffer,
            from: HEAD_ROOM,
        })
    }

    /// Adds a member; `value` is JSON.
    pub fn member(&mut self, name: &str, value: &str) {
        let buffer = &mut self.0.buffer;
        // No value ends with this bracket.
        if buffer.last() != Some(&b'{') {
            buffer.push(b',');
        }
        push_string(buffer, name);
        buffer.push(b':');
        buffer.extend_from_slice(value.as_bytes());
    }

    /// Returns the number of bytes so far.
    pub const fn len(&self) -> usize {
        self.0.buffer.len() - self.0.from
    }

    /// Whether the object has no members so far.
    pub const fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Returns the complete object.
    pub fn end(mut self) -> Json {
        self.0.buffer.push(b'}');
        self.0
    }
}
