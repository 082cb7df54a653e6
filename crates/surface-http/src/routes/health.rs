//! The health routes for balancers, people and dashboards. The details that they show depend on the
//! bound address and on the secret of the request.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json;

use broker_core::{
    Broker, Health, Identity, InstanceHealth, JobsTrouble, ShownLeftOut, SourceCounters,
    SourceHealth, WithdrawnTool,
};
use broker_metrics::Latency;
use broker_model::CallCode;
use broker_model::utc::UtcTime;
use broker_observe::AuditStatus;
use broker_surface_mcp::http::McpEndpoint;

use crate::HttpSurface;
use crate::pipeline::{HttpReply, JSON, Refusal};

/// The health routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthRoute {
    /// `/healthz`
    Alive,
    /// `/readyz`
    Ready,
    /// `/sources`
    Sources,
}

/// The amount of detail in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// Everything.
    Full,
    /// The short view: the status code and states only, without names, versions and reasons.
    StateOnly,
}

impl<B: Broker> HttpSurface<B> {
    /// Whether callers without a credential see no details. A proxy in front of a loopback address makes these routes
    /// public.
    pub(super) fn is_limited(&self) -> bool {
        self.exposed || self.auth.is_required() || self.broker.services().has_access_rules()
    }

    /// Answers a health route. It shows more to a caller with a credential.
    pub(super) fn health(
        &self,
        report: HealthRoute,
        identity: &Identity,
    ) -> Result<HttpReply, Refusal> {
        let is_operator = self.broker.services().is_operator(identity);
        let limited = self.is_limited();
        let view = match report {
            _ if limited && !identity.is_authenticated() => DetailLevel::StateOnly,
            HealthRoute::Ready if !is_operator => DetailLevel::StateOnly,
            _ => DetailLevel::Full,
        };
        if report == HealthRoute::Sources && !is_operator {
            let message = "the state of the sources is shown to `access.operators` only";
            return Err(Refusal::new(CallCode::Forbidden, message).for_caller(identity));
        }
        let sessions = self.mcp.as_ref().map(McpEndpoint::session_count);
        let latencies = match (report, view, &self.observers.meter) {
            (HealthRoute::Sources, DetailLevel::Full, Some(meter)) => meter.latencies(),
            _ => Vec::new(),
        };
        let state = ServiceState {
            latencies,
            draining: self.drain.is_draining(),
            mcp_sessions: sessions,
            audit: self
                .observers
                .audit
                .as_ref()
                .and_then(|audit| audit_trouble(&audit.status())),
            jobs: self
                .broker
                .jobs()
                .and_then(|desk| desk.trouble())
                .map(JobsState::from),
        };
        let health = self.broker.services().health();
        Ok(answer(report, view, health, state))
    }
}

/// The state of the surface that health routes show.
#[derive(Clone, Debug, Default)]
struct ServiceState {
    /// The latency of each source; empty without metrics.
    latencies: Vec<Option<Latency>>,
    /// Makes a ready broker not ready.
    draining: bool,
    /// The number of legacy sessions of MCP clients.
    mcp_sessions: Option<usize>,
    audit: Option<AuditTrouble>,
    jobs: Option<JobsState>,
}

/// The reason why jobs are off.
#[derive(Clone, Debug, Serialize)]
struct JobsState {
    state: &'static str,
    reason: String,
}

impl From<JobsTrouble> for JobsState {
    fn from(trouble: JobsTrouble) -> Self {
        let JobsTrouble { state, reason } = trouble;
        Self { state, reason }
    }
}

/// The state of an audit log that needs an operator.
#[derive(Clone, Copy, Debug, Serialize)]
struct AuditTrouble {
    /// Whether lines can be written.
    available: bool,
    /// The seconds until the disk is full at the current rate.
    space_left_s: Option<u64>,
}

fn audit_trouble(status: &AuditStatus) -> Option<AuditTrouble> {
    let trouble = AuditTrouble {
        available: status.is_available,
        space_left_s: status.space_left_s,
    };
    (!status.is_available || status.is_filling()).then_some(trouble)
}

/// The readiness as an operator sees it.
#[derive(Serialize)]
struct Readiness<'a> {
    #[serde(flatten)]
    health: &'a Health,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<AuditTrouble>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<JobsState>,
}

/// The answer of a health route.
fn answer(
    report: HealthRoute,
    view: DetailLevel,
    mut health: Health,
    state: ServiceState,
) -> HttpReply {
    health.ready &= !state.draining;
    let status = if report == HealthRoute::Ready && !health.ready {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    let body = match (report, view) {
        (HealthRoute::Ready, DetailLevel::Full) => {
            let readiness = Readiness {
                health: &health,
                audit: state.audit,
                jobs: state.jobs,
            };
            serde_json::to_string(&readiness).expect("names and numbers always serialize")
        }
        (HealthRoute::Ready, DetailLevel::StateOnly) => {
            json!({ "ready": health.ready }).to_string()
        }
        (HealthRoute::Sources, _) => sources(view, &health, &state),
        (HealthRoute::Alive, DetailLevel::Full) => json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "catalog_digest": health.catalog_digest,
            "built_from": health.built_from,
        })
        .to_string(),
        (HealthRoute::Alive, DetailLevel::StateOnly) => json!({ "status": "ok" }).to_string(),
    };
    HttpReply {
        status,
        body: body.into(),
        media: JSON,
        etag: None,
    }
}

/// One source as `/sources` shows it.
#[derive(Serialize)]
struct SourceDetails<'a> {
    #[serde(flatten)]
    source: &'a SourceHealth,
    /// When it last answered a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_ok: Option<&'a str>,
    /// The time of its calls, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<ShownLatency>,
    counters: SourceCounters,
    instances: &'a [InstanceHealth],
    /// The first tools that are withdrawn; `withdrawn` counts all.
    #[serde(skip_serializing_if = "<[WithdrawnTool]>::is_empty")]
    withdrawn_tools: &'a [WithdrawnTool],
    /// The first parts of its latest listing that are not used, and the number of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<ShownLeftOut<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    left_out_count: usize,
    /// When the first of the certificates for it expires, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_expires: Option<String>,
    /// What was odd about the listing.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// The latency of a source.
#[derive(Serialize)]
struct ShownLatency {
    p50: u64,
    p99: u64,
}

/// One source as a caller without the secret sees it.
#[derive(Serialize)]
struct SourceState {
    state: &'static str,
}

fn sources(view: DetailLevel, health: &Health, state: &ServiceState) -> String {
    let sources = health.sources.iter();
    let latencies = state
        .latencies
        .iter()
        .copied()
        .chain(std::iter::repeat(None));
    match view {
        DetailLevel::Full => {
            let details = sources
                .zip(latencies)
                .map(|(source, latency)| SourceDetails {
                    source,
                    last_ok: source.last_ok.as_deref(),
                    latency_ms: latency.map(|latency| ShownLatency {
                        p50: latency.p50.as_millis() as u64,
                        p99: latency.p99.as_millis() as u64,
                    }),
                    counters: source.counters,
                    instances: &source.instances,
                    withdrawn_tools: &source.withdrawn_tools,
                    left_out: source.notes.left_out().collect(),
                    left_out_count: source.notes.left_out_count(),
                    certificate_expires: source.certificate_expiry.map(utc_text),
                    warnings: source.notes.warnings(),
                });
            list(details, state.mcp_sessions, state.jobs.as_ref())
        }
        DetailLevel::StateOnly => {
            let states = sources.map(|source| SourceState {
                state: source.state,
            });
            list(states, None, None)
        }
    }
}

/// Returns a time in Unix seconds as RFC 3339 in UTC.
fn utc_text(seconds: u64) -> String {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    time.map_or_else(String::new, |time| {
        UtcTime::from_system_time(time).to_string()
    })
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn list(
    sources: impl Iterator<Item = impl Serialize>,
    mcp_sessions: Option<usize>,
    jobs: Option<&JobsState>,
) -> String {
    #[derive(Serialize)]
    struct Sources<'a, T> {
        sources: Vec<T>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mcp_sessions: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        jobs: Option<&'a JobsState>,
    }
    let all = Sources {
        sources: sources.collect(),
        mcp_sessions,
        jobs,
    };
    serde_json::to_string(&all).expect("names and numbers always serialize")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::ReplyContent;
    use broker_core::{BuiltFrom, SourceHealth};
    use serde_json::Value;

    fn body(report: HealthRoute, view: DetailLevel, draining: bool) -> (u16, String) {
        let health = Health {
            ready: true,
            degraded: true,
            catalog_digest: "sha256/1:00",
            sources: vec![SourceHealth {
                path: "/a",
                state: "backoff",
                cause: Some("exited"),
                since: "2026-01-01T00:00:00Z".to_owned(),
                tools: 2,
                withdrawn: 1,
                withdrawn_tools: vec![WithdrawnTool {
                    path: "/a/b",
                    class: "breaking",
                    rules: vec!["required-added"],
                    since: "2026-01-01T00:00:00Z".to_owned(),
                }],
                counters: SourceCounters {
                    calls: 41,
                    ..SourceCounters::default()
                },
                last_ok: None,
                certificate_expiry: None,
                notes: Default::default(),
                instances: Vec::new(),
            }],
            built_from: BuiltFrom {
                config: "c.json",
                config_digest: "sha256/1:0c",
                root_digest: "sha256/1:0d",
            },
        };
        let state = ServiceState {
            draining,
            ..ServiceState::default()
        };
        let answer = answer(report, view, health, state);
        let ReplyContent::Whole(body) = answer.body else {
            panic!("the body comes in pieces");
        };
        let body = String::from_utf8(body.to_vec()).unwrap();
        (answer.status.as_u16(), body)
    }

    #[test]
    fn readiness_names_an_audit_log_that_needs_an_operator() {
        let mut status = AuditStatus {
            seq: 1,
            hash: String::new(),
            lag_lines: 0,
            oldest_ms: 0,
            is_available: true,
            space_left_s: Some(600),
            missed: 0,
        };
        assert!(audit_trouble(&status).is_none());
        status.space_left_s = Some(599);
        let shown = |status: &AuditStatus| serde_json::to_value(audit_trouble(status)).unwrap();
        assert_eq!(
            shown(&status),
            json!({"available": true, "space_left_s": 599})
        );
        status.is_available = false;
        status.space_left_s = None;
        assert_eq!(
            shown(&status),
            json!({"available": false, "space_left_s": null})
        );
    }

    #[test]
    fn operators_see_why_jobs_are_off() {
        let health = || Health {
            ready: true,
            degraded: false,
            catalog_digest: "sha256/1:00",
            sources: Vec::new(),
            built_from: BuiltFrom {
                config: "c.json",
                config_digest: "sha256/1:0c",
                root_digest: "sha256/1:0d",
            },
        };
        let state = || ServiceState {
            jobs: Some(JobsState {
                state: "store_in_use",
                reason: "process 7 has it".to_owned(),
            }),
            ..ServiceState::default()
        };
        let shown = |report, view| {
            let ReplyContent::Whole(body) = answer(report, view, health(), state()).body else {
                panic!("the body comes in pieces");
            };
            serde_json::from_slice::<Value>(&body).unwrap()["jobs"].clone()
        };
        let why = json!({"state": "store_in_use", "reason": "process 7 has it"});
        for report in [HealthRoute::Ready, HealthRoute::Sources] {
            assert_eq!(shown(report, DetailLevel::Full), why);
            assert_eq!(shown(report, DetailLevel::StateOnly), Value::Null);
        }
    }

    #[test]
    fn health_without_the_secret_shows_states_only() {
        for report in [HealthRoute::Alive, HealthRoute::Ready, HealthRoute::Sources] {
            let (_, body) = body(report, DetailLevel::StateOnly, false);
            for hidden in [
                "sha256",
                "c.json",
                "/a",
                "exited",
                env!("CARGO_PKG_VERSION"),
                "2026",
            ] {
                assert!(!body.contains(hidden), "{body}");
            }
        }
    }

    #[test]
    fn health_with_the_secret_shows_details_and_the_drain() {
        assert_eq!(
            body(HealthRoute::Ready, DetailLevel::Full, false),
            (200, r#"{"ready":true,"degraded":true,"catalog_digest":"sha256/1:00","sources":[{"path":"/a","state":"backoff","cause":"exited","since":"2026-01-01T00:00:00Z","tools":2,"withdrawn":1}]}"#.to_owned())
        );
        assert_eq!(
            body(HealthRoute::Ready, DetailLevel::StateOnly, true),
            (503, r#"{"ready":false}"#.to_owned())
        );
        let (status, text) = body(HealthRoute::Alive, DetailLevel::Full, true);
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &answer["status"]), (200, &json!("ok")));
        assert_eq!(
            answer["built_from"],
            json!({"config": "c.json", "config_digest": "sha256/1:0c", "root_digest": "sha256/1:0d"})
        );
        assert_eq!(
            body(HealthRoute::Sources, DetailLevel::StateOnly, false).1,
            r#"{"sources":[{"state":"backoff"}]}"#
        );
        let (status, sources) = body(HealthRoute::Sources, DetailLevel::Full, false);
        assert!(
            sources.starts_with(r#"{"sources":[{"path":"/a","state":"backoff","cause":"exited""#)
        );
        let sources: Value = serde_json::from_str(&sources).unwrap();
        let source = &sources["sources"][0];
        assert_eq!((status, &source["path"]), (200, &json!("/a")));
        assert_eq!(
            source["withdrawn_tools"],
            json!([{"path": "/a/b", "class": "breaking", "rules": ["required-added"], "since": "2026-01-01T00:00:00Z"}])
        );
        let counters = source["counters"].as_object().unwrap();
        assert_eq!((counters.len(), &counters["calls"]), (17, &json!(41)));
    }
}
