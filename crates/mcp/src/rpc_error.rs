//! A server's JSON-RPC error, made safe to hand on: as it was sent, but for secrets.

use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::CallFailure;

/// The longest message that is handed on.
const MESSAGE_CHARS: usize = 2000;

/// Reads the raw error object.
pub(crate) fn read(error: &[u8], redactor: &Redactor) -> CallFailure {
    let text = String::from_utf8_lossy(error);
    let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(&text) else {
        return broken();
    };
    let Some(code) = value.get("code").and_then(Value::as_i64) else {
        return broken();
    };
    let message = value.get("message").and_then(Value::as_str).unwrap_or("");
    let message = shown_line(&redactor.redact(message), MESSAGE_CHARS);
    let raw = if redactor.redact(&text) == text {
        text.into_owned()
    } else {
        // Masking inside the text could break it where a secret looks like syntax.
        masked(value, redactor).to_string()
    };
    match RawValue::from_string(raw) {
        Ok(error) => CallFailure::Rpc {
            error,
            code,
            message,
        },
        Err(_) => broken(),
    }
}

fn broken() -> CallFailure {
    CallFailure::Protocol {
        message: "the server's error has no integer `code`".to_owned(),
        maybe_executed: true,
    }
}

fn masked(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact(&text)),
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
    fn errors_are_kept_as_sent_but_for_secrets() {
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
        assert!(read("\"text\"").is_err());
        assert!(read(r#"{"message":"no code"}"#).is_err());
    }
}
