//! Tests of core over a hand-made catalog and scripted sources.

mod access;
mod arguments;
mod builder;
mod call;
mod catalog;
mod direct;
mod drift;
pub(crate) mod fixture;
mod identities;
mod interleavings;
mod restrict;
mod search;
mod start;
mod start_wait;
mod subtrees;
mod summaries;
