//! Estimates the cost of matching a pattern from its text.
//!
//! A pattern without lookaround and backreferences takes time of at most text length times states. Others are
//! backtracked: up to [`BACKTRACK_LIMIT`] times, each time over the whole text, and a lookahead in a repetition
//! reads the rest of the text at every step.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum backtracking steps of one pattern; beyond it the value does not match.
pub(super) const BACKTRACK_LIMIT: usize = 10_000;

/// The text length in bytes up to which the lazy automaton depends only on the pattern.
const SHORT: u64 = 1024;

/// Steps for matching one pattern, in addition to its text.
const STEPS_PER_MATCH: u64 = 8;

/// The cost of the most expensive of several patterns, or of several consecutive ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PatternCost {
    count: u64,
    states: u64,
    backtracks: bool,
}

impl PatternCost {
    pub(super) fn new(pattern: &str) -> Self {
        match states_of(pattern) {
            Some(states) => Self {
                count: 1,
                states,
                backtracks: false,
            },
            None => Self {
                count: 1,
                states: 16 * pattern.len() as u64 + 1,
                backtracks: !looks_ahead_once(pattern),
            },
        }
    }

    pub(super) const fn states(self) -> u64 {
        self.states
    }

    /// The greater cost of the two.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            count: self.count.max(other.count),
            states: self.states.max(other.states),
            backtracks: self.backtracks || other.backtracks,
        }
    }

    /// The cost of matching both patterns, one after the other.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            states: self.states.saturating_add(other.states),
            backtracks: self.backtracks || other.backtracks,
        }
    }

    /// Steps for matching a text of this number of bytes.
    pub(super) const fn steps(self, length: usize) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let length = length as u64;
        let mut steps = self.count * (STEPS_PER_MATCH + length / 4);
        if length > SHORT {
            steps = steps.saturating_add(length.saturating_mul(self.states) / 1024);
        }
        if self.backtracks {
            let times = if length < BACKTRACK_LIMIT as u64 {
                length
            } else {
                BACKTRACK_LIMIT as u64
            };
            let squared = length.saturating_mul(times) / 256;
            steps = steps.saturating_add(squared.saturating_mul(self.count));
        }
        steps
    }
}

/// The states of its automaton; `None` if it needs more than one.
fn states_of(pattern: &str) -> Option<u64> {
    // Classes as `\w` are ASCII in JSON Schema; what needs Unicode is read as such.
    let ascii = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(pattern);
    let tree = match ascii {
        Ok(tree) => tree,
        Err(_) => regex_syntax::Parser::new().parse(pattern).ok()?,
    };
    Some(states(&tree))
}

fn states(tree: &Hir) -> u64 {
    let sum = |parts: &[Hir]| {
        let parts = parts.iter().map(states);
        parts.fold(1, u64::saturating_add)
    };
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Class(Class::Unicode(class)) => {
            let wide = class.iter().filter(|range| !range.end().is_ascii()).count();
            1 + 4 * wide as u64
        }
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            states(&repetition.sub)
                .saturating_mul(u64::from(times.max(1)))
                .saturating_add(1)
        }
        HirKind::Capture(capture) => states(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// Whether a pattern is `^`, lookaheads, and a rest, all simple: nothing is tried twice.
fn looks_ahead_once(pattern: &str) -> bool {
    let Some(mut rest) = pattern.strip_prefix('^') else {
        return false;
    };
    while let Some(body) = rest
        .strip_prefix("(?=")
        .or_else(|| rest.strip_prefix("(?!"))
    {
        let Some(end) = end_of_group(body) else {
            return false;
        };
        if states_of(&body[..end]).is_none() {
            return false;
        }
        rest = &body[end + 1..];
        if rest.starts_with(['*', '+', '?', '{']) {
            return false;
        }
    }
    states_of(rest).is_some()
}

/// The end of the group at the start of `text`.
fn end_of_group(text: &str) -> Option<usize> {
    let (mut depth, mut in_class, mut escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b']' => in_class = false,
            _ if in_class => {}
            b'[' => in_class = true,
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_cost_is_low_unless_it_backtracks() {
        let steps = |pattern: &str, length| PatternCost::new(pattern).steps(length);
        assert!(steps("^[\\w.-]{1,64}$", 36) < 20);
        assert!(steps("^[A-Za-z0-9+/]*={0,2}$", 4 << 20) < 1_200_000);
        assert!(steps("^(?!\\s*$)(?!.*\\.\\.)[^/]+$", 100 << 10) < 100_000);
        assert!(steps("(a|b)*a(a|b){2000}", 1 << 20) > 2_000_000);
        for pattern in [
            "^(?:.(?=.*z))*$",
            "(?=.*z)q",
            "^(a+)\\1$",
            "(?=((?:a(?!b))*))q",
        ] {
            assert!(steps(pattern, 36) < 30, "{pattern}");
            assert!(steps(pattern, 100 << 10) > 2_000_000, "{pattern}");
        }
    }
}
