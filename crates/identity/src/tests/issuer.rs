//! An issuer on loopback: its discovery document, its key set, and the requests that it got.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::tests::signer::Signer;
use crate::{AuthError, BlockingThreads, Principal};

pub(super) const AUDIENCE: &str = "https://broker.example";

/// An issuer with one key, `k1`, that signs with ES256.
pub(super) struct Issuer {
    pub(super) url: String,
    pub(super) signer: Signer,
    server: Arc<Server>,
    _task: AbortOnDropHandle<()>,
}

/// The answers of the server by path.
struct Server {
    set: Mutex<String>,
    discovery: Mutex<Vec<(String, Value)>>,
    sets_sent: AtomicUsize,
    is_down: AtomicBool,
    redirects: AtomicBool,
}

impl Issuer {
    pub(super) async fn start() -> Self {
        Self::with_path("").await
    }

    /// An issuer whose URL has a path.
    pub(super) async fn with_path(path: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{origin}{path}");
        let place = format!("{path}/.well-known/openid-configuration");
        let document = json!({"issuer": url, "jwks_uri": format!("{origin}/keys")});
        let server = Arc::new(Server {
            set: Mutex::default(),
            discovery: Mutex::new(vec![(place, document)]),
            sets_sent: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
            redirects: AtomicBool::new(false),
        });
        let app = Router::new().fallback(answer).with_state(server.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let signer = Signer::p256();
        let issuer = Self {
            url,
            server,
            _task: AbortOnDropHandle::new(task),
            signer,
        };
        issuer.publish(&[issuer.signer.public("k1")]);
        issuer
    }

    pub(super) fn publish(&self, keys: &[Value]) {
        self.publish_text(json!({ "keys": keys }).to_string());
    }

    pub(super) fn publish_text(&self, text: String) {
        *self.server.set.lock().unwrap() = text;
    }

    /// Replaces the documents of discovery by those at these paths.
    pub(super) fn describe(&self, documents: &[(&str, Value)]) {
        let documents = documents.iter();
        let documents = documents.map(|(path, value)| ((*path).to_owned(), value.clone()));
        *self.server.discovery.lock().unwrap() = documents.collect();
    }

    pub(super) fn set_down(&self, is_down: bool) {
        self.server.is_down.store(is_down, Ordering::Relaxed);
    }

    pub(super) fn redirect(&self) {
        self.server.redirects.store(true, Ordering::Relaxed);
    }

    /// The number of key sets that it sent.
    pub(super) fn sets_sent(&self) -> usize {
        self.server.sets_sent.load(Ordering::Relaxed)
    }

    /// Its entry in the config with these members besides.
    pub(super) fn entry(&self, members: &str) -> String {
        let url = &self.url;
        format!(
            r#"{{"issuer":"{url}","audience":["{AUDIENCE}"],"algorithms":["ES256","RS256","EdDSA"]{members}}}"#
        )
    }

    /// An authenticator for its tokens.
    pub(super) fn authenticator(&self, members: &str) -> (Authenticator, Arc<ManualClock>) {
        authenticator(&section(&[self.entry(members)]))
    }

    /// Claims that are accepted now.
    pub(super) fn claims(&self, clock: &ManualClock) -> Value {
        let now = clock.seconds();
        json!({"iss": self.url, "aud": AUDIENCE, "sub": "u1", "iat": now, "exp": now + 600})
    }

    /// A token for this subject.
    pub(super) fn token(&self, clock: &ManualClock, subject: &str) -> String {
        let mut claims = self.claims(clock);
        claims["sub"] = subject.into();
        self.signer.token(&header("k1"), &claims)
    }
}

pub(super) fn header(kid: &str) -> Value {
    json!({"alg": "ES256", "typ": "at+jwt", "kid": kid})
}

pub(super) fn section(issuers: &[String]) -> String {
    format!(r#"{{"issuers":[{}]}}"#, issuers.join(","))
}

/// The caller of a token.
pub(super) async fn find(
    authenticator: &Authenticator,
    token: &str,
) -> Result<Arc<Principal>, AuthError> {
    let pool = BlockingThreads;
    authenticator.authenticate(token, PEER, &pool).await
}

async fn answer(State(server): State<Arc<Server>>, uri: Uri) -> Response {
    if server.is_down.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let json = |text: String| ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    if uri.path() == "/keys" {
        if server.redirects.load(Ordering::Relaxed) {
            return (StatusCode::FOUND, [(header::LOCATION, "/elsewhere")]).into_response();
        }
        server.sets_sent.fetch_add(1, Ordering::Relaxed);
        return json(server.set.lock().unwrap().clone());
    }
    let documents = server.discovery.lock().unwrap();
    let found = documents.iter().find(|(path, _)| path == uri.path());
    match found {
        Some((_, document)) => json(document.to_string()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
