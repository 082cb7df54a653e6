//! The work of `data_table`: columns, order, limit and aggregates of rows. Its schema is in `data`.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Answer, Arguments, Failure};

/// Maximum number of rows of one call.
pub(super) const MAX_ROWS: usize = 10_000;
/// Maximum number of aggregates of one call; each is one pass over all rows.
pub(super) const MAX_AGGREGATES: usize = 100;

type Row = Map<String, Value>;

pub(super) fn run(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let mut rows = rows(arguments.value("rows").unwrap_or(&Value::Null))?;
    let columns: BTreeSet<&String> = rows.iter().flat_map(|row| row.keys()).collect();
    let aggregates = match arguments.value("aggregate").and_then(Value::as_array) {
        Some(wanted) if wanted.len() > MAX_AGGREGATES => {
            return Err(Failure::new(format!(
                "argument `aggregate` must have at most {MAX_AGGREGATES} items"
            )));
        }
        Some(wanted) => wanted
            .iter()
            .map(|wanted| aggregate(&rows, wanted))
            .collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    if let Some(sort) = arguments.value("sort") {
        sort_rows(&mut rows, sort)?;
    }
    let total = rows.len();
    if let Some(limit) = arguments.integer("limit")? {
        rows.truncate(usize::try_from(limit).unwrap_or_default());
    }
    Ok(Answer::Structured(json!({
        "columns": columns,
        "rows": rows,
        "total": total,
        "aggregates": aggregates,
    })))
}

fn rows(given: &Value) -> Result<Vec<&Row>, Failure> {
    let given = given.as_array().map(Vec::as_slice).unwrap_or_default();
    if given.len() > MAX_ROWS {
        return Err(Failure::new(format!(
            "argument `rows` must have at most {MAX_ROWS} items"
        )));
    }
    let row = |(at, row): (usize, &'_ Value)| -> Result<(), Failure> {
        let flat = |value: &Value| !value.is_array() && !value.is_object();
        match row.as_object() {
            Some(row) if row.values().all(flat) => Ok(()),
            Some(_) => Err(Failure::new(format!(
                "row {at} has a value that is a list or an object"
            ))),
            None => Err(Failure::new(format!("row {at} is not an object"))),
        }
    };
    given.iter().enumerate().try_for_each(row)?;
    Ok(given.iter().filter_map(Value::as_object).collect())
}

fn sort_rows(rows: &mut [&Row], sort: &Value) -> Result<(), Failure> {
    let by = sort["by"]
        .as_str()
        .ok_or_else(|| Failure::new("argument `sort` must name its column in `by`"))?;
    let descending = match sort.get("order").map(Value::as_str) {
        None | Some(Some("ascending")) => false,
        Some(Some("descending")) => true,
        Some(_) => {
            return Err(Failure::new(
                "`order` in argument `sort` must be one of `ascending`, `descending`",
            ));
        }
    };
    // The sort is stable, so equal rows keep their order in both directions.
    rows.sort_by(|left, right| match (left.get(by), right.get(by)) {
        (None | Some(Value::Null), None | Some(Value::Null)) => Ordering::Equal,
        (None | Some(Value::Null), Some(_)) => Ordering::Greater,
        (Some(_), None | Some(Value::Null)) => Ordering::Less,
        (Some(left), Some(right)) if descending => compare(right, left),
        (Some(left), Some(right)) => compare(left, right),
    });
    Ok(())
}

/// Booleans before numbers before strings, and each kind in its own order.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => float(left).total_cmp(&float(right)),
        },
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Bool(_) => 0,
        Value::Number(_) => 1,
        _ => 2,
    }
}

fn float(number: &serde_json::Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

fn aggregate(rows: &[&Row], wanted: &Value) -> Result<Value, Failure> {
    let (Some(column), Some(function)) = (wanted["column"].as_str(), wanted["function"].as_str())
    else {
        return Err(Failure::new(
            "each item of argument `aggregate` must have a `column` and a `function`",
        ));
    };
    let numbers: Vec<&Value> = rows
        .iter()
        .filter_map(|row| row.get(column))
        .filter(|value| value.is_number())
        .collect();
    let value = match function {
        "count" => json!(numbers.len()),
        "sum" if numbers.is_empty() => Value::Null,
        "sum" => sum(&numbers),
        "mean" => mean(&numbers),
        "min" => extreme(
            numbers
                .into_iter()
                .min_by(|left, right| compare(left, right)),
        ),
        "max" => extreme(
            numbers
                .into_iter()
                .max_by(|left, right| compare(left, right)),
        ),
        _ => {
            return Err(Failure::new(
                "`function` must be one of `count`, `sum`, `mean`, `min`, `max`",
            ));
        }
    };
    Ok(json!({"column": column, "function": function, "value": value}))
}

/// Integers stay integers as long as their sum is one; everything else is added as floats.
fn sum(numbers: &[&Value]) -> Value {
    let whole = numbers.iter().try_fold(0_i64, |sum, number| {
        number.as_i64().and_then(|number| sum.checked_add(number))
    });
    match whole {
        Some(sum) => json!(sum),
        None => json!(float_sum(numbers)),
    }
}

fn mean(numbers: &[&Value]) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "there are at most 10 000 rows")]
    let count = numbers.len() as f64;
    if numbers.is_empty() {
        Value::Null
    } else {
        json!(float_sum(numbers) / count)
    }
}

fn float_sum(numbers: &[&Value]) -> f64 {
    numbers.iter().filter_map(|number| number.as_f64()).sum()
}

fn extreme(found: Option<&Value>) -> Value {
    found.cloned().unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, structured};
    use super::*;

    fn fruit() -> Value {
        json!([
            {"name": "pear", "price": 3},
            {"name": "apple", "price": 1.5, "ripe": true},
            {"name": "fig"},
            {"name": "plum", "price": 2},
        ])
    }

    fn names(answer: &Value) -> Vec<&str> {
        let rows = answer["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| row["name"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn table_rows_are_sorted_with_missing_values_last() {
        let up = structured(
            "data_table",
            json!({"rows": fruit(), "sort": {"by": "price"}}),
        );
        assert_eq!(names(&up), ["apple", "plum", "pear", "fig"]);
        let down = structured(
            "data_table",
            json!({"rows": fruit(), "sort": {"by": "price", "order": "descending"}, "limit": 2}),
        );
        assert_eq!(names(&down), ["pear", "plum"]);
        assert_eq!(down["total"], 4);
        assert_eq!(down["columns"], json!(["name", "price", "ripe"]));
    }

    #[test]
    fn table_aggregates_use_the_numbers_of_all_rows() {
        let wanted: Vec<_> = ["count", "sum", "mean", "min", "max"]
            .iter()
            .map(|function| json!({"column": "price", "function": function}))
            .collect();
        let answer = structured(
            "data_table",
            json!({"rows": fruit(), "limit": 0, "aggregate": wanted}),
        );
        let values: Vec<_> = answer["aggregates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|aggregate| aggregate["value"].clone())
            .collect();
        assert_eq!(Value::from(values), json!([3, 6.5, 6.5 / 3.0, 1.5, 3]));
        assert_eq!(answer["rows"], json!([]));
    }

    #[test]
    fn table_sum_of_integers_is_an_integer() {
        let answer = structured(
            "data_table",
            json!({
                "rows": [{"n": 9_007_199_254_740_993_i64}, {"n": 1}],
                "aggregate": [{"column": "n", "function": "sum"}, {"column": "x", "function": "mean"}],
            }),
        );
        assert_eq!(
            answer["aggregates"][0]["value"],
            json!(9_007_199_254_740_994_i64)
        );
        assert_eq!(answer["aggregates"][1]["value"], Value::Null);
    }

    #[test]
    fn table_with_nested_rows_or_unknown_functions_is_refused() {
        let nested = json!({"rows": [{"a": 1}, {"a": [1]}]});
        assert_eq!(
            refusal("data_table", nested),
            "row 1 has a value that is a list or an object"
        );
        let unknown = json!({"rows": [], "aggregate": [{"column": "a", "function": "median"}]});
        assert!(refusal("data_table", unknown).contains("`mean`"));
        let order = json!({"rows": [], "sort": {"by": "a", "order": "up"}});
        assert!(refusal("data_table", order).contains("`ascending`"));
    }
}
