//! The last stderr lines of the processes of a source, for operators.

use axum::http::StatusCode;
use axum::http::request::Parts;
use broker_core::Broker;
use broker_model::CallCode;
use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::HttpSurface;
use crate::pipeline::{Admitted, HttpReply, JSON, Refusal};

/// The parameter of the query that names the source.
const PATH: &str = "path";

impl<B: Broker> HttpSurface<B> {
    /// Answers `/logs`. Callers who see the state of the sources see the lines.
    pub(super) fn logs(&self, parts: &Parts, admitted: &Admitted) -> Result<HttpReply, Refusal> {
        let identity = &admitted.identity;
        self.check_operator(identity, "the output of servers is")?;
        let Some(path) = named_path(parts.uri.query()) else {
            let message = "the query names no source: `/logs?path=/PATH`";
            return Err(Refusal::new(CallCode::FieldInvalid, message).for_caller(identity));
        };
        let Some(output) = self.broker.services().server_output(&path) else {
            let message =
                "the path is neither a source nor below one; `/sources` lists the sources";
            return Err(Refusal::new(CallCode::PathNotFound, message).for_caller(identity));
        };
        let processes = output.processes.iter().map(|process| {
            json!({"state": process.state, "since": process.since, "lines": process.lines})
        });
        let body = json!({"path": output.path, "processes": processes.collect::<Vec<_>>()});
        Ok(HttpReply {
            status: StatusCode::OK,
            body: body.to_string().into(),
            media: JSON,
            etag: None,
        })
    }
}

/// Returns the path in a query: `path=/a`.
fn named_path(query: Option<&str>) -> Option<String> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, path) = pairs.into_iter().find(|(name, _)| *name == PATH)?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    (!path.is_empty()).then(|| path.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_query_is_decoded() {
        for (query, expected) in [
            (None, None),
            (Some("path=/a/b"), Some("/a/b")),
            (Some("x=1&path=%2Fa%2F%C3%A4&y"), Some("/a/ä")),
            (Some("path="), None),
            (Some("path=%ff"), None),
            (Some("paths=/a"), None),
        ] {
            assert_eq!(named_path(query).as_deref(), expected, "{query:?}");
        }
    }
}
