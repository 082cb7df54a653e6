//! The part of an invalid schema that can be enforced: it accepts every value that the schema accepts, whatever the
//! invalid part means.
//!
//! A subschema that contains an invalid part, also by a reference, is *inexact*: it may accept more than the server
//! means. The rules:
//!
//! | part | enforcement |
//! |---|---|
//! | a keyword with an invalid value | none; of `required`, the names that are texts |
//! | a member or an element that is not a schema | `{}`; its name and its position count |
//! | `$ref` without a target | none; where its neighbours have no meaning (draft 4 to 7), neither have they now |
//! | `not`, and `if` with `then` and `else` | only if the subschema of `not` or `if` is exact |
//! | `oneOf` with an inexact alternative | at least one alternative matches |
//! | `contains` | as far as it is valid; `maxContains` only if it is exact |
//! | `additionalProperties` | only if all of `properties` and all names of `patternProperties` are valid |
//! | `items` or `additionalItems` after a list | only if the list is one |
//! | `unevaluatedProperties`, `unevaluatedItems` | only if each subschema on the same value is applied |
//! | `allOf`, `anyOf`, `then`, `else`, `dependentSchemas`, schemas of members, items and names | as far as they are valid |
//! | a schema of an unknown dialect, or with `$dynamicRef` or `$recursiveRef` and an invalid part | none |

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use broker_model::diagnostic::Diagnostic;
use broker_model::json::child_pointer;

use super::exact::with_stand_ins;
use super::graph::{Graph, LIST, MAP, ONE};
use super::inspect::has_known_dialect;
use super::moves::Moves;
use super::options::options;
use super::reading::Reading;

mod broken;

use self::broken::Broken;

/// The reading of the enforceable part of a schema. One over a bound is refused.
pub(super) fn reading(schema: &Value) -> Result<Reading, Box<Diagnostic>> {
    let graph = Graph::with_open_references(schema)?;
    graph.refuse_fan_out()?;
    let of_schema = Reading::new(schema, &graph);
    // Keywords of a dialect that is not known may mean anything.
    let known = has_known_dialect(schema) && schema.is_object();
    let part = known.then(|| part_of(&of_schema, &graph)).flatten();
    let is_sound = |part: &Reading| {
        let bounded = Graph::new(&part.schema).is_ok_and(|graph| graph.refuse_fan_out().is_ok());
        bounded && options().build(&with_stand_ins(&part.schema)).is_ok()
    };
    Ok(part.filter(is_sound).unwrap_or_else(|| Reading {
        schema: json!({}),
        moves: Moves::default(),
        notes: Vec::new(),
    }))
}

/// The enforceable part of a reading; `None` if it is not known. `original` has the subschemas of the server's form.
fn part_of(reading: &Reading, original: &Graph) -> Option<Reading> {
    let graph = Graph::with_open_references(&reading.schema).ok()?;
    let mut broken: Vec<Broken> = graph
        .nodes
        .iter()
        .map(|node| Broken::find(&reading.schema, node, &graph))
        .collect();
    // In the reading, a pointer of an inner resource might name another place.
    for node in &original.nodes {
        let at = graph.at(&reading.moves.moved(&node.pointer))?;
        let open = node.references.iter().filter(|one| one.node.is_none());
        broken[at].references.extend(open.map(|one| one.keyword));
    }
    if broken.iter().all(Broken::is_empty) {
        return Some(reading.clone());
    }
    if original.has_dynamic_references {
        return None;
    }
    let weakening = Weakening::new(&graph, &reading.schema, &broken);
    let (mut schema, mut moves) = (reading.schema.clone(), Moves::default());
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    order.sort_by_key(|node| std::cmp::Reverse(graph.nodes[*node].pointer.len()));
    for node in order {
        let pointer = &graph.nodes[node].pointer;
        if let Some(Value::Object(keywords)) = schema.pointer_mut(pointer) {
            weakening.apply(node, &broken[node], pointer, keywords, &mut moves);
        }
    }
    moves.point_references(&graph, &mut schema);
    drop_references(&graph, &broken, &moves, &mut schema);
    moves.seal();
    Some(Reading {
        schema,
        moves: reading.moves.followed_by(&moves),
        notes: Vec::new(),
    })
}

/// Removes references without a target. Where members beside a reference have no meaning, one to `{}` replaces it.
fn drop_references(graph: &Graph, broken: &[Broken], moves: &Moves, schema: &mut Value) {
    let anything = free_name(schema.as_object(), "anything");
    let mut is_needed = false;
    for (node, broken) in graph.nodes.iter().zip(broken) {
        let Some(Value::Object(keywords)) = schema.pointer_mut(&moves.moved(&node.pointer)) else {
            continue;
        };
        for keyword in &broken.references {
            if graph.ref_stands_alone() {
                is_needed = true;
                keywords.insert((*keyword).to_owned(), format!("#/{anything}").into());
            } else {
                keywords.remove(*keyword);
            }
        }
    }
    if let (true, Value::Object(root)) = (is_needed, schema) {
        root.insert(anything, json!({}));
    }
}

/// The decisions on the subschemas of a schema.
struct Weakening<'g> {
    graph: &'g Graph,
    /// Whether each subschema contains an invalid part, also by references.
    inexact: Vec<bool>,
    /// The keywords of each that are not enforced.
    dropped: Vec<BTreeSet<String>>,
}

impl<'g> Weakening<'g> {
    fn new(graph: &'g Graph, schema: &Value, broken: &[Broken]) -> Self {
        let start = broken.iter().map(|broken| !broken.is_empty()).collect();
        let inexact = closure(graph, start, true);
        let mut this = Self {
            graph,
            inexact,
            dropped: Vec::new(),
        };
        for (node, broken) in graph.nodes.iter().zip(broken) {
            let keywords = schema.pointer(&node.pointer).and_then(Value::as_object);
            let empty = Map::new();
            let keywords = keywords.unwrap_or(&empty);
            let dropped = this.decide(&node.pointer, keywords, broken);
            this.dropped.push(dropped);
        }
        // A subschema that is not applied evaluates no member and no item.
        let lost = |node: usize| {
            let is_applicator = |name: &String| applies_subschemas(name);
            this.dropped[node].iter().any(is_applicator)
                || !broken[node].patterns.is_empty()
                || !broken[node].references.is_empty()
        };
        let start = (0..graph.nodes.len()).map(lost).collect();
        for (node, lost) in closure(graph, start, false).into_iter().enumerate() {
            if lost {
                let unevaluated = ["unevaluatedProperties", "unevaluatedItems"];
                this.dropped[node].extend(unevaluated.map(str::to_owned));
            }
        }
        this
    }

    fn is_inexact(&self, pointer: &str, keyword: &str) -> bool {
        let at = child_pointer(pointer, keyword);
        self.graph.at(&at).is_some_and(|node| self.inexact[node])
    }

    /// Whether a schema of a list is inexact, or no schema.
    fn has_inexact(&self, pointer: &str, keyword: &str, list: &Value) -> bool {
        let at = child_pointer(pointer, keyword);
        let count = list.as_array().map_or(0, Vec::len);
        (0..count).any(|index| {
            let node = self.graph.at(&format!("{at}/{index}"));
            node.is_none_or(|node| self.inexact[node])
        })
    }

    /// The keywords that are not enforced.
    fn decide(
        &self,
        pointer: &str,
        keywords: &Map<String, Value>,
        broken: &Broken,
    ) -> BTreeSet<String> {
        let mut out: BTreeSet<String> = broken.keywords.clone();
        let is_broken = |name: &str| broken.keywords.contains(name);
        let mut drop = |names: &[&str]| out.extend(names.iter().map(|name| (*name).to_owned()));
        if is_broken("properties") || is_broken("patternProperties") || !broken.patterns.is_empty()
        {
            drop(&["additionalProperties"]);
        }
        if is_broken("prefixItems") {
            drop(&["items"]);
        }
        if is_broken("items") {
            drop(&["additionalItems"]);
        }
        if is_broken("if") || self.is_inexact(pointer, "if") {
            drop(&["if", "then", "else"]);
        }
        if is_broken("contains") || is_broken("minContains") {
            drop(&["contains", "minContains", "maxContains"]);
        }
        if self.is_inexact(pointer, "contains") {
            drop(&["maxContains"]);
        }
        if self.is_inexact(pointer, "not") {
            drop(&["not"]);
        }
        // A limit of draft 4 and its flag.
        for (limit, flag) in [
            ("minimum", "exclusiveMinimum"),
            ("maximum", "exclusiveMaximum"),
        ] {
            if is_broken(limit) && keywords.get(flag).is_some_and(Value::is_boolean) {
                drop(&[flag]);
            }
        }
        out
    }

    fn apply(
        &self,
        node: usize,
        broken: &Broken,
        pointer: &str,
        keywords: &mut Map<String, Value>,
        moves: &mut Moves,
    ) {
        for (keyword, member) in &broken.members {
            match keywords.get_mut(keyword) {
                Some(Value::Object(members)) => {
                    members.insert(member.clone(), json!({}));
                }
                Some(Value::Array(list)) => {
                    if let Some(item) = member.parse().ok().and_then(|at: usize| list.get_mut(at)) {
                        *item = json!({});
                    }
                }
                _ => {}
            }
        }
        if let Some(Value::Object(patterns)) = keywords.get_mut("patternProperties") {
            let at = child_pointer(pointer, "patternProperties");
            for (index, pattern) in broken.patterns.iter().enumerate() {
                // A pattern that no name matches keeps the place of the schema for references.
                let never = format!("[^\\u{{0}}-\\u{{10ffff}}]{{{}}}", index + 1);
                if let Some(schema) = patterns.remove(pattern) {
                    patterns.insert(never.clone(), schema);
                    moves.add(
                        child_pointer(&at, pattern),
                        broker_model::json::escape_token(&never),
                    );
                }
            }
        }
        for keyword in &self.dropped[node] {
            if keyword == "required"
                && let Some(Value::Array(names)) = keywords.get_mut("required")
            {
                // Each name is a separate condition.
                let mut known = BTreeSet::new();
                names.retain(|name| {
                    name.as_str()
                        .is_some_and(|name| known.insert(name.to_owned()))
                });
                if !names.is_empty() {
                    continue;
                }
            }
            let free = free_name(Some(&*keywords), keyword);
            moves.rename(pointer, keywords, keyword, &free);
        }
        let inexact = keywords
            .get("oneOf")
            .is_some_and(|list| self.has_inexact(pointer, "oneOf", list));
        if inexact {
            at_least_one(pointer, keywords, moves);
        }
    }
}

/// Replaces `oneOf` by `anyOf`: which alternatives exclude each other is not known.
fn at_least_one(pointer: &str, keywords: &mut Map<String, Value>, moves: &mut Moves) {
    if !keywords.contains_key("anyOf") {
        return moves.rename(pointer, keywords, "oneOf", "anyOf");
    }
    let Some(list) = keywords.remove("oneOf") else {
        return;
    };
    let all = keywords.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        let place = format!("allOf/{}/anyOf", all.len());
        all.push(json!({"anyOf": list}));
        moves.add(child_pointer(pointer, "oneOf"), place);
    }
}

/// The subschemas from which a marked one is reached: through every edge, or only on the same value.
fn closure(graph: &Graph, mut marked: Vec<bool>, through_parts: bool) -> Vec<bool> {
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        let parts = node.to_parts.iter().filter(|_| through_parts);
        for below in node.in_place.iter().chain(parts) {
            above[*below].push(at);
        }
    }
    let mut open: Vec<usize> = (0..marked.len()).filter(|at| marked[*at]).collect();
    while let Some(at) = open.pop() {
        for parent in &above[at] {
            if !marked[*parent] {
                marked[*parent] = true;
                open.push(*parent);
            }
        }
    }
    marked
}

fn applies_subschemas(keyword: &str) -> bool {
    let one = ONE.iter().map(|(name, _)| *name);
    let list = LIST.iter().map(|(name, _)| *name);
    let map = MAP.iter().map(|(name, _)| *name);
    one.chain(list).chain(map).any(|name| name == keyword)
}

/// A name that a schema does not use, for a keyword that is not enforced.
fn free_name(keywords: Option<&Map<String, Value>>, keyword: &str) -> String {
    let mut name = format!("x-not-enforced-{}", keyword.replace(['/', '~', '%'], "_"));
    while keywords.is_some_and(|keywords| keywords.contains_key(&name)) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests;
