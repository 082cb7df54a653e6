//! Tokens of all origins against a small HTTP server: when they are fetched, where they are sent, and who may read
//! them.

mod commands;
mod endpoints;
mod files;
mod openings;
mod refusals;
mod second_tries;
mod secrecy;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use broker_http_client::Response;
use broker_model::url::HttpUrl;
use broker_process::{ProcessSpec, StderrTail, StopDeadline};
use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::task::TaskTracker;

use crate::failure::SourceFailure;
use crate::http::HttpShared;
use crate::http::client::Client;
use crate::http::spec::{AuthSpec, ClientCredentials, HttpSpec};
use crate::opening::Opening;
use crate::spec::{Endpoint, SourceSpec, Timing};
use crate::test_spec::process_source;
use broker_model::redact::{Redactor, Secret};
use server::{Answer, Request, TestServer};

/// A header of the config, with a secret.
const KEY: (&str, &str) = ("x-api-key", "k3y-of-the-config");

/// A source at `/mcp` of the server with this origin of its token, and with a header of the config.
fn source(server: &TestServer, auth: Option<AuthSpec>) -> SourceSpec {
    let mut spec = process_source();
    let mut headers = HeaderMap::new();
    headers.insert(
        HeaderName::from_static(KEY.0),
        HeaderValue::from_static(KEY.1),
    );
    spec.endpoint = Endpoint::Http(Box::new(HttpSpec {
        url: url(&server.url("/mcp")),
        headers,
        auth,
        shared: HttpShared::default(),
        ca_file: None,
        identity: None,
    }));
    spec.redactor = Redactor::new([Secret::new(KEY.1)]);
    spec.timing = Timing::for_http();
    spec
}

fn url(text: &str) -> HttpUrl {
    HttpUrl::parse(text).unwrap()
}

/// A link's client, and what it shares with its source.
struct Linked {
    client: Client,
    tail: StderrTail,
    tasks: TaskTracker,
}

impl Linked {
    async fn new(spec: &SourceSpec) -> Self {
        let (tail, tasks) = (StderrTail::new(spec.redactor.clone()), TaskTracker::new());
        let opening = Opening {
            tail: &tail,
            counters: &Arc::default(),
            tasks: &tasks,
            stop_deadline: &StopDeadline::never(),
            second_try: false,
        };
        let Endpoint::Http(http) = &spec.endpoint else {
            panic!("a source with a URL")
        };
        let client = Client::new(http, spec, &opening).await.unwrap();
        Self {
            client,
            tail,
            tasks,
        }
    }

    /// Posts a message to the server of the source.
    async fn post(&self) -> Result<Response, SourceFailure> {
        let (body, headers) = (Bytes::from_static(b"{}"), HeaderMap::new());
        let sent = self.client.send(&Method::POST, &headers, Some(&body));
        sent.await.map_err(|error| {
            assert!(!error.begun || error.failure.message.contains("redirects"));
            error.failure
        })
    }

    /// Posts a message; the status of the answer.
    async fn status(&self) -> u16 {
        self.post().await.unwrap().status().as_u16()
    }
}

/// A shell command as the origin of a token.
fn command(script: &str) -> AuthSpec {
    AuthSpec::TokenCommand(Box::new(ProcessSpec {
        name: "/s".to_owned(),
        program: "/bin/sh".to_owned(),
        search: Vec::new(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        cwd: None,
        shell: false,
        redactor: Redactor::default(),
        container: None,
    }))
}

/// A client of the token endpoint `/token` of the server.
fn credentials(server: &TestServer) -> ClientCredentials {
    ClientCredentials {
        token_url: url(&server.url("/token")),
        client_id: "client".to_owned(),
        client_secret: Secret::new("s3cret-of-the-client"),
        scope: None,
        resource: None,
    }
}

/// The answer that grants `token` for a time.
fn grant(token: &str, expires_in: u64) -> Answer {
    let body =
        format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":{expires_in}}}"#);
    Answer::of(200, body)
}

/// Lets the clock of this test run ahead by `time`. It runs on afterwards: with a stopped clock, every wait for a
/// socket would end the next timeout.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
