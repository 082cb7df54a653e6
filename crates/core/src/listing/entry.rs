//! An entry as listings show it: a value that layers may change, and its JSON.

use std::borrow::Cow;
use std::sync::Arc;

use broker_drift::Class;
use broker_model::item::ItemKind;
use serde_json::Value;

use crate::sources::reason::Reason;
use crate::view::Withdrawal;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryType {
    /// A node, for navigation.
    Node,
    /// A tool, prompt, template or resource.
    Item(ItemKind),
}

impl EntryType {
    /// Returns the name in replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Item(kind) => kind.as_str(),
        }
    }
}

/// An entry with the entries below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// Its path.
    pub path: &'static str,
    /// Its kind.
    pub kind: EntryType,
    /// Its summary as plain text.
    pub summary: Cow<'static, str>,
    /// The reason why its calls are refused, if they are.
    pub withdrawn: Option<WithdrawalNote>,
    /// The entries directly below a node; `None` below the depth of the listing, and for items.
    pub children: Option<Vec<Self>>,
}

/// The reason why an item is withdrawn, without text of a live server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawalNote(pub(super) Arc<Withdrawal>);

impl WithdrawalNote {
    /// Makes the note of a layer that refuses the calls of an item. `since` is a time as in RFC 3339.
    pub fn new(class: Class, message: &str, since: String) -> Self {
        let reason = Reason::own(message);
        Self(Arc::new(Withdrawal::new(
            class,
            Vec::new(),
            reason,
            since,
            None,
        )))
    }

    /// Returns the reason as one sentence.
    pub fn message(&self) -> &str {
        &self.0.reason.public
    }
}

impl ListedEntry {
    /// Whether it is a node.
    pub const fn is_node(&self) -> bool {
        match self.kind {
            EntryType::Node => true,
            EntryType::Item(_) => false,
        }
    }

    /// Appends the entry and everything below it as one JSON object:
    /// `{"path","type","summary","withdrawn"?,"children"?}`.
    pub fn push_json(&self, out: &mut String) {
        self.push_with("", out);
    }

    /// Acts as [`Self::push_json`], with more members before `children`: each begins with a comma.
    pub(super) fn push_with(&self, members: &str, out: &mut String) {
        self.push_open_json(out);
        out.push_str(members);
        self.push_children(out);
        out.push('}');
    }

    /// Appends the JSON of the entry without its children and the closing brace.
    pub fn push_open_json(&self, out: &mut String) {
        // A path needs no escapes.
        out.push_str("{\"path\":\"");
        out.push_str(self.path);
        out.push_str("\",\"type\":\"");
        out.push_str(self.kind.as_str());
        out.push_str("\",\"summary\":");
        out.push_str(&Value::from(&*self.summary).to_string());
        if let Some(WithdrawalNote(withdrawal)) = &self.withdrawn {
            out.push(',');
            out.push_str(&withdrawal.member);
        }
    }

    /// Appends the member `children`, if it has any.
    fn push_children(&self, out: &mut String) {
        let Some(children) = &self.children else {
            return;
        };
        out.push_str(",\"children\":[");
        for (index, child) in children.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            child.push_json(out);
        }
        out.push(']');
    }
}
