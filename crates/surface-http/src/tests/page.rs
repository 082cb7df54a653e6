//! The web page: where it is served, its headers, and its paths.

use axum::http::Method;

use super::*;

/// Returns the status, the headers and the body of a reply.
async fn fetch(
    surface: &Arc<HttpSurface<impl Broker>>,
    request: Builder,
) -> (u16, axum::http::HeaderMap, String) {
    let request = request.body(Body::empty()).unwrap();
    let reply = handle(surface.clone(), request, caller(surface)).await;
    let (head, body) = reply.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    (
        head.status.as_u16(),
        head.headers,
        String::from_utf8(bytes.to_vec()).unwrap(),
    )
}

/// Returns a surface for a listener at an address, with these settings of the page, behind a proxy with `/gateway`.
fn surface_at(address: &str, served: Option<bool>) -> Arc<HttpSurface<Core>> {
    let surface = surface(Some("s3cret"), address);
    let settings = surface.settings.load();
    let settings = HttpSettings {
        hosts: HostPolicy::default(),
        callers: settings.callers.clone(),
        base_paths: BasePaths::new(["/gateway".to_owned()]),
        page: PageSettings {
            served,
            calls: false,
        },
        mcp: surface_settings(),
        ..**settings
    };
    surface.apply(settings);
    surface
}

#[tokio::test]
async fn page_is_on_for_loopback_addresses_unless_the_config_says_otherwise() {
    for (address, served, expected) in [
        ("127.0.0.1:1", None, true),
        ("[::1]:1", None, true),
        ("0.0.0.0:1", None, false),
        ("192.0.2.1:1", None, false),
        ("127.0.0.1:1", Some(false), false),
        ("0.0.0.0:1", Some(true), true),
    ] {
        let surface = surface_at(address, served);
        let (_, _, unknown) = fetch(&surface, get("/unknown")).await;
        let unknown: Value = serde_json::from_str(&unknown).unwrap();
        for path in [
            "/",
            "/ui",
            "/ui/",
            "/ui/main.js",
            "/ui/settings",
            "/gateway/ui/",
        ] {
            let (status, _, body) = fetch(&surface, get(path)).await;
            let place = format!("{address} {served:?} {path}");
            assert_eq!(status != 404, expected, "{place}");
            if !expected {
                let error: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(
                    error["error"]["message"], unknown["error"]["message"],
                    "{place}"
                );
            }
        }
    }
}

#[tokio::test]
async fn page_is_below_the_path_of_a_proxy_and_at_the_root() {
    let surface = surface_at("127.0.0.1:1", None);
    for (path, location) in [
        ("/", "./ui/"),
        ("/ui", "./ui/"),
        ("/gateway", "./gateway/ui/"),
        ("/gateway/", "./ui/"),
        ("/gateway/ui", "./ui/"),
    ] {
        let (status, headers, body) = fetch(&surface, get(path)).await;
        assert_eq!((status, &*body), (307, ""), "{path}");
        assert_eq!(headers["location"], location, "{path}");
    }
    for base in ["", "/gateway"] {
        for file in broker_web::FILES {
            let (status, headers, body) =
                fetch(&surface, get(&format!("{base}/ui/{}", file.name))).await;
            assert_eq!((status, &*body), (200, file.text), "{}", file.name);
            assert_eq!(headers["content-type"], file.media);
        }
    }
}

#[tokio::test]
async fn files_of_the_page_have_a_policy_and_an_entity_tag() {
    let surface = surface_at("127.0.0.1:1", None);
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
    for path in [
        "/",
        "/ui",
        "/ui/",
        "/ui/main.js",
        "/ui/settings",
        "/ui/no.js",
    ] {
        let (_, headers, _) = fetch(&surface, get(path)).await;
        assert_eq!(headers["content-security-policy"], policy, "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        assert!(!headers.contains_key("set-cookie"), "{path}");
    }
    let (_, headers, _) = fetch(&surface, get("/ui/tree.js")).await;
    let tag = headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(tag, broker_web::file("tree.js").unwrap().etag());
    for (known, expected) in [
        (tag.clone(), 304),
        (format!("\"x\", W/{tag}"), 304),
        ("\"x\"".to_owned(), 200),
    ] {
        let request = get("/ui/tree.js").header("if-none-match", known.as_str());
        let (status, headers, body) = fetch(&surface, request).await;
        assert_eq!((status, body.is_empty()), (expected, expected == 304));
        assert_eq!(headers["etag"], tag.as_str());
    }
}

#[tokio::test]
async fn odd_paths_and_methods_get_no_file() {
    let surface = surface_at("127.0.0.1:1", None);
    for path in [
        "/ui/../x",
        "/ui/%2e%2e/",
        "/ui/%2e%2e/%2e%2e/etc/passwd",
        "/ui//main.js",
        "/ui/main.js/x",
        "/ui/MAIN.JS",
        "/ui/main%2ejs",
        "/ui/index.html",
        "/ui/main.js%00",
        "/UI/",
        "/ui/..",
        "/gateway/../ui/",
        "/gateway/gateway/ui/",
    ] {
        let (status, _, body) = fetch(&surface, get(path)).await;
        assert_eq!(status, 404, "{path}");
        assert!(body.contains("route_not_found"), "{path}: {body}");
    }
    for method in [
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
        Method::PATCH,
        Method::TRACE,
    ] {
        for path in ["/", "/ui/", "/ui/main.js", "/ui/settings"] {
            let request = Request::builder().method(&method).uri(path);
            let (status, headers, _) = fetch(&surface, request.header("host", "localhost")).await;
            assert_eq!(status, 405, "{method} {path}");
            assert_eq!(headers["allow"], "GET, HEAD", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn page_is_refused_for_another_host() {
    let surface = surface_at("127.0.0.1:1", None);
    let request = Request::get("/ui/").header("host", "evil.example");
    let (status, _, _) = fetch(&surface, request).await;
    assert_eq!(status, 403);
}
