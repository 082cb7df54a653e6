//! Catalogs, calls and states for the tests.

use std::sync::Arc;
use std::time::Duration;

use broker_metrics::{
    AuditState, CatalogDescription, DroppedState, EndedCall, Format, MemoryState, Method, Metrics,
    OutcomeClass, ScrapedSource, ScrapedState, Side, SourceDescription, SourceState,
    ToolDescription, Transport,
};
use broker_model::CallCode;
use broker_model::item::ItemKind;

use crate::scrape::Scrape;

/// The names of a catalog.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The paths of the sources.
    pub(crate) sources: Vec<String>,
    /// Each tool: its path, its upstream name, and its kind. The sources take turns.
    pub(crate) tools: Vec<(String, String, ItemKind)>,
}

impl Names {
    /// Makes names of `sources` sources and `tools` items. `pad` lengthens each of them.
    pub(crate) fn new(sources: usize, tools: usize, pad: impl Fn(&str) -> String) -> Self {
        let source = |at: usize| pad(&format!("/source_{at}"));
        let kinds = ItemKind::ALL.iter().cycle();
        let tools = (0..tools).zip(kinds).map(|(at, kind)| {
            let path = pad(&format!("/source_{}/tool_{at}", at % sources));
            (path, pad(&format!("tool_{at}")), *kind)
        });
        Self {
            tools: tools.collect(),
            sources: (0..sources).map(source).collect(),
        }
    }

    /// Makes the metrics of a catalog with these names.
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        let transports = [Transport::Pipe, Transport::Tcp, Transport::InProcess];
        let sources = self.sources.iter().zip(transports.iter().cycle());
        let sources: Vec<_> = sources
            .map(|(path, transport)| SourceDescription {
                path,
                transport: *transport,
            })
            .collect();
        let tools = self.tools.iter().enumerate();
        let tools: Vec<_> = tools
            .map(|(at, (path, name, kind))| ToolDescription {
                path,
                upstream_name: name,
                source: (at % self.sources.len()) as u32,
                kind: *kind,
            })
            .collect();
        Arc::new(Metrics::new(&CatalogDescription {
            version: "0.1.0",
            digest: "sha256/1:0123",
            surface: Transport::Tcp,
            sources: &sources,
            tools: &tools,
        }))
    }
}

/// Returns a call of an item of this kind.
pub(crate) fn call(tool: u32, kind: ItemKind, outcome: OutcomeClass, millis: u64) -> EndedCall {
    EndedCall {
        tool: Some(tool),
        side: Side::Server,
        method: Method::from_kind(kind),
        outcome,
        duration: Duration::from_millis(millis),
        result_bytes: 1001,
    }
}

/// Returns every class of outcome, with every code.
pub(crate) fn outcomes() -> impl Iterator<Item = OutcomeClass> + Clone {
    let codes = CallCode::ALL.iter();
    let codes = codes.map(|code| OutcomeClass::from_code(*code));
    let others = [
        OutcomeClass::Ok,
        OutcomeClass::ToolError,
        OutcomeClass::Abandoned,
        OutcomeClass::Refused(None),
        OutcomeClass::Failed(None),
    ];
    codes.chain(others)
}

/// Returns a state with a value for everything.
pub(crate) fn full_state(sources: usize) -> ScrapedState {
    let states = SourceState::ALL.iter().cycle().take(sources);
    let sources = states.zip(0..).map(|(state, number)| ScrapedSource {
        state: *state,
        restarts: number,
        hangs: number,
        queue_depth: 2,
        waited_calls: 3,
        waited_ms: 1500,
        certificate_expiry: Some(1_800_000_000),
    });
    ScrapedState {
        sources: sources.collect(),
        tools_withdrawn: 1,
        sessions: 2,
        streams: 3,
        memory: MemoryState {
            limit: 1 << 29,
            used: 4096,
        },
        audit: Some(AuditState {
            seq: 12,
            lag_lines: 3,
            is_available: true,
            space_left_seconds: Some(86_400.5),
        }),
        dropped: Some(DroppedState {
            spans: 4,
            audit_lines: 5,
        }),
        is_search_degraded: Some(false),
        key_expiry: Some(1_900_000_000),
    }
}

/// Renders and reads a scrape in the text format of Prometheus.
pub(crate) fn scrape(metrics: &Arc<Metrics>, state: ScrapedState) -> Scrape {
    Scrape::read(&text(metrics, Format::Prometheus, state))
}

/// Renders a scrape.
pub(crate) fn text(metrics: &Arc<Metrics>, format: Format, state: ScrapedState) -> String {
    metrics.render(format, state).expect("it is rendered")
}
