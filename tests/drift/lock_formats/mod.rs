//! The versions of the format of the lock: each stays readable.

mod v1;
mod v2;
