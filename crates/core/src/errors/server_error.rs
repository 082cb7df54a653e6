//! The JSON-RPC error of a server, read from the error of a call.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::errors::error::CoreError;

/// A server's JSON-RPC error as the answer to a call: masked and bounded, see [`CoreError::server_error`].
#[derive(Clone, Debug, PartialEq)]
pub struct ServerError {
    /// Its code.
    pub code: i64,
    /// Its message; empty if it is absent.
    pub message: String,
    /// Its data. Data that this program cannot represent is a string with its JSON.
    pub data: Option<Value>,
}

impl CoreError {
    /// Returns the server's own error, if the server answered with one: what `details.rpc` holds. Message and data have
    /// at most 16 KiB together; longer ones were cut and end in a mark.
    pub fn server_error(&self) -> Option<ServerError> {
        #[derive(Deserialize)]
        struct Members<'a> {
            code: i64,
            #[serde(borrow)]
            message: Option<&'a RawValue>,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        let members: Members<'_> = serde_json::from_str(self.rpc.as_deref()?.get()).ok()?;
        let text = |raw: &RawValue| match serde_json::from_str::<Option<String>>(raw.get()) {
            Ok(text) => text.unwrap_or_default(),
            // Such as a lone surrogate: as it was written.
            Err(_) => raw.get().to_owned(),
        };
        let value = |raw: &RawValue| {
            serde_json::from_str(raw.get()).unwrap_or_else(|_| Value::from(raw.get()))
        };
        Some(ServerError {
            code: members.code,
            message: members.message.map(text).unwrap_or_default(),
            data: members.data.map(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::CallCode;
    use serde_json::json;

    fn read(rpc: &str) -> Option<ServerError> {
        let error = CoreError::new(CallCode::SourceError, "x");
        let rpc = RawValue::from_string(rpc.to_owned()).ok();
        CoreError { rpc, ..error }.server_error()
    }

    #[test]
    fn server_error_has_code_message_and_data() {
        let needs = json!({"requiredCapabilities": {"elicitation": {}}});
        let error = json!({"code": -32021, "message": "no", "data": needs});
        let read_back = read(&error.to_string()).unwrap();
        assert_eq!((read_back.code, read_back.message.as_str()), (-32021, "no"));
        assert_eq!(read_back.data, Some(needs));
        let odd = read(r#"{"code":1,"message":"\ud800","data":[1e999]}"#).unwrap();
        assert_eq!(odd.message, r#""\ud800""#);
        assert_eq!(odd.data, Some(json!("[1e999]")));
        let bare = read(r#"{"code":2,"message":null}"#).unwrap();
        assert_eq!((bare.message.as_str(), bare.data), ("", None));
        assert_eq!(CoreError::new(CallCode::Starting, "x").server_error(), None);
    }
}
