//! The catalog as callers see it: finds entries by path, decides whether an entry exists for a caller, and makes
//! listings and descriptions.

pub(crate) mod areas;
pub(crate) mod changes;
pub(crate) mod direct;
mod entries;
pub(crate) mod heads;
pub(crate) mod items;
pub(crate) mod lookup;
pub(crate) mod nearest;
pub(crate) mod query_vector;
pub(crate) mod scope;
pub(crate) mod search;
pub(crate) mod vendor;
pub(crate) mod view;
