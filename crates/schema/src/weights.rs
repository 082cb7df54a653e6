//! Estimates from a schema the work of a validator between two reads of a value.
//!
//! Subschemas without an assertion (`{}`, `$ref`, `allOf` of such) are evaluated without a read, and a member's
//! name is matched by every pattern after one read. Such work is charged with the read before it.

use serde_json::{Map, Value};

use super::graph::{Graph, Subschema};
use super::pattern::PatternCost;
use broker_model::codes::DiagnosticCode;
use broker_model::diagnostic::Diagnostic;

/// Bytes of text that are compared or counted in one step.
const BYTES_PER_STEP: usize = 256;
/// Subschemas without an assertion that are evaluated in one step.
const SILENT_PER_STEP: u64 = 4;
/// Maximum nesting of subschemas on one value: each level takes stack.
const MAX_CHAIN: u64 = 400;
/// Maximum states of all patterns of a schema: each takes memory once it is compiled.
const MAX_PATTERN_STATES: u64 = 500_000;

/// Assertions that read a value of any type, and are evaluated before subschemas.
const LOOKS: [&str; 9] = [
    "type",
    "enum",
    "const",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
    "required",
];

/// The costs of reads under one schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    part: u64,
    strings: PatternCost,
    names: PatternCost,
}

impl Weights {
    /// Steps for reading this number of bytes.
    pub(super) const fn bytes(length: usize) -> u64 {
        (length / BYTES_PER_STEP) as u64
    }

    /// Steps for reading a part of a value.
    #[inline]
    pub(super) const fn part(&self) -> u64 {
        self.part
    }

    /// Steps for reading a member with a name of this number of bytes.
    #[inline]
    pub(super) const fn member(&self, length: usize) -> u64 {
        self.part + Self::bytes(length) + self.names.steps(length)
    }

    /// Steps for reading a string of this number of bytes, which a pattern may match.
    #[inline]
    pub(super) const fn string(&self, length: usize) -> u64 {
        Self::bytes(length) + self.strings.steps(length)
    }

    /// Reads a schema. One that takes too much stack, or memory for its patterns, is refused.
    pub(super) fn new(schema: &Value) -> Result<Self, Box<Diagnostic>> {
        let graph = Graph::new(schema)?;
        let mut costs = vec![Cost::default(); graph.nodes.len()];
        for node in in_order(&graph) {
            let keywords = keywords(schema, &graph.nodes[node]);
            costs[node] = Cost::new(&graph.nodes[node], keywords, &costs);
            if costs[node].chain > MAX_CHAIN {
                let message = format!(
                    "more than {MAX_CHAIN} subschemas within each other apply to one value"
                );
                return Err(limit(message, &graph.nodes[node]));
            }
        }
        let mut weights = Self {
            part: 1,
            strings: PatternCost::default(),
            names: PatternCost::default(),
        };
        let is_of_names = |node: &Subschema| node.pointer.ends_with("/propertyNames");
        let has_names = graph.nodes.iter().any(is_of_names);
        let is_of_rest = |node: &Subschema| node.pointer.ends_with("/unevaluatedProperties");
        let is_unevaluated = graph.nodes.iter().any(is_of_rest);
        let mut states = 0u64;
        for node in &graph.nodes {
            let keywords = keywords(schema, node);
            states = states.saturating_add(weights.add(
                node,
                keywords,
                &graph,
                &costs,
                has_names,
                is_unevaluated,
            ));
            if states > MAX_PATTERN_STATES {
                let message =
                    format!("its patterns have more than {MAX_PATTERN_STATES} states together");
                return Err(limit(message, node));
            }
        }
        Ok(weights)
    }

    /// Adds a subschema; returns the number of states of its patterns.
    fn add(
        &mut self,
        node: &Subschema,
        keywords: Option<&Map<String, Value>>,
        graph: &Graph,
        costs: &[Cost],
        has_names: bool,
        is_unevaluated: bool,
    ) -> u64 {
        let patterns_at = format!("{}/patternProperties/", node.pointer);
        let names_at = format!("{}/propertyNames", node.pointer);
        let (mut fan, mut of_patterns) = (0u64, 0u64);
        for part in &node.to_parts {
            let (pointer, cost) = (&graph.nodes[*part].pointer, &costs[*part]);
            if pointer.starts_with(&patterns_at) {
                of_patterns = of_patterns.saturating_add(1 + cost.silent);
            } else if *pointer == names_at {
                // Names are evaluated without a meter.
                fan = fan.max(cost.all.saturating_mul(SILENT_PER_STEP));
            } else {
                fan = fan.max(cost.silent);
            }
        }
        fan = fan.max(of_patterns);
        self.part = self.part.max(1 + fan / SILENT_PER_STEP);
        let Some(keywords) = keywords else {
            return 0;
        };
        let mut states = 0;
        if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str) {
            let cost = PatternCost::new(pattern);
            states = cost.states();
            self.strings = self.strings.or(cost);
            // A subschema for names may refer to any other.
            if has_names {
                self.names = self.names.or(cost);
            }
        }
        if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
            let costs: Vec<_> = patterns.keys().map(|name| PatternCost::new(name)).collect();
            let all = costs
                .iter()
                .copied()
                .fold(PatternCost::default(), PatternCost::and);
            states = states.saturating_add(all.states());
            // If the other members are read too, a member is read once for all patterns; otherwise once for each.
            let one = costs
                .into_iter()
                .fold(PatternCost::default(), PatternCost::or);
            let once = keywords.contains_key("additionalProperties") || is_unevaluated;
            self.names = self.names.or(if once { all } else { one });
        }
        states
    }
}

fn limit(message: String, node: &Subschema) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(DiagnosticCode::SchemaLimit, message).at(&node.pointer))
}

fn keywords<'a>(schema: &'a Value, node: &Subschema) -> Option<&'a Map<String, Value>> {
    schema.pointer(&node.pointer).and_then(Value::as_object)
}

/// The cost of one evaluation of a subschema, with all subschemas that apply to the same value.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Evaluations.
    all: u64,
    /// Evaluations without a read.
    silent: u64,
    /// The maximum nesting.
    chain: u64,
}

impl Cost {
    fn new(node: &Subschema, keywords: Option<&Map<String, Value>>, costs: &[Self]) -> Self {
        let looks = keywords.is_some_and(|all| LOOKS.iter().any(|name| all.contains_key(*name)));
        let own = Self {
            all: 1,
            silent: u64::from(!looks),
            chain: 0,
        };
        let below = |sum: Self, child: &usize| Self {
            all: sum.all.saturating_add(costs[*child].all),
            silent: sum.silent.saturating_add(costs[*child].silent),
            chain: sum.chain.max(costs[*child].chain),
        };
        let sum = node.in_place.iter().fold(own, below);
        Self {
            chain: sum.chain + 1,
            ..sum
        }
    }
}

/// The subschemas; those on the same value come before their parents. They have no cycles.
fn in_order(graph: &Graph) -> Vec<usize> {
    let mut order = Vec::with_capacity(graph.nodes.len());
    let mut done = vec![false; graph.nodes.len()];
    for start in 0..graph.nodes.len() {
        let mut stack = vec![(start, false)];
        while let Some((node, below_done)) = stack.pop() {
            if done[node] {
                continue;
            }
            if below_done {
                done[node] = true;
                order.push(node);
            } else {
                stack.push((node, true));
                let below = graph.nodes[node].in_place.iter();
                stack.extend(
                    below
                        .filter(|child| !done[**child])
                        .map(|child| (*child, false)),
                );
            }
        }
    }
    order
}
