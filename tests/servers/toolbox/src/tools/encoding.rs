//! The tools `base64_encode`, `base64_decode` and `hex`.

use data_encoding::{
    BASE64, BASE64_NOPAD, BASE64URL_NOPAD, Encoding, HEXLOWER, HEXLOWER_PERMISSIVE,
};
use serde_json::json;

use super::schema::{choice, object, string};
use super::{Answer, Arguments, Failure, Tool};

pub(super) fn tools() -> Vec<Tool> {
    let alphabet = choice(
        "`standard` is padded, `url` is not; standard when left out",
        &["standard", "url"],
    );
    vec![
        Tool {
            name: "base64_encode",
            title: "Encode base64",
            description: "Encodes the UTF-8 bytes of a text as base64 (RFC 4648).",
            input: object(
                json!({"text": string("The text to encode"), "alphabet": alphabet.clone()}),
                &["text"],
            ),
            output: None,
            run: encode,
        },
        Tool {
            name: "base64_decode",
            title: "Decode base64",
            description: "Decodes base64 (RFC 4648) to the text it holds; refuses bytes that are not UTF-8.",
            input: object(
                json!({"text": string("The base64 to decode; padding may be missing"), "alphabet": alphabet}),
                &["text"],
            ),
            output: None,
            run: decode,
        },
        Tool {
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
        },
    ]
}

fn encode(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    Ok(Answer::Text(match arguments.find("alphabet")? {
        Some("url") => BASE64URL_NOPAD.encode(text.as_bytes()),
        _ => BASE64.encode(text.as_bytes()),
    }))
}

fn decode(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    let alphabet = match arguments.find("alphabet")? {
        Some("url") => &BASE64URL_NOPAD,
        _ => &BASE64_NOPAD,
    };
    let bytes =
        from_base64(text, alphabet).ok_or_else(|| Failure::new("the text is not valid base64"))?;
    utf8(bytes)
}

fn hex(arguments: &Arguments<'_>) -> Result<Answer, Failure> {
    let text = arguments.text("text")?;
    if arguments.text("direction")? == "encode" {
        return Ok(Answer::Text(HEXLOWER.encode(text.as_bytes())));
    }
    let bytes = HEXLOWER_PERMISSIVE
        .decode(text.as_bytes())
        .map_err(|_| Failure::new("the text is not an even number of hexadecimal digits"))?;
    utf8(bytes)
}

fn utf8(bytes: Vec<u8>) -> Result<Answer, Failure> {
    String::from_utf8(bytes)
        .map(Answer::Text)
        .map_err(|_| Failure::new("the decoded bytes are not UTF-8 text"))
}

/// Padding may be missing as a whole, and is only at the end; unused bits must be zero.
fn from_base64(text: &str, alphabet: &Encoding) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if padding > 0 && (padding > 2 || !text.len().is_multiple_of(4)) {
        return None;
    }
    alphabet.decode(digits.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, text};
    use super::*;

    #[test]
    fn base64_matches_the_vectors_of_rfc_4648() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(text("base64_encode", json!({"text": plain})), encoded);
            assert_eq!(text("base64_decode", json!({"text": encoded})), plain);
            let bare = encoded.trim_end_matches('=');
            assert_eq!(text("base64_decode", json!({"text": bare})), plain);
        }
    }

    #[test]
    fn base64_url_alphabet_has_no_padding() {
        let plain = "ü?>~";
        let encoded = text("base64_encode", json!({"text": plain, "alphabet": "url"}));
        assert_eq!(encoded, "w7w_Pn4");
        let back = json!({"text": encoded, "alphabet": "url"});
        assert_eq!(text("base64_decode", back), plain);
        assert!(refusal("base64_decode", json!({"text": encoded})).contains("base64"));
    }

    #[test]
    fn base64_that_is_invalid_is_refused() {
        for wrong in [
            "Z", "Zg=", "Zh==", "Zg==Zg==", "Z m8", "====", "Zm9v=", "Zm9vY===",
        ] {
            assert_eq!(
                refusal("base64_decode", json!({"text": wrong})),
                "the text is not valid base64",
                "{wrong}"
            );
        }
        assert_eq!(
            refusal("base64_decode", json!({"text": "//8="})),
            "the decoded bytes are not UTF-8 text"
        );
    }

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
