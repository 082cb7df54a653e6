//! The end of a job: its result in the form of an era, or the error with which it ended.

use broker_core::{
    Account, Broker, Charge, CoreError, ItemKind, JobDesk, JobResult, Outcome,
    memory_error_for_result,
};
use broker_wire::write::{Json, ObjectWriter};
use broker_wire::{Era, JsonMembers};

use crate::Client;
use crate::result::{self, ServerResult};

/// The `_meta` key of an answer with the job or the result of an earlier call that had the same idempotency key.
pub(super) const META_REPLAYED: &str = "dev.mcp-broker/replayed";
/// Results longer than this are processed on another thread.
const MIN_POOLED_BYTES: usize = 256 << 10;
/// The maximum memory of a result with what contains it, as a multiple of its length.
const MAX_COPIES: usize = 3;

/// Returns the result of a job for an era. A job that ended without a result has its error.
pub(super) async fn result(
    client: &Client<impl Broker>,
    desk: &dyn JobDesk,
    account: &Account,
    id: &str,
    era: Era,
) -> Result<(Json, Charge), Box<CoreError>> {
    let ended = desk.result(&client.identity, id).await?;
    let length = ended.result.len();
    let mut charge = Charge::default();
    charge
        .cover(account, MAX_COPIES * length)
        .map_err(|full| Box::new(memory_error_for_result(full)))?;
    let json = match length > MIN_POOLED_BYTES {
        true => {
            let services = client.broker.services();
            services
                .shape_long(account, move || render(ended, era))
                .await?
        }
        false => render(ended, era)?,
    };
    Ok((json, charge))
}

/// Returns the result of a job in the form of an era.
pub(super) fn render(ended: JobResult, era: Era) -> Result<Json, Box<CoreError>> {
    let outcome = Outcome {
        path: "",
        kind: ItemKind::Tool,
        result: ended.result,
        is_error: ended.is_error,
        cut: None,
        warnings: Vec::new(),
        job: None,
        receipt: None,
    };
    result::forward(&outcome, ServerResult::Same, era)
}

/// Returns a result with a member of `_meta`; `value` is JSON.
pub(super) fn with_meta(result: &Json, name: &str, value: &str) -> Option<Json> {
    let text = std::str::from_utf8(result.as_ref()).ok()?;
    let members = JsonMembers::from_valid(text)?;
    let meta = members.get("_meta").and_then(JsonMembers::from_valid);
    let meta = meta.unwrap_or_default();
    let mut inner = ObjectWriter::with_capacity(name.len() + value.len());
    for (known, value) in meta.iter().filter(|(known, _)| *known != name) {
        inner.member(known, value);
    }
    inner.member(name, value);
    let inner = inner.end();
    let mut out = ObjectWriter::with_capacity(text.len() + inner.as_ref().len());
    for (known, value) in members.iter().filter(|(known, _)| *known != "_meta") {
        out.member(known, value);
    }
    out.member("_meta", &String::from_utf8_lossy(inner.as_ref()));
    Some(out.end())
}

/// Returns the result of an earlier call that had the same idempotency key.
pub(crate) fn replayed(result: Json) -> Json {
    with_meta(&result, META_REPLAYED, "true").unwrap_or(result)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn member_of_meta_is_added_or_replaced_and_the_rest_stays() {
        for (result, expected) in [
            (
                json!({"content": []}),
                json!({"content": [], "_meta": {"k": 1}}),
            ),
            (
                json!({"_meta": {"a": 1, "k": 7}, "x": 1.5}),
                json!({"_meta": {"a": 1, "k": 1}, "x": 1.5}),
            ),
            (json!({"_meta": null}), json!({"_meta": {"k": 1}})),
        ] {
            let json = Json::from(result.to_string().into_bytes());
            let with = with_meta(&json, "k", "1").unwrap();
            let read: Value = serde_json::from_slice(with.as_ref()).unwrap();
            assert_eq!(read, expected);
        }
    }
}
