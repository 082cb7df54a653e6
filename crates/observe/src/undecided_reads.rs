//! Listings, descriptions and searches whose answer is not written yet: an answer that is longer than its client reads is
//! replaced by an error, and the line of the audit log says so.

use std::cell::RefCell;
use std::sync::Arc;

use broker_audit::ReadFacts;
use broker_core::{AnswerReader, Receipt};
use broker_model::CallCode;

use crate::audit::Audit;

tokio::task_local! {
    /// The reads for the answer that this task makes.
    static READS: RefCell<Vec<UndecidedRead>>;
}

/// A line that is written when this is dropped.
#[derive(Debug)]
struct UndecidedRead {
    audit: Arc<Audit>,
    facts: ReadFacts,
}

impl Drop for UndecidedRead {
    fn drop(&mut self) {
        self.audit.write_read(std::mem::take(&mut self.facts));
    }
}

/// Writes the line of a read, once the answer is decided if [`UndecidedReads`] collects it.
pub(crate) fn note(audit: &Arc<Audit>, facts: ReadFacts) {
    let read = UndecidedRead {
        audit: Arc::clone(audit),
        facts,
    };
    // Without a surface that decides later, the line is written here.
    let _: Result<(), _> = READS.try_with(|reads| reads.borrow_mut().push(read));
}

/// The reads for one answer. Their lines are written when this is dropped, without an error unless one is named.
#[derive(Debug)]
pub struct UndecidedReads(Vec<UndecidedRead>);

impl UndecidedReads {
    /// Collects the reads of the future that makes an answer.
    pub async fn collect<T>(answer: impl Future<Output = T>) -> (T, Self) {
        let collecting = async {
            let answer = answer.await;
            (answer, Self::take())
        };
        READS.scope(RefCell::default(), collecting).await
    }

    /// Collects the reads of a function that makes an answer.
    pub fn collect_sync<T>(answer: impl FnOnce() -> T) -> (T, Self) {
        READS.sync_scope(RefCell::default(), || (answer(), Self::take()))
    }

    fn take() -> Self {
        Self(READS.with(RefCell::take))
    }

    /// Returns the receipt of the answer; `None` without reads.
    pub fn receipt(self) -> Option<Receipt> {
        (!self.0.is_empty()).then(|| Receipt::new(self))
    }

    /// Names the error that the caller gets in place of the answer.
    pub fn refuse(mut self, code: CallCode) {
        for read in &mut self.0 {
            read.facts.code.get_or_insert(code.as_str());
        }
    }
}

impl AnswerReader for UndecidedReads {
    fn replaced(self: Box<Self>) {
        self.refuse(CallCode::OutputTooLarge);
    }
}
