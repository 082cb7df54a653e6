//! Rules: which requests have a fault. Each rule counts the requests that match it, from the moment at which the
//! script was last changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::edit::Edit;
use super::json::{flag, members, number, text, unknown};

/// The members of a request that a rule can name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    /// `POST`, `GET` or `DELETE`.
    pub(crate) http_method: Option<String>,
    pub(crate) path: Option<String>,
    /// The method of the message, also of a notification.
    pub(crate) method: Option<String>,
    pub(crate) tool: Option<String>,
    /// Whether the request has `Last-Event-ID`.
    pub(crate) resume: Option<bool>,
    /// Whether the rule is for the reply on the stream of the older transport, and not for the HTTP response.
    pub(crate) reply: bool,
}

impl Target {
    fn parse(value: &Value) -> Result<Self, String> {
        let mut target = Self::default();
        members(value, |name, value| {
            match name {
                "http_method" => target.http_method = Some(text(value)?),
                "path" => target.path = Some(text(value)?),
                "method" => target.method = Some(text(value)?),
                "tool" => target.tool = Some(text(value)?),
                "resume" => target.resume = Some(flag(value)?),
                "reply" => target.reply = flag(value)?,
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(target)
    }

    /// Whether a request, with all its members, is meant.
    fn includes(&self, request: &Self) -> bool {
        let same =
            |wanted: &Option<String>, given: &Option<String>| wanted.is_none() || wanted == given;
        same(&self.http_method, &request.http_method)
            && same(&self.path, &request.path)
            && same(&self.method, &request.method)
            && same(&self.tool, &request.tool)
            && (self.resume.is_none() || self.resume == request.resume)
            && self.reply == request.reply
    }
}

/// `{"on": TARGET, "nth": N or [FIRST, LAST], "do": FAULT}`; without `nth`, every request that matches.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    on: Target,
    first: u64,
    last: u64,
    edit: Arc<Edit>,
    matched: Arc<AtomicU64>,
}

impl Rule {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        let mut rule = Self {
            on: Target::default(),
            first: 1,
            last: u64::MAX,
            edit: Arc::default(),
            matched: Arc::default(),
        };
        let mut has_fault = false;
        members(value, |name, value| {
            match name {
                "on" => rule.on = Target::parse(value)?,
                "nth" => (rule.first, rule.last) = range(value)?,
                "do" => {
                    has_fault = true;
                    rule.edit = Arc::new(Edit::parse(value)?);
                }
                _ => return unknown(),
            }
            Ok(())
        })?;
        if has_fault {
            rule.edit.check(rule.on.reply)?;
            Ok(rule)
        } else {
            Err("a rule needs `do`".to_owned())
        }
    }

    /// Counts the request if it matches; returns whether the fault is for it.
    fn counts(&self, request: &Target) -> bool {
        if !self.on.includes(request) {
            return false;
        }
        let at = self.matched.fetch_add(1, Ordering::SeqCst) + 1;
        (self.first..=self.last).contains(&at)
    }
}

/// The first rule that is for this request, with its number. All rules count the request.
pub(crate) fn select(rules: &[Rule], request: &Target) -> Option<(usize, Arc<Edit>)> {
    let mut selected = None;
    for (at, rule) in rules.iter().enumerate() {
        if rule.counts(request) && selected.is_none() {
            selected = Some((at, Arc::clone(&rule.edit)));
        }
    }
    selected
}

fn range(value: &Value) -> Result<(u64, u64), String> {
    match value.as_array().map(Vec::as_slice) {
        None => number(value).map(|nth| (nth, nth)),
        Some([first, last]) => Ok((number(first)?, number(last)?)),
        Some(_) => Err("must be a number, or a list of the first and the last".to_owned()),
    }
}
