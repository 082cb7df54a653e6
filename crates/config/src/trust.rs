//! The keys `trust`: the level of a source, and the sensitive names of the top level.

use super::fields;
use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use broker_model::trust::{SensitiveNames, TrustLevel};

/// Returns the level of a source.
pub(super) fn level(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<TrustLevel> {
    let level = TrustLevel::from_name(fields::string(findings, cursor)?);
    if level.is_none() {
        let message = "`trust` is neither `trusted` nor `verified` nor `untrusted`".to_owned();
        fields::out_of_range(findings, cursor, message);
    }
    level
}

/// `trust` of the top level.
pub(super) fn sensitive(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> SensitiveNames {
    let mut names = SensitiveNames::default();
    let members = fields::object(findings, cursor, "an object with `sensitive`");
    for member in members.unwrap_or_default() {
        let value = cursor.member(member);
        match member.key.as_str() {
            "sensitive" => names = words(findings, &value),
            unknown => keys::unknown(findings, &value, unknown, Level::Trust),
        }
    }
    names
}

fn words(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> SensitiveNames {
    let words = fields::strings(
        findings,
        cursor,
        |findings, item, text| match SensitiveNames::new(&[text]) {
            Ok(_) => Some(text.to_owned()),
            Err(errors) => {
                for error in errors {
                    fields::out_of_range(findings, item, error.to_string());
                }
                None
            }
        },
    );
    // Each entry is valid alone, so all of them are.
    SensitiveNames::new(&words).unwrap_or_default()
}
