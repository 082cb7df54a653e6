//! Assertions on exact numbers, which `jsonschema` cannot read: this crate's checks of `minimum`, `maximum`,
//! `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `const` and `enum`, by the decimal text of numbers.
//!
//! A validator has two forms. The first one is `jsonschema` as it is; it serves as long as it meets no exact
//! number (see `broker_model::json`). The second form has the keywords above replaced by keywords of this module;
//! it is used if schema or value has an exact number, or `multipleOf` is a number that `jsonschema` would
//! round. `type` and `uniqueItems` need no replacement: they ask the value.
//!
//! `jsonschema` itself compiles a copy of the schema in which each exact number is a stand-in of the same
//! sign that is an integer if the number is one. The original of a keyword is beside it, under a name that
//! begins with U+FDD0.

use std::borrow::Cow;

use jsonschema::{Keyword, ValidationError, paths::Location};
use num_bigint::BigUint;
use serde_json::{Map, Value};

use super::equal::DIGITS_PER_STEP;
use super::meter::{Metered, MeteredNode};
use super::options::{Options, options};
use broker_model::json::{Decimal, decimal_of, exact_number, may_be_number, string_text};

/// The first character of the name of a keyword's original.
const ORIGINAL: char = '\u{fdd0}';
/// Keywords whose number is compared with a value.
const NUMERIC: [&str; 5] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
/// Keywords whose members have names instead of keywords.
const NAMED: [&str; 7] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
    "dependentRequired",
];
/// Products of digits of a division that are computed in one step.
const PRODUCTS_PER_STEP: usize = 16;
/// The largest step of `multipleOf` for which `jsonschema` is exact: 2^53.
const MAX_STEP: u64 = 1 << 53;

/// Whether a schema needs the second form for every value.
pub(super) fn needs_exact_form(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let is_step = name == "multipleOf" && value.is_number();
            (is_step && value.as_u64().is_none_or(|step| step > MAX_STEP))
                || needs_exact_form(value)
        }),
        Value::Array(items) => items.iter().any(needs_exact_form),
        other => other.as_str().is_some_and(may_be_number),
    }
}

/// Whether a value has an exact number, or a string that looks like one.
pub(super) fn has_exact_number(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_exact_number),
        Value::Array(items) => items.iter().any(has_exact_number),
        other => other.as_str().is_some_and(may_be_number),
    }
}

/// The schema for the first form, with stand-ins for exact numbers.
pub(super) fn with_stand_ins(schema: &Value) -> Cow<'_, Value> {
    if !has_exact_number(schema) {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    replace_all(&mut schema);
    Cow::Owned(schema)
}

/// The schema for the second form: stand-ins, and the originals of keywords beside them.
pub(super) fn with_originals(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let dialect = schema.get("$schema").and_then(Value::as_str);
    // Draft 4 has no `const`, which the options know in every dialect.
    if dialect.is_some_and(|dialect| dialect.contains("draft-04")) {
        remove_const(&mut schema);
    }
    keep_originals(&mut schema);
    schema
}

/// The options of the second form.
pub(super) fn exact_options<'a>() -> Options<'a> {
    options()
        .with_keyword("minimum", |parent, value, _| {
            Ok(bound(
                parent,
                value,
                Side::Least,
                "exclusiveMinimum",
                "minimum",
            ))
        })
        .with_keyword("maximum", |parent, value, _| {
            Ok(bound(
                parent,
                value,
                Side::Most,
                "exclusiveMaximum",
                "maximum",
            ))
        })
        .with_keyword("exclusiveMinimum", |parent, value, _| {
            Ok(bound(parent, value, Side::Above, "", "exclusiveMinimum"))
        })
        .with_keyword("exclusiveMaximum", |parent, value, _| {
            Ok(bound(parent, value, Side::Below, "", "exclusiveMaximum"))
        })
        .with_keyword("multipleOf", multiple_of)
        .with_keyword("const", |_, value, _| {
            Ok(Box::new(Listed {
                values: vec![value.clone()],
                expected: broker_model::json::to_text(value),
            }))
        })
        .with_keyword("enum", |_, value, _| {
            let expected = format!("one of {}", broker_model::json::to_text(value));
            let values = value.as_array().cloned().unwrap_or_default();
            Ok(Box::new(Listed { values, expected }))
        })
}

/// The names of a keyword and of its original.
pub(super) fn keyword_names(keyword: &str) -> [String; 2] {
    [keyword.to_owned(), format!("{ORIGINAL}{keyword}")]
}

fn replace_all(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(replace_all),
        Value::Array(items) => items.iter_mut().for_each(replace_all),
        other => {
            if let Some(number) = exact_number(other) {
                *other = stand_in(number);
            } else if let Some(text) = string_text(other).filter(|text| may_be_number(text)) {
                *other = text.into();
            }
        }
    }
}

fn remove_const(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords.remove("const");
            for (keyword, value) in keywords.iter_mut() {
                match value {
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values_mut().for_each(remove_const);
                    }
                    value if keyword != "enum" => remove_const(value),
                    _ => {}
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(remove_const),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn keep_originals(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords.retain(|name, _| {
                let original = name.strip_prefix(ORIGINAL);
                original.is_none_or(|name| !NUMERIC.contains(&name))
            });
            for keyword in NUMERIC {
                if let Some(value) = keywords.get(keyword)
                    && exact_number(value).is_some()
                {
                    let original = value.clone();
                    keywords.insert(format!("{ORIGINAL}{keyword}"), original);
                }
            }
            for (keyword, value) in keywords.iter_mut() {
                match keyword.as_str() {
                    "const" | "enum" => {}
                    name if name.starts_with(ORIGINAL) => {}
                    name if NAMED.contains(&name) => match value {
                        Value::Object(named) => named.values_mut().for_each(keep_originals),
                        other => replace_all(other),
                    },
                    _ => keep_originals(value),
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(keep_originals),
        other => replace_all(other),
    }
}

/// An ordinary number of the same sign, which is an integer if the exact number is one.
fn stand_in(number: &str) -> Value {
    match Decimal::parse(number) {
        Some(value) if !value.is_integer() => match value.is_negative() {
            true => (-0.5).into(),
            false => 0.5.into(),
        },
        Some(value) if value.is_negative() => i64::MIN.into(),
        _ => u64::MAX.into(),
    }
}

type Compiled = Box<dyn for<'i> Keyword<'i, Metered>>;

fn original<'a>(parent: &'a Map<String, Value>, value: &'a Value, keyword: &str) -> &'a Value {
    parent.get(&format!("{ORIGINAL}{keyword}")).unwrap_or(value)
}

#[derive(Clone, Copy)]
enum Side {
    Least,
    Above,
    Most,
    Below,
}

fn bound(
    parent: &Map<String, Value>,
    value: &Value,
    side: Side,
    strict: &str,
    keyword: &str,
) -> Compiled {
    let value = original(parent, value, keyword);
    // In draft 4 a flag beside the bound makes it exclusive.
    let is_strict = parent.get(strict) == Some(&Value::Bool(true));
    let side = match side {
        Side::Least if is_strict => Side::Above,
        Side::Most if is_strict => Side::Below,
        side => side,
    };
    let words = match side {
        Side::Least => "at least",
        Side::Above => "more than",
        Side::Most => "at most",
        Side::Below => "less than",
    };
    match decimal_of(value) {
        Some(limit) => Box::new(Bound {
            limit,
            side,
            expected: format!("{words} {}", broker_model::json::to_text(value)),
        }),
        None => Box::new(Nothing),
    }
}

fn multiple_of<'a>(
    parent: &'a Map<String, Value>,
    value: &'a Value,
    _at: Location,
) -> Result<Compiled, ValidationError<'a>> {
    let value = original(parent, value, "multipleOf");
    Ok(match decimal_of(value).filter(|step| !step.is_zero()) {
        Some(step) => Box::new(MultipleOf {
            divisor: Divisor::new(&step),
            step,
            expected: format!("a multiple of {}", broker_model::json::to_text(value)),
        }),
        None => Box::new(Nothing),
    })
}

fn integer(decimal: &Decimal) -> BigUint {
    BigUint::parse_bytes(decimal.digits(), 10).unwrap_or_default()
}

/// The number of a node, if the steps for reading it are left.
fn number_of(node: MeteredNode<'_>) -> Option<Decimal> {
    let length = match node.value() {
        Value::Number(_) => 24,
        other => exact_number(other)?.len(),
    };
    let cost = 1 + length / DIGITS_PER_STEP;
    node.take(cost).then(|| decimal_of(node.value())).flatten()
}

/// A keyword that accepts every value.
struct Nothing;

impl<'i> Keyword<'i, Metered> for Nothing {
    fn validate(&self, _node: MeteredNode<'i>) -> Result<(), ValidationError<'i>> {
        Ok(())
    }

    fn is_valid(&self, _node: MeteredNode<'i>) -> bool {
        true
    }
}

struct Bound {
    limit: Decimal,
    side: Side,
    expected: String,
}

impl<'i> Keyword<'i, Metered> for Bound {
    fn validate(&self, node: MeteredNode<'i>) -> Result<(), ValidationError<'i>> {
        verdict(self.is_valid(node), &self.expected)
    }

    fn is_valid(&self, node: MeteredNode<'i>) -> bool {
        number_of(node).is_none_or(|number| {
            let order = number.cmp(&self.limit);
            match self.side {
                Side::Least => order.is_ge(),
                Side::Above => order.is_gt(),
                Side::Most => order.is_le(),
                Side::Below => order.is_lt(),
            }
        })
    }
}

struct MultipleOf {
    step: Decimal,
    divisor: Divisor,
    expected: String,
}

/// The integer of a step's digits.
enum Divisor {
    Small(u64),
    Large(BigUint),
}

impl Divisor {
    fn new(step: &Decimal) -> Self {
        let digits = integer(step);
        match u64::try_from(&digits) {
            Ok(small) => Self::Small(small),
            Err(_) => Self::Large(digits),
        }
    }

    /// Whether this divides the digits of `number` times ten to the power of `exponent`. More factors of ten
    /// than bits divide nothing: the divisor has fewer factors of two, and of five, than bits.
    fn divides(&self, number: &Decimal, exponent: u32) -> bool {
        match self {
            Self::Small(divisor) => {
                let divisor = u128::from(*divisor);
                let digits = number.digits().iter().map(|digit| u128::from(digit - b'0'));
                let zeros = std::iter::repeat_n(0, exponent.min(u64::BITS) as usize);
                let shift = |rest: u128, digit| (rest * 10 + digit) % divisor;
                digits.chain(zeros).fold(0, shift) == 0
            }
            Self::Large(divisor) => {
                let exponent = u64::from(exponent).min(divisor.bits());
                let power = BigUint::from(10u8).modpow(&BigUint::from(exponent), divisor);
                (integer(number) * power) % divisor == BigUint::ZERO
            }
        }
    }

    /// Steps for a number of this many digits.
    fn cost(&self, step: &Decimal, digits: usize) -> usize {
        match self {
            Self::Small(_) => 8 + digits,
            Self::Large(_) => {
                let own = step.digits().len();
                // The power takes up to 12 squarings.
                64 + (digits * digits + own * digits + 12 * own * own) / PRODUCTS_PER_STEP
            }
        }
    }
}

impl MultipleOf {
    /// Whether `number / step` is an integer. The digits of a number do not end with zero, so its integer of
    /// digits is not divisible by ten: an exponent below the step's exponent leaves a fraction.
    fn divides(&self, number: &Decimal) -> bool {
        let exponent = number.exponent() - self.step.exponent();
        u32::try_from(exponent).is_ok_and(|exponent| self.divisor.divides(number, exponent))
    }
}

impl<'i> Keyword<'i, Metered> for MultipleOf {
    fn validate(&self, node: MeteredNode<'i>) -> Result<(), ValidationError<'i>> {
        verdict(self.is_valid(node), &self.expected)
    }

    fn is_valid(&self, node: MeteredNode<'i>) -> bool {
        let Some(number) = number_of(node).filter(|number| !number.is_zero()) else {
            return true;
        };
        let cost = self.divisor.cost(&self.step, number.digits().len());
        !node.take(cost) || self.divides(&number)
    }
}

struct Listed {
    values: Vec<Value>,
    expected: String,
}

impl<'i> Keyword<'i, Metered> for Listed {
    fn validate(&self, node: MeteredNode<'i>) -> Result<(), ValidationError<'i>> {
        verdict(self.is_valid(node), &self.expected)
    }

    fn is_valid(&self, node: MeteredNode<'i>) -> bool {
        // Once the steps are used up, values count as equal: the verdict is not used.
        self.values.iter().any(|value| node.is_equal(value))
    }
}

fn verdict<'i>(is_valid: bool, expected: &str) -> Result<(), ValidationError<'i>> {
    match is_valid {
        true => Ok(()),
        false => Err(ValidationError::custom(expected)),
    }
}
