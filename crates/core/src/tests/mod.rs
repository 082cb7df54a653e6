//! Core over a hand-made catalog and scripted sources: what callers see.

mod call;
mod catalog;
mod drift;
mod fixture;
mod identities;
mod interleavings;
