//! The spec of a scripted server, for unit tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use broker_model::NodePath;
use broker_model::extension::Extensions;
use broker_model::redact::Redactor;
use broker_model::trust::Exposure;
use broker_process::ProcessSpec;

use crate::spec::{Endpoint, ItemLists, SourceSpec, Timing};
use crate::{AskedLogLevel, ConcurrencyLimits, LinkFactory, Pipes, ServerTask};

/// Returns the source `/s`, which `serve` serves. A test changes the fields that it is about.
pub(crate) fn scripted_source<S>(serve: impl Fn(Pipes) -> S + Send + Sync + 'static) -> SourceSpec
where
    S: Future<Output = i32> + Send + 'static,
{
    let serve = Arc::new(serve);
    let server = move |_: &str| {
        let serve = serve.clone();
        let task: ServerTask = Box::new(move |pipes| Box::pin(serve(pipes)));
        Some(task)
    };
    SourceSpec {
        links: LinkFactory::new(server),
        ..process_source()
    }
}

/// Returns the source `/s` without a server.
pub(crate) fn process_source() -> SourceSpec {
    SourceSpec {
        extensions: Extensions::default(),
        stderr_to_callers: None,
        source: NodePath::parse("/s").unwrap(),
        endpoint: Endpoint::Process(ProcessSpec {
            name: "/s".to_owned(),
            program: String::new(),
            search: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            shell: false,
            redactor: Redactor::default(),
            container: None,
        }),
        startup_timeout: Duration::from_secs(20),
        relist_interval: None,
        line_bytes: 1 << 20,
        memory: broker_memory::MemoryBudget::new(512 << 20),
        concurrency: ConcurrencyLimits::new(),
        listing_bytes: 32 << 20,
        lists: ItemLists::default(),
        exposure: Exposure::expose_all(),
        instances: 1,
        max_in_flight: 32,
        queue: 256,
        redactor: Redactor::default(),
        withheld: Vec::new(),
        start_hints: Default::default(),
        empty_variables: Vec::new(),
        log_level: AskedLogLevel::new(),
        links: LinkFactory::default(),
        timing: Timing::default(),
    }
}
