//! One schema to code: simplified, run through typify, refined, looked over; and the ladder down to a map
//! where any of that fails. A panic of typify is a failure like any other and is not printed.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde_json::{Value, json};
use typify::{MapType, TypeSpace, TypeSpaceSettings};

use super::outline::{Outline, Shape};
use super::simplify::simplify;
use super::{Level, Reason, SchemaOf, inspect, refine};

/// The type of numbers that need not be integers: keeps what was written.
const NUMBER: &str = "::mcp_broker::typed::Number";

/// The code for one schema.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    pub(super) code: TokenStream,
    pub(super) level: Level,
    pub(super) reasons: Vec<Reason>,
}

thread_local! {
    /// Whether this thread's panics are expected.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The types of one schema. Never fails: the last step of the ladder is a map.
pub(super) fn generate(of: SchemaOf, schema: Option<&Value>) -> Generated {
    let Some(schema) = schema else {
        return map(of, vec![reason("there is no schema")]);
    };
    let mut failures = Vec::new();
    for (plain, level) in [(false, Level::Widened), (true, Level::Plain)] {
        let outline = match simplify(schema, of, plain) {
            Ok(outline) => outline,
            Err(reason) => return map(of, vec![reason]),
        };
        if is_open_map(&outline, of) {
            let made = map(of, outline.reasons);
            let level = if made.reasons.is_empty() {
                Level::Whole
            } else {
                Level::Widened
            };
            return Generated { level, ..made };
        }
        match code(&outline) {
            Ok(code) => {
                let mut reasons = failures;
                reasons.extend(outline.reasons);
                let level = if reasons.is_empty() {
                    Level::Whole
                } else {
                    level
                };
                return Generated {
                    code,
                    level,
                    reasons,
                };
            }
            Err(text) => failures.push(reason(text)),
        }
    }
    map(of, failures)
}

fn reason(text: &str) -> Reason {
    Reason {
        pointer: String::new(),
        text: text.to_owned(),
    }
}

/// Whether the root is an object of which nothing is known.
fn is_open_map(outline: &Outline, of: SchemaOf) -> bool {
    outline.schema["definitions"][of.type_name()] == json!({ "type": "object" })
}

/// A root type that takes any object.
fn map(of: SchemaOf, reasons: Vec<Reason>) -> Generated {
    let name = format_ident!("{}", of.type_name());
    let code = quote! {
        #[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
        #[serde(transparent)]
        pub struct #name(pub ::serde_json::Map<::std::string::String, ::serde_json::Value>);
    };
    Generated {
        code,
        level: Level::Map,
        reasons,
    }
}

/// The refined code, or why there is none.
fn code(outline: &Outline) -> Result<TokenStream, &'static str> {
    let stream = silently(|| typified(&outline.schema))
        .ok_or("typify panicked")?
        .ok_or("typify refused the schema")?;
    let code = refine::refine(stream, outline)?;
    inspect::inspect(&code, outline)?;
    Ok(code)
}

fn typified(schema: &Value) -> Option<TokenStream> {
    let mut settings = TypeSpaceSettings::default();
    let number =
        serde_json::from_value(Shape::of(json!({ "type": "number" })).into_schema()).ok()?;
    settings
        .with_derive("PartialEq".to_owned())
        .with_map_type(MapType::new("::std::collections::BTreeMap"))
        .with_conversion(number, NUMBER, std::iter::empty());
    let mut space = TypeSpace::new(&settings);
    space
        .add_root_schema(serde_json::from_value(schema.clone()).ok()?)
        .ok()?;
    Some(space.to_stream())
}

/// Runs code that may panic; `None` where it did.
fn silently<T>(run: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let outer = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                outer(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    QUIET.set(false);
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_and_the_next_one_is_heard_again() {
        assert_eq!(silently(|| 1), Some(1));
        assert_eq!(silently(|| -> u8 { panic!("not printed") }), None);
        assert!(!QUIET.get());
    }
}
