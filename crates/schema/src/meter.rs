//! JSON values that count the reads of a validator, and appear empty when its steps are used up.
//!
//! `jsonschema` has no limit, but it reads values only through the trait [`Node`]. Every read is a step; work
//! between two reads is charged with the read before it (see [`Weights`]). Once the steps are used up, a value
//! has no members, no items and no text, so that any evaluation ends soon; its result is then ignored.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Value};

use super::budget::Budget;
use super::equal::is_equal;
use super::metered_number::MeteredNumber;
use super::unique::is_unique;
use super::weights::Weights;
use broker_model::json::{exact_number, may_be_number, string_text};

/// Steps between two checks for a stop.
const STEPS_PER_CHECK: u64 = 4096;
/// Maximum bytes of stack of an evaluation. The threads that evaluate have at least twice that.
const MAX_STACK_BYTES: usize = 1 << 20;

/// The form of a validator (see [`exact`](super::exact)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Exact numbers end the evaluation.
    Plain,
    /// Exact numbers are numbers.
    Exact,
}

/// Counts the steps of one evaluation.
pub(super) struct Meter<'m> {
    /// Steps until the next check.
    chunk: Cell<u64>,
    /// Steps beyond them.
    rest: Cell<u64>,
    spent: Cell<bool>,
    /// The value that was read when the steps were used up.
    reached: Cell<usize>,
    /// The value of the first error that was built.
    failed: Cell<Option<usize>>,
    budget: &'m Budget<'m>,
    weights: &'m Weights,
    form: Form,
    /// Whether the first form met an exact number.
    met_exact: Cell<bool>,
    /// The stack position at the beginning of the evaluation.
    stack: usize,
}

impl<'m> Meter<'m> {
    /// A meter for at most `steps`, of those in `budget`.
    pub(super) fn new(
        budget: &'m Budget<'m>,
        steps: u64,
        weights: &'m Weights,
        form: Form,
    ) -> Self {
        let mark = 0u8;
        Self {
            chunk: Cell::new(0),
            rest: Cell::new(steps),
            spent: Cell::new(false),
            reached: Cell::new(0),
            failed: Cell::new(None),
            budget,
            weights,
            form,
            met_exact: Cell::new(false),
            stack: std::ptr::from_ref(&mark) as usize,
        }
    }

    /// Whether the steps are used up, so that later results are invalid.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.get()
    }

    /// Whether the evaluation ended since it met an exact number.
    pub(super) fn met_exact(&self) -> bool {
        self.met_exact.get()
    }

    /// Whether a text of a value is a string. In the first form a number string ends the evaluation.
    #[cold]
    fn is_string(&self, value: &Value) -> bool {
        match self.form {
            Form::Plain => {
                self.met_exact.set(true);
                self.spent.set(true);
                false
            }
            Form::Exact => exact_number(value).is_none(),
        }
    }

    pub(super) fn left(&self) -> u64 {
        self.chunk.get() + self.rest.get()
    }

    /// The address of the value at which the steps were used up.
    pub(super) fn reached(&self) -> usize {
        self.reached.get()
    }

    /// The address of the value of the first error.
    pub(super) fn failed(&self) -> Option<usize> {
        self.failed.get()
    }

    /// Takes `cost` steps for `value`; returns whether they were left.
    #[inline]
    pub(super) fn take(&self, value: usize, cost: u64) -> bool {
        if self.spent.get() || self.failed.get().is_some() {
            return false;
        }
        let chunk = self.chunk.get();
        let mark = 0u8;
        let used = self.stack.abs_diff(std::ptr::from_ref(&mark) as usize);
        if used > MAX_STACK_BYTES || (cost > chunk && !self.refill(cost)) {
            self.spent.set(true);
            self.reached.set(value);
            return false;
        }
        self.chunk.set(self.chunk.get() - cost);
        true
    }

    #[cold]
    fn refill(&self, cost: u64) -> bool {
        let left = self.chunk.get().saturating_add(self.rest.get());
        if cost > left || self.budget.is_stopped() {
            return false;
        }
        let chunk = left.min(cost.max(STEPS_PER_CHECK));
        self.chunk.set(chunk);
        self.rest.set(left - chunk);
        true
    }
}

/// The representation that validators are compiled for.
pub(super) struct Metered;

impl Json for Metered {
    type Node<'a> = MeteredNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    // The conversion of plain JSON, since the maps are the same.
    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(MeteredNode<'_>) -> T,
    ) -> T {
        // Uses of a member's name were charged when the member was read.
        let name = |value: &Value| f(MeteredNode { value, meter: None });
        SerdeJson::with_string_node(buffer, string, name)
    }
}

/// A value and the meter that counts its use.
#[derive(Clone, Copy)]
pub(super) struct MeteredNode<'a> {
    value: &'a Value,
    meter: Option<&'a Meter<'a>>,
}

impl<'a> MeteredNode<'a> {
    pub(super) fn new(value: &'a Value, meter: &'a Meter<'a>) -> Self {
        Self {
            value,
            meter: Some(meter),
        }
    }

    fn address(self) -> usize {
        std::ptr::from_ref(self.value) as usize
    }

    pub(super) const fn value(self) -> &'a Value {
        self.value
    }

    /// Takes steps for this value.
    pub(super) fn take(self, cost: usize) -> bool {
        self.meter
            .is_none_or(|meter| meter.take(self.address(), cost as u64))
    }

    /// Whether the value equals one of a schema, by the rules of the second form.
    pub(super) fn is_equal(self, expected: &Value) -> bool {
        match self.meter {
            Some(_) => !self.take(1) || is_equal(self.value, expected, &mut |cost| self.take(cost)),
            // The name of a member.
            None => self.value.as_str() == string_text(expected) && self.value.is_string(),
        }
    }

    /// Whether a string is one, and not an exact number. Names of members have no meter, and are strings.
    #[inline]
    fn is_text(self, text: &str) -> bool {
        !may_be_number(text) || self.meter.is_none_or(|meter| meter.is_string(self.value))
    }

    /// The text of a string.
    fn text(self) -> &'a str {
        match self.meter {
            Some(_) => string_text(self.value).unwrap_or_default(),
            None => self.value.as_str().unwrap_or_default(),
        }
    }

    /// The value, unless the steps are used up.
    #[inline]
    fn look(self) -> &'a Value {
        match self.meter {
            Some(meter) if !meter.take(self.address(), 1) => &Value::Null,
            _ => self.value,
        }
    }
}

impl<'a> Node<'a, Metered> for MeteredNode<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = MeteredNumber<'a>;

    #[inline]
    fn as_object(&self) -> Option<MeteredObject<'a>> {
        let members = self.look().as_object()?;
        Some(MeteredObject {
            members,
            meter: self.meter,
        })
    }

    #[inline]
    fn as_array(&self) -> Option<MeteredArray<'a>> {
        let items = self.look().as_array()?;
        Some(MeteredArray {
            items,
            meter: self.meter,
        })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let mut text = self.look().as_str()?;
        if may_be_number(text) {
            if !self.is_text(text) {
                return None;
            }
            text = self.text();
        }
        if let Some(meter) = self.meter {
            let cost = meter.weights.string(text.len());
            if cost > 0 && !meter.take(self.address(), cost) {
                return None;
            }
        }
        Some(Cow::Borrowed(text))
    }

    #[inline]
    fn as_number(&self) -> Option<MeteredNumber<'a>> {
        match self.look() {
            Value::Number(number) => Some(MeteredNumber::Ordinary(number)),
            Value::String(text) if !self.is_text(text) => {
                exact_number(self.value).map(MeteredNumber::Exact)
            }
            _ => None,
        }
    }

    #[inline]
    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    #[inline]
    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    #[inline]
    fn json_type(&self) -> JsonType {
        match self.look() {
            Value::String(text) if !self.is_text(text) => JsonType::Number,
            value => value.json_type(),
        }
    }

    fn string_length(&self) -> Option<u64> {
        let value = self.look();
        if let Value::String(text) = value
            && may_be_number(text)
        {
            let is_text = self.is_text(text);
            return is_text.then(|| self.text().chars().count() as u64);
        }
        if let (Value::String(text), Some(meter)) = (value, self.meter) {
            let cost = Weights::bytes(text.len());
            if cost > 0 && !meter.take(self.address(), cost) {
                return None;
            }
        }
        value.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        let value = self.look();
        if self.meter.is_some_and(|meter| meter.form == Form::Exact) {
            return self.is_equal(expected);
        }
        if let Value::String(text) = value
            && !self.is_text(text)
        {
            return false;
        }
        let cost = match (value, expected) {
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => size_of_value(expected),
            (Value::Object(a), Value::Object(b)) if a.len() == b.len() => size_of_value(expected),
            (Value::String(a), Value::String(b)) if a.len() == b.len() => Weights::bytes(a.len()),
            _ => 0,
        };
        let affordable = match self.meter {
            Some(meter) => cost == 0 || meter.take(self.address(), cost),
            None => true,
        };
        affordable && value.equals_value(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        // Called for an error that is built, so the result and its place are known. Errors of all alternatives
        // could be unbounded: from here on the value appears empty.
        if let Some(meter) = self.meter
            && !meter.is_spent()
            && meter.failed.get().is_none()
        {
            meter.failed.set(Some(self.address()));
        }
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        // Called at the target of a reference: a chain of references is work too.
        if let Some(meter) = self.meter {
            meter.take(self.address(), 1);
        }
        Some(NodeIdentity::new(self.address()))
    }
}

/// The number of values in a value of a schema, with a share for its text.
fn size_of_value(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(size_of_value).sum::<u64>() + 1,
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                Weights::bytes(name.len()) + size_of_value(value) + 1
            };
            members.iter().map(member).sum::<u64>() + 1
        }
        Value::String(text) => Weights::bytes(text.len()) + 1,
        _ => 1,
    }
}

pub(super) struct MeteredObject<'a> {
    members: &'a Map<String, Value>,
    meter: Option<&'a Meter<'a>>,
}

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredNode<'a>;
    type MemberName = &'a str;
    type MembersIter = MeteredMembers<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    #[inline]
    fn get(&self, key: &String) -> Option<MeteredNode<'a>> {
        let value = self.members.get(key.as_str());
        let meter = self.meter;
        let node = value.map(|value| MeteredNode { value, meter });
        let address = node.map_or(0, MeteredNode::address);
        let cost = meter.map_or(0, |meter| meter.weights.part());
        match meter {
            Some(meter) if !meter.take(address, cost) => None,
            _ => node,
        }
    }

    fn members(&self) -> MeteredMembers<'a> {
        MeteredMembers {
            members: self.members.iter(),
            meter: self.meter,
        }
    }
}

pub(super) struct MeteredMembers<'a> {
    members: serde_json::map::Iter<'a>,
    meter: Option<&'a Meter<'a>>,
}

impl<'a> Iterator for MeteredMembers<'a> {
    type Item = (&'a str, MeteredNode<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        let meter = self.meter;
        let node = MeteredNode { value, meter };
        if let Some(meter) = meter
            && !meter.take(node.address(), meter.weights.member(name.len()))
        {
            return None;
        }
        Some((name.as_str(), node))
    }
}

pub(super) struct MeteredArray<'a> {
    items: &'a [Value],
    meter: Option<&'a Meter<'a>>,
}

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredNode<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements {
            items: self.items.iter(),
            meter: self.meter,
        }
    }

    fn is_unique(&self) -> bool {
        is_unique(self.items, |value, cost| {
            let address = std::ptr::from_ref(value) as usize;
            self.meter.is_none_or(|meter| meter.take(address, cost))
        })
    }
}

pub(super) struct Elements<'a> {
    items: std::slice::Iter<'a, Value>,
    meter: Option<&'a Meter<'a>>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = MeteredNode<'a>;

    #[inline]
    fn next(&mut self) -> Option<MeteredNode<'a>> {
        let value = self.items.next()?;
        let meter = self.meter;
        let node = MeteredNode { value, meter };
        if let Some(meter) = meter
            && !meter.take(node.address(), meter.weights.part())
        {
            return None;
        }
        Some(node)
    }
}
