//! Results in the forms of adapters: with the members of a command, whose output is the text content.

use broker_model::CallCode;
use broker_model::json::{parse, string_value};
use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::write::{ObjectWriter, Text};
use broker_wire::{JsonMembers, RpcError};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{COMMAND_FAILED, CommandCall};
use crate::core::{Account, Charge, Core, CoreError, memory_error_for_result};
use crate::surface::mcp::result::error_object;

/// Longer results are read on another thread.
const MIN_POOLED_BYTES: usize = 64 << 10;
/// The memory of a result in another form, as a multiple of its length: its text twice, once read and once written.
const MAX_COPIES: usize = 3;
/// The members that are added. Those of a server with these names are left out.
const ADDED: [&str; 4] = ["status", "stdout", "stderr", "exit_code"];

/// The form of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::surface::mcp) enum ResultForm {
    /// The result of the specification with `status`, `stdout` and `exit_code`.
    WithStatus,
    /// `{"status":"ok","stdout","exit_code","structuredContent"?}`; a tool that failed is an error.
    Command(CommandCall),
}

/// A block of content, of which only text is read.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    text: String,
}

impl ResultForm {
    /// A tool result in this form.
    pub(in crate::surface::mcp) async fn convert(
        &self,
        core: &Core,
        account: &Account,
        result: Text,
    ) -> Result<Text, RpcError> {
        let needed = MAX_COPIES * result.as_ref().len();
        let mut charge = Charge::default();
        charge.cover(account, needed).map_err(|full| {
            let error = memory_error_for_result(full);
            self.failure(&error.message, Value::Null, "")
        })?;
        let form = self.clone();
        let convert = move || form.converted(&result, charge);
        match needed > MAX_COPIES * MIN_POOLED_BYTES {
            true => core.shape_long(account, convert).await,
            false => convert(),
        }
    }

    pub(super) fn converted(&self, result: &Text, charge: Charge) -> Result<Text, RpcError> {
        let text = std::str::from_utf8(result.as_ref()).unwrap_or_default();
        // The broker or the checks of a call made the object.
        let Some(members) = JsonMembers::of_valid(text) else {
            return Err(self.failure("the result is not an object", Value::Null, ""));
        };
        let stdout = members.get("content").map(text_of).unwrap_or_default();
        let has_failed = members.get("isError") == Some("true");
        let (status, exit_code) = match has_failed {
            true => ("\"error\"", "1"),
            false => ("\"ok\"", "0"),
        };
        let structured = members.given("structuredContent");
        if has_failed && matches!(self, Self::Command(_)) {
            let structured = structured.and_then(|raw| parse(raw).ok());
            return Err(self.failure("the tool failed", structured.unwrap_or_default(), &stdout));
        }
        let stdout = json!(stdout).to_string();
        let mut out = ObjectWriter::with_capacity(text.len() + stdout.len());
        match self {
            Self::WithStatus => {
                let kept = members.iter().filter(|(name, _)| !ADDED.contains(name));
                kept.for_each(|(name, value)| out.member(name, value));
            }
            Self::Command(_) => {
                let structured = structured.map(|value| ("structuredContent", value));
                let kind = members.get("resultType").map(|value| ("resultType", value));
                let kept = structured.into_iter().chain(kind);
                kept.for_each(|(name, value)| out.member(name, value));
            }
        }
        out.member("status", status);
        out.member("stdout", &stdout);
        out.member("exit_code", exit_code);
        Ok(Text::charged(out.end(), charge))
    }

    /// The error of a call that the broker refused; `None` if its form is a result.
    pub(in crate::surface::mcp) fn refusal(
        &self,
        error: &CoreError,
        request_id: &str,
    ) -> Option<RpcError> {
        let Self::Command(_) = self else {
            return None;
        };
        let object = error_object(error, request_id);
        if matches!(
            error.code,
            CallCode::ArgsInvalid
                | CallCode::FieldInvalid
                | CallCode::FieldUnknown
                | CallCode::JsonInvalid
        ) {
            return Some(RpcError::new(INVALID_PARAMS, error.message.clone()).data(object));
        }
        let mut failure = self.failure(&error.message, Value::Null, "");
        if let Some(data) = &mut failure.data {
            data["stderr"] = string_value(&error.message);
            data["error"] = object;
        }
        Some(failure)
    }

    /// The error that a server answered, in this form.
    pub(in crate::surface::mcp) fn server_error(&self, error: RpcError) -> RpcError {
        if matches!(self, Self::WithStatus) || error.code == INVALID_PARAMS {
            return error;
        }
        let mut failure = self.failure(&error.message, Value::Null, "");
        if let Some(data) = &mut failure.data {
            data["stderr"] = string_value(&error.message);
            data["error"] = json!({ "code": error.code, "data": error.data });
        }
        failure
    }

    /// The error of a command that failed.
    fn failure(&self, message: &str, structured: Value, stdout: &str) -> RpcError {
        let mut data = json!({ "exit_code": 1, "stdout": string_value(stdout) });
        if let Self::Command(call) = self {
            data["stage"] = json!(call.stage);
            data["command"] = json!(call.command);
        }
        if !structured.is_null() {
            data["structuredContent"] = structured;
        }
        RpcError::new(COMMAND_FAILED, message.to_owned()).data(data)
    }
}

/// The text blocks of `content`, one after the other, each on lines apart from the others.
fn text_of(content: &str) -> String {
    let blocks: Vec<&RawValue> = serde_json::from_str(content).unwrap_or_default();
    let blocks = blocks.iter();
    let texts = blocks.filter_map(|block| {
        let block: Block = serde_json::from_str(block.get()).ok()?;
        (block.r#type == "text").then_some(block.text)
    });
    texts.collect::<Vec<_>>().join("\n")
}
