//! The catalog as callers see it: finds entries by path, decides whether an entry exists for a caller, and makes
//! listings and descriptions.

pub(crate) mod changes;
pub(crate) mod description;
pub(crate) mod entry;
pub(crate) mod heads;
pub(crate) mod items;
pub(crate) mod json;
pub(crate) mod look_up;
pub(crate) mod nearest;
pub(crate) mod paths;
pub(crate) mod query_vector;
pub(crate) mod scope;
pub(crate) mod search;
pub(crate) mod tools;
pub(crate) mod tree;
pub(crate) mod vendor;
