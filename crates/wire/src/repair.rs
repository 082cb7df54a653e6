//! Replaces invalid UTF-8. The copy is charged before it is made.

use bytes::Bytes;

use broker_memory::{Account, Charge, ChargeError};

/// Replaces bytes that are not UTF-8.
const REPLACEMENT: &str = "\u{fffd}";

/// Returns a copy of `line` with every sequence that is not UTF-8 replaced. It is charged to `account` until its last
/// share is dropped.
pub(crate) fn repaired(line: &[u8], account: &Account) -> Result<Bytes, ChargeError> {
    let length = parts(line).map(str::len).sum();
    let mut charge = Charge::default();
    charge.cover(account, length)?;
    let mut text = Vec::with_capacity(length);
    for part in parts(line) {
        text.extend_from_slice(part.as_bytes());
    }
    Ok(charge.hold(text))
}

/// Returns the parts of the copy, in their order.
fn parts(line: &[u8]) -> impl Iterator<Item = &str> {
    line.utf8_chunks().flat_map(|chunk| {
        let mark = if chunk.invalid().is_empty() {
            ""
        } else {
            REPLACEMENT
        };
        [chunk.valid(), mark]
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Id, Incoming, Messages, Problem, read_server_line};
    use broker_memory::{MemoryBudget, Size};

    /// Returns an answer of 100 000 bytes that are not UTF-8, and the size of its repaired copy.
    fn answer() -> (Bytes, usize) {
        let filler = vec![0xff; 100_000];
        let line = [b"{\"id\":3,\"result\":{\"t\":\"", &filler[..], b"\"}}"].concat();
        let copy = line.len() + 2 * filler.len();
        (line.into(), copy)
    }

    #[test]
    fn repaired_copy_is_charged_until_its_last_share_is_dropped() {
        let budget = MemoryBudget::new(1 << 20);
        let (line, copy) = answer();
        let parsed = read_server_line(line, &budget.whole_account());
        let Messages::One(Incoming::Response {
            outcome: Ok(result),
            ..
        }) = parsed.messages
        else {
            panic!("a result");
        };
        let result = result.into_bytes();
        assert!(parsed.repaired);
        assert_eq!(budget.used(), copy);
        let share = result.slice(..5);
        drop(result);
        assert_eq!(budget.used(), copy);
        drop(share);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn repaired_copy_without_memory_is_refused_with_the_id() {
        let budget = MemoryBudget::new(1 << 20);
        let account = budget.whole_account();
        let taken = account.charge(800_000, Size::Large).unwrap();
        let (line, _) = answer();
        let charge_error = |id: Option<i128>| {
            let id = id.map(Id::Integer);
            let problem = Problem::OutOfMemory;
            Messages::One(Incoming::Invalid { id, problem })
        };
        let messages = |line| read_server_line(line, &account).messages;
        assert_eq!(messages(line.clone()), charge_error(Some(3)));
        let batch = [b"[", &line[..], b"]"].concat();
        assert_eq!(messages(batch.into()), charge_error(None));
        assert_eq!(budget.used(), taken.bytes());
    }

    proptest! {
        #[test]
        fn repaired_copy_equals_that_of_the_standard_library(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let account = MemoryBudget::new(1 << 20).whole_account();
            let copy = repaired(&line, &account).unwrap();
            let expected = String::from_utf8_lossy(&line).into_owned();
            prop_assert_eq!(copy, expected.into_bytes());
        }
    }
}
