//! The reply of `meta_call`: the result of the server within the broker's own object.

use serde::Serialize;

use broker_core::{
    Account, Charge, CoreError, Outcome, Reply, UNCHARGED_BYTES, memory_error_for_request,
    memory_error_for_result,
};

const PATH: &str = "{\"path\":\"";
const RESULT: &str = "\",\"result\":";
const END: &str = "}";
/// Bytes of a reply in addition to its result.
const RESERVED_BYTES: usize = 1 << 10;

/// Characters around the result in a reply for `path`, without warnings and cuts.
#[inline]
pub(super) fn chars_around(path: &str) -> usize {
    PATH.len() + path.chars().count() + RESULT.len() + END.len()
}

/// `{"path":…,"result":…,"warnings"?:[…],"truncated"?:{…}}` with the result byte for byte. Paths need no
/// escapes.
pub fn reply(outcome: &Outcome, account: &Account) -> Result<Reply, Box<CoreError>> {
    let result = &outcome.result;
    let mut charge = Charge::default();
    charge
        .cover(account, result.len() + RESERVED_BYTES)
        .map_err(|charge_error| {
            Box::new(memory_error_for_result(charge_error).path(outcome.path))
        })?;
    let mut after = String::new();
    if !outcome.warnings.is_empty() {
        after.push_str(&member("warnings", &outcome.warnings));
    }
    if let Some(cut) = &outcome.cut {
        after.push_str(&member("truncated", cut));
    }
    if let Some(job) = &outcome.job {
        after.push_str(&member("job_id", &job.job.id));
        after.push_str(&member("replayed", &job.is_replayed));
    }
    let parts = [
        PATH.as_bytes(),
        outcome.path.as_bytes(),
        RESULT.as_bytes(),
        result,
        after.as_bytes(),
        END.as_bytes(),
    ];
    let body = parts.concat();
    let is_charged = body.len() > UNCHARGED_BYTES;
    charge.shrink(if is_charged { body.len() } else { 0 });
    Ok(Reply {
        body: charge.hold(body),
        etag: None,
    })
}

/// Adds `warnings`, if there are any, as the last member of a listing. Its digest is not the one of the listing alone.
pub fn with_warnings(reply: Reply, warnings: &[&str]) -> Reply {
    let Some(object) = reply.body.strip_suffix(END.as_bytes()) else {
        return reply;
    };
    if warnings.is_empty() {
        return reply;
    }
    let after = member("warnings", &warnings);
    Reply {
        body: [object, after.as_bytes(), END.as_bytes()].concat().into(),
        etag: None,
    }
}

/// Charges the caller for the bytes of a listing.
pub fn charged(mut reply: Reply, account: &Account) -> Result<Reply, Box<CoreError>> {
    let (mut charge, needed) = (Charge::default(), reply.body.len());
    charge
        .cover(account, needed)
        .map_err(|full| Box::new(memory_error_for_request(full, needed, account)))?;
    reply.body = charge.hold(reply.body);
    Ok(reply)
}

fn member(name: &str, value: &impl Serialize) -> String {
    let value = serde_json::to_string(value).expect("strings and numbers always serialize");
    format!(",\"{name}\":{value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    use broker_core::{Cut, CutDetail, MemoryBudget};

    #[test]
    fn call_reply_has_the_unchanged_result_between_path_and_notes() {
        let account = MemoryBudget::new(1 << 20).account();
        let mut outcome = Outcome {
            job: None,
            path: "/a/t",
            kind: broker_core::ItemKind::Tool,
            result: Bytes::from_static(b" {\"content\": [], \"n\":1.00,\"n\":2}"),
            is_error: false,
            cut: None,
            warnings: Vec::new(),
            receipt: None,
        };
        let plain = reply(&outcome, &account).unwrap();
        let expected = r#"{"path":"/a/t","result": {"content": [], "n":1.00,"n":2}}"#;
        assert_eq!(
            (plain.body.as_ref(), plain.etag),
            (expected.as_bytes(), None)
        );
        assert_eq!(
            chars_around(outcome.path),
            expected.len() - outcome.result.len()
        );
        outcome.warnings = vec!["w".to_owned()];
        outcome.cut = Some(Box::new(Cut {
            original_chars: 900,
            limit: 500,
            cuts: vec![CutDetail {
                pointer: "/n".to_owned(),
                kind: "list",
                from: 9,
                to: 2,
            }],
            unnamed: 1,
            rest: None,
            whole: None,
        }));
        let noted = reply(&outcome, &account).unwrap();
        let after = r#","warnings":["w"],"truncated":{"original_chars":900,"limit":500,"cuts":[{"pointer":"/n","kind":"list","from":9,"to":2}],"more":1}}"#;
        assert_eq!(
            String::from_utf8_lossy(&noted.body),
            expected.strip_suffix('}').unwrap().to_owned() + after
        );
    }
}
