//! New entries of the audits file.

pub mod hints;
pub mod left_out;
pub mod moved;
