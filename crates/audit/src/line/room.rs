//! The bytes that the lines of a call need at most, computed before the lines exist: the room that is allocated for them.

use crate::facts::CallFacts;
use crate::settings::Format;

/// The bytes of a line's members that do not depend on the call: names of members, numbers, hashes, the time, the address,
/// the id of a job.
const FIXED_BYTES: usize = 1184;
/// The bytes of a byte of text in JSON at most: `\u001f`.
const MAX_ESCAPED_BYTES: usize = 6;
/// The bytes that the second form adds.
const OCSF_BYTES: usize = 2048;

/// Returns the room for the begin line of a call.
pub(crate) fn begin_room(facts: &CallFacts, format: Format) -> u64 {
    room(facts, format)
}

/// Returns the room for the end line of a call.
pub(crate) fn end_room(facts: &CallFacts, format: Format) -> u64 {
    room(facts, format)
}

fn room(facts: &CallFacts, format: Format) -> u64 {
    let actor = &facts.actor;
    let target = &facts.target;
    let texts = [
        actor.subject.as_str(),
        &actor.kind,
        &facts.via,
        facts.request_id.as_str(),
    ];
    let lists = actor.groups.iter().chain(&actor.act).map(String::as_str);
    // Digests are plain.
    let digests = [
        Some(facts.versions.catalog.as_str()),
        Some(facts.versions.policy.as_str()),
        target.digest.as_deref(),
        facts.args.hmac.as_deref(),
    ];
    let digests = digests.into_iter().flatten();
    let options = [
        actor.key.as_deref(),
        facts.trace_id.as_deref(),
        target.source.as_deref(),
        target.tool.as_deref(),
        target.kind.as_deref(),
    ];
    let shown = facts.args.shown.iter();
    let bytes: usize = texts
        .into_iter()
        .chain(lists)
        .chain([target.path.as_ref()])
        .chain(options.into_iter().flatten())
        .map(escaped)
        .chain(digests.map(|digest| digest.len() + 3))
        .chain(
            shown
                .map(|(pointer, value)| escaped(pointer) + 24 + value.as_str().map_or(32, escaped)),
        )
        .sum();
    let bytes = match format {
        Format::Native => FIXED_BYTES + bytes,
        Format::Ocsf(_) => FIXED_BYTES + OCSF_BYTES + 2 * bytes,
    };
    bytes as u64
}

/// Returns the bytes of a text as JSON at most, with quotes and a comma. A look at each byte would cost more than the room,
/// which the file has again once the line is written.
const fn escaped(text: &str) -> usize {
    MAX_ESCAPED_BYTES * text.len() + 3
}
