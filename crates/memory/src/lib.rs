//! The memory budget for input of callers and answers of servers, the turns of callers in queues, and buffers whose
//! memory returns to the system. Pure: no IO, no async.

mod budget;
mod buffer;
mod turns;

pub use budget::{Account, Charge, ChargeError, MemoryBudget, SMALL_BYTES, Size, UNCHARGED_BYTES};
pub use buffer::reserve;
pub use turns::{Owner, TurnQueue};
