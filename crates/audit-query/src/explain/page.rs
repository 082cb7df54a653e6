//! An explanation as one page of text. Every value is shown in one line, so that none of them can begin another.

use std::fmt::Write as _;

use broker_model::text::{counted, shown_line};
use serde_json::Value;

use super::review::ReviewEntry;
use super::{Explanation, Review};

/// The maximum number of items that the page lists.
const MAX_LISTED: usize = 40;
/// The maximum characters of a value.
const MAX_CHARS: usize = 200;

impl Explanation {
    /// Whether the verification of the files found no change.
    pub const fn is_unchanged(&self) -> bool {
        self.changes == 0
    }

    /// Returns the page as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the page as text.
    pub fn to_text(&self) -> String {
        let mut page = String::new();
        self.add_line(&mut page);
        self.add_lock(&mut page);
        self.add_review(&mut page);
        self.add_access(&mut page);
        self.add_before(&mut page);
        section(&mut page, "not known", &self.unknown);
        page
    }

    fn add_line(&self, page: &mut String) {
        let line = &self.line;
        let mut rows = Vec::new();
        match (&self.partner, member(line, "kind").as_str()) {
            (Some(partner), "call_end") => rows.push(format!(
                "begin: line {}, {}",
                partner["seq"],
                member(partner, "at")
            )),
            (Some(partner), _) => rows.push(format!(
                "end: line {}, {}: {}",
                partner["seq"],
                member(partner, "at"),
                outcome(partner)
            )),
            (None, "call_begin") => {
                rows.push("end: none; the call may have run".to_owned());
            }
            (None, _) => {}
        }
        if line["actor"].is_object() {
            rows.push(format!("caller: {}", caller(line)));
        }
        if let Some(target) = line["target"].as_object() {
            let text = |name: &str| target.get(name).map_or_else(String::new, shown);
            let item = match text("tool").as_str() {
                "" => text("path"),
                tool => format!("{}: {tool} of {}", text("path"), text("source")),
            };
            rows.push(format!("item: {item}"));
            if target.contains_key("digest") {
                rows.push(format!("digest: {}", text("digest")));
            }
        }
        if member(line, "kind") == "call_end" {
            rows.push(format!("outcome: {}", outcome(line)));
        } else {
            let facts = [
                "method", "paths", "outcome", "code", "class", "finding", "count",
            ]
            .into_iter();
            let facts = facts.filter(|name| !line[*name].is_null());
            rows.extend(facts.map(|name| format!("{name}: {}", member(line, name))));
        }
        if let Some(args) = line["args"].as_object() {
            rows.push(format!(
                "arguments: {} bytes, not kept",
                shown(&args["bytes"])
            ));
            let shown_args = args.get("shown").and_then(Value::as_object);
            for (pointer, value) in shown_args.into_iter().flatten() {
                let pointer = shown_line(pointer, MAX_CHARS);
                rows.push(format!("argument {pointer}: {}", shown(value)));
            }
        }
        rows.push(match self.changes {
            0 => "log: no change was found; `mcp-broker audit verify` says what cannot be excluded"
                .to_owned(),
            changes => format!(
                "log: CHANGED, {}; the first: {}; run `mcp-broker audit verify`",
                counted(changes as usize, "change"),
                shown_line(self.first_change.as_deref().unwrap_or_default(), MAX_CHARS)
            ),
        });
        let title = format!(
            "line {}, {}, {}",
            line["seq"],
            member(line, "kind"),
            member(line, "at")
        );
        section(page, &title, &rows);
    }

    fn add_lock(&self, page: &mut String) {
        let lock = &self.lock;
        let mut rows = vec![format!("catalog: {}", shown_line(&lock.catalog, MAX_CHARS))];
        let digest = lock.digest.as_deref().unwrap_or("not in these files");
        rows.push(format!("root digest: {}", shown_line(digest, MAX_CHARS)));
        rows.push(match &lock.place {
            Some(place) => format!("found: {}", shown_line(place, MAX_CHARS)),
            None => "found: no".to_owned(),
        });
        if let Some(item) = &self.item {
            match item.is_locked {
                Some(true) => {
                    rows.push("item: in the lock, with the digest of the line".to_owned())
                }
                Some(false) => {
                    rows.push("item: NOT in this lock with the digest of the line".to_owned());
                }
                None => {}
            }
            if let Some(description) = &item.description {
                rows.push(format!("description: {description}"));
            }
            let hints = item.hints.iter();
            let hints: Vec<_> = hints
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            if !hints.is_empty() {
                rows.push(format!("hints: {}", hints.join(", ")));
            }
        }
        section(page, "lock", &rows);
    }

    fn add_review(&self, page: &mut String) {
        let Some(review) = &self.review else {
            return;
        };
        let mut rows = vec![verdict(review)];
        rows.extend(review.entries.iter().map(|one| entry("accepted", one)));
        rows.extend(review.hints.iter().map(|one| entry("hints confirmed", one)));
        if let Some(until) = &review.exempt_until {
            rows.push(format!("exempt until {until}"));
        }
        rows.extend(review.violation.iter().map(|one| entry("REFUSED", one)));
        if let Some(place) = &review.place {
            rows.push(format!("from: {}", shown_line(place, MAX_CHARS)));
        }
        section(page, "reviews of exactly this version, at that time", &rows);
    }

    fn add_access(&self, page: &mut String) {
        let access = &self.access;
        let mut rows = Vec::new();
        match access.policy.as_str() {
            "" => rows.push("there were no rules: every caller saw every item".to_owned()),
            policy => {
                rows.push(format!("digest: {}", shown_line(policy, MAX_CHARS)));
                let place = access.place.as_deref().unwrap_or("no");
                rows.push(format!("found: {}", shown_line(place, MAX_CHARS)));
                let groups = match access.groups.is_empty() {
                    true => "none".to_owned(),
                    false => shown_line(&access.groups.join(", "), 1000),
                };
                rows.push(format!("groups of the caller: {groups}"));
            }
        }
        if let Some(rule) = &access.rule {
            let text = rule.text.as_deref().unwrap_or("its text is not known");
            rows.push(format!(
                "rule {} decided: {}",
                rule.number,
                shown_line(text, 500)
            ));
        }
        if let Some(standing) = access.item {
            rows.push(format!("the item for the caller: {standing}"));
        }
        if let Some(visible) = &access.visible {
            rows.push(format!(
                "the caller could see {} of {}:",
                visible.len(),
                counted(access.items, "item")
            ));
            for one in visible.iter().take(MAX_LISTED) {
                let path = shown_line(&one.path, MAX_CHARS);
                let standing = match one.standing {
                    "callable" => String::new(),
                    other => format!(", {other}"),
                };
                let withdrawn = withdrawn(one.withdrawn_since);
                rows.push(format!("  {path}{standing}{withdrawn}"));
            }
            if let Some(more @ 1..) = visible.len().checked_sub(MAX_LISTED) {
                rows.push(format!("  and {more} more; `--format json` has all"));
            }
        }
        section(page, "access rules", &rows);
    }

    fn add_before(&self, page: &mut String) {
        let Some(item) = &self.item else {
            return;
        };
        let mut rows = Vec::new();
        if self.before_left_out > 0 {
            rows.push(format!(
                "{} earlier lines are left out",
                self.before_left_out
            ));
        }
        for past in &self.before {
            let kind = serde_json::to_value(past.kind).unwrap_or_default();
            let facts = past.class.iter().chain(&past.finding);
            let facts: Vec<_> = facts.map(|fact| shown_line(fact, MAX_CHARS)).collect();
            rows.push(format!(
                "line {}, {}: {} {} {}",
                past.seq,
                shown_line(&past.at, 40),
                shown(&kind),
                shown_line(&past.path, MAX_CHARS),
                facts.join(" ")
            ));
        }
        rows.push(match item.withdrawn_since {
            Some(seq) => format!("the item was WITHDRAWN by line {seq} and not restored"),
            None => "the item was not withdrawn at that moment".to_owned(),
        });
        section(page, "drift and withdrawals before this line", &rows);
    }
}

fn section(page: &mut String, title: &str, rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    let blank = if page.is_empty() { "" } else { "\n" };
    // Writing to a text does not fail.
    let _ = writeln!(page, "{blank}{title}");
    for row in rows {
        let _ = writeln!(page, "  {}", row.trim_end());
    }
}

fn verdict(review: &Review) -> String {
    let needed = match review.needed {
        0 => "the config asks for no review".to_owned(),
        1 => "the config asks for 1 person".to_owned(),
        needed => format!("the config asks for {needed} people"),
    };
    let state = match review.is_reviewed {
        None => return "not known".to_owned(),
        Some(true) => "reviewed",
        Some(false) if review.of_other_bytes > 0 => "NOT reviewed: the entries are for other bytes",
        Some(false) => "NOT reviewed",
    };
    format!("{state} ({needed})")
}

fn entry(what: &str, entry: &ReviewEntry) -> String {
    let mut text = format!(
        "{what} by {} on {}",
        shown_line(&entry.who, MAX_CHARS),
        shown_line(&entry.date, 20)
    );
    if let Some(expires) = &entry.expires {
        text.push_str(&format!(", until {expires}"));
    }
    if !entry.held {
        text.push_str(", not valid on the day of the line");
    }
    if let Some(notes) = &entry.notes {
        text.push_str(&format!(": {}", shown_line(notes, MAX_CHARS)));
    }
    text
}

fn withdrawn(since: Option<u64>) -> String {
    since.map_or_else(String::new, |seq| format!(", withdrawn by line {seq}"))
}

/// A scalar in one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => shown_line(text, MAX_CHARS),
        other => shown_line(&other.to_string(), MAX_CHARS),
    }
}

fn member(line: &Value, name: &str) -> String {
    shown(&line[name])
}

fn caller(line: &Value) -> String {
    let actor = &line["actor"];
    let kind = member(actor, "kind");
    let name = match member(actor, "subject").as_str() {
        "" => kind,
        subject => format!("{subject} ({kind})"),
    };
    let groups = actor["groups"].as_array().into_iter().flatten();
    let groups: Vec<_> = groups.map(shown).collect();
    let mut text = name;
    if !groups.is_empty() {
        text.push_str(&format!(
            ", groups {}",
            shown_line(&groups.join(", "), 1000)
        ));
    }
    for (word, name) in [("via", "via"), ("from", "peer")] {
        if line[name].is_string() {
            text.push_str(&format!(", {word} {}", member(line, name)));
        }
    }
    text
}

fn outcome(line: &Value) -> String {
    let mut text = member(line, "outcome");
    if line["code"].is_string() {
        text.push_str(&format!(" ({})", member(line, "code")));
    }
    text.push_str(
        match (line["sent"].as_bool(), line["maybe_executed"].as_bool()) {
            (Some(true), Some(true)) => ", sent; it may have run",
            (Some(true), _) => ", sent",
            (Some(false), _) => ", not sent",
            (None, _) => "",
        },
    );
    text
}
