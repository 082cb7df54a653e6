//! Receipts of answers: whether their readers get them.

use std::fmt;

/// Learns whether the reader of an answer gets it. It is dropped once the answer is written as it is.
pub trait AnswerReader: fmt::Debug + Send {
    /// Another answer is written, since this one is too long for its reader.
    fn replaced(self: Box<Self>);
}

/// The receipt of an answer. It has the size of a pointer, since every answer has room for one.
#[derive(Debug)]
pub struct Receipt(Box<Box<dyn AnswerReader>>);

impl Receipt {
    /// Makes a receipt.
    pub fn new(reader: impl AnswerReader + 'static) -> Self {
        Self(Box::new(Box::new(reader)))
    }

    fn replaced(self) {
        (*self.0).replaced();
    }
}

/// The receipts of the answers of a message, each with the index of its answer in a batch. Most messages have none.
#[derive(Debug, Default)]
pub(super) struct Receipts(Vec<(usize, Receipt)>);

impl Receipts {
    /// Returns the receipts of one answer.
    pub(super) fn from_one(receipt: Option<Receipt>) -> Self {
        Self(receipt.into_iter().map(|receipt| (0, receipt)).collect())
    }

    /// Takes those of the answer at this index.
    pub(super) fn add(&mut self, at: usize, of_answer: Self) {
        let receipts = of_answer.0.into_iter();
        self.0.extend(receipts.map(|(_, receipt)| (at, receipt)));
    }

    /// Reports the answers that were replaced.
    pub(super) fn report(self, is_replaced: impl Fn(usize) -> bool) {
        for (at, receipt) in self.0 {
            if is_replaced(at) {
                receipt.replaced();
            }
        }
    }
}
