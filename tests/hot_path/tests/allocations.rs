//! The allocations of a call, counted by the allocator of this test, and their stored bounds.

mod run;

use std::alloc::System;
use std::sync::LazyLock;

use hot_path::Path;
use hot_path::bounds::{self, Figures, Unit};
use hot_path::path::{LARGE_BYTES, SMALL_BYTES};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

use mcp_broker::scripted::Addition;

mcp_broker::include_catalog!();

const COMMAND: &str = "cargo test -p hot-path --locked";

/// Counted once: tests that wait for it allocate nothing meanwhile.
static FIGURES: LazyLock<Figures> = LazyLock::new(|| {
    let mut figures = Figures::new();
    for path in Path::ALL {
        // Statics are allocated by the first run of a process.
        run::run(path, 1, Addition::None);
        let calls = path.calls();
        let counts = [calls, 2 * calls].map(|calls| {
            let region = Region::new(ALLOCATOR);
            run::run(path, calls, Addition::None);
            region.change()
        });
        let allocations = counts.map(|count| (count.allocations + count.reallocations) as u64);
        let bytes = counts.map(|count| count.bytes_allocated as u64);
        for (unit, runs) in [(Unit::Allocations, allocations), (Unit::Bytes, bytes)] {
            figures.insert((path.name(), unit), run::per_call(runs, calls));
        }
    }
    figures
});

#[test]
fn call_allocates_no_more_than_its_bound() {
    if let Err(problems) = bounds::check(&FIGURES, &run::compiler(), COMMAND) {
        panic!("{problems}");
    }
}

#[test]
fn stdio_surface_copies_a_result_once() {
    let bytes = |path: Path| FIGURES[&(path.name(), Unit::Bytes)];
    let difference = bytes(Path::StdioLargeCall) - bytes(Path::StdioSmallCall);
    let copies = difference as f64 / (LARGE_BYTES - SMALL_BYTES) as f64;
    assert!(
        (0.95..1.05).contains(&copies),
        "{copies:.2} copies of a result"
    );
}
