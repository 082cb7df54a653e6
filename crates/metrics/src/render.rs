//! The text of a scrape.

mod samples;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use broker_model::CallCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use crate::description::Transport;
use crate::ended_call::{Method, OutcomeClass, is_failure};
use crate::families as family;
use crate::histogram::{Durations, OPERATION_BOUNDS};
use crate::labels::{OTHER, UNKNOWN};
use crate::metrics::{BYTES_PER_TOKEN, DRIFT_CLASSES, Metrics, Sides};
use crate::scraped_state::{ScrapedState, SourceState};
use samples::{Page, Samples};

pub use samples::{FamilyValues, Number, Point, PointValue};

/// The name of the service.
const SERVICE: &str = "mcp-broker";

/// The format of a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Returns the format that a client prefers, by its `Accept` header. OpenMetrics must be named; of two formats with the
    /// same weight it is preferred.
    pub fn from_accept(accept: &str) -> Self {
        let weight = |media_type: &str| {
            let mut ranges = accept.split(',').map(|range| range.split(';'));
            ranges.find_map(|mut parts| {
                let name = parts.next()?.trim();
                let is_named = name.eq_ignore_ascii_case(media_type);
                is_named.then(|| parts.find_map(weight_of).unwrap_or(1.0))
            })
        };
        let open_metrics = weight("application/openmetrics-text").unwrap_or(0.0);
        let plain = weight("text/plain").unwrap_or(0.0);
        match open_metrics > 0.0 && open_metrics >= plain {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// The content type of the text.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Returns the weight that a parameter of a media range gives; one that is not a number counts as zero.
fn weight_of(parameter: &str) -> Option<f32> {
    let weight = parameter.trim().strip_prefix("q=")?;
    Some(weight.trim().parse().unwrap_or(0.0))
}

impl Metrics {
    /// Renders all metrics: those that are counted here, and those of the state.
    pub fn render(
        self: &Arc<Self>,
        format: Format,
        state: ScrapedState,
    ) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Scrape {
            metrics: Arc::clone(self),
            format,
            state,
        }));
        let mut page = String::new();
        text::encode_registry(&mut page, &registry)?;
        if format == Format::OpenMetrics {
            text::encode_eof(&mut page)?;
        }
        Ok(page)
    }
}

impl Metrics {
    /// Returns the values of all metrics: those that are counted here, and those of the state.
    pub fn values(self: &Arc<Self>, state: ScrapedState) -> Vec<FamilyValues> {
        let mut values = Vec::new();
        let scrape = Scrape {
            metrics: Arc::clone(self),
            format: Format::OpenMetrics,
            state,
        };
        // Only text can fail.
        scrape
            .write(&mut Page::Values(&mut values))
            .unwrap_or_default();
        values
    }
}

/// The metrics of one scrape.
#[derive(Debug)]
struct Scrape {
    metrics: Arc<Metrics>,
    format: Format,
    state: ScrapedState,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.write(&mut Page::new(encoder, self.format))
    }
}

impl Scrape {
    /// Writes all families.
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        self.infos(page)?;
        page.family(&family::SERVER_DURATION, |samples| {
            self.operations(samples, |sides| &sides.server, true)
        })?;
        page.family(&family::CLIENT_DURATION, |samples| {
            self.operations(samples, |sides| &sides.client, false)
        })?;
        self.calls(page)?;
        self.results(page)?;
        self.sources(page)?;
        self.broker(page)
    }

    fn infos(&self, page: &mut Page<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        page.family(&family::TARGET, |samples| {
            samples.info(&[
                ("service_name", SERVICE),
                ("service_version", &metrics.version),
            ])
        })?;
        page.family(&family::BUILD, |samples| {
            samples.info(&[("version", &metrics.version), ("catalog", &metrics.digest)])
        })
    }

    /// Writes the durations on one side: by method, then by tool.
    fn operations(
        &self,
        samples: &mut Samples<'_>,
        side: fn(&Sides) -> &Durations,
        is_server: bool,
    ) -> fmt::Result {
        let metrics = &self.metrics;
        let surface = match is_server {
            true => metrics.surface,
            false => Transport::InProcess,
        };
        for (method, sides) in Method::ALL.iter().zip(&metrics.methods) {
            let tool = match *method == Method::CallTool {
                true => UNKNOWN,
                false => method.meta_tool(),
            };
            let labels = [
                ("mcp_method_name", method.as_str()),
                ("gen_ai_tool_name", tool),
                ("network_transport", surface.as_str()),
            ];
            samples.histogram(&labels, side(sides).read(&OPERATION_BOUNDS))?;
        }
        for (tool, counters) in metrics.labels.tools.iter().zip(&metrics.tools) {
            let source = metrics.labels.sources.get(tool.source);
            let (name, transport) = match is_server {
                true => (&tool.path, metrics.surface),
                false => (
                    &tool.upstream_name,
                    source.map_or(Transport::InProcess, |source| source.transport),
                ),
            };
            let labels = [
                ("mcp_method_name", tool.method.as_str()),
                (tool.key, name),
                ("network_transport", transport.as_str()),
                (
                    "mcp_broker_source",
                    source.map_or(UNKNOWN, |source| &source.path),
                ),
            ];
            samples.histogram(&labels, side(&counters.sides).read(&OPERATION_BOUNDS))?;
        }
        Ok(())
    }

    fn calls(&self, page: &mut Page<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        page.family(&family::CALLS, |samples| {
            let tools = metrics.labels.tools.iter().zip(&metrics.tools);
            let tools = tools.map(|(tool, counters)| {
                let source = metrics.labels.sources.get(tool.source);
                let source = source.map_or(UNKNOWN, |source| &*source.path);
                (source, &*tool.path, &counters.outcomes)
            });
            for (source, tool, outcomes) in tools.chain([(UNKNOWN, UNKNOWN, &metrics.unknown)]) {
                let counts = outcomes.each_ref().map(load);
                if counts == [0; OutcomeClass::COUNTED.len()] {
                    continue;
                }
                for (outcome, count) in OutcomeClass::COUNTED.iter().zip(counts) {
                    let labels = [("source", source), ("tool", tool), ("outcome", outcome)];
                    samples.counter(&labels, count)?;
                }
            }
            Ok(())
        })?;
        page.family(&family::CALLS_REFUSED, |samples| {
            codes(samples, &metrics.refused, false)
        })?;
        page.family(&family::CALLS_FAILED, |samples| {
            codes(samples, &metrics.failed, true)
        })?;
        page.family(&family::CALLS_ABANDONED, |samples| {
            for (at, source) in metrics.sources.iter().enumerate() {
                let abandoned = load(&source.abandoned);
                if abandoned > 0 {
                    samples.counter(&[("source", self.shown_source(at))], abandoned)?;
                }
            }
            Ok(())
        })
    }

    fn results(&self, page: &mut Page<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        for (family, divisor) in [
            (&family::RESULT_BYTES, 1),
            (&family::RESULT_TOKENS, BYTES_PER_TOKEN),
        ] {
            page.family(family, |samples| {
                for (tool, counters) in metrics.labels.tools.iter().zip(&metrics.tools) {
                    let bytes = load(&counters.result_bytes);
                    if bytes > 0 {
                        samples.counter(&[("tool", &tool.path)], bytes.div_ceil(divisor))?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the label of a place of the array of sources.
    fn shown_source(&self, at: usize) -> &str {
        let sources = &self.metrics.labels.sources;
        match at + 1 < self.metrics.sources.len() {
            true => sources.get(at).map_or(OTHER, |source| &source.path),
            false => OTHER,
        }
    }

    fn sources(&self, page: &mut Page<'_>) -> fmt::Result {
        let shown = self.metrics.sources.len() - 1;
        let (each, rest) = self
            .state
            .sources
            .split_at(shown.min(self.state.sources.len()));
        // The last group has the further sources, and is empty if there are none.
        let groups = || {
            let groups = each.chunks(1).chain([rest]);
            let groups = groups.enumerate().filter(|(_, group)| !group.is_empty());
            groups.map(|(at, group)| match std::ptr::eq(group, rest) {
                true => (OTHER, group),
                false => (self.shown_source(at), group),
            })
        };
        page.family(&family::SOURCE_STATE, |samples| {
            for (source, group) in groups() {
                for state in SourceState::ALL {
                    let count = group.iter().filter(|source| source.state == state).count();
                    let labels = [("source", source), ("state", state.as_str())];
                    samples.gauge(&labels, count as u64)?;
                }
            }
            Ok(())
        })?;
        page.family(&family::SOURCE_RESTARTS, |samples| {
            for (source, group) in groups() {
                let restarts: u64 = group.iter().map(|source| source.restarts).sum();
                samples.counter(&[("source", source)], restarts)?;
            }
            Ok(())
        })?;
        page.family(&family::SOURCE_HANGS, |samples| {
            for (source, group) in groups() {
                let hangs: u64 = group.iter().map(|source| source.hangs).sum();
                samples.counter(&[("source", source)], hangs)?;
            }
            Ok(())
        })?;
        page.family(&family::QUEUE_DEPTH, |samples| {
            for (source, group) in groups() {
                let depth: u64 = group.iter().map(|source| source.queue_depth).sum();
                samples.gauge(&[("source", source)], depth)?;
            }
            Ok(())
        })?;
        page.family(&family::QUEUE_WAITS, |samples| {
            for (source, group) in groups() {
                let waits: u64 = group.iter().map(|source| source.waited_calls).sum();
                samples.counter(&[("source", source)], waits)?;
            }
            Ok(())
        })?;
        page.family(&family::QUEUE_WAIT_TIME, |samples| {
            for (source, group) in groups() {
                let millis: u64 = group.iter().map(|source| source.waited_ms).sum();
                samples.counter(&[("source", source)], millis as f64 / 1000.0)?;
            }
            Ok(())
        })?;
        page.family(&family::CERTIFICATE_EXPIRY, |samples| {
            for (source, group) in groups() {
                let expiries = group.iter().filter_map(|source| source.certificate_expiry);
                if let Some(expiry) = expiries.min() {
                    samples.gauge(&[("source", source)], expiry)?;
                }
            }
            Ok(())
        })
    }

    /// Writes the metrics that the broker has once.
    fn broker(&self, page: &mut Page<'_>) -> fmt::Result {
        let state = &self.state;
        page.family(&family::DRIFT_FINDINGS, |samples| {
            for (class, count) in DRIFT_CLASSES.iter().zip(&self.metrics.drift) {
                samples.counter(&[("class", class)], load(count))?;
            }
            Ok(())
        })?;
        page.family(&family::MEMORY_BUDGET, |samples| {
            samples.gauge(&[("kind", "limit")], state.memory.limit)?;
            samples.gauge(&[("kind", "used")], state.memory.used)
        })?;
        page.single(&family::TOOLS_WITHDRAWN, Some(state.tools_withdrawn))?;
        page.single(&family::SESSIONS, Some(state.sessions))?;
        page.single(&family::STREAMS, Some(state.streams))?;
        let audit = state.audit;
        page.single(&family::AUDIT_SEQ, audit.map(|audit| audit.seq))?;
        page.single(&family::AUDIT_LAG, audit.map(|audit| audit.lag_lines))?;
        let is_available = audit.map(|audit| u64::from(audit.is_available));
        page.single(&family::AUDIT_AVAILABLE, is_available)?;
        let space_left = audit.and_then(|audit| audit.space_left_seconds);
        page.single(&family::AUDIT_SPACE_LEFT, space_left)?;
        page.family(&family::DROPPED, |samples| {
            let Some(dropped) = state.dropped else {
                return Ok(());
            };
            samples.counter(&[("what", "spans")], dropped.spans)?;
            samples.counter(&[("what", "audit_lines")], dropped.audit_lines)
        })?;
        let is_degraded = state.is_search_degraded.map(u64::from);
        page.single(&family::SEARCH_DEGRADED, is_degraded)?;
        page.single(&family::KEY_EXPIRY, state.key_expiry)
    }
}

/// Writes the counters of codes: of failures, or of refusals. Those of the other kind are left out.
fn codes<const N: usize>(
    samples: &mut Samples<'_>,
    counters: &[AtomicU64; N],
    are_failures: bool,
) -> fmt::Result {
    let codes = CallCode::ALL.iter().zip(counters);
    let codes = codes.filter(|(code, count)| is_failure(**code) == are_failures || load(count) > 0);
    for (code, count) in codes {
        samples.counter(&[("code", code.as_str())], load(count))?;
    }
    samples.counter(&[("code", OTHER)], load(&counters[N - 1]))
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
