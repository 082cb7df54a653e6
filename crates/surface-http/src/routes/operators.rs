//! The state of the broker that only operators see: differences from the lock, access rules, the last lines of the audit log.

use axum::http::StatusCode;
use broker_core::{Broker, Identity};
use broker_model::CallCode;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::table::OperatorRoute;
use crate::HttpSurface;
use crate::pipeline::{Admitted, HttpReply, JSON, Refusal};

impl<B: Broker> HttpSurface<B> {
    /// Refuses a caller who is not an operator. `subject` is what the route shows, with its verb.
    pub(super) fn check_operator(&self, identity: &Identity, subject: &str) -> Result<(), Refusal> {
        if self.is_limited() && !identity.is_authenticated() {
            let message = format!("{subject} shown to callers with a credential only");
            return Err(Refusal::new(CallCode::Unauthorized, message));
        }
        if !self.broker.services().is_operator(identity) {
            let message = format!("{subject} shown to `access.operators` only");
            return Err(Refusal::new(CallCode::Forbidden, message).for_caller(identity));
        }
        Ok(())
    }

    /// Answers a route for operators. Long answers are made off the threads of the runtime.
    pub(super) async fn operator(
        &self,
        route: OperatorRoute,
        admitted: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        let (identity, services) = (&admitted.identity, self.broker.services().clone());
        let subject = match route {
            OperatorRoute::Drift => "the drift of the sources is",
            OperatorRoute::Access => "the access rules are",
            OperatorRoute::Activity => "the audit log is",
        };
        self.check_operator(identity, subject)?;
        let work = match route {
            OperatorRoute::Drift => {
                let make = move || Some(json(&services.differences()));
                services_work(self, admitted, make).await
            }
            OperatorRoute::Access => {
                let make = move || Some(json(&services.access_overview()));
                services_work(self, admitted, make).await
            }
            OperatorRoute::Activity => {
                let audit = self.observers.audit.clone();
                let make = move || Some(activity(&audit?.last_lines().ok()?));
                services_work(self, admitted, make).await
            }
        };
        let body = work.ok_or_else(|| {
            let message = "the broker keeps no audit log that can be read here: the config has no `audit`, or with another `format` than `native`";
            Refusal::new(CallCode::RouteNotFound, message).for_caller(identity)
        })?;
        Ok(HttpReply {
            status: StatusCode::OK,
            body: body.into(),
            media: JSON,
            etag: None,
        })
    }
}

async fn services_work<B: Broker>(
    surface: &HttpSurface<B>,
    admitted: &Admitted,
    make: impl FnOnce() -> Option<String> + Send + 'static,
) -> Option<String> {
    let services = surface.broker.services();
    services.shape_long(&admitted.account, make).await
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers always serialize")
}

/// Returns the lines as a reply. A line that is not JSON was not written by the broker.
fn activity(lines: &[String]) -> String {
    #[derive(Serialize)]
    struct Lines<'a> {
        lines: Vec<&'a RawValue>,
    }
    let lines = lines.iter().filter(|line| {
        let line: Result<Value, _> = serde_json::from_str(line);
        line.is_ok_and(|line| line.is_object())
    });
    let lines = lines.filter_map(|line| serde_json::from_str(line).ok());
    json(&Lines {
        lines: lines.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_not_objects_are_left_out() {
        let lines = [r#"{"a":1.50}"#, "", "x", "1", r#"{"b":[]}"#, r#"{"c""#];
        assert_eq!(
            activity(&lines.map(str::to_owned)),
            r#"{"lines":[{"a":1.50},{"b":[]}]}"#
        );
    }
}
