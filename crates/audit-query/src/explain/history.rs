//! A line with its neighbours in the log: its partner, the lock of its catalog, and what was withdrawn at that moment.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use broker_audit::{Kind, Line, read_lines};
use serde::Serialize;
use serde_json::Value;

use crate::error::QueryError;
use crate::files::LineVersions;

/// The maximum number of earlier lines that an answer has.
const MAX_BEFORE: usize = 50;
/// The maximum number of withdrawn items that are kept; a lock has fewer.
const MAX_WITHDRAWN: usize = 100_000;

/// An earlier line about an item or its source.
#[derive(Clone, Debug, Serialize)]
pub struct PastLine {
    /// Its number.
    pub seq: u64,
    /// Its time.
    pub at: String,
    /// `withdrawn`, `restored` or `drift`.
    pub kind: Kind,
    /// The path of the item, or of the source.
    pub path: String,
    /// The class of the difference.
    pub class: Option<String>,
    /// The rule that found it.
    pub finding: Option<String>,
}

/// A line and what the log says before it.
#[derive(Debug)]
pub(super) struct History {
    /// The line as JSON text, from which every [`Line`] borrows.
    text: String,
    partner: Option<Value>,
    lock: Option<String>,
    before: VecDeque<PastLine>,
    before_count: u64,
    withdrawn: BTreeMap<String, u64>,
}

impl History {
    /// Reads the line with a number, and the lines around it.
    pub(super) fn read(seq: u64, files: &[PathBuf]) -> Result<Self, QueryError> {
        let text = find(seq, files)?;
        let mut history = Self {
            text: text.clone(),
            partner: None,
            lock: None,
            before: VecDeque::new(),
            before_count: 0,
            withdrawn: BTreeMap::new(),
        };
        // It was written by this program.
        let Ok(own) = serde_json::from_str::<Line<'_>>(&text) else {
            return Ok(history);
        };
        read_lines(files, &mut |_, line| {
            if let Ok(line) = line
                && line.stream == own.stream
            {
                history.add(&own, &line);
            }
        })?;
        Ok(history)
    }

    fn add(&mut self, own: &Line<'_>, line: &Line<'_>) {
        let is_partner = match own.kind {
            Kind::CallEnd => own.begin == Some(line.seq) && line.kind == Kind::CallBegin,
            Kind::CallBegin => line.begin == Some(own.seq) && line.kind == Kind::CallEnd,
            _ => false,
        };
        if is_partner {
            self.partner = serde_json::to_value(line).ok();
        }
        if let Some(lock) = &line.lock
            && line.catalog == own.catalog
        {
            self.lock = Some(lock.as_ref().to_owned());
        }
        if line.seq < own.seq {
            self.add_before(own, line);
        }
    }

    fn add_before(&mut self, own: &Line<'_>, line: &Line<'_>) {
        let is_new_broker = line.kind == Kind::Start
            && line.code.as_ref().and_then(|code| code.0.as_deref()) == Some("opened");
        if is_new_broker {
            // A new broker compares every source again.
            self.withdrawn.clear();
        }
        let Some(target) = line.target.as_deref() else {
            return;
        };
        match line.kind {
            Kind::Withdrawn if self.withdrawn.len() < MAX_WITHDRAWN => {
                self.withdrawn
                    .insert(target.path.as_ref().to_owned(), line.seq);
            }
            Kind::Restored => {
                self.withdrawn.remove(target.path.as_ref());
            }
            _ => {}
        }
        let is_change = matches!(line.kind, Kind::Withdrawn | Kind::Restored | Kind::Drift);
        let is_about = own.target.as_deref().is_some_and(|own| {
            let is_of_source = target.source.is_some() && target.source == own.source;
            own.path == target.path
                || (is_of_source && target.source.as_ref() == Some(&target.path))
        });
        if !is_change || !is_about {
            return;
        }
        self.before_count += 1;
        if self.before.len() == MAX_BEFORE {
            self.before.pop_front();
        }
        let text = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
        let code = line.code.as_ref().and_then(|code| code.0.as_deref());
        self.before.push_back(PastLine {
            seq: line.seq,
            at: line.at.as_ref().to_owned(),
            kind: line.kind,
            path: target.path.as_ref().to_owned(),
            class: text(&line.class).or_else(|| code.map(str::to_owned)),
            finding: text(&line.finding),
        });
    }

    /// The line. `find` has made the text of one.
    pub(super) fn line(&self) -> serde_json::Result<Line<'_>> {
        serde_json::from_str(&self.text)
    }

    /// The line as a value.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(super) fn partner(&self) -> Option<Value> {
        self.partner.clone()
    }

    pub(super) fn versions(&self, line: &Line<'_>) -> LineVersions {
        LineVersions {
            catalog: line.catalog.as_ref().to_owned(),
            policy: line.policy.as_ref().to_owned(),
            lock: self.lock.clone(),
        }
    }

    pub(super) fn before(&self) -> Vec<PastLine> {
        self.before.iter().cloned().collect()
    }

    pub(super) fn before_left_out(&self) -> u64 {
        self.before_count - self.before.len() as u64
    }

    /// The line that withdrew an item, if it was withdrawn at this line.
    pub(super) fn withdrawn_since(&self, path: &str) -> Option<u64> {
        self.withdrawn.get(path).copied()
    }
}

/// Returns the text of the line with a number.
fn find(seq: u64, files: &[PathBuf]) -> Result<String, QueryError> {
    let mut found: Option<(String, String)> = None;
    let mut is_in_several = false;
    let (mut first, mut last) = (u64::MAX, 0);
    read_lines(files, &mut |_, line| {
        let Ok(line) = line else { return };
        (first, last) = (first.min(line.seq), last.max(line.seq));
        if line.seq != seq {
            return;
        }
        match &found {
            Some((stream, _)) => is_in_several |= *stream != line.stream,
            None => {
                let text = serde_json::to_string(&line).unwrap_or_default();
                found = Some((line.stream.as_ref().to_owned(), text));
            }
        }
    })?;
    match found {
        Some(_) if is_in_several => Err(QueryError::SeveralLogs(seq)),
        Some((_, text)) => Ok(text),
        None => Err(QueryError::NoLine { seq, first, last }),
    }
}
