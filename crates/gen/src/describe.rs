//! The config fields that a lock of version 2 repeats, added to a new lock.

use broker_config::Config;
use broker_model::lock::{Lock, LockedSource};

use crate::tables::summary::summary;

/// Adds the members of version 2 to every source of a new lock.
pub fn describe(lock: &mut Lock, config: &Config) {
    for source in &mut lock.sources {
        describe_source(source, config);
    }
}

/// Adds the members of version 2 to one source of a new lock.
pub fn describe_source(source: &mut LockedSource, config: &Config) {
    config.describe(source, |source, tool| {
        summary(source.overrides.get(&tool.upstream_name), tool)
    });
}
