//! The context of a span as W3C Trace Context writes it, and the members of `_meta` that carry one.

use std::fmt::Write as _;

use broker_core::{BAGGAGE, TRACEPARENT, TRACESTATE, TraceHeaders};
use broker_wire::write::push_string;

/// The flag of a span that is recorded.
const SAMPLED: u8 = 1;
/// The bytes of `traceparent` in version 00.
const PARENT_BYTES: usize = 55;
/// The maximum bytes of the `_meta` of a call that is searched for its trace.
const MAX_META_BYTES: usize = 16 << 10;

/// The identity of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// Whether it is recorded.
    pub is_sampled: bool,
}

impl SpanContext {
    /// Reads the value of `traceparent`; `None` if it is not valid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let version = text.get(..2).filter(|version| is_lower_hex(version))?;
        let is_long_enough = match version {
            "00" => bytes.len() == PARENT_BYTES,
            "ff" => false,
            // Further versions may add fields at the end.
            _ => bytes.len() == PARENT_BYTES || bytes.get(PARENT_BYTES) == Some(&b'-'),
        };
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if !is_long_enough || !dashes {
            return None;
        }
        let context = Self {
            trace_id: hex(text.get(3..35)?)?,
            span_id: hex(text.get(36..52)?)?,
            is_sampled: hex::<1>(text.get(53..55)?)?[0] & SAMPLED != 0,
        };
        let is_valid = context.trace_id != [0; 16] && context.span_id != [0; 8];
        is_valid.then_some(context)
    }

    /// Returns the value of `traceparent`.
    pub(super) fn traceparent(&self) -> String {
        let mut text = "00-".to_owned();
        push_hex(&mut text, &self.trace_id);
        text.push('-');
        push_hex(&mut text, &self.span_id);
        text.push_str(if self.is_sampled { "-01" } else { "-00" });
        text
    }

    /// Returns the digits of the trace.
    pub(super) fn trace_text(&self) -> Box<str> {
        let mut text = String::with_capacity(32);
        push_hex(&mut text, &self.trace_id);
        text.into()
    }
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads bytes of two lower-case digits each.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !is_lower_hex(text) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // A text takes everything.
        write!(text, "{byte:02x}").unwrap_or_default();
    }
}

/// Returns the trace context in the `_meta` of a call, without a check of its values.
pub(super) fn context_in(meta: &str) -> Option<TraceHeaders> {
    if meta.len() > MAX_META_BYTES || !meta.contains(TRACEPARENT) {
        return None;
    }
    let (mut parent, mut state, mut baggage) = (None, None, None);
    let read = broker_model::json::each_member(meta.as_bytes(), |name, value| {
        let place = match &*name {
            TRACEPARENT => &mut parent,
            TRACESTATE => &mut state,
            BAGGAGE => &mut baggage,
            _ => return,
        };
        *place = serde_json::from_str::<Box<str>>(value.get()).ok();
    });
    read.ok()?;
    Some(TraceHeaders {
        traceparent: parent?,
        tracestate: state,
        baggage,
    })
}

/// Returns a `_meta` object with this trace context in place of the one that it has. Baggage that it has stays.
pub(super) fn into_meta(meta: Option<&str>, trace: &TraceHeaders) -> Option<Box<str>> {
    let mut json = Vec::with_capacity(meta.map_or(0, str::len) + 128);
    let mut push = |name: &str, value: &[u8]| {
        json.push(if json.is_empty() { b'{' } else { b',' });
        push_string(&mut json, name);
        json.push(b':');
        json.extend_from_slice(value);
    };
    let mut has_baggage = false;
    if let Some(meta) = meta {
        let read = broker_model::json::each_member(meta.as_bytes(), |name, value| {
            has_baggage |= name == BAGGAGE;
            if name != TRACEPARENT && name != TRACESTATE {
                push(&name, value.get().as_bytes());
            }
        });
        read.ok()?;
    }
    for (name, value) in trace
        .iter()
        .filter(|(name, _)| *name != BAGGAGE || !has_baggage)
    {
        let mut text = Vec::with_capacity(value.len() + 2);
        push_string(&mut text, value);
        push(name, &text);
    }
    json.push(b'}');
    String::from_utf8(json).ok().map(String::into_boxed_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn traceparent_is_read_and_written() {
        let context = SpanContext::parse(PARENT).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.traceparent(), PARENT);
        assert_eq!(&*context.trace_text(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let unsampled = PARENT.replace("-01", "-00");
        let context = SpanContext::parse(&unsampled).unwrap();
        assert!(!context.is_sampled);
        // Other flags are not passed on.
        let flags = PARENT.replace("-01", "-03");
        assert_eq!(SpanContext::parse(&flags).unwrap().traceparent(), PARENT);
        let later = format!("{}-more", PARENT.replacen("00-", "01-", 1));
        assert!(SpanContext::parse(&later).is_some());
    }

    #[test]
    fn invalid_traceparent_is_not_read() {
        for wrong in [
            "",
            "00",
            &PARENT[..54],
            &format!("{PARENT}-more"),
            &format!("{PARENT}0"),
            &PARENT.replacen("00-", "ff-", 1),
            &PARENT.replace('b', "B"),
            &PARENT.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(SpanContext::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn context_in_meta_is_replaced_and_other_members_stay() {
        let meta =
            r#"{"traceparent":"a","x/y":{"traceparent":1.0},"tracestate":"b","baggage":"c=d"}"#;
        let found = context_in(meta).unwrap();
        assert_eq!(&*found.traceparent, "a");
        assert_eq!(found.tracestate.as_deref(), Some("b"));
        assert_eq!(found.baggage.as_deref(), Some("c=d"));
        let trace = TraceHeaders {
            traceparent: PARENT.into(),
            tracestate: None,
            baggage: Some("e=f".into()),
        };
        assert_eq!(
            into_meta(Some(meta), &trace).as_deref(),
            Some(
                format!(
                    r#"{{"x/y":{{"traceparent":1.0}},"baggage":"c=d","traceparent":"{PARENT}"}}"#
                )
                .as_str()
            )
        );
        assert_eq!(
            into_meta(None, &trace).as_deref(),
            Some(format!(r#"{{"traceparent":"{PARENT}","baggage":"e=f"}}"#).as_str())
        );
        for none in ["{}", r#"{"tracestate":"b"}"#, r#"{"traceparent":1}"#, "[]"] {
            assert_eq!(context_in(none), None, "{none}");
        }
    }
}
