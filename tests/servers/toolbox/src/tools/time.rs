//! The tool `time_now`: the clock, in UTC.

use jiff::Timestamp;
use serde_json::json;

use super::schema::object;
use super::{Answer, Arguments, Failure, Tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![Tool {
        name: "time_now",
        title: "Current time",
        description: "Tells the current time in UTC, as RFC 3339 text and as unix seconds.",
        input: object(json!({}), &[]),
        output: Some(object(
            json!({
                "rfc3339": {"type": "string", "description": "The time in UTC, such as `2024-02-29T12:00:00Z`"},
                "unix": {"type": "integer", "description": "Seconds since 1970-01-01T00:00:00Z"},
            }),
            &["rfc3339", "unix"],
        )),
        run: now,
    }]
}

fn now(_: &Arguments<'_>) -> Result<Answer, Failure> {
    let seconds = Timestamp::now().as_second();
    let time = Timestamp::from_second(seconds).map_err(|error| Failure::new(error.to_string()))?;
    Ok(Answer::Structured(
        json!({"rfc3339": time.to_string(), "unix": seconds}),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::structured;
    use super::*;

    #[test]
    fn time_now_names_the_second_in_both_forms() {
        let now = structured("time_now", json!({}));
        let time: Timestamp = now["rfc3339"].as_str().unwrap().parse().unwrap();
        assert_eq!(now["unix"], time.as_second());
    }
}
