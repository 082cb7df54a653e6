//! Launches a shell script as a server. Several test programs include this file.

use std::collections::BTreeMap;
use std::time::Duration;

use broker_mcp::{ConcurrencyLimits, Endpoint, SourceSpec, Timing};
use broker_memory::MemoryBudget;
use broker_model::NodePath;
use broker_model::redact::Redactor;
use broker_process::ProcessSpec;

/// A launch of `script`, whose environment is `PATH` and `env`.
pub(crate) fn launch(
    script: &str,
    env: &[(&str, &str)],
    startup_timeout: Duration,
    timing: Timing,
) -> SourceSpec {
    let path = std::env::var("PATH").expect("tests have a PATH");
    let env = env.iter().copied().chain([("PATH", &*path)]);
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    SourceSpec {
        source: NodePath::parse("/sh").expect("it is a path"),
        endpoint: Endpoint::Process(ProcessSpec {
            name: "/sh".to_owned(),
            program: "/bin/sh".to_owned(),
            search: Vec::new(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: env.collect::<BTreeMap<_, _>>(),
            cwd: None,
            shell: true,
            redactor: Redactor::default(),
            container: None,
        }),
        startup_timeout,
        relist_interval: None,
        line_bytes: 1 << 20,
        memory: MemoryBudget::new(512 << 20),
        concurrency: ConcurrencyLimits::new(),
        listing_bytes: 32 << 20,
        lists: Default::default(),
        exposure: broker_model::trust::Exposure::expose_all(),
        extensions: Default::default(),
        stderr_to_callers: None,
        instances: 1,
        max_in_flight: 32,
        queue: 256,
        redactor: Redactor::default(),
        withheld: Vec::new(),
        start_hints: Default::default(),
        empty_variables: Vec::new(),
        log_level: broker_mcp::AskedLogLevel::new(),
        links: broker_mcp::LinkFactory::default(),
        timing,
    }
}
