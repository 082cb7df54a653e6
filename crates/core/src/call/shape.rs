//! Step 7: the result in the form that the caller asks for: verbatim, or as configured, within its
//! limit and with warnings.

use std::borrow::Cow;

use broker_config::RenderMode;
use broker_mcp::RawResult;
use broker_memory::{Account, Charge, UNCHARGED_BYTES};
use broker_model::CallCode;
use broker_model::item::ItemKind;
use bytes::Bytes;

use super::Call;
use super::hidden_chars;
use super::reviewed_ui;
use crate::call::context::{Outcome, ResultForm, ResultLimit};
use crate::call::cut::{MAX_KEPT_BYTES, cut, is_over};
use crate::call::render_mode::render;
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::sources::tool_settings::ToolSettings;

/// Larger results are scanned on a separate pool, so that other calls do not wait for it.
const MIN_POOLED_BYTES: usize = 256 << 10;
/// The limit for cut results: they are walked many times.
const MIN_POOLED_CUT_BYTES: usize = 64 << 10;

/// The part of the limit that is kept free for a note on the cut, as a divisor.
const MAX_NOTE_PART: usize = 5;

/// The warning about a result with invalid UTF-8 that was replaced.
const REPAIRED: &str = "the server sent text that is not UTF-8; invalid bytes were replaced";

/// A form with the settings of the tool.
#[derive(Clone, Copy, Debug)]
enum Form {
    Verbatim,
    Configured {
        mode: RenderMode,
        /// Characters of the whole reply.
        limit: Option<usize>,
        /// Of them, those around the result.
        reserved: usize,
        /// The part of them for the note on a cut result.
        note: usize,
        /// Whether a cut result has the whole one beside it.
        keeps_whole: bool,
    },
}

impl Form {
    /// Returns the maximum memory that shaping takes in addition to the server's result, with `around` characters of
    /// warnings.
    fn working_bytes(self, result: &[u8], around: usize) -> usize {
        let bytes = result.len();
        match self {
            Self::Verbatim => bytes,
            // The memory that cutting takes; a test asserts it.
            Self::Configured {
                limit: Some(limit),
                mode,
                reserved,
                ..
            } if mode != RenderMode::Json || is_over(result, reserved + around, limit) => 6 * bytes,
            Self::Configured {
                mode: RenderMode::Json,
                ..
            } => 0,
            Self::Configured { .. } => 3 * bytes,
        }
    }

    /// Whether a result of this many bytes may be cut.
    #[inline]
    fn may_cut(self, result: usize) -> bool {
        match self {
            Self::Verbatim | Self::Configured { limit: None, .. } => false,
            Self::Configured {
                limit: Some(limit),
                reserved,
                ..
            } => reserved + result > limit,
        }
    }
}

impl Call<'_> {
    #[inline]
    pub(super) async fn shape(
        &self,
        answer: RawResult,
        warning: Option<String>,
        settings: &ToolSettings,
    ) -> Result<Outcome, Box<CoreError>> {
        let (target, account) = (self.target, &self.context.account);
        let form = match self.context.form {
            ResultForm::Verbatim => Form::Verbatim,
            ResultForm::Whole => Form::Configured {
                mode: RenderMode::Json,
                limit: None,
                reserved: 0,
                note: 0,
                keeps_whole: false,
            },
            ResultForm::Configured {
                reserved_chars,
                note_chars,
                limit,
                keeps_whole,
            } => Form::Configured {
                mode: settings.form,
                limit: settings.limit.or(match limit {
                    ResultLimit::Configured => None,
                    ResultLimit::Default => Some(settings.default_limit),
                }),
                reserved: reserved_chars,
                note: note_chars,
                keeps_whole,
            },
        };
        let (path, kind) = (target.path, target.item.kind);
        let result = &answer.result;
        let is_long = match form.may_cut(result.len()) {
            true => result.len() > MIN_POOLED_CUT_BYTES,
            false => result.len() > MIN_POOLED_BYTES && hidden_chars::needs_scan(result),
        };
        let review = reviewed_ui::is_needed(kind, result);
        let is_long = is_long || (review && result.len() > MIN_POOLED_BYTES);
        let (catalog, tool) = (self.core.catalog, target.item);
        let shape = move |account: &Account| {
            let mut answer = answer;
            if review {
                let reviewed = reviewed_ui::with_reviewed(catalog, tool, answer.result, account);
                answer.result = reviewed.map_err(|error| Box::new(error.path(path)))?;
            }
            shaped(path, kind, warning, answer, form, account)
        };
        if !is_long {
            return shape(account);
        }
        let (owner, account) = (account.owner(), account.clone());
        self.core
            .shaping
            .run_bounded(owner, move || shape(&account))
            .await
    }
}

fn shaped(
    path: &'static str,
    kind: ItemKind,
    warning: Option<String>,
    answer: RawResult,
    form: Form,
    account: &Account,
) -> Result<Outcome, Box<CoreError>> {
    let result = &answer.result[..];
    let first = result.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        let error = CoreError::new(
            CallCode::SourceProtocol,
            "the server's result is not a JSON object",
        );
        return Err(Box::new(error.path(path).maybe_executed(true)));
    }
    let repaired = answer.repaired.then(|| REPAIRED.to_owned());
    let warnings: Vec<String> = warning
        .into_iter()
        .chain(repaired)
        .chain(hidden_chars::warning(result))
        .collect();
    let around = chars_of(&warnings);
    let mut charge = Charge::default();
    charge
        .cover(account, form.working_bytes(result, around))
        .map_err(|charge_error| {
            Box::new(failure::memory_error_for_result(charge_error).path(path))
        })?;
    let mut outcome = Outcome {
        job: None,
        path,
        kind,
        result: Bytes::new(),
        is_error: answer.is_error && kind == ItemKind::Tool,
        cut: None,
        warnings,
        receipt: None,
    };
    match form {
        // A copy, since the server's bytes stay charged until they are dropped.
        Form::Verbatim => outcome.result = Bytes::copy_from_slice(result),
        Form::Configured {
            mode,
            limit,
            reserved,
            note,
            keeps_whole,
        } => {
            let rendered = render(mode, result);
            let around = reserved + around;
            let cut = limit.and_then(|limit| {
                let note = note.min(limit / MAX_NOTE_PART);
                cut(&rendered, around, note, limit)
            });
            let changed = match cut {
                Some((text, mut cut)) => {
                    if keeps_whole && rendered.len() <= MAX_KEPT_BYTES {
                        cut.whole = Some(match rendered {
                            // It stays charged.
                            Cow::Borrowed(_) => answer.result.clone(),
                            Cow::Owned(text) => Bytes::from(text),
                        });
                    }
                    outcome.cut = Some(Box::new(cut));
                    Some(text)
                }
                None => match rendered {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(text) => Some(text),
                },
            };
            outcome.result = match changed {
                Some(text) => {
                    let is_charged = text.len() > UNCHARGED_BYTES;
                    charge.shrink(if is_charged { text.len() } else { 0 });
                    charge.hold(text)
                }
                None => answer.result,
            };
        }
    }
    Ok(outcome)
}

/// Counts the characters of the member `warnings` in a reply.
fn chars_of(warnings: &[String]) -> usize {
    if warnings.is_empty() {
        return 0;
    }
    let json = serde_json::to_string(warnings).expect("strings always serialize");
    ",\"warnings\":".len() + json.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_memory::MemoryBudget;

    #[test]
    fn shaped_result_keeps_every_byte() {
        let account = MemoryBudget::new(1 << 20).account();
        let form = Form::Configured {
            mode: RenderMode::Json,
            limit: None,
            reserved: 0,
            note: 0,
            keeps_whole: false,
        };
        let answer = |result: &'static [u8], repaired| RawResult {
            result: Bytes::from_static(result),
            repaired,
            is_error: false,
        };
        let raw = b" {\"content\": [], \"n\":1.00,\"n\":2}";
        for form in [form, Form::Verbatim] {
            let outcome = shaped(
                "/a/t",
                ItemKind::Tool,
                None,
                answer(raw, false),
                form,
                &account,
            )
            .unwrap();
            assert_eq!((outcome.path, &outcome.result[..]), ("/a/t", &raw[..]));
            assert!(outcome.warnings.is_empty() && outcome.cut.is_none());
        }
        let repaired = shaped(
            "/a/t",
            ItemKind::Tool,
            None,
            answer(b"{}", true),
            form,
            &account,
        )
        .unwrap();
        assert_eq!(repaired.warnings, [REPAIRED]);
        for bad in [&b"[]"[..], b"", b"  ", b"null"] {
            let error = shaped(
                "/a/t",
                ItemKind::Tool,
                None,
                answer(bad, false),
                form,
                &account,
            )
            .unwrap_err();
            assert_eq!(error.code, CallCode::SourceProtocol);
        }
    }

    #[test]
    fn room_for_a_note_on_a_cut_is_at_most_a_part_of_the_limit() {
        let result = format!(
            r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
            "x".repeat(20_000)
        );
        let cut_with = |note| {
            let form = Form::Configured {
                mode: RenderMode::Json,
                limit: Some(10_000),
                reserved: 0,
                note,
                keeps_whole: false,
            };
            let answer = RawResult {
                result: Bytes::from(result.clone()),
                repaired: false,
                is_error: false,
            };
            let account = MemoryBudget::new(1 << 20).whole_account();
            let outcome = shaped("/a/t", ItemKind::Tool, None, answer, form, &account).unwrap();
            assert!(outcome.cut.is_some());
            outcome.result.len()
        };
        assert_eq!(cut_with(1000) - cut_with(1100), 100);
        assert_eq!(cut_with(9000), cut_with(10_000 / MAX_NOTE_PART));
    }

    #[test]
    fn memory_of_shaping_is_charged_before_it_is_taken() {
        let text = "x".repeat(1 << 20);
        let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        let configured = |mode, limit| Form::Configured {
            mode,
            limit,
            reserved: 0,
            note: 0,
            keeps_whole: false,
        };
        let forms = [
            (Form::Verbatim, 1),
            (configured(RenderMode::Text, None), 3),
            (configured(RenderMode::Json, Some(1000)), 6),
            (configured(RenderMode::Text, Some(1000)), 6),
        ];
        for (form, times) in forms {
            for (parts, fits) in [(times, false), (2 * times, true)] {
                let budget = MemoryBudget::new(parts * result.len());
                let answer = RawResult {
                    result: Bytes::from(result.clone()),
                    repaired: false,
                    is_error: false,
                };
                let account = budget.whole_account();
                let shaped = shaped("/a/t", ItemKind::Tool, None, answer, form, &account);
                let code = shaped.as_ref().err().map(|error| error.code);
                let refused = (!fits).then_some(CallCode::OutputTooLarge);
                assert_eq!(code, refused, "{form:?} with {parts} times the result");
                drop(shaped);
                assert_eq!(budget.used(), 0);
            }
        }
        let budget = MemoryBudget::new(1);
        let answer = RawResult {
            result: Bytes::from(result),
            repaired: false,
            is_error: false,
        };
        let form = configured(RenderMode::Json, Some(2 << 20));
        let account = budget.whole_account();
        let whole = shaped("/a/t", ItemKind::Tool, None, answer, form, &account);
        assert!(whole.is_ok(), "a result that fits is not copied");
    }
}
