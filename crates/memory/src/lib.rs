//! The memory budget for input of callers and answers of servers, and buffers whose memory returns to the
//! system. Pure: no IO, no async.

mod budget;
mod buffer;

pub use budget::{Account, Charge, ChargeError, MemoryBudget, SMALL_BYTES, Size, UNCHARGED_BYTES};
pub use buffer::reserve;
