//! Merges of locks and audits: by git through the merge driver, and by `lock --merge`.

mod access;
mod branches;
mod driver;
mod files;
mod random;
pub(crate) mod repository;
