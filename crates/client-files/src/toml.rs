//! TOML as values with their places, in the order of the file.

use ::toml::de::{DeInteger, DeTable, DeValue};
use broker_config::client_file::{Data, Member, Spanned};
use broker_model::json::position_of_offset;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};

/// Maximum number of values.
const MAX_VALUES: usize = 100_000;

/// Reads TOML. An error has the place and the message of the parser. The message contains no text of the file.
pub(super) fn parse(file: &str, text: &str) -> Result<Spanned, Vec<Diagnostic>> {
    let refused = |code, at: usize, message: String| {
        let mut problem = Diagnostic::error(code, message).in_file(file);
        problem.position = Some(position_of_offset(text, at));
        vec![problem]
    };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message = format!("the file is not TOML: {}", shown_line(error.message(), 200));
        refused(DiagnosticCode::ImportSyntax, at, message)
    })?;
    let mut left = MAX_VALUES;
    let members = members(table.into_inner(), &mut left);
    let members = members.ok_or_else(|| {
        let message = format!("the file has more than {MAX_VALUES} values");
        refused(DiagnosticCode::ConfigSize, 0, message)
    })?;
    Ok(Spanned {
        at: 0,
        data: Data::Object(members),
    })
}

/// Returns the members of a table; `None` if there are too many values.
fn members(table: DeTable<'_>, left: &mut usize) -> Option<Vec<Member>> {
    let members = table.into_iter().map(|(key, value)| {
        Some(Member {
            at: key.span().start,
            key: key.into_inner().into_owned(),
            value: spanned(value, left)?,
        })
    });
    let mut members = members.collect::<Option<Vec<_>>>()?;
    // The parser sorts them by name.
    members.sort_by_key(|member| member.at);
    Some(members)
}

/// Returns a value; `None` if there are too many. The parser bounds the depth.
fn spanned(value: ::toml::Spanned<DeValue<'_>>, left: &mut usize) -> Option<Spanned> {
    *left = left.checked_sub(1)?;
    let at = value.span().start;
    let data = match value.into_inner() {
        DeValue::String(text) => Data::String(text.into_owned()),
        DeValue::Integer(integer) => Data::Number(decimal(&integer)),
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Data::Number(number.to_string()),
            _ => Data::String(float.as_str().to_owned()),
        },
        DeValue::Boolean(value) => Data::Bool(value),
        DeValue::Datetime(time) => Data::String(time.to_string()),
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| spanned(item, left));
            Data::Array(items.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => Data::Object(members(table, left)?),
    };
    Some(Spanned { at, data })
}

/// Returns an integer as JSON writes it; one above 128 bits as TOML has it.
fn decimal(integer: &DeInteger<'_>) -> String {
    match i128::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(number) => number.to_string(),
        Err(_) => integer.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_is_read_in_the_order_of_the_file() {
        let text = "z = 0x10\n[t.b]\nx = [1.5, true]\n[t.a]\ny = 'v'\nd = 2025-01-01\n";
        let root = parse("f.toml", text).expect("valid");
        let keys = |value: &Spanned| -> Vec<String> {
            let members = value.members().iter();
            members.map(|member| member.key.clone()).collect()
        };
        assert_eq!(keys(&root), ["z", "t"]);
        let t = root.get("t").expect("a table");
        assert_eq!(keys(t), ["b", "a"]);
        assert_eq!(t.members()[1].at, text.find("a]").expect("there"));
        let z = root.get("z").expect("a number");
        assert_eq!(z.to_value(), 16);
        assert_eq!(t.to_value()["a"]["d"], "2025-01-01");
        assert_eq!(t.to_value()["b"]["x"], serde_json::json!([1.5, true]));
    }

    #[test]
    fn toml_that_is_not_valid_is_refused_at_its_place() {
        for (text, place) in [
            ("a = 1\nb = 's3cret\n", "f.toml:2:"),
            ("a = 1\na = 's3cret'\n", "f.toml:2:1"),
            ("[t]\nx = s3cret\n", "f.toml:2:5"),
            ("a = [", "f.toml:1:"),
            (&format!("a = {}", "[".repeat(1000)), "f.toml:1:"),
        ] {
            let problems = parse("f.toml", text).expect_err("not TOML");
            let shown = problems[0].to_string();
            assert!(
                shown.contains(place) && !shown.contains("s3cret"),
                "{shown}"
            );
            assert_eq!(problems[0].code, DiagnosticCode::ImportSyntax);
        }
    }
}
