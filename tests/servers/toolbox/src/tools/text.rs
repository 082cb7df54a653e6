//! The `text_*` tools: letter cases and filler text.

use serde_json::json;

use super::schema::{choice, integer, object, string};
use super::{Answer, Arguments, Failure, Tool};

/// Maximum number of paragraphs of filler text.
const MAX_PARAGRAPHS: i64 = 200;

const FILLER: [&str; 6] = [
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua.",
    "Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat.",
    "Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur.",
    "Excepteur sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit anim id est laborum.",
    "Curabitur pretium tincidunt lacus, nulla gravida orci a odio, et tempus feugiat.",
    "Vestibulum ante ipsum primis in faucibus orci luctus et ultrices posuere cubilia curae.",
];

/// Sentences in each paragraph of filler text.
const SENTENCES: usize = 5;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "text_case",
            title: "Change letter case",
            description: "Writes a text in another case: upper, lower or title.",
            input: object(
                json!({
                    "text": string("The text to change"),
                    "to": choice("The case to change to", &["upper", "lower", "title"]),
                }),
                &["text", "to"],
            ),
            output: None,
            run: case,
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
        _ => title(text),
    }))
}

fn lorem(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let paragraphs = arguments.integer("paragraphs")?.unwrap_or(3);
    let paragraphs = usize::try_from(paragraphs).unwrap_or_default();
    let paragraph = |number: usize| {
        let sentences = (0..SENTENCES).map(|at| FILLER[(number + at) % FILLER.len()]);
        sentences.collect::<Vec<_>>().join(" ")
    };
    let paragraphs: Vec<_> = (0..paragraphs).map(paragraph).collect();
    Ok(Answer::Text(paragraphs.join("\n\n")))
}

/// Each word begins with a capital; text between words is unchanged.
fn title(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        match (letter.is_alphanumeric(), inside) {
            (true, false) => result.extend(letter.to_uppercase()),
            (true, true) => result.extend(letter.to_lowercase()),
            (false, _) => result.push(letter),
        }
        // An apostrophe belongs to its word: `don't` becomes `Don't`.
        inside = letter.is_alphanumeric() || (inside && matches!(letter, '\'' | '\u{2019}'));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::*;

    #[test]
    fn text_case_writes_every_case() {
        for (to, expected) in [
            ("upper", "BIG RED APPLE"),
            ("lower", "big red apple"),
            ("title", "Big Red Apple"),
        ] {
            let arguments = json!({"text": "big Red apple", "to": to});
            assert_eq!(text("text_case", arguments), expected);
        }
    }

    #[test]
    fn title_case_keeps_spaces_and_apostrophes() {
        assert_eq!(title("don't  PANIC, école!"), "Don't  Panic, École!");
    }

    #[test]
    fn text_lorem_has_the_requested_number_of_paragraphs() {
        let long = text("text_lorem", json!({"paragraphs": 200}));
        assert_eq!(long.split("\n\n").count(), 200);
        assert_eq!(text("text_lorem", json!({})).split("\n\n").count(), 3);
    }
}
