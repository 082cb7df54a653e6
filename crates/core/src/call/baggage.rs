//! Baggage of a trace (W3C Baggage): a caller's data for the services of its operator. Only trusted sources get it.

use std::borrow::Cow;

use broker_mcp::TraceHeaders;
use broker_wire::JsonMembers;
use broker_wire::write::push_string;
use memchr::memmem;

const NAME: &str = "baggage";

/// Returns the members of a caller's `_meta`, one JSON object, without baggage. `None` if no other member is left.
pub(super) fn without_baggage(meta: &str) -> Option<Cow<'_, str>> {
    // A name with escapes is written without them before it comes here.
    if memmem::find(meta.as_bytes(), b"\"baggage\"").is_none() {
        return Some(Cow::Borrowed(meta));
    }
    let members = JsonMembers::parse(meta).ok()?;
    let mut json = Vec::with_capacity(meta.len());
    for (name, value) in members.iter().filter(|(name, _)| *name != NAME) {
        json.push(if json.is_empty() { b'{' } else { b',' });
        push_string(&mut json, name);
        json.push(b':');
        json.extend_from_slice(value.as_bytes());
    }
    if json.is_empty() {
        return None;
    }
    json.push(b'}');
    String::from_utf8(json).ok().map(Cow::Owned)
}

/// Returns the trace context without its baggage, if it has one that the source must not get. Boxed: few calls have one,
/// and the future of every call holds it.
pub(super) fn trace_without_baggage(
    is_trusted: bool,
    trace: &TraceHeaders,
) -> Option<Box<TraceHeaders>> {
    if is_trusted || trace.baggage.is_none() {
        return None;
    }
    Some(Box::new(TraceHeaders {
        baggage: None,
        ..trace.clone()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baggage_is_removed_and_nothing_else() {
        let without = |meta| without_baggage(meta).map(Cow::into_owned);
        let other = r#"{"traceparent":"x","n":{"baggage":1}}"#;
        for (meta, rest) in [
            (other, Some(other)),
            (
                r#"{"baggage":"a=b","x":[1.0],"y":"baggage"}"#,
                Some(r#"{"x":[1.0],"y":"baggage"}"#),
            ),
            (
                r#"{"bagg\u0061ge":"a=b","baggage":1,"x":1}"#,
                Some(r#"{"x":1}"#),
            ),
            (r#"{"baggage":"a=b"}"#, None),
        ] {
            assert_eq!(without(meta).as_deref(), rest, "{meta}");
        }
    }
}
