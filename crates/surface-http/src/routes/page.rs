//! The web page: its files, its settings, and the way to it. It has no data: the page asks the routes of the meta API, with the
//! credential that its user enters.

use std::pin::pin;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use broker_core::Broker;
use broker_web::PageFile;
use serde_json::json;

use super::table::{PageRoute, Route};
use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{HttpReply, HttpSettings, JSON, Refusal, respond};

/// The folder of the page, as the address of each page above it names it.
const FOLDER: &str = "ui/";
/// The file with the settings that the page needs.
const SETTINGS: &str = "settings";

/// The answer to a request that passed its checks.
enum Answer {
    /// The browser goes to this address, relative to the one that it asked for.
    Elsewhere(String),
    /// A file, or 304 if the browser has these bytes.
    File(&'static PageFile),
    /// The settings.
    Settings(bool),
}

/// Answers a route of the page. No credential is read: every caller gets the same bytes.
pub(super) async fn handle(
    surface: &HttpSurface<impl Broker>,
    (route, page): (Route, PageRoute),
    request: Request,
    caller: &Caller,
) -> Response<Body> {
    let request_id = surface.ids.next();
    let (parts, body) = request.into_parts();
    let outcome = {
        let checking = pin!(async { check(surface, (route, page), &parts, caller) });
        surface.contain(request_id, checking).await
    };
    let close = surface.must_close(Some(body), caller);
    let settings = surface.settings.load();
    let common = surface.common_headers(&settings);
    let (outcome, location) = match outcome {
        Ok(Answer::Elsewhere(address)) => (
            Ok(reply(
                StatusCode::TEMPORARY_REDIRECT,
                "",
                broker_web::FILES[0].media,
            )),
            HeaderValue::try_from(address).ok(),
        ),
        Ok(Answer::File(file)) => (Ok(file_reply(file, &parts.headers)), None),
        Ok(Answer::Settings(calls)) => {
            let body = json!({ "calls": calls }).to_string();
            let settings = HttpReply {
                media: JSON,
                body: body.into(),
                ..reply(StatusCode::OK, "", broker_web::FILES[0].media)
            };
            (Ok(settings), None)
        }
        Err(refusal) => (Err(refusal), None),
    };
    let mut response = respond::respond(outcome, &common, request_id, close);
    let headers = response.headers_mut();
    for (name, value) in broker_web::HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    if let Some(location) = location {
        headers.insert(header::LOCATION, location);
    }
    response
}

fn check(
    surface: &HttpSurface<impl Broker>,
    (route, page): (Route, PageRoute),
    parts: &Parts,
    caller: &Caller,
) -> Result<Answer, Refusal> {
    let settings = surface.settings.load();
    surface.check_hosts(&settings, parts)?;
    surface.check_route(route, &settings)?;
    let path = parts.uri.path();
    let last = path.rsplit('/').next().unwrap_or_default();
    match page {
        PageRoute::Root | PageRoute::Page if !last.is_empty() => {
            // A folder without a slash: a relative address begins with its name.
            let below = match page {
                PageRoute::Root => FOLDER,
                PageRoute::Page | PageRoute::File => "",
            };
            Ok(Answer::Elsewhere(format!("./{last}/{below}")))
        }
        PageRoute::Root => Ok(Answer::Elsewhere(format!("./{FOLDER}"))),
        PageRoute::Page => Ok(Answer::File(&broker_web::FILES[0])),
        PageRoute::File if last == SETTINGS => Ok(Answer::Settings(settings.page.calls)),
        PageRoute::File => {
            let file = broker_web::file(last).filter(|file| !file.name.is_empty());
            file.map(Answer::File).ok_or_else(|| {
                let refusal = surface.unknown_route(path, &settings, caller.role);
                surface.count_refused(&refusal);
                refusal
            })
        }
    }
}

fn file_reply(file: &'static PageFile, headers: &HeaderMap) -> HttpReply {
    let etag = file.etag();
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','));
    let is_known = known.any(|one| one.trim().trim_start_matches("W/") == etag);
    let answer = match is_known {
        true => reply(StatusCode::NOT_MODIFIED, "", file.media),
        false => reply(StatusCode::OK, file.text, file.media),
    };
    HttpReply {
        etag: Some(etag),
        ..answer
    }
}

fn reply(status: StatusCode, text: &'static str, media: &'static str) -> HttpReply {
    HttpReply {
        status,
        body: text.into(),
        media: HeaderValue::from_static(media),
        etag: None,
    }
}

impl HttpSettings {
    /// Whether a listener serves the page. `exposed` says that other machines can reach the listener.
    pub(super) fn serves_page(&self, exposed: bool) -> bool {
        self.page.served.unwrap_or(!exposed)
    }
}
