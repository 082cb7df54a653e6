//! The catalog as callers see it: from a path to an entry, the entries that are there for a caller, and
//! their listings and descriptions.

pub(crate) mod lookup;
pub(crate) mod scope;
pub(crate) mod view;
