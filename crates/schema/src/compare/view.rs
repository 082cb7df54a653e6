//! The view of a schema: as written, or as callers and servers use it.

use super::node::Node;

/// The compared schema of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Arguments: callers write them under the old schema, and the new one must accept them.
    Input,
    /// Results: the server writes them under the new schema, and the old one must accept them.
    Output,
}

impl Side {
    /// The prefix of the rules of this side: `input` or `output`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// The schema as written.
    Strict,
    /// Callers send declared members to an object that declares any, servers leave out members that they no longer
    /// declare, and integers are those that every JSON reader represents exactly.
    Practical,
    /// As practical, but a member that the other side no longer declares may go to an open object.
    /// Distinguishes a removed member from every other loss.
    Lenient,
}

impl View {
    /// Whether the writer may add members that its open object does not declare. An object without declarations
    /// may have any member, but a tool without arguments is called without any.
    pub(super) fn writes_undeclared(self, writer: &Node<'_>) -> bool {
        let map = writer.says_additional && !writer.additional.is_anything();
        let free = writer.properties.is_empty()
            && (!writer.arguments
                || writer.says_additional
                || writer.origin("properties").is_none());
        self == Self::Strict
            || map
            || free
            || writer
                .required
                .iter()
                .any(|name| !writer.properties.contains_key(name))
    }

    pub(super) fn safe_integers(self) -> bool {
        self != Self::Strict
    }
}

/// Whether a node declares members or restricts other members of an object.
pub(super) fn speaks_of_members(node: &Node<'_>) -> bool {
    !node.properties.is_empty() || node.says_additional
}
