//! Requests find their rows.

use axum::http::Request;

use super::*;

fn find(method: &str, path: &str, has_mcp: bool) -> Option<(&'static str, bool)> {
    let request = Request::builder().method(method).uri(path);
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let no_base = BasePaths::default;
    super::find(&parts, has_mcp, || true, no_base).map(|route| (route.row.path, route.is_allowed))
}

#[test]
fn route_is_found_below_each_base_path_and_without_one() {
    let base_paths = || BasePaths::new(["/gateway", "/a/b"].map(str::to_owned));
    let find = |path: &str| {
        let (parts, ()) = Request::get(path).body(()).unwrap().into_parts();
        super::find(&parts, true, || true, base_paths).map(|route| route.row.path)
    };
    for row in TABLE {
        for base in ["", "/gateway", "/a/b"] {
            let path = format!("{base}{}", row.path);
            assert_eq!(find(&path), Some(row.path), "{path}");
            assert_eq!(find(&format!("{path}/")), Some(row.path), "{path}/");
        }
    }
    for route in [
        "",
        "/mcp",
        "/mcp/direct/openai",
        "/v1/mcp",
        "/ws/mcp",
        "/sse",
    ] {
        for base in ["", "/gateway", "/a/b"] {
            let path = format!("{WELL_KNOWN}{base}{route}");
            assert!(
                find(&path).is_some_and(|row| row.starts_with(WELL_KNOWN)),
                "{path}"
            );
        }
    }
    for unknown in [
        "/gateway///",
        "/gatewayx/mcp",
        "/gateway/gateway/mcp",
        "/a/mcp",
        "/gateway//mcp",
        "/Gateway/mcp",
        "/.well-known/oauth-protected-resource/gatewayx/mcp",
        "/.well-known/oauth-protected-resource/gateway/healthz",
        "/.well-known/oauth-protected-resourcex",
    ] {
        assert_eq!(find(unknown), None, "{unknown}");
    }
}

#[test]
fn route_is_found_by_exact_path_and_method() {
    for row in TABLE {
        let allowed: Vec<&str> = row.methods.split(", ").collect();
        for method in ["POST", "GET", "HEAD", "DELETE", "PUT", "CONNECT", "BREW"] {
            let expected = Some((row.path, allowed.contains(&method)));
            let with_slash = format!("{}/", row.path);
            assert_eq!(find(method, row.path, true), expected, "{method}");
            assert_eq!(find(method, &with_slash, true), expected, "{method}");
            let is_api = !matches!(row.handler, Handler::Mcp(_));
            assert_eq!(
                find(method, row.path, false).is_some(),
                is_api,
                "{}",
                row.path
            );
        }
    }
    assert_eq!(
        find("POST", "/meta_tree?x=1", true),
        Some(("/meta_tree", true))
    );
    for unknown in [
        "/ui/x/y",
        "/meta_tree//",
        "/META_TREE",
        "//meta_tree",
        "/meta%5ftree",
        "*",
    ] {
        assert_eq!(find("POST", unknown, true), None, "{unknown}");
    }
}

#[test]
fn message_about_an_unknown_route_names_routes_of_the_table() {
    assert_eq!(
        unknown_message(),
        "the routes are `POST /meta_tree`, `POST /meta_desc`, `POST /meta_call`, `GET /healthz`, `GET /readyz`, `GET /sources`, `GET /metrics`, `GET /logs`, `GET /jobs` and, unless MCP is turned off, `/mcp`, `/v1/mcp`, `/ws/mcp` and `/v1/ws/mcp`"
    );
}
