//! The tool `hex`.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde_json::json;

use super::schema::{choice, object, string};
use super::{Answer, Arguments, Failure, Tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![Tool {
        name: "hex",
        title: "Encode or decode hexadecimal",
        description: "Writes the UTF-8 bytes of a text as lower-case hexadecimal digits, or reads such digits back to text.",
        input: object(
            json!({
                "text": string("The text to encode, or the digits to decode"),
                "direction": choice("Which way to go", &["encode", "decode"]),
            }),
            &["text", "direction"],
        ),
        output: None,
        run: hex,
    }]
}

fn hex(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    if arguments.text("direction")? == "encode" {
        return Ok(Answer::Text(HEXLOWER.encode(text.as_bytes())));
    }
    let bytes = HEXLOWER_PERMISSIVE
        .decode(text.as_bytes())
        .map_err(|_| Failure::new("the text is not an even number of hexadecimal digits"))?;
    String::from_utf8(bytes)
        .map(Answer::Text)
        .map_err(|_| Failure::new("the decoded bytes are not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, text};
    use super::*;

    #[test]
    fn hex_encodes_and_decodes() {
        let forth = json!({"text": "né", "direction": "encode"});
        assert_eq!(text("hex", forth), "6ec3a9");
        let back = json!({"text": "6EC3a9", "direction": "decode"});
        assert_eq!(text("hex", back), "né");
        for wrong in ["6", "6g", "ü"] {
            let wrong = json!({"text": wrong, "direction": "decode"});
            assert!(refusal("hex", wrong).contains("hexadecimal"));
        }
    }
}
