//! The closed list of routes. None of them takes a command, a file or an address.

use axum::http::Method;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `POST /meta_tree`
    Tree,
    /// `POST /meta_desc`
    Desc,
    /// `POST /meta_call`
    Call,
    /// `GET /healthz`
    Health,
    /// `GET /readyz`
    Ready,
    /// `GET /sources`
    Sources,
}

/// The message of an unknown route.
pub(super) const ROUTES: &str = "the routes are `POST /meta_tree`, `POST /meta_desc`, `POST /meta_call`, `GET /healthz`, `GET /readyz` and `GET /sources`";

const TABLE: [(&str, Route); 6] = [
    ("/meta_call", Route::Call),
    ("/meta_tree", Route::Tree),
    ("/meta_desc", Route::Desc),
    ("/healthz", Route::Health),
    ("/readyz", Route::Ready),
    ("/sources", Route::Sources),
];

impl Route {
    /// The route of a request path, compared byte for byte.
    pub(super) fn find(path: &str) -> Option<Self> {
        TABLE
            .iter()
            .find_map(|(known, route)| (*known == path).then_some(*route))
    }

    /// Every path, for suggestions.
    pub(super) fn paths() -> [&'static str; 6] {
        TABLE.map(|(path, _)| path)
    }

    /// Whether this route tells of the broker's health, and so needs no secret.
    pub(super) fn is_health(self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Sources)
    }

    /// The `Allow` header of this route.
    pub(super) fn allow(self) -> &'static str {
        if self.is_health() {
            "GET, HEAD"
        } else {
            "POST"
        }
    }

    /// Whether the route takes this method.
    pub(super) fn takes(self, method: &Method) -> bool {
        if self.is_health() {
            method == Method::GET || method == Method::HEAD
        } else {
            method == Method::POST
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_methods() {
        assert_eq!(Route::find("/meta_tree"), Some(Route::Tree));
        for unknown in [
            "/",
            "/meta_tree/",
            "/META_TREE",
            "//meta_tree",
            "/meta%5ftree",
        ] {
            assert_eq!(Route::find(unknown), None, "{unknown}");
        }
        assert!(Route::Call.takes(&Method::POST) && !Route::Call.takes(&Method::PUT));
        assert!(Route::Ready.takes(&Method::HEAD) && !Route::Ready.takes(&Method::POST));
        assert_eq!(Route::Desc.allow(), "POST");
    }
}
