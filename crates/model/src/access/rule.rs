//! One access rule.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;

use super::GroupSet;
use super::facts::ToolFacts;
use super::hints::Hint;
use crate::glob::Forms;

/// The effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Allows tools.
    Allow,
    /// Denies tools, whatever other rules allow.
    Deny,
}

/// A rule: an effect on the tools that match, for callers in some groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its effect.
    pub effect: Effect,
    /// The paths of the tools.
    pub paths: PathPatterns,
    /// The rule applies to callers in one of these groups,
    pub to: GroupSet,
    /// unless they are in one of these. Only a deny rule has them.
    pub except: GroupSet,
    /// The values of reviewed hints that the tool must have.
    pub hints: Vec<(Hint, bool)>,
    /// The schema that the arguments of a call must match besides the one of the tool. Only an allow rule has it.
    pub args: Option<Value>,
    /// Its JSON pointer in the file, for messages.
    pub pointer: String,
}

impl Rule {
    /// Whether the rule is about a tool. A deny is also about a path that looks like one of its paths, with or without the
    /// digits of a derived alias.
    pub fn matches(&self, tool: &ToolFacts<'_>) -> bool {
        let is_named = match self.effect {
            Effect::Allow => self.paths.matches(tool.path),
            Effect::Deny => {
                let mut paths = [Some(tool.path), tool.readable.as_deref()].into_iter();
                paths.any(|path| path.is_some_and(|path| self.paths.match_look(path)))
            }
        };
        is_named
            && self
                .hints
                .iter()
                .all(|(hint, value)| tool.hints.get(*hint) == *value)
    }
}

/// Globs over paths: `*` and `?` match within a segment, `**` matches any number of segments.
#[derive(Clone, Debug, Default)]
pub struct PathPatterns {
    written: Vec<String>,
    set: GlobSet,
    forms: Forms,
}

impl PartialEq for PathPatterns {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for PathPatterns {}

/// A pattern that is not one of paths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern of paths: {reason}")]
pub struct PatternError {
    /// The pattern as written.
    pub pattern: String,
    /// Why.
    pub reason: String,
}

impl PathPatterns {
    /// Compiles patterns.
    pub fn compile<S: AsRef<str>>(patterns: &[S]) -> Result<Self, PatternError> {
        let mut set = GlobSetBuilder::new();
        let mut written = Vec::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let refused = |reason: String| PatternError {
                pattern: pattern.to_owned(),
                reason,
            };
            if !pattern.starts_with('/') {
                return Err(refused("it must begin with `/`".to_owned()));
            }
            let mut builder = GlobBuilder::new(pattern);
            let glob = builder.literal_separator(true).build();
            set.add(glob.map_err(|error| refused(error.kind().to_string()))?);
            written.push(pattern.to_owned());
        }
        let set = set.build().map_err(|error| PatternError {
            pattern: written.join(" "),
            reason: format!("together, {}", error.kind()),
        })?;
        let forms = Forms::new(written.clone(), true);
        Ok(Self {
            written,
            set,
            forms,
        })
    }

    /// The patterns as written.
    pub fn written(&self) -> &[String] {
        &self.written
    }

    /// Whether a pattern, or its form NFKC, matches a path.
    pub fn matches(&self, path: &str) -> bool {
        match path.is_ascii() && self.forms.is_ascii() {
            true => self.set.is_match(path),
            false => self.forms.match_name(path),
        }
    }

    /// Whether a pattern matches a path, or one that looks like it.
    fn match_look(&self, path: &str) -> bool {
        let is_ascii = path.is_ascii() && self.forms.is_ascii();
        self.set.is_match(path) || (!is_ascii && self.forms.match_look(path))
    }
}
