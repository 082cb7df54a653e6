//! The paths before the routes that proxies pass on: a broker behind `/gateway` serves `/gateway/mcp` as `/mcp`.

use std::sync::Arc;

/// Paths before the routes, without a slash at the end.
#[derive(Clone, Debug, Default)]
pub struct BasePaths(Arc<[String]>);

impl BasePaths {
    /// Makes the list. Empty paths are left out: the routes are at the root in any case.
    pub fn new(paths: impl IntoIterator<Item = String>) -> Self {
        Self(paths.into_iter().filter(|path| !path.is_empty()).collect())
    }

    /// Returns a path without each base path that is before it.
    pub(crate) fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        let below = self.0.iter().filter_map(|base| path.strip_prefix(&**base));
        below.filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}
