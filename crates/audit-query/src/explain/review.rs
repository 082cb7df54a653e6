//! The reviews of an item by people at the time of a line.

use broker_audit::Target;
use broker_audits_file::{Audits, Date, different};
use broker_model::digest::Digest;
use broker_model::item::ItemKind;
use serde::Serialize;

use crate::files::FoundFiles;

/// The reviews of an item.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Review {
    /// The place of the audits file, if one was found.
    pub place: Option<String>,
    /// Whether enough people had reviewed exactly these bytes on that day; `None` if that is not known.
    pub is_reviewed: Option<bool>,
    /// The people that the config asks for; 0 if it asks for none.
    pub needed: u8,
    /// The entries for exactly these bytes.
    pub entries: Vec<ReviewEntry>,
    /// The entries that confirm hints of the config for these bytes.
    pub hints: Vec<ReviewEntry>,
    /// The last day of an exemption that held then.
    pub exempt_until: Option<String>,
    /// The entry that refuses the item.
    pub violation: Option<ReviewEntry>,
    /// The number of entries for other bytes of the same item.
    pub of_other_bytes: usize,
}

/// An entry of the audits file.
#[derive(Clone, Debug, Serialize)]
pub struct ReviewEntry {
    /// The author.
    pub who: String,
    /// The day.
    pub date: String,
    /// The last day of validity.
    pub expires: Option<String>,
    /// Notes, or the reason.
    pub notes: Option<String>,
    /// Whether it held on the day of the line.
    pub held: bool,
}

/// Returns the reviews of an item at a time.
pub(super) fn review(target: &Target, at: &str, found: &FoundFiles, needed: u8) -> Review {
    let mut review = Review {
        needed,
        ..Review::default()
    };
    let Ok(audits) = &found.audits else {
        return review;
    };
    review.place = Some(audits.place.clone());
    let day = at.get(..10).and_then(|day| day.parse::<Date>().ok());
    let (Some(source), Some(key), Some(digest), Some(day)) =
        (&target.source, key(target), digest(target), day)
    else {
        return review;
    };
    fill(&mut review, &audits.value, (source, &key, &digest), day);
    review
}

fn fill(
    review: &mut Review,
    audits: &Audits,
    (source, key, digest): (&str, &str, &Digest),
    day: Date,
) {
    let is_same = |one_source: &str, tool: Option<&str>| one_source == source && tool == Some(key);
    for audit in audits.audits() {
        if !is_same(audit.source.as_str(), audit.tool.as_deref()) {
            continue;
        }
        if audit.digest != *digest {
            review.of_other_bytes += 1;
            continue;
        }
        review.entries.push(ReviewEntry {
            who: audit.who.clone(),
            date: audit.date.to_string(),
            expires: audit.expires.map(|date| date.to_string()),
            notes: audit.notes.clone(),
            held: audit.date <= day && audit.expires.is_none_or(|last| day <= last),
        });
    }
    for audit in audits.hints() {
        if is_same(audit.source.as_str(), Some(&audit.tool)) && audit.digest == *digest {
            review.hints.push(ReviewEntry {
                who: audit.who.clone(),
                date: audit.date.clone(),
                expires: None,
                notes: audit.notes.clone(),
                held: audit.date <= day.to_string(),
            });
        }
    }
    let exempt = audits.exempt_until(source, Some(key));
    review.exempt_until = exempt
        .filter(|until| day <= *until)
        .map(|until| until.to_string());
    let refused = audits.violations().find_by_tool(source, key, digest);
    review.violation = refused.map(|one| {
        let (who, date, reason) = one.entry.decision();
        ReviewEntry {
            who: who.to_owned(),
            date: date.to_owned(),
            expires: None,
            notes: Some(reason.to_owned()),
            held: date <= day.to_string().as_str(),
        }
    });
    let held = review.entries.iter().filter(|entry| entry.held);
    let people = different(held.map(|entry| entry.who.as_str()));
    review.is_reviewed = Some(people.len() >= usize::from(review.needed.max(1)));
}

/// Returns the key of an item in lock and audits: for a tool its name, else with its kind.
fn key(target: &Target) -> Option<String> {
    let id = target.tool.as_deref()?;
    let kinds = ItemKind::ALL.into_iter();
    let mut kinds = kinds.filter(|kind| Some(kind.as_str()) == target.kind.as_deref());
    Some(kinds.next().unwrap_or(ItemKind::Tool).key(id))
}

fn digest(target: &Target) -> Option<Digest> {
    Digest::from_written(target.digest.as_deref()?)
}
