//! Reads typed values from a TOML document and collects all problems with line and column.

use broker_model::digest::Digest;
use broker_model::filter::ToolFilter;
use broker_model::json::position_of_offset;
use broker_model::suggest;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode, NodePath};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Date;

/// Maximum number of reported problems of one file.
const MAX_REPORTED: usize = 100;

/// The problems of one text.
#[derive(Debug)]
pub(super) struct Problems<'t> {
    file: &'t str,
    text: &'t str,
    found: Vec<(usize, Diagnostic)>,
}

/// One table of the document: an element of `[[audits]]` or the like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'d> {
    /// Singular, for messages: `an audit`.
    pub(super) what: &'static str,
    pub(super) table: &'d DeTable<'d>,
    /// The offset at which it begins.
    pub(super) at: usize,
}

impl<'t> Problems<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            found: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, at: usize, diagnostic: Diagnostic) {
        self.found.push((at, diagnostic));
    }

    fn value(&mut self, at: usize, message: String) {
        self.add(at, Diagnostic::error(DiagnosticCode::AuditsValue, message));
    }

    pub(super) fn line(&self, at: usize) -> usize {
        position_of_offset(self.text, at).line
    }

    /// All in the file's order; empty if there are none.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|(at, _)| *at);
        let left_out = self.found.len().saturating_sub(MAX_REPORTED);
        self.found.truncate(MAX_REPORTED);
        let (file, text) = (self.file, self.text);
        let mut reported: Vec<_> = self
            .found
            .into_iter()
            .map(|(at, diagnostic)| Diagnostic {
                position: Some(position_of_offset(text, at)),
                ..diagnostic.in_file(file)
            })
            .collect();
        if left_out > 0 {
            let message = format!("and {left_out} more; correct these first");
            reported.push(Diagnostic::error(DiagnosticCode::AuditsValue, message).in_file(file));
        }
        reported
    }

    /// Reports every key of `table` that is not among `known`.
    pub(super) fn unknown_keys(&mut self, table: &DeTable<'_>, known: &[&str], place: &str) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let help = match suggest::nearest(name, known.iter().copied(), 1).pop() {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            let message = format!("unknown key `{}` in {place}", shown_line(name, 80));
            self.add(
                key.span().start,
                Diagnostic::error(DiagnosticCode::AuditsUnknownKey, message).help(help),
            );
        }
    }
}

impl<'d> Fields<'d> {
    fn get(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.table.get(key)
    }

    /// The value of a required key.
    fn required(&self, problems: &mut Problems<'_>, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        let value = self.get(key);
        if value.is_none() {
            problems.value(self.at, format!("{} has no `{key}`", self.what));
        }
        value
    }

    /// Reads a text with `parse`, whose error says what it expected.
    fn parsed<T>(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let outcome = match value.get_ref() {
            DeValue::String(text) if text.trim().is_empty() => Err("a text".to_owned()),
            DeValue::String(text) => parse(text),
            // A TOML date, without quotes, is accepted as well.
            DeValue::Datetime(date) => parse(&date.to_string()),
            _ => Err("a text".to_owned()),
        };
        match outcome {
            Ok(value) => Some(value),
            Err(expected) => {
                let got = got(value.get_ref());
                let message = format!("`{key}` of {}: expected {expected}, got {got}", self.what);
                problems.value(value.span().start, message);
                None
            }
        }
    }

    pub(super) fn text(&self, problems: &mut Problems<'_>, key: &str) -> Option<String> {
        let value = self.required(problems, key)?;
        self.parsed(problems, key, value, |text| Ok(text.to_owned()))
    }

    /// `Some(None)` if the key is absent, `None` if it is invalid.
    pub(super) fn optional_text(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
    ) -> Option<Option<String>> {
        match self.get(key) {
            None => Some(None),
            Some(value) => self
                .parsed(problems, key, value, |text| Ok(text.to_owned()))
                .map(Some),
        }
    }

    /// A text that is one of a list.
    pub(super) fn word(&self, problems: &mut Problems<'_>, key: &str, known: &str) -> Option<()> {
        let value = self.required(problems, key)?;
        self.parsed(problems, key, value, |text| {
            (text == known)
                .then_some(())
                .ok_or_else(|| format!("`{known}`"))
        })
    }

    pub(super) fn path(&self, problems: &mut Problems<'_>, key: &str) -> Option<NodePath> {
        let value = self.required(problems, key)?;
        self.parsed(problems, key, value, |text| {
            NodePath::parse(text).map_err(|_| "the path of a source, as `/repo`".to_owned())
        })
    }

    pub(super) fn digest(&self, problems: &mut Problems<'_>, key: &str) -> Option<Digest> {
        let value = self.required(problems, key)?;
        self.parsed(problems, key, value, |text| {
            Digest::from_written(text).ok_or_else(|| {
                "a digest as the lock has it, `sha256/1:` and 64 hex digits".to_owned()
            })
        })
    }

    pub(super) fn date(&self, problems: &mut Problems<'_>, key: &str) -> Option<Date> {
        let value = self.required(problems, key)?;
        self.date_of(problems, key, value)
    }

    /// `Some(None)` if the key is absent, `None` if it is invalid.
    pub(super) fn optional_date(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
    ) -> Option<Option<Date>> {
        match self.get(key) {
            None => Some(None),
            Some(value) => self.date_of(problems, key, value).map(Some),
        }
    }

    fn date_of(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Date> {
        self.parsed(problems, key, value, |text| {
            text.parse()
                .map_err(|error: super::date::InvalidDate| error.to_string())
        })
    }

    /// `Some(None)` if the key is absent, `None` if it is invalid.
    pub(super) fn optional_glob(
        &self,
        problems: &mut Problems<'_>,
        key: &str,
    ) -> Option<Option<ToolFilter>> {
        match self.get(key) {
            None => Some(None),
            Some(_) => self.glob(problems, key).map(Some),
        }
    }

    pub(super) fn glob(&self, problems: &mut Problems<'_>, key: &str) -> Option<ToolFilter> {
        let value = self.required(problems, key)?;
        self.parsed(problems, key, value, |text| {
            // A filter would read `!x` as everything except `x`.
            if text.starts_with('!') {
                return Err("a glob, which cannot deny".to_owned());
            }
            ToolFilter::compile(&[text]).map_err(|errors| {
                let why: Vec<_> = errors.iter().map(|error| error.reason.as_str()).collect();
                format!("a glob ({})", why.join("; "))
            })
        })
    }

    /// A list of texts; empty if the key is absent.
    pub(super) fn texts(&self, problems: &mut Problems<'_>, key: &str) -> Option<Vec<String>> {
        let Some(value) = self.get(key) else {
            return Some(Vec::new());
        };
        let DeValue::Array(items) = value.get_ref() else {
            let got = got(value.get_ref());
            let message = format!(
                "`{key}` of {}: expected a list of texts, got {got}",
                self.what
            );
            problems.value(value.span().start, message);
            return None;
        };
        let read = |item| self.parsed(problems, key, item, |text| Ok(text.to_owned()));
        let read: Vec<Option<String>> = items.iter().map(read).collect();
        read.into_iter().collect()
    }
}

/// A description of the actual value, safe to show.
fn got(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.trim().is_empty() => "an empty one".to_owned(),
        DeValue::String(text) => format!("`{}`", shown_line(text, 80)),
        DeValue::Integer(_) | DeValue::Float(_) => "a number".to_owned(),
        DeValue::Boolean(_) => "a boolean".to_owned(),
        DeValue::Datetime(date) => format!("the time `{date}`"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
