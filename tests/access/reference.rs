//! The decision of the rules for a caller and a tool, written plainly from the documentation, and rules at random.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// A pseudo-random sequence (xorshift), the same for a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 24) % end as u64) as usize
    }

    /// True in one of `times` cases.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// `count` different elements, or all.
    pub(crate) fn several<T: Clone>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left = from.to_vec();
        let taken = (0..count.min(from.len())).map(|_| left.swap_remove(self.below(left.len())));
        taken.collect::<Vec<_>>()
    }
}

/// A tool as the rules see it.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) path: String,
    /// The value of each hint: what the server says, or the unsafe one.
    hints: [bool; HINTS.len()],
}

/// The hints with their unsafe values.
const HINTS: [(&str, bool); 4] = [
    ("readOnlyHint", false),
    ("destructiveHint", true),
    ("idempotentHint", false),
    ("openWorldHint", true),
];

impl Tool {
    pub(crate) fn new(path: String, annotations: &Value) -> Self {
        let hints = HINTS.map(|(name, unsafe_value)| {
            let given = annotations[name].as_bool();
            given.unwrap_or(unsafe_value)
        });
        Self { path, hints }
    }

    /// The path of its node.
    pub(crate) fn node(&self) -> &str {
        self.path.rsplit_once('/').expect("a path").0
    }

    fn leaf(&self) -> &str {
        self.path.rsplit_once('/').expect("a path").1
    }
}

/// One rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    allows: bool,
    patterns: Vec<String>,
    to: BTreeSet<String>,
    except: BTreeSet<String>,
    /// Hints by index, with the value that the tool must have.
    hints: Vec<(usize, bool)>,
    args: Option<Value>,
}

/// The right of a caller to a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Absent,
    Narrowed,
    Callable,
}

impl Rule {
    fn matches(&self, tool: &Tool) -> bool {
        let hints = |(at, value): &(usize, bool)| tool.hints[*at] == *value;
        let path = |pattern: &String| glob(pattern, &tool.path);
        self.patterns.iter().any(path) && self.hints.iter().all(hints)
    }

    /// The rule in a config.
    fn to_json(&self) -> Value {
        let mut rule = json!({"to": self.to});
        rule[if self.allows { "allow" } else { "deny" }] = json!(self.patterns);
        if !self.except.is_empty() {
            rule["except"] = json!(self.except);
        }
        for (at, value) in &self.hints {
            rule["where"][HINTS[*at].0] = json!(value);
        }
        if let Some(args) = &self.args {
            rule["args"] = args.clone();
        }
        rule
    }
}

/// The rules of a config.
#[derive(Clone, Debug)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    /// `count` rules at random that match some tool each, and one that allows everything to `all`.
    pub(crate) fn random(
        random: &mut Random,
        tools: &[Tool],
        groups: &[String],
        count: usize,
        all: &str,
    ) -> Self {
        let mut rules = vec![Rule {
            allows: true,
            patterns: vec!["/**".to_owned()],
            to: [all.to_owned()].into(),
            ..Rule::default()
        }];
        while rules.len() <= count {
            let rule = one(random, tools, groups);
            if tools.iter().any(|tool| rule.matches(tool)) {
                rules.push(rule);
            }
        }
        Self(rules)
    }

    pub(crate) fn to_json(&self) -> Value {
        self.0.iter().map(Rule::to_json).collect()
    }

    /// The right of a caller in these groups.
    pub(crate) fn decide(&self, groups: &BTreeSet<String>, tool: &Tool) -> Expected {
        let is_in = |set: &BTreeSet<String>| set.iter().any(|group| groups.contains(group));
        let applying = || {
            self.0
                .iter()
                .filter(|rule| is_in(&rule.to) && !is_in(&rule.except) && rule.matches(tool))
        };
        let allowing = || applying().filter(|rule| rule.allows);
        if applying().any(|rule| !rule.allows) {
            return Expected::Absent;
        }
        match (
            allowing().any(|rule| rule.args.is_none()),
            allowing().next().is_some(),
        ) {
            (true, _) => Expected::Callable,
            (false, true) => Expected::Narrowed,
            (false, false) => Expected::Absent,
        }
    }
}

fn one(random: &mut Random, tools: &[Tool], groups: &[String]) -> Rule {
    let allows = !random.one_in(4);
    let count = 1 + random.below(2);
    let patterns = (0..count).map(|_| pattern(random, tools)).collect();
    let count = 1 + random.below(3);
    let to = random.several(groups, count).into_iter().collect();
    let count = random.below(3);
    let except = random.several(groups, count).into_iter().collect();
    let hints = match random.one_in(3) {
        true => vec![(random.below(HINTS.len()), random.one_in(2))],
        false => Vec::new(),
    };
    let is_narrow = allows && random.one_in(8);
    Rule {
        allows,
        patterns,
        to,
        except: if allows { BTreeSet::new() } else { except },
        hints,
        // True of the arguments of every call of the test.
        args: is_narrow.then(|| json!({"maxProperties": 64})),
    }
}

/// A pattern that matches some tool.
fn pattern(random: &mut Random, tools: &[Tool]) -> String {
    let tool = random.pick(tools);
    let (node, leaf) = (tool.node(), tool.leaf());
    let word = leaf.split(['_', '-']).next().unwrap_or(leaf);
    let area = node.rsplit_once('/').map_or(node, |(area, _)| area);
    match random.below(8) {
        0 | 1 => format!("{node}/**"),
        2 => format!("{area}/**"),
        3 => format!("/**/{word}*"),
        4 => format!("{node}/{word}*"),
        5 => format!("{node}/*"),
        6 => format!("{area}/*/*{}", &leaf[leaf.len() - 1..]),
        _ => {
            let any = "?".repeat(leaf.len() - 1);
            format!("/*/*/{any}{}", &leaf[leaf.len() - 1..])
        }
    }
}

/// Whether a pattern matches a path: `**` stands for any number of segments, at the end for at least one; `*`
/// and `?` stay within one.
fn glob(pattern: &str, path: &str) -> bool {
    let parts = |text: &str| {
        text.split('/')
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    segments(&parts(pattern), &parts(path))
}

fn segments(pattern: &[String], path: &[String]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((first, [])) if first == "**" => !path.is_empty(),
        Some((first, rest)) if first == "**" => {
            (0..=path.len()).any(|skipped| segments(rest, &path[skipped..]))
        }
        Some((first, rest)) => path.split_first().is_some_and(|(segment, more)| {
            characters(first.as_bytes(), segment.as_bytes()) && segments(rest, more)
        }),
    }
}

fn characters(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skipped| characters(rest, &text[skipped..])),
        Some((one, rest)) => text
            .split_first()
            .is_some_and(|(first, more)| (*one == b'?' || one == first) && characters(rest, more)),
    }
}

#[test]
fn reference_matches_patterns_by_segments() {
    for (pattern, path, expected) in [
        ("/**", "/a/b", true),
        ("/a/**", "/a/b/c", true),
        ("/a/**", "/ab/c", false),
        ("/**/get_*", "/a/b/get_x", true),
        ("/**/get_*", "/get_x", true),
        ("/**/get_*", "/get_x/y", false),
        ("/*/b", "/a/b", true),
        ("/*/b", "/a/x/b", false),
        ("/a/?b", "/a/bb", true),
        ("/a/?b", "/a/b", false),
    ] {
        assert_eq!(glob(pattern, path), expected, "{pattern} {path}");
    }
}
