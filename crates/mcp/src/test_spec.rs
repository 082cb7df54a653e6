//! The spec of a scripted server, for unit tests.

use std::collections::BTreeMap;
use std::time::Duration;

use broker_model::NodePath;
use broker_model::redact::Redactor;
use broker_model::trust::Exposure;
use broker_process::ProcessSpec;

use crate::spec::{Endpoint, ItemLists, SourceSpec, Timing};
use crate::{AskedLogLevel, ConcurrencyLimits};

/// Returns the source `/s`, whose server is registered as `program`. A test changes the fields that it is about.
pub(crate) fn scripted_source(program: String) -> SourceSpec {
    SourceSpec {
        source: NodePath::parse("/s").unwrap(),
        endpoint: Endpoint::Process(ProcessSpec {
            name: "/s".to_owned(),
            program,
            search: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            shell: false,
            redactor: Redactor::default(),
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
        empty_variables: Vec::new(),
        log_level: AskedLogLevel::new(),
        timing: Timing::default(),
    }
}
