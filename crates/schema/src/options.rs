//! The options with which `jsonschema` compiles a schema, and the first error of its validators.

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::error::SchemaError;
use super::meter::{Meter, Metered, MeteredNode};
use super::pattern::BACKTRACK_LIMIT;

/// Maximum bytes of the lazy automaton of a pattern.
const PATTERN_CACHE_BYTES: usize = 512 << 10;

/// The options of `jsonschema`.
pub(super) type Options<'a> =
    jsonschema::ValidationOptions<'a, std::sync::Arc<dyn jsonschema::Retrieve>, Metered>;

pub(super) fn options<'a>() -> Options<'a> {
    jsonschema::options_for::<Metered>()
        .should_validate_formats(false)
        // The default check makes a tree of the text, which can take a hundred times its memory.
        .with_content_media_type("application/json", |text| {
            serde_json::from_str::<IgnoredAny>(text).is_ok()
        })
        .with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(BACKTRACK_LIMIT)
                .dfa_size_limit(PATTERN_CACHE_BYTES),
        )
}

/// The first place of a validator's error, if the steps suffice.
pub(super) fn first_place(
    compiled: &jsonschema::Validator<Metered>,
    value: &Value,
    meter: &Meter<'_>,
) -> Option<SchemaError> {
    let error = compiled.validate(MeteredNode::new(value, meter)).err()?;
    // Errors after the first have no place, since the value then appears empty.
    let address = std::ptr::from_ref(error.instance().as_ref()) as usize;
    // The error of a keyword of the module `exact` has a copy of the value; later ones do not fail.
    let is_first = match error.kind() {
        ValidationErrorKind::Custom { .. } => meter.failed().is_some(),
        _ => meter.failed() == Some(address),
    };
    (!meter.is_spent() && is_first).then(|| SchemaError::from(&error))
}
