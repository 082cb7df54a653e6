//! Messages that are too long for their reader: answers are replaced by shorter ones to the same requests.

use bytes::Bytes;

use super::{Content, Outgoing, Text, batch, error};
use crate::scan::after_value;
use crate::{Id, RpcError};

impl Outgoing {
    /// Returns the message if it has at most `limit` bytes. In a longer one, answers are replaced by the result or error
    /// that `other` makes, the longest answer first. `other` gets the result, which is empty if the answer is an error.
    /// `None` for a longer message that is not an answer.
    pub fn fitting(
        mut self,
        limit: usize,
        other: impl Fn(&str) -> Result<Text, RpcError>,
    ) -> Option<Self> {
        let receipts = std::mem::take(&mut self.receipts);
        if self.size() <= limit {
            return Some(self);
        }
        match self.content {
            Content::Parts(parts) if parts.first().is_some_and(|first| first == "[") => {
                let (batch, is_replaced) = fitting_batch(parts, limit, other)?;
                for (at, receipt) in receipts {
                    if is_replaced.get(at) == Some(&true) {
                        receipt.replaced();
                    }
                }
                Some(batch)
            }
            content => {
                let message = replaced(&content.into(), other)?;
                receipts
                    .into_iter()
                    .for_each(|(_, receipt)| receipt.replaced());
                Some(message)
            }
        }
    }
}

/// Returns a batch in which the longest answers are replaced until it fits, and whether each one was. Its parts are those
/// that [`batch`] made.
fn fitting_batch(
    parts: Vec<Bytes>,
    limit: usize,
    other: impl Fn(&str) -> Result<Text, RpcError>,
) -> Option<(Outgoing, Vec<bool>)> {
    let mut answers: Vec<Vec<Bytes>> = Vec::new();
    for part in parts {
        match &part[..] {
            b"[" | b"," => answers.push(Vec::new()),
            b"]" => {}
            _ => answers.last_mut()?.push(part),
        }
    }
    let answers = answers
        .into_iter()
        .map(|parts| Outgoing::from(Content::Parts(parts)));
    let mut answers: Vec<_> = answers.map(|answer| (answer, false)).collect();
    let room = limit.saturating_sub(answers.len() + 1);
    let size = |answers: &[(Outgoing, bool)]| -> usize {
        answers.iter().map(|(answer, _)| answer.size()).sum()
    };
    while size(&answers) > room {
        let kept = answers.iter_mut().filter(|(_, is_replaced)| !is_replaced);
        let Some((longest, is_replaced)) = kept.max_by_key(|(answer, _)| answer.size()) else {
            break;
        };
        if let Some(shorter) = replaced(longest, &other) {
            *longest = shorter;
        }
        *is_replaced = true;
    }
    let (answers, is_replaced) = answers.into_iter().unzip();
    Some((batch(answers), is_replaced))
}

/// Returns another answer to the same request; `None` if the message is not an answer.
fn replaced(
    message: &Outgoing,
    other: impl Fn(&str) -> Result<Text, RpcError>,
) -> Option<Outgoing> {
    const HEAD: &str = r#"{"jsonrpc":"2.0","id":"#;
    let (text, separate) = match &message.content {
        Content::Whole(text) => (text.as_ref(), None),
        Content::Parts(parts) => (&parts.first()?[..], parts.get(1)),
    };
    let text = std::str::from_utf8(text).ok()?;
    let behind = text.strip_prefix(HEAD)?;
    let (id, behind) = behind.split_at_checked(after_value(behind.as_bytes()))?;
    let result = match (behind.strip_prefix(r#","result":"#), separate) {
        (Some(_), Some(result)) => std::str::from_utf8(result).ok()?,
        (Some(inside), None) => inside.strip_suffix('}')?,
        (None, _) => "",
    };
    let id = Id::parse(id)?;
    Some(match other(result) {
        Ok(text) => super::result(&id, text),
        Err(refused) => error(Some(&id), refused),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::{Receipt, notification, result};
    use super::*;

    fn fitting(message: Outgoing, limit: usize) -> Option<String> {
        let other = |result: &str| match result {
            "" => Err(RpcError::new(1, "long error")),
            result => Ok(format!("{{\"was\":{}}}", result.len()).into_bytes().into()),
        };
        let fitting = message.fitting(limit, other)?;
        let bytes = fitting.into_line().into_bytes().to_vec();
        Some(String::from_utf8(bytes).unwrap().trim_end().to_owned())
    }

    fn answer(id: &Id, length: usize) -> Outgoing {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(length - 8));
        result(id, text.into_bytes().into())
    }

    #[test]
    fn answer_longer_than_the_limit_is_replaced_with_its_id() {
        let ids = ["7", "\"a,\\\"result\\\":\"", "\"\"", "-1"];
        for id in ids.map(|id| Id::parse(id).unwrap()) {
            // Copied, and in parts.
            for length in [100, 100_000] {
                let size = answer(&id, length).size();
                let whole = fitting(answer(&id, length), size).unwrap();
                assert_eq!(whole.len(), size);
                let replaced = fitting(answer(&id, length), size - 1).unwrap();
                let expected =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"was\":{length}}}}}");
                assert_eq!(replaced, expected);
            }
            let refused = error(Some(&id), RpcError::new(2, "x".repeat(100)));
            let replaced = fitting(refused, 100).unwrap();
            assert!(replaced.contains("long error"), "{replaced}");
        }
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(100));
        assert_eq!(fitting(notification("m", Some(&long)), 100), None);
        assert!(fitting(notification("m", Some(&long)), 200).is_some());
    }

    /// Adds its number to a list when its answer is replaced.
    #[derive(Debug)]
    struct Number(u8, Arc<Mutex<Vec<u8>>>);

    impl Receipt for Number {
        fn replaced(self: Box<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    #[test]
    fn receipts_of_replaced_answers_learn_of_it() {
        let list = Arc::<Mutex<Vec<u8>>>::default();
        let answer = |number: u8, length: usize| {
            let text = format!("{{\"a\":\"{}\"}}", "x".repeat(length));
            let text = Text::from(text.into_bytes());
            let receipt: Box<dyn Receipt> = Box::new(Number(number, Arc::clone(&list)));
            result(
                &Id::Integer(number.into()),
                text.with_receipt(Some(receipt)),
            )
        };
        let taken = || std::mem::take(&mut *list.lock().unwrap());
        for length in [100, 100_000] {
            fitting(answer(1, length), 200_000).unwrap();
            assert!(taken().is_empty());
            fitting(answer(1, length), 90).unwrap();
            assert_eq!(taken(), [1]);
        }
        let short = answer(3, 1);
        let of_batch = batch(vec![
            short,
            answer(4, 40_000),
            answer(5, 30),
            answer(6, 30_000),
        ]);
        fitting(of_batch, 1000).unwrap();
        assert_eq!(taken(), [4, 6]);
        drop(answer(7, 1).into_line());
        assert!(taken().is_empty());
        assert_eq!(Arc::strong_count(&list), 1, "each receipt was dropped");
    }

    #[test]
    fn longest_answers_of_a_batch_are_replaced_until_it_fits() {
        let whole = || {
            let lengths = [(1, 50), (2, 40_000), (3, 300), (4, 20_000)];
            batch(
                lengths
                    .map(|(id, length)| answer(&Id::Integer(id), length))
                    .into(),
            )
        };
        let was = |limit: usize| {
            let text = fitting(whole(), limit).unwrap();
            let answers: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            let was = answers
                .iter()
                .map(|answer| answer["result"]["was"].as_u64());
            (text.len(), was.collect::<Vec<_>>())
        };
        let size = whole().size();
        assert_eq!(was(size), (size, vec![None; 4]));
        assert_eq!(was(size - 1).1, [None, Some(40_000), None, None]);
        assert_eq!(was(1000).1, [None, Some(40_000), None, Some(20_000)]);
        assert!(was(1000).0 <= 1000);
        // Nothing is shorter than all answers replaced.
        assert!(was(10).1.iter().all(Option::is_some));
    }
}
