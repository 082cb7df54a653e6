//! The decision whether a tool of a source is exposed.

use std::fmt;
use std::sync::Arc;

use super::{SensitiveNames, TrustLevel, WordList};
use crate::filter::ToolFilter;
use crate::item::{ItemKind, LIVE};
use crate::uri_filter::UriFilter;

/// The settings for the exposure of a source's tools: its filter, its trust level and the sensitive names.
#[derive(Clone, Debug)]
pub struct Exposure {
    filter: ToolFilter,
    level: TrustLevel,
    sensitive: Arc<SensitiveNames>,
    items: ItemExposure,
}

/// The settings for the exposure of a source's prompts, templates and resources. Without a positive pattern all are
/// hidden.
#[derive(Clone, Debug, Default)]
pub struct ItemExposure {
    /// The resources that are exposed in addition to the resources of its templates.
    pub resources: ResourceMode,
    /// Matches URIs of resources and templates.
    pub resource_filter: UriFilter,
    /// Matches names of prompts.
    pub prompt_filter: ToolFilter,
}

/// The resources of a source that are exposed in addition to the resources of its templates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceMode {
    /// No resource.
    #[default]
    None,
    /// Those that were listed when the lock was made.
    Locked,
    /// Those that the server lists now.
    Live,
}

impl ResourceMode {
    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "locked" => Some(Self::Locked),
            "live" => Some(Self::Live),
            _ => None,
        }
    }

    /// The name in configs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Locked => "locked",
            Self::Live => "live",
        }
    }
}

impl ItemExposure {
    /// Whether the lists of prompts are read.
    pub fn has_prompts(&self) -> bool {
        self.prompt_filter.has_positive()
    }

    /// Whether the list of templates is read.
    pub fn has_templates(&self) -> bool {
        self.resource_filter.has_positive()
    }

    /// Returns the mode: `none` without a positive pattern.
    pub fn resource_mode(&self) -> ResourceMode {
        match self.resource_filter.has_positive() {
            true => self.resources,
            false => ResourceMode::None,
        }
    }

    fn exposes(&self, kind: ItemKind, id: &str) -> bool {
        match kind {
            ItemKind::Tool => false,
            ItemKind::Prompt => self.has_prompts() && self.prompt_filter.admits(id),
            ItemKind::Template => self.resource_filter.admits_template(id),
            ItemKind::Resource if id == LIVE => self.resource_mode() == ResourceMode::Live,
            ItemKind::Resource => {
                self.resources != ResourceMode::None && self.resource_filter.admits(id)
            }
        }
    }
}

/// Why a tool is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenBy<'a> {
    /// The filter does not admit it.
    Filter,
    /// It is not a tool, and the filter of its kind does not admit it.
    ItemFilter,
    /// The level is `verified`, and the filter has no positive pattern.
    NoList,
    /// The level is `untrusted`, and the name has this word or pair of words.
    Word(&'a str),
}

impl Exposure {
    /// The exposure by a filter under a trust level.
    pub fn new(filter: ToolFilter, level: TrustLevel, sensitive: Arc<SensitiveNames>) -> Self {
        Self {
            filter,
            level,
            sensitive,
            items: ItemExposure::default(),
        }
    }

    /// The same exposure of tools, with prompts, templates and resources.
    #[must_use]
    pub fn with_items(self, items: ItemExposure) -> Self {
        Self { items, ..self }
    }

    /// The exposure of prompts, templates and resources.
    pub const fn items(&self) -> &ItemExposure {
        &self.items
    }

    /// The exposure of every tool, prompt, template and resource.
    pub fn expose_all() -> Self {
        let items = ItemExposure {
            resources: ResourceMode::Live,
            resource_filter: UriFilter::allow_all(),
            prompt_filter: ToolFilter::compile(&["*"]).unwrap_or_default(),
        };
        let exposure = Self::new(
            ToolFilter::default(),
            TrustLevel::Trusted,
            Arc::new(SensitiveNames::default()),
        );
        exposure.with_items(items)
    }

    /// Replaces the sensitive names.
    pub fn set_sensitive(&mut self, sensitive: Arc<SensitiveNames>) {
        self.sensitive = sensitive;
    }

    /// Replaces the sensitive names by the names of another version of the list.
    pub fn use_word_list(&mut self, version: WordList) {
        if self.sensitive.version() != version {
            self.sensitive = Arc::new(self.sensitive.in_version(version));
        }
    }

    /// The filter.
    pub const fn filter(&self) -> &ToolFilter {
        &self.filter
    }

    /// The trust level.
    pub const fn level(&self) -> TrustLevel {
        self.level
    }

    /// The sensitive names.
    pub fn sensitive(&self) -> &SensitiveNames {
        &self.sensitive
    }

    /// Whether a tool of this upstream name is exposed.
    pub fn exposes(&self, name: &str) -> bool {
        self.hidden_by(name).is_none()
    }

    /// Why a tool of this upstream name, or another thing of this key, is hidden; `None` if it is exposed.
    pub fn hidden_by(&self, name: &str) -> Option<HiddenBy<'_>> {
        let (kind, id) = ItemKind::parse_key(name);
        if kind != ItemKind::Tool {
            return (!self.items.exposes(kind, id)).then_some(HiddenBy::ItemFilter);
        }
        if !self.filter.admits(name) {
            return Some(HiddenBy::Filter);
        }
        match self.level {
            TrustLevel::Trusted => None,
            TrustLevel::Verified => (!self.filter.has_positive()).then_some(HiddenBy::NoList),
            TrustLevel::Untrusted => {
                let word = self.sensitive.find(name)?;
                (!self.filter.names(name)).then_some(HiddenBy::Word(word))
            }
        }
    }
}

impl HiddenBy<'_> {
    /// Whether the filter alone would expose the tool.
    pub fn is_by_level(&self) -> bool {
        !matches!(self, Self::Filter | Self::ItemFilter)
    }
}

/// The end of a sentence about a hidden tool.
impl fmt::Display for HiddenBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter => f.write_str("hidden by `tool_filter`"),
            Self::ItemFilter => {
                f.write_str("hidden by `prompt_filter` or `resource_filter`, or by `resources`")
            }
            Self::NoList => f.write_str(
                "hidden by the trust level `verified`: `tool_filter` has no positive pattern",
            ),
            Self::Word(word) => write!(
                f,
                "hidden by the trust level `untrusted`: its name has the word `{}`",
                crate::text::shown_line(word, 80)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exposure(patterns: &[&str], level: TrustLevel) -> Exposure {
        let filter = ToolFilter::compile(patterns).unwrap();
        Exposure::new(filter, level, Arc::default())
    }

    #[test]
    fn trusted_source_exposes_what_its_filter_admits() {
        let exposure = exposure(&["!secret_*"], TrustLevel::Trusted);
        assert_eq!(exposure.hidden_by("delete_file"), None);
        assert_eq!(exposure.hidden_by("secret_x"), Some(HiddenBy::Filter));
    }

    #[test]
    fn resources_are_exposed_as_the_mode_and_the_filter_say() {
        let exposes = |mode, patterns: &[&str], id: &str| {
            let items = ItemExposure {
                resources: mode,
                resource_filter: UriFilter::new(ToolFilter::compile(patterns).unwrap()).unwrap(),
                prompt_filter: ToolFilter::default(),
            };
            items.exposes(ItemKind::Resource, id)
        };
        use ResourceMode::{Live, Locked, None};
        let all: &[&str] = &["**"];
        assert_eq!(
            [None, Locked, Live].map(|mode| exposes(mode, all, LIVE)),
            [false, false, true]
        );
        assert_eq!(
            [None, Locked, Live].map(|mode| exposes(mode, all, "x://a")),
            [false, true, true]
        );
        let denied: &[&str] = &["x://**", "!x://a"];
        assert_eq!(
            [None, Locked, Live].map(|mode| exposes(mode, denied, "x://a")),
            [false; 3]
        );
        assert!(
            !exposes(Live, &[], LIVE),
            "without a positive pattern there is none"
        );
    }

    #[test]
    fn verified_source_exposes_only_what_a_positive_pattern_matches() {
        let listed = exposure(&["get_*", "delete_file", "!get_x"], TrustLevel::Verified);
        assert_eq!(listed.hidden_by("get_y"), None);
        assert_eq!(listed.hidden_by("delete_file"), None);
        assert_eq!(listed.hidden_by("get_x"), Some(HiddenBy::Filter));
        assert_eq!(listed.hidden_by("put"), Some(HiddenBy::Filter));
        for patterns in [&[] as &[&str], &["!get_x"]] {
            let unlisted = exposure(patterns, TrustLevel::Verified);
            assert_eq!(unlisted.hidden_by("get_y"), Some(HiddenBy::NoList));
        }
    }

    #[test]
    fn untrusted_source_hides_sensitive_names_that_its_filter_does_not_name() {
        let word = Some(HiddenBy::Word("delete"));
        for patterns in [&[] as &[&str], &["*"], &["delete_*"], &["delete_fil?"]] {
            let exposure = exposure(patterns, TrustLevel::Untrusted);
            assert_eq!(exposure.hidden_by("delete_file"), word, "{patterns:?}");
        }
        let named = exposure(&["*", "delete_file"], TrustLevel::Untrusted);
        assert_eq!(named.hidden_by("delete_file"), None);
        assert_eq!(named.hidden_by("delete_all"), word);
        assert_eq!(named.hidden_by("get_file"), None);
        let denied = exposure(&["delete_file", "!delete_*"], TrustLevel::Untrusted);
        assert_eq!(denied.hidden_by("delete_file"), Some(HiddenBy::Filter));
    }

    fn patterns() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec("!?(delete|get|[ab*?]{1,3})(_[ab*?]|Exec)?", 0..5)
    }

    proptest! {
        #[test]
        fn trust_level_exposes_no_more_than_its_filter(
            patterns in patterns(),
            name in "(delete|get|[ab]{1,3})(_[ab]|Exec)?",
        ) {
            let filter = ToolFilter::compile(&patterns).unwrap();
            let [trusted, verified, untrusted] = TrustLevel::ALL.map(|level| {
                Exposure::new(filter.clone(), level, Arc::default()).exposes(&name)
            });
            prop_assert_eq!(trusted, filter.admits(&name));
            prop_assert!(trusted || !(verified || untrusted));
            // Only if the filter has a positive pattern does `verified` expose anything, and then no less.
            prop_assert_eq!(verified, filter.has_positive() && trusted);
            let is_sensitive = SensitiveNames::default().find(&name).is_some();
            prop_assert_eq!(untrusted, trusted && (!is_sensitive || patterns.contains(&name)));
        }
    }
}
