//! The vendors whose model APIs limit the tools of a request. `docs/vendor-limits.md` has the source of each limit.

use std::borrow::Cow;

use crate::flat_name;

/// Maximum length of the name of a tool; it is the same for all three vendors.
pub const MAX_TOOL_NAME_CHARS: usize = 64;
/// A vendor of models. Its limits apply to a tool list only if the operator or the client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelVendor {
    /// OpenAI.
    OpenAi,
    /// Google Gemini.
    Gemini,
    /// Anthropic.
    Anthropic,
}

impl ModelVendor {
    /// All vendors.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Gemini, Self::Anthropic];

    /// Returns the name in options, routes and configs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
        }
    }

    /// Returns the vendor with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }

    /// Returns the maximum number of tools in a request; `None` if the vendor has no limit.
    pub const fn max_tools(self) -> Option<usize> {
        match self {
            Self::OpenAi => Some(128),
            Self::Gemini => Some(512),
            Self::Anthropic => None,
        }
    }

    /// Returns the members of JSON Schema that the root of a schema of arguments may not have.
    pub const fn refused_at_root(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["allOf", "anyOf", "const", "enum", "not", "oneOf"],
            Self::Anthropic => &["allOf", "anyOf", "oneOf"],
            Self::Gemini => &[],
        }
    }

    /// Whether the root of a schema of arguments must have `properties`.
    pub const fn needs_properties(self) -> bool {
        match self {
            Self::OpenAi => true,
            Self::Gemini | Self::Anthropic => false,
        }
    }

    /// Whether the root of a schema of arguments may have a property of this name.
    pub fn allows_property(self, name: &str) -> bool {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        match self {
            Self::Anthropic => (1..=64).contains(&name.len()) && name.bytes().all(is_allowed),
            Self::OpenAi | Self::Gemini => true,
        }
    }

    /// Returns the name of a tool for the vendor. A flat name that the vendor refuses is changed and ends in a hash of
    /// the flat name.
    pub fn tool_name(self, flat: &str) -> Cow<'_, str> {
        let first = flat.bytes().next();
        let begins_wrong = match self {
            Self::Gemini => !first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_'),
            Self::OpenAi | Self::Anthropic => false,
        };
        if !begins_wrong && flat.len() <= MAX_TOOL_NAME_CHARS {
            return Cow::Borrowed(flat);
        }
        let begin = if begins_wrong { "_" } else { "" };
        let changed = format!("{begin}{flat}");
        Cow::Owned(flat_name::hashed(&changed, MAX_TOOL_NAME_CHARS, flat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_changed_only_where_the_vendor_refuses_them() {
        let long = "a".repeat(65);
        for vendor in ModelVendor::ALL {
            assert_eq!(ModelVendor::from_name(vendor.name()), Some(vendor));
            assert!(matches!(vendor.tool_name("a-1"), Cow::Borrowed("a-1")));
            assert!(matches!(vendor.tool_name(&long[..64]), Cow::Borrowed(_)));
            let short = vendor.tool_name(&long);
            assert_eq!(short.len(), 64, "{short}");
            assert!(short.starts_with(&long[..55]), "{short}");
            let other = vendor.tool_name(&format!("{long}b")).into_owned();
            assert_ne!(short, other);
        }
        assert_eq!(ModelVendor::OpenAi.tool_name("1-a"), "1-a");
        // printf '1-a' | sha256sum
        assert_eq!(ModelVendor::Gemini.tool_name("1-a"), "_1-a-c7001c0a");
        assert_eq!(ModelVendor::Gemini.tool_name("_1-a"), "_1-a");
        assert!(ModelVendor::Gemini.tool_name("-a").starts_with("_-a-"));
    }

    #[test]
    fn property_names_are_limited_by_one_vendor() {
        let anthropic = ModelVendor::Anthropic;
        for name in ["a", "a.b-c_1", &"x".repeat(64)] {
            assert!(anthropic.allows_property(name), "{name}");
        }
        for name in ["", "filter[id]", "a b", "é", &"x".repeat(65)] {
            assert!(!anthropic.allows_property(name), "{name}");
            assert!(ModelVendor::OpenAi.allows_property(name), "{name}");
        }
    }
}
