//! Encoded runs that decode to instructions.

use broker_drift::encoded;

use super::{TextFinding, phrases};

/// One finding for each run.
pub(super) fn check(text: &str) -> Vec<TextFinding> {
    let phrased = |decoded: &str| !phrases::check(decoded).is_empty();
    let found = encoded::instructions(text, &phrased).into_iter();
    let found = found.map(|(run, decoded)| TextFinding {
        rule: "encoded-payload",
        at: run.at,
        to: run.to,
        message: format!("{} that decodes to {}", run.coding, super::quoted(&decoded)),
    });
    found.collect()
}
