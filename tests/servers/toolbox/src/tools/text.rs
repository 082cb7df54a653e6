//! The `text_*` tools: their schemas and their arguments. The longer text work is in `words`.

use serde_json::json;

use super::schema::{choice, integer, object, string};
use super::{Answer, Arguments, Failure, MAX_TEXT, Tool, words};

/// Maximum number of paragraphs of filler text.
const MAX_PARAGRAPHS: i64 = 200;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "text_case",
            title: "Change letter case",
            description: "Writes a text in another case: upper, lower, title, or its words joined as snake_case or kebab-case.",
            input: object(
                json!({
                    "text": string("The text to change"),
                    "to": choice("The case to change to", &["upper", "lower", "title", "snake", "kebab"]),
                }),
                &["text", "to"],
            ),
            output: None,
            run: case,
        },
        Tool {
            name: "text_count",
            title: "Count words and letters",
            description: "Counts the words, lines, characters and UTF-8 bytes of a text.",
            input: object(json!({"text": string("The text to count")}), &["text"]),
            output: Some(object(
                json!({
                    "words": {"type": "integer", "minimum": 0, "description": "Runs of anything but white space"},
                    "lines": {"type": "integer", "minimum": 0, "description": "Lines, with or without a newline at the end"},
                    "chars": {"type": "integer", "minimum": 0, "description": "Unicode scalar values"},
                    "bytes": {"type": "integer", "minimum": 0, "description": "Bytes in UTF-8"},
                }),
                &["words", "lines", "chars", "bytes"],
            )),
            run: count,
        },
        Tool {
            name: "text_replace",
            title: "Replace text",
            description: "Replaces every place where a text contains another text, or only the first few places; no patterns.",
            input: object(
                json!({
                    "text": string("The text to work on"),
                    "find": {"type": "string", "minLength": 1, "description": "What to look for, exactly"},
                    "with": string("What to put in its place"),
                    "limit": integer("Replace at most this many places; all when left out", 0, 1_000_000),
                }),
                &["text", "find", "with"],
            ),
            output: None,
            run: replace,
        },
        Tool {
            name: "text_slice",
            title: "Cut out a part",
            description: "Answers with the characters from `start` up to, not including, `end`. A negative position counts from the end of the text.",
            input: object(
                json!({
                    "text": string("The text to cut"),
                    "start": integer("Position of the first character; 0 is the first", -1_000_000_000, 1_000_000_000),
                    "end": integer("Position after the last character; the end of the text when left out", -1_000_000_000, 1_000_000_000),
                }),
                &["text", "start"],
            ),
            output: None,
            run: slice,
        },
        Tool {
            name: "text_lorem",
            title: "Filler text",
            description: "Writes paragraphs of Latin filler text, always the same for the same count. 200 paragraphs are about 100 kilobytes.",
            input: object(
                json!({"paragraphs": integer("How many paragraphs; 3 when left out", 1, MAX_PARAGRAPHS)}),
                &[],
            ),
            output: None,
            run: lorem,
        },
    ]
}

fn case(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    Ok(Answer::Text(match arguments.text("to")? {
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        "title" => words::title(text),
        "snake" => words::joined(text, "_"),
        _ => words::joined(text, "-"),
    }))
}

fn count(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    Ok(Answer::Structured(json!({
        "words": text.split_whitespace().count(),
        "lines": text.lines().count(),
        "chars": text.chars().count(),
        "bytes": text.len(),
    })))
}

fn replace(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let (text, find, with) = (
        arguments.text("text")?,
        arguments.text("find")?,
        arguments.text("with")?,
    );
    if find.is_empty() {
        return Err(Failure::new("argument `find` must not be empty"));
    }
    let limit = arguments.integer("limit")?.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let places = text.matches(find).take(limit).count();
    // A short text can request a huge answer, so the length is computed first.
    if places.saturating_mul(with.len()) > MAX_TEXT {
        return Err(Failure::new(format!(
            "the answer would be longer than {MAX_TEXT} bytes"
        )));
    }
    Ok(Answer::Text(text.replacen(find, with, limit)))
}

fn slice(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    let length = text.chars().count();
    let position = |at: i64| {
        let back = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
        if at < 0 {
            length.saturating_sub(back)
        } else {
            back.min(length)
        }
    };
    let start = position(arguments.integer("start")?.unwrap_or_default());
    let end = arguments.integer("end")?.map_or(length, position);
    let part = text
        .chars()
        .skip(start)
        .take(end.saturating_sub(start))
        .collect();
    Ok(Answer::Text(part))
}

fn lorem(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let paragraphs = arguments.integer("paragraphs")?.unwrap_or(3);
    let paragraphs = usize::try_from(paragraphs).unwrap_or_default();
    Ok(Answer::Text(words::lorem(paragraphs)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, structured, text};
    use super::*;

    #[test]
    fn text_case_writes_every_case() {
        for (to, expected) in [
            ("upper", "BIG RED APPLE"),
            ("lower", "big red apple"),
            ("title", "Big Red Apple"),
            ("snake", "big_red_apple"),
            ("kebab", "big-red-apple"),
        ] {
            let arguments = json!({"text": "big Red apple", "to": to});
            assert_eq!(text("text_case", arguments), expected);
        }
    }

    #[test]
    fn text_count_distinguishes_characters_and_bytes() {
        assert_eq!(
            structured("text_count", json!({"text": "héllo  wörld\nbye\n"})),
            json!({"words": 3, "lines": 2, "chars": 17, "bytes": 19})
        );
        assert_eq!(
            structured("text_count", json!({"text": ""})),
            json!({"words": 0, "lines": 0, "chars": 0, "bytes": 0})
        );
    }

    #[test]
    fn text_replace_stops_at_its_limit() {
        let all = json!({"text": "a.a.a", "find": ".", "with": "--"});
        assert_eq!(text("text_replace", all), "a--a--a");
        let one = json!({"text": "a.a.a", "find": ".", "with": "", "limit": 1});
        assert_eq!(text("text_replace", one), "aa.a");
        let none = json!({"text": "a.a.a", "find": ".", "with": "", "limit": 0});
        assert_eq!(text("text_replace", none), "a.a.a");
    }

    #[test]
    fn text_replace_of_nothing_or_with_a_huge_result_is_refused() {
        let empty = json!({"text": "a", "find": "", "with": "b"});
        assert_eq!(
            refusal("text_replace", empty),
            "argument `find` must not be empty"
        );
        let huge = json!({"text": "a".repeat(10_000), "find": "a", "with": "b".repeat(10_000)});
        assert!(refusal("text_replace", huge).contains("longer than"));
    }

    #[test]
    fn text_slice_counts_characters_from_both_ends() {
        let slice = |start: i64, end: Option<i64>| {
            let mut arguments = json!({"text": "añb😀c", "start": start});
            if let Some(end) = end {
                arguments["end"] = json!(end);
            }
            text("text_slice", arguments)
        };
        assert_eq!(slice(1, Some(4)), "ñb😀");
        assert_eq!(slice(-2, None), "😀c");
        assert_eq!(slice(0, Some(-1)), "añb😀");
        assert_eq!(slice(3, Some(1)), "");
        assert_eq!(slice(-99, Some(99)), "añb😀c");
    }

    #[test]
    fn text_lorem_has_the_requested_number_of_paragraphs() {
        let long = text("text_lorem", json!({"paragraphs": 200}));
        assert_eq!(long.split("\n\n").count(), 200);
        assert_eq!(text("text_lorem", json!({})).split("\n\n").count(), 3);
    }
}
