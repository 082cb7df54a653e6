//! Generates the code of one schema: simplified, run through typify, refined, inspected; a failure falls
//! back step by step to a map. A panic of typify is a failure as well and is not printed.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde_json::{Value, json};
use typify::{MapType, TypeSpace, TypeSpaceSettings};

use super::outline::{Outline, Shape};
use super::refine::Refined;
use super::simplify::{simplify, without_exact_numbers};
use super::{Level, Reason, SchemaOf, inspect, refine};

/// The type of numbers that need not be integers: keeps the written form.
const NUMBER: &str = "::mcp_broker::typed::Number";

/// Maximum bytes of code for one tool, arguments and output together.
pub(super) const MAX_TOOL_BYTES: usize = 256 << 10;
/// Maximum items of code for one tool.
pub(super) const MAX_TOOL_ITEMS: usize = 2000;
/// The reason if the code would be too large.
const TOO_LARGE: &str = "the code would be larger than 256 KiB or 2000 items";

/// The reason if keywords with exact numbers are left out.
const EXACT_NUMBERS: &str = "it has numbers that neither 64 bits nor a double hold";

/// The code for one schema.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    pub(super) code: TokenStream,
    /// The size of the code.
    pub(super) size: Size,
    /// The code without constructors and setters, if `code` has them.
    bare: Option<TokenStream>,
    pub(super) level: Level,
    pub(super) reasons: Vec<Reason>,
}

/// The size of code: its unformatted text, and its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: usize,
    pub(super) items: usize,
}

impl Size {
    fn measure(code: &TokenStream, items: usize) -> Self {
        let bytes = code.to_string().len();
        Self { bytes, items }
    }

    /// Whether the code of one tool may have this size.
    pub(super) const fn fits(self) -> bool {
        self.bytes <= MAX_TOOL_BYTES && self.items <= MAX_TOOL_ITEMS
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            items: self.items + other.items,
        }
    }
}

impl Generated {
    /// Removes constructors and setters; no type depends on them.
    pub(super) fn shorten(&mut self) {
        let Some(bare) = self.bare.take() else { return };
        let Ok(file) = syn::parse2::<syn::File>(bare.clone()) else {
            return;
        };
        self.size = Size::measure(&bare, file.items.len());
        self.code = bare;
    }
}

thread_local! {
    /// Whether panics of this thread are expected.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The types of one schema. Never fails: the last fallback is a map.
pub(super) fn generate(of: SchemaOf, schema: Option<&Value>) -> Generated {
    let Some(schema) = schema else {
        return map(of, vec![reason("there is no schema")]);
    };
    let schema = broker_schema::readable(schema);
    let (schema, mut failures) = match without_exact_numbers(&schema) {
        None => (schema, Vec::new()),
        Some(wider) => (Cow::Owned(wider), vec![reason(EXACT_NUMBERS)]),
    };
    for (plain, level) in [(false, Level::Widened), (true, Level::Plain)] {
        let outline = match simplify(&schema, of, plain) {
            Ok(outline) => outline,
            Err(reason) => return map(of, vec![reason]),
        };
        // Every type becomes at least one item, and every member takes more code than here.
        if outline.types.len() > MAX_TOOL_ITEMS || outline.schema.to_string().len() > MAX_TOOL_BYTES
        {
            return map(of, vec![reason(TOO_LARGE)]);
        }
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
            Ok((refined, size)) => {
                let mut reasons = failures;
                reasons.extend(outline.reasons);
                let level = if reasons.is_empty() {
                    Level::Whole
                } else {
                    level
                };
                let mut made = Generated {
                    code: refined.whole,
                    size,
                    bare: Some(refined.bare),
                    level,
                    reasons,
                };
                if !made.size.fits() {
                    made.shorten();
                }
                return if made.size.fits() {
                    made
                } else {
                    map(of, vec![reason(TOO_LARGE)])
                };
            }
            Err(text) => failures.push(reason(text)),
        }
    }
    map(of, failures)
}

/// The map of a tool that is served although one of its schemas is not valid.
pub(super) fn unvalidated(of: SchemaOf) -> Generated {
    map(of, vec![reason("the tool is served unvalidated")])
}

fn reason(text: &str) -> Reason {
    Reason {
        pointer: String::new(),
        text: text.to_owned(),
    }
}

/// Whether the root is an object with unknown members.
fn is_open_map(outline: &Outline, of: SchemaOf) -> bool {
    outline.schema["definitions"][of.type_name()] == json!({ "type": "object" })
}

/// The map that replaces types that are too large together with other code.
pub(super) fn too_large(of: SchemaOf, text: &str) -> Generated {
    map(of, vec![reason(text)])
}

/// A root type that accepts any object.
fn map(of: SchemaOf, reasons: Vec<Reason>) -> Generated {
    let name = format_ident!("{}", of.type_name());
    let doc = refine::doc_of(of.type_name());
    let code = quote! {
        #doc
        #[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
        #[serde(transparent)]
        pub struct #name(pub ::serde_json::Map<::std::string::String, ::serde_json::Value>);
    };
    Generated {
        size: Size::measure(&code, 1),
        code,
        bare: None,
        level: Level::Map,
        reasons,
    }
}

/// Returns the refined code, or the reason for its absence.
fn code(outline: &Outline) -> Result<(Refined, Size), &'static str> {
    let stream = silently(|| typified(&outline.schema))
        .ok_or("typify panicked")?
        .ok_or("typify refused the schema")?;
    let refined = refine::refine(stream, outline)?;
    let items = inspect::inspect(&refined.whole, outline)?;
    let size = Size::measure(&refined.whole, items);
    Ok((refined, size))
}

fn typified(schema: &Value) -> Option<TokenStream> {
    let mut settings = TypeSpaceSettings::default();
    let number =
        serde_json::from_value(Shape::typed(json!({ "type": "number" })).into_schema()).ok()?;
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

/// Runs code that may panic; `None` if it did.
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
    fn type_code_of_one_tool_is_limited_in_bytes_and_items() {
        let fits = |bytes, items| Size { bytes, items }.fits();
        assert!(fits(256 << 10, 2000));
        assert!(!fits((256 << 10) + 1, 1));
        assert!(!fits(1, 2001));
    }

    #[test]
    fn type_generator_panic_is_a_silent_failure() {
        assert_eq!(silently(|| 1), Some(1));
        assert_eq!(silently(|| -> u8 { panic!("not printed") }), None);
        assert!(!QUIET.get());
    }
}
