//! The budget of memory for what callers send and what servers answer, and buffers whose memory goes
//! back to the system. Pure: no IO, no async.

mod budget;
mod buffer;

pub use budget::{Account, Charge, MemoryBudget, NoRoom, SMALL_BYTES, Size, UNCHARGED_BYTES};
pub use buffer::reserve;
