//! A server's JSON-RPC error, made safe for callers: secrets are masked, and text beyond the limit is
//! cut.

use broker_model::json::{exact_number, parse, string_text, string_value, to_text};
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::CallFailure;

/// The maximum length of a message in reports, in characters.
const MAX_MESSAGE_CHARS: usize = 2000;
/// The maximum bytes of message and data together, as JSON, that callers get.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The mark at the end of a text that was cut.
const CUT: &str = "… (cut)";

/// The members that are read; others may have any value, including numbers that do not fit a double.
#[derive(Deserialize)]
struct Head<'a> {
    code: i64,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Reads the raw error object.
pub(crate) fn read(error: &[u8], redactor: &Redactor) -> CallFailure {
    let text = String::from_utf8_lossy(error);
    let Ok(head) = serde_json::from_str::<Head<'_>>(&text) else {
        return broken();
    };
    // A message that cannot be decoded (a lone surrogate) is shown as it was written.
    let message = head.message.map(|raw| {
        serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
    });
    let message = redactor.redact(message.as_deref().unwrap_or_default());
    let raw = if text.len() > MAX_TEXT_BYTES {
        RawValue::from_string(cut(&head, &message, redactor))
    } else if redactor.redact(&text) == text {
        RawValue::from_string(text.as_ref().to_owned())
    } else {
        let masked = without_secrets(&text, redactor);
        RawValue::from_string(masked.unwrap_or_else(|| cut(&head, &message, redactor)))
    };
    match raw {
        Ok(error) => CallFailure::Rpc {
            error,
            code: head.code,
            message: shown_line(&message, MAX_MESSAGE_CHARS),
        },
        Err(_) => broken(),
    }
}

/// Shortens an error that is too long: keeps its code, and as much of message and data as fits. Data
/// that does not fit becomes the beginning of its text.
fn cut(head: &Head<'_>, message: &str, redactor: &Redactor) -> String {
    let room = match head.data {
        Some(_) => MAX_TEXT_BYTES / 2,
        None => MAX_TEXT_BYTES,
    };
    let message = string_within(message, room);
    let mut out = format!("{{\"code\":{},\"message\":{message}", head.code);
    if let Some(data) = head.data {
        let room = MAX_TEXT_BYTES - message.len();
        let whole = redactor.redact(data.get());
        let data = if whole == data.get() && whole.len() <= room {
            whole
        } else {
            string_within(&whole, room)
        };
        out.push_str(",\"data\":");
        out.push_str(&data);
    }
    out.push('}');
    out
}

/// Returns a JSON string of at most `room` bytes, quotes included, with a mark where it was cut.
fn string_within(text: &str, room: usize) -> String {
    let whole = Value::from(text).to_string();
    if whole.len() <= room {
        return whole;
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        let one = Value::from(c.to_string()).to_string();
        let one = &one[1..one.len() - 1];
        if out.len() + one.len() + CUT.len() + 1 > room {
            break;
        }
        out.push_str(one);
    }
    out.push_str(CUT);
    out.push('"');
    out
}

/// Returns the error with its secrets masked member by member: masking inside the text could break it if a secret looks
/// like syntax. `None` if it cannot be parsed.
fn without_secrets(text: &str, redactor: &Redactor) -> Option<String> {
    let strict = parse(text).ok();
    let mut value = strict.or_else(|| serde_json::from_str::<Value>(text).ok())?;
    let code = value.get("code").cloned();
    value = masked(value, redactor);
    // The code is an integer of the protocol, even if a secret has the same digits.
    if let (Some(code), Value::Object(members)) = (code, &mut value) {
        members.insert("code".to_owned(), code);
    }
    Some(to_text(&value))
}

fn broken() -> CallFailure {
    CallFailure::Protocol {
        message: "the server's error has no integer `code`".to_owned(),
        maybe_executed: true,
    }
}

fn masked(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(ref text) => match exact_number(&value) {
            Some(digits) if redactor.redact(digits) == digits => value,
            Some(digits) => Value::String(redactor.redact(digits)),
            None => string_value(&redactor.redact(string_text(&value).unwrap_or(text))),
        },
        Value::Array(items) => items
            .into_iter()
            .map(|item| masked(item, redactor))
            .collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, member)| (redactor.redact(&key), masked(member, redactor)))
            .collect(),
        // A secret that is a number shows in digits.
        Value::Number(number) => {
            let (text, shown) = (number.to_string(), redactor.redact(&number.to_string()));
            if text == shown {
                Value::Number(number)
            } else {
                Value::String(shown)
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::redact::Secret;

    #[test]
    fn rpc_error_over_16_kib_keeps_its_code_and_is_cut() {
        let redactor = Redactor::new(["hunter2"].map(Secret::new));
        let long = "\u{1}ä\"".repeat(20_000);
        let data = serde_json::json!({"secret": "hunter2", "text": long});
        for error in [
            serde_json::json!({"code": -7, "message": long}),
            serde_json::json!({"code": -7, "message": "short", "data": data}),
            serde_json::json!({"code": -7, "message": long, "data": data, "extra": long}),
            serde_json::json!({"code": -7, "message": long, "data": [1, 2]}),
        ] {
            let CallFailure::Rpc { error, .. } = read(error.to_string().as_bytes(), &redactor)
            else {
                panic!("it is an error");
            };
            let text = error.get();
            assert!(text.len() <= MAX_TEXT_BYTES + 64, "{}", text.len());
            assert!(text.contains(CUT) && !text.contains("hunter2"), "{text}");
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read["code"], -7);
            assert!(read.get("extra").is_none());
        }
    }

    #[test]
    fn rpc_error_that_asks_the_client_for_something_keeps_its_data() {
        let redactor = Redactor::new(["hunter2"].map(Secret::new));
        let needs = serde_json::json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
        let visit =
            serde_json::json!({"elicitations": [{"mode": "url", "url": "https://x.example/"}]});
        for (code, data) in [(-32021, needs), (-32042, visit)] {
            for message in [
                "short".to_owned(),
                "hunter2".to_owned(),
                "x".repeat(1 << 16),
            ] {
                let error = serde_json::json!({"code": code, "message": message, "data": data});
                let CallFailure::Rpc { error, .. } = read(error.to_string().as_bytes(), &redactor)
                else {
                    panic!("it is an error");
                };
                let read: Value = serde_json::from_str(error.get()).unwrap();
                assert_eq!((&read["code"], &read["data"]), (&code.into(), &data));
            }
        }
    }

    #[test]
    fn rpc_error_is_kept_as_sent_except_for_secrets() {
        let redactor = Redactor::new(["hunter2", "true", "12345"].map(Secret::new));
        let read = |text: &str| match read(text.as_bytes(), &redactor) {
            CallFailure::Rpc {
                error,
                code,
                message,
            } => Ok((error.get().to_owned(), code, message)),
            other => Err(other.to_string()),
        };
        let plain = r#"{"code": -32602 ,"message":"bad","data":{"n":1.0}}"#;
        assert_eq!(
            read(plain).unwrap(),
            (plain.to_owned(), -32602, "bad".to_owned())
        );
        let (raw, _, message) =
            read(r#"{"code":1,"message":"key hunter2\u001b","data":[true,12345,{"hunter2":0}]}"#)
                .unwrap();
        assert_eq!(message, "key ••••\\u{1b}");
        assert!(!raw.contains("hunter2") && !raw.contains("12345"), "{raw}");
        assert!(serde_json::from_str::<Value>(&raw).is_ok());
        let odd = r#"{"code":3,"message":"\ud800 hunter2","data":[1e999]}"#;
        let (raw, code, message) = read(odd).unwrap();
        assert!(code == 3 && !raw.contains("hunter2") && !message.contains("hunter2"));
        let odd = r#"{"code":3,"data":[1e999,"\ud800",-0.0,1.00]}"#;
        assert_eq!(read(odd).unwrap().0, odd);
        assert!(read("\"text\"").is_err());
        assert!(read(r#"{"message":"no code"}"#).is_err());
    }
}
