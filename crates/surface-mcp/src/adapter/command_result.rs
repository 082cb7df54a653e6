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
use crate::result::error_object;
use broker_core::{Account, Broker, Charge, CoreError, memory_error_for_result};

/// Longer results are read on another thread.
const MIN_POOLED_BYTES: usize = 64 << 10;
/// The memory of a result in another form, as a multiple of its length: its text twice, once read and once written.
const MAX_COPIES: usize = 3;
/// The members that are added. A server's members with these names are left out.
const ADDED: [&str; 4] = ["status", "stdout", "stderr", "exit_code"];

/// The form of the result of a command. A command that failed is an error in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// The result of the specification with `status`, `stdout`, `exit_code`, and `stderr` if the tool has it.
    WithStatus(CommandCall),
    /// `{"status":"ok","stdout","exit_code","stderr"?,"content"?,"structuredContent"?}`; `content` is there if it has more
    /// than texts.
    Command(CommandCall),
}

/// A block of content. Only text is read.
#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    text: String,
}

impl ResultForm {
    /// A tool result in this form.
    pub(crate) async fn convert(
        &self,
        broker: &impl Broker,
        account: &Account,
        mut result: Text,
    ) -> Result<Text, RpcError> {
        let receipt = result.take_receipt();
        let needed = MAX_COPIES * result.as_ref().len();
        let mut charge = Charge::default();
        charge.cover(account, needed).map_err(|full| {
            let error = memory_error_for_result(full);
            self.failure(&error.message, &Output::default())
        })?;
        let form = self.clone();
        let convert = move || form.converted(&result, charge);
        let converted = match needed > MAX_COPIES * MIN_POOLED_BYTES {
            true => broker.services().shape_long(account, convert).await,
            false => convert(),
        };
        converted.map(|text| text.with_receipt(receipt))
    }

    pub(super) fn converted(&self, result: &Text, charge: Charge) -> Result<Text, RpcError> {
        let text = std::str::from_utf8(result.as_ref()).unwrap_or_default();
        // The broker or the checks of a call made the object.
        let Some(members) = JsonMembers::from_valid(text) else {
            return Err(self.failure("the result is not an object", &Output::default()));
        };
        let output = Output::read(&members);
        if members.get("isError") == Some("true") {
            return Err(self.failure("the tool failed", &output));
        }
        let stdout = json!(output.stdout).to_string();
        let mut out = ObjectWriter::with_capacity(text.len() + stdout.len());
        match self {
            Self::WithStatus(_) => {
                let kept = members.iter().filter(|(name, _)| !ADDED.contains(name));
                kept.for_each(|(name, value)| out.member(name, value));
            }
            Self::Command(_) => {
                let kind = members.get("resultType").map(|value| ("resultType", value));
                let kept = output.members().chain(kind);
                kept.for_each(|(name, value)| out.member(name, value));
            }
        }
        out.member("status", "\"ok\"");
        out.member("stdout", &stdout);
        out.member("exit_code", &output.exit_code.unwrap_or(0).to_string());
        if let Some(stderr) = &output.stderr {
            out.member("stderr", &json!(stderr).to_string());
        }
        Ok(Text::charged(out.end(), charge))
    }

    /// The error of a call that the broker refused.
    pub(crate) fn refusal(&self, error: &CoreError, request_id: &str) -> RpcError {
        let object = error_object(error, request_id);
        let of_params = [
            CallCode::ArgsInvalid,
            CallCode::FieldInvalid,
            CallCode::FieldUnknown,
            CallCode::JsonInvalid,
        ];
        if of_params.contains(&error.code) {
            return RpcError::new(INVALID_PARAMS, error.message.clone()).data(object);
        }
        let mut failure = self.failure(&error.message, &Output::default());
        if let Some(data) = &mut failure.data {
            data["error"] = object;
        }
        failure
    }

    /// The error that a server answered, in this form.
    pub(crate) fn server_error(&self, error: RpcError) -> RpcError {
        if error.code == INVALID_PARAMS {
            return error;
        }
        let mut failure = self.failure(&error.message, &Output::default());
        if let Some(data) = &mut failure.data {
            data["error"] = json!({ "code": error.code, "data": error.data });
        }
        failure
    }

    /// The error of a command that failed. Without a text on its standard error, that is the text of its result, else the
    /// message.
    fn failure(&self, message: &str, output: &Output<'_>) -> RpcError {
        let (Self::WithStatus(call) | Self::Command(call)) = self;
        let stderr = match &output.stderr {
            Some(stderr) => stderr,
            None if output.stdout.is_empty() => message,
            None => &output.stdout,
        };
        let mut data = json!({
            "exit_code": output.exit_code.filter(|code| *code != 0).unwrap_or(1),
            "stdout": string_value(&output.stdout),
            "stderr": string_value(stderr),
            "stage": call.stage,
            "command": call.command,
        });
        for (name, raw) in output.members() {
            data[name] = parse(raw).unwrap_or_default();
        }
        RpcError::new(COMMAND_FAILED, message.to_owned()).data(data)
    }
}

/// The streams and the exit code of a command, as a tool that runs one has them in its structured content. A member of
/// another type is not one of them.
#[derive(Default, Deserialize)]
struct Streams {
    #[serde(default)]
    stdout: Value,
    #[serde(default)]
    stderr: Value,
    #[serde(default)]
    exit_code: Value,
}

/// The output of a command: its result without the members that only the specification has.
#[derive(Default)]
struct Output<'a> {
    /// The standard output of the tool's command, else the text blocks of the content, one after the other, each on lines
    /// apart from the others.
    stdout: String,
    stderr: Option<String>,
    exit_code: Option<i64>,
    /// The whole content, if it has a block that is not a text, such as an image or a link to a resource.
    content: Option<&'a str>,
    structured: Option<&'a str>,
}

impl<'a> Output<'a> {
    fn read(members: &JsonMembers<'a>) -> Self {
        let content = members.given("content");
        let blocks: Vec<&RawValue> = content
            .and_then(|content| serde_json::from_str(content).ok())
            .unwrap_or_default();
        let texts = blocks.iter().filter_map(|block| {
            let block: Block = serde_json::from_str(block.get()).ok()?;
            (block.r#type == "text").then_some(block.text)
        });
        let texts: Vec<String> = texts.collect();
        let structured = members.given("structuredContent");
        let streams: Streams = structured
            .and_then(|structured| serde_json::from_str(structured).ok())
            .unwrap_or_default();
        let text = |stream: &Value| stream.as_str().map(str::to_owned);
        Self {
            content: content.filter(|_| texts.len() < blocks.len()),
            stdout: text(&streams.stdout).unwrap_or_else(|| texts.join("\n")),
            stderr: text(&streams.stderr),
            exit_code: streams.exit_code.as_i64(),
            structured,
        }
    }

    /// Returns the members besides `stdout`, as they were written.
    fn members(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let content = self.content.map(|raw| ("content", raw));
        let structured = self.structured.map(|raw| ("structuredContent", raw));
        content.into_iter().chain(structured)
    }
}
