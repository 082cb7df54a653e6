//! The path of a call allocates no memory, counted by the allocator of this test.

use std::alloc::System;
use std::time::Duration;

use broker_metrics::{
    CatalogDescription, EndedCall, Method, Metrics, OutcomeClass, Side, SourceDescription,
    ToolDescription, Transport,
};
use broker_model::CallCode;
use broker_model::item::ItemKind;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn counting_a_call_allocates_no_memory() {
    let sources = [SourceDescription {
        path: "/a",
        transport: Transport::Pipe,
    }];
    let tools = [ToolDescription {
        path: "/a/x",
        upstream_name: "x",
        source: 0,
        kind: ItemKind::Tool,
    }];
    let metrics = Metrics::new(&CatalogDescription {
        version: "0.1.0",
        digest: "",
        surface: Transport::Tcp,
        sources: &sources,
        tools: &tools,
    });
    let region = Region::new(ALLOCATOR);
    for tool in [None, Some(0), Some(7)] {
        for side in [Side::Server, Side::Client] {
            for method in Method::ALL {
                for code in CallCode::ALL {
                    metrics.call_ended(EndedCall {
                        tool,
                        side,
                        method: *method,
                        outcome: OutcomeClass::from_code(*code),
                        duration: Duration::from_millis(3),
                        result_bytes: 5,
                    });
                }
            }
        }
    }
    metrics.request_refused(CallCode::Unauthorized);
    metrics.drift_found("security", 1);
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0));
    let render = Region::new(ALLOCATOR);
    drop(format!("{metrics:?}"));
    assert!(render.change().allocations > 0, "the allocator counts");
}
