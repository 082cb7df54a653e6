//! An endpoint with the embeddings API of OpenAI: `POST {base}/embeddings`.

use std::error::Error;
use std::time::Duration;

use broker_http_client::{HttpTransport, Proxies, Response, Target, root_message};
use broker_model::redact::{Redactor, Secret};
use broker_model::text::shown_line;
use broker_model::url::HttpUrl;
use broker_search::{Embedding, MAX_DIMENSIONS};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::spawn_blocking;
use url::Url;

use crate::EmbedError;

#[cfg(test)]
mod tests;

/// The endpoint unless `OPENAI_BASE_URL` names another.
const DEFAULT_BASE: &str = "https://api.openai.com/v1";
/// Maximum number of texts of one request.
pub const MAX_BATCH: usize = 64;
/// Maximum number of requests at a time, of all callers.
const MAX_IN_FLIGHT: usize = 32;
/// Maximum bytes of an answer: a fixed part, and one for each text. A component has at most 24 characters.
const ANSWER_BYTES: usize = 64 << 10;
const VECTOR_BYTES: usize = MAX_DIMENSIONS * 32;
/// Maximum bytes of the text of an error.
const ERROR_BYTES: usize = 4 << 10;

/// An endpoint, with its key.
#[derive(Debug)]
pub struct Endpoint {
    base: HttpUrl,
    model: String,
    key: Option<HeaderValue>,
    redactor: Redactor,
    in_flight: Semaphore,
    /// Made by the first request, since it reads the certificates of the system.
    client: OnceCell<(HttpTransport, Target)>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

/// The form of an error.
#[derive(Deserialize)]
struct ErrorAnswer {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
}

impl Endpoint {
    /// Makes the endpoint that `OPENAI_BASE_URL` names, with the key of `OPENAI_API_KEY`. Does not send a request.
    pub fn new(model: &str, base: Option<&str>, key: Option<&str>) -> Result<Self, EmbedError> {
        let text = base.filter(|base| !base.is_empty()).unwrap_or(DEFAULT_BASE);
        let settings = |reason: &str| EmbedError::Settings(format!("OPENAI_BASE_URL {reason}"));
        let base = HttpUrl::parse(text).map_err(|_| settings("is not an HTTP URL"))?;
        if !base.origin().is_tls() && !base.origin().is_loopback() {
            return Err(settings(
                "must begin with `https://`: the key and the texts would cross the network unprotected",
            ));
        }
        let path = format!("{}/embeddings", base.path().trim_end_matches('/'));
        let key = key.filter(|key| !key.is_empty());
        let header = key.map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
                EmbedError::Settings("OPENAI_API_KEY has characters that no header may have".into())
            })?;
            value.set_sensitive(true);
            Ok::<_, EmbedError>(value)
        });
        Ok(Self {
            base: base.with_path(&path),
            model: model.to_owned(),
            key: header.transpose()?,
            redactor: Redactor::new(key.map(Secret::new)),
            in_flight: Semaphore::new(MAX_IN_FLIGHT),
            client: OnceCell::new(),
        })
    }

    /// Returns its host, with a port that is not the usual one.
    pub fn host(&self) -> String {
        self.base.origin().to_string()
    }

    /// Returns a redactor that knows the key.
    pub const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Returns the vectors of texts, in their order. Sends a request for each [`MAX_BATCH`] texts, without retries.
    pub(crate) async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        let _permit = self.in_flight.try_acquire().map_err(|_| EmbedError::Busy)?;
        let mut out = Vec::with_capacity(texts.len());
        for batch in texts.chunks(MAX_BATCH) {
            out.extend(self.embed_batch(batch).await?);
        }
        Ok(out)
    }

    async fn embed_batch(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        let body = json!({"model": self.model, "input": texts, "encoding_format": "float"});
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        let (client, target) = self.client().await?;
        let sent = client.send(Method::POST, target, headers, Bytes::from(body.to_string()));
        let answer = sent.await.map_err(|error| self.broken(&error))?;
        let status = answer.status();
        if status != StatusCode::OK {
            return Err(self.refused(answer).await);
        }
        let bound = ANSWER_BYTES + texts.len() * VECTOR_BYTES;
        let body = self.body(answer, bound).await?;
        let count = texts.len();
        // Up to 20 MB of numbers: not for a worker of the runtime.
        let read = match body.len() > ANSWER_BYTES {
            true => spawn_blocking(move || read(&body, count))
                .await
                .unwrap_or_else(|_| Err("its answer cannot be read".to_owned())),
            false => read(&body, count),
        };
        read.map_err(|reason| self.error(reason))
    }

    async fn client(&self) -> Result<&(HttpTransport, Target), EmbedError> {
        let make = || async {
            let url = Url::parse(&self.base.expose()).map_err(|error| self.broken(&error))?;
            let proxies = match self.base.origin().is_loopback() {
                true => Proxies::None,
                false => Proxies::Environment,
            };
            let of_client = url.clone();
            let made = spawn_blocking(move || HttpTransport::new(&of_client, Vec::new(), proxies));
            let client = made.await.map_err(|error| self.broken(&error))?;
            let client = client.map_err(|error| self.broken(&*error))?;
            let target = client.target(url).map_err(|error| self.broken(&error))?;
            Ok((client, target))
        };
        self.client.get_or_try_init(make).await
    }

    /// Reads the body, of at most so many bytes after decompression.
    async fn body(&self, mut answer: Response, bound: usize) -> Result<Vec<u8>, EmbedError> {
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.broken(&error))? {
            if body.len() + chunk.len() > bound {
                return Err(self.error(format!("its answer has more than {bound} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Returns the error of an answer that has another status than 200.
    async fn refused(&self, answer: Response) -> EmbedError {
        let status = answer.status();
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        if status.is_redirection() {
            let reason = format!(
                "redirects with HTTP status {}, which is not followed; name the final URL in OPENAI_BASE_URL",
                status.as_u16()
            );
            return self.error(reason);
        }
        let body = self.body(answer, ERROR_BYTES).await.unwrap_or_default();
        let said = serde_json::from_slice::<ErrorAnswer>(&body).ok();
        let said = said.map_or_else(String::new, |answer| {
            let message = self.redactor.redact(&answer.error.message);
            format!(": {}", shown_line(&message, 200))
        });
        EmbedError::Endpoint {
            host: self.host(),
            reason: format!("answers with HTTP status {}{said}", status.as_u16()),
            retry_after,
        }
    }

    fn broken(&self, error: &dyn Error) -> EmbedError {
        let message = self.redactor.redact(&root_message(error));
        self.error(format!("cannot be reached: {}", shown_line(&message, 200)))
    }

    fn error(&self, reason: String) -> EmbedError {
        EmbedError::Endpoint {
            host: self.host(),
            reason,
            retry_after: None,
        }
    }
}

/// Reads the vectors of an answer, in the order of the texts.
fn read(body: &[u8], count: usize) -> Result<Vec<Embedding>, String> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|_| "its answer is not a list of embeddings".to_owned())?;
    let mut vectors: Vec<Option<Embedding>> = vec![None; count];
    for item in answer.data {
        let place = vectors.get_mut(item.index);
        let free = place.filter(|place| place.is_none());
        let free = free
            .ok_or_else(|| format!("its answer has the index {} twice or too many", item.index))?;
        let dimensions = item.embedding.len();
        let vector = Embedding::new(&item.embedding);
        *free = Some(vector.ok_or_else(|| {
            format!("its answer has a vector of {dimensions} numbers that cannot be used: each must be finite, and one must not be 0")
        })?);
    }
    let vectors: Option<Vec<Embedding>> = vectors.into_iter().collect();
    let vectors = vectors.ok_or_else(|| format!("its answer has fewer than {count} embeddings"))?;
    let dimensions = vectors.first().map_or(0, Embedding::dimensions);
    match vectors.iter().all(|it| it.dimensions() == dimensions) {
        true => Ok(vectors),
        false => Err("its answer has vectors of different dimensions".to_owned()),
    }
}
