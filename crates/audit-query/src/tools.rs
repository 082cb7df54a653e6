//! The tools of a lock as callers have them under access rules.

use broker_audit::Actor;
use broker_config::{Config, Source};
use broker_model::access::{
    Access, Decision, Effect, GroupSet, Hints, Matrix, Rule, ToolFacts, claim_names,
    reviewed_annotations,
};
use broker_model::apps::is_for_pages_only;
use broker_model::item::{ItemKind, readable_path};
use broker_model::lock::{LockedSource, LockedTool};
use serde_json::Value;

use crate::kept_args::Match;

/// The maximum number of groups that a line has: more are not kept.
const MAX_KEPT_GROUPS: usize = 64;

/// A tool or item of a lock.
#[derive(Debug)]
pub(crate) struct ToolView<'a> {
    pub(crate) path: String,
    pub(crate) source: &'a LockedSource,
    pub(crate) tool: &'a LockedTool,
    pub(crate) hints: Hints,
    /// Whether it exists for no caller, since it is for pages of its server only.
    pub(crate) is_for_pages: bool,
}

/// The tools of a lock with the access rules.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    pub(crate) views: Vec<ToolView<'a>>,
    access: Option<&'a Access>,
    matrix: Matrix,
}

/// Whether a tool exists for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Callable,
    /// With arguments that one of the narrowing rules accepts.
    Narrowed,
    Absent,
    /// It depends on a value that the log does not keep.
    Unknown(&'static str),
}

impl Standing {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Callable => "callable",
            Self::Narrowed => "narrowed",
            Self::Absent => "absent",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl ToolView<'_> {
    /// Whether the filters and trust levels of a config expose it.
    pub(crate) fn is_exposed(&self, config: &Config) -> bool {
        find_source(config, self.source)
            .is_some_and(|source| source.exposure.exposes(&self.tool.upstream_name))
    }
}

impl<'a> Tools<'a> {
    /// Makes the tools of a lock. Without a config, hints are the server's hints, and there are no rules.
    pub(crate) fn new(sources: &'a [LockedSource], config: Option<&'a Config>) -> Self {
        let mut views = Vec::new();
        for source in sources {
            let configured = config.and_then(|config| find_source(config, source));
            for tool in &source.exposed {
                let overrides =
                    configured.and_then(|source| source.overrides.get(&tool.upstream_name));
                let hints = overrides.and_then(|one| one.annotations.as_ref());
                let annotations = reviewed_annotations(tool.raw.get("annotations"), hints);
                views.push(ToolView {
                    path: format!(
                        "{}/{}",
                        source.path.as_str().trim_end_matches('/'),
                        tool.exposed_name
                    ),
                    source,
                    tool,
                    hints: Hints::read(annotations.as_ref()),
                    is_for_pages: tool.kind() == ItemKind::Tool && is_for_pages_only(&tool.raw),
                });
            }
        }
        views.sort_by(|a, b| a.path.cmp(&b.path));
        let access = config.and_then(|config| config.access.as_ref());
        let facts: Vec<_> = views.iter().map(facts).collect();
        let matrix = access.map(|access| Matrix::new(access, &facts));
        Self {
            matrix: matrix.unwrap_or_default(),
            views,
            access,
        }
    }

    /// Returns the index of the item with a path.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        let found = self
            .views
            .binary_search_by(|view| view.path.as_str().cmp(path));
        found.ok()
    }

    /// Returns whether an item exists for a caller.
    pub(crate) fn standing(&self, at: usize, actor: &Actor) -> Standing {
        if self.views[at].is_for_pages {
            return Standing::Absent;
        }
        let Some(access) = self.access else {
            return Standing::Callable;
        };
        if has_more_groups(actor) {
            return Standing::Unknown("the caller has more groups than a line keeps");
        }
        let groups = groups_of(access, actor);
        let row = self.matrix.rows[at].as_ref();
        let has_claims = |narrowing: u32| {
            !claim_names(&self.matrix.narrowings[narrowing as usize].schema).is_empty()
        };
        let with_claims = row.decide(groups, |_| true);
        let without_claims = row.decide(groups, |at| !has_claims(at));
        match (with_claims, without_claims) {
            (Decision::Callable, _) => Standing::Callable,
            (Decision::Absent, _) => Standing::Absent,
            (Decision::Narrowed, Decision::Absent) => {
                Standing::Unknown("a rule depends on a claim of the token")
            }
            (Decision::Narrowed, _) => Standing::Narrowed,
        }
    }

    /// Returns whether arguments match one of the rules that narrow the arguments of a caller. A rule with a claim may
    /// apply or not.
    pub(crate) fn narrowed_args(
        &self,
        at: usize,
        actor: &Actor,
        matches: impl Fn(&Value) -> Match,
    ) -> Match {
        let Some(access) = self.access else {
            return Match::Yes;
        };
        let narrowings = self.matrix.rows[at]
            .as_ref()
            .narrowings(groups_of(access, actor));
        Match::any(narrowings.map(|narrowing| {
            let schema = &self.matrix.narrowings[narrowing as usize].schema;
            match claim_names(schema).is_empty() {
                true => matches(schema),
                false => Match::Unknown,
            }
        }))
    }

    /// Returns the number of the rule that decides about an item for a caller: the first rule that denies it, else the
    /// first rule that allows it.
    pub(crate) fn deciding_rule(&self, at: usize, actor: &Actor) -> Option<(usize, &'a Rule)> {
        let access = self.access?;
        let groups = groups_of(access, actor);
        let facts = facts(&self.views[at]);
        let find = |effect| {
            let mut rules = access.rules.iter().enumerate();
            rules.find(|(_, rule)| {
                rule.effect == effect
                    && rule.to.intersects(groups)
                    && !rule.except.intersects(groups)
                    && rule.matches(&facts)
            })
        };
        find(Effect::Deny).or_else(|| find(Effect::Allow))
    }
}

/// Returns the source of a config at the path of a locked one.
pub(crate) fn find_source<'c>(config: &'c Config, source: &LockedSource) -> Option<&'c Source> {
    let mut sources = config.sources();
    sources.find(|one| one.path == source.path)
}

fn facts<'v>(view: &'v ToolView<'_>) -> ToolFacts<'v> {
    ToolFacts {
        path: &view.path,
        readable: readable_path(&view.path, &view.tool.upstream_name),
        hints: view.hints,
    }
}

fn has_more_groups(actor: &Actor) -> bool {
    actor.groups.len() >= MAX_KEPT_GROUPS
}

/// Returns the groups of a caller under rules, by the kind of the credential.
pub(crate) fn groups_of(access: &Access, actor: &Actor) -> GroupSet {
    match actor.kind.as_ref() {
        "anonymous" => access.anonymous,
        "secret" => access.secret,
        "local" => access.local,
        _ => access.set_of(actor.groups.iter().map(String::as_str)),
    }
}

/// Returns the text of a rule.
pub(crate) fn rule_text(access: &Access, rule: &Rule) -> String {
    let names = |set: GroupSet| access.names(set).collect::<Vec<_>>().join(", ");
    let effect = match rule.effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    };
    let mut text = format!(
        "{effect} {} to {}",
        rule.paths.written().join(", "),
        names(rule.to)
    );
    if !rule.except.is_empty() {
        text.push_str(&format!(", except {}", names(rule.except)));
    }
    for (hint, value) in &rule.hints {
        text.push_str(&format!(", if {} is {value}", hint.key()));
    }
    if rule.args.is_some() {
        text.push_str(", with the arguments that its schema accepts");
    }
    text
}
