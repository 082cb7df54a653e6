//! Reports the changes of bounds, counts, patterns and steps.

use super::node::Node;
use super::types::Type;
use super::walk::Walk;

impl Walk {
    pub(super) fn limits(&mut self, from: &Node<'_>, to: &Node<'_>) {
        const KEYWORDS: [&str; 4] = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"];
        const COUNTS: [[&str; 2]; 3] = [
            ["minLength", "maxLength"],
            ["minItems", "maxItems"],
            ["minProperties", "maxProperties"],
        ];
        let first = |node: &Node<'_>, keywords: &[&str]| -> Option<String> {
            keywords
                .iter()
                .find_map(|keyword| node.origin(keyword))
                .map(|(at, _)| at)
        };
        let whole = !from.types.has(Type::Fraction) && !to.types.has(Type::Fraction);
        let same_integers = whole
            && from.limits.integers().is_some()
            && from.limits.integers() == to.limits.integers();
        if !same_integers {
            let keyword = KEYWORDS.iter().find(|keyword| {
                from.origin(keyword).map(|(_, v)| v) != to.origin(keyword).map(|(_, v)| v)
            });
            let keywords: Vec<&str> = keyword.into_iter().copied().collect();
            if first(from, &keywords).or(first(to, &keywords)).is_some() {
                let keyword = keywords[0];
                self.directed(
                    "limit",
                    to.limits.range_within(&from.limits),
                    from.limits.range_within(&to.limits),
                    [from.origin(keyword), to.origin(keyword)],
                    "the range",
                );
            }
        }
        for (of, keywords) in COUNTS.iter().enumerate() {
            let (old, new) = (from.limits.counts[of], to.limits.counts[of]);
            let keyword = if old.0 == new.0 {
                keywords[1]
            } else {
                keywords[0]
            };
            self.directed(
                "limit",
                super::limits::counts_within(new, old),
                super::limits::counts_within(old, new),
                [from.origin(keyword), to.origin(keyword)],
                &format!("`{keyword}`"),
            );
        }
        self.directed(
            "pattern",
            from.patterns.is_subset(&to.patterns),
            to.patterns.is_subset(&from.patterns),
            [from.origin("pattern"), to.origin("pattern")],
            "the pattern",
        );
        self.directed(
            "limit",
            to.unique || !from.unique,
            from.unique || !to.unique,
            [from.origin("uniqueItems"), to.origin("uniqueItems")],
            "`uniqueItems`",
        );
        let within = |one: &Node<'_>, other: &Node<'_>| {
            other
                .multiples
                .iter()
                .all(|step| one.multiples.contains(step))
        };
        self.directed(
            "limit",
            within(to, from),
            within(from, to),
            [from.origin("multipleOf"), to.origin("multipleOf")],
            "`multipleOf`",
        );
    }
}
