//! The names that reports and log lines about drift show even if a secret is the same.

use broker_config::Config;
use broker_model::public_names::PublicNames;

use crate::catalog::Catalog;

/// Collects the names of a catalog and a config when they are needed.
pub(super) fn collect_later(
    catalog: &'static Catalog,
    config: &Config,
) -> impl FnOnce() -> PublicNames + Send + use<> {
    let mut names = config.public_names();
    move || {
        broker_drift::add_rule_ids(&mut names);
        // The report says if one cannot be read.
        let locked = (0..catalog.sources.len()).filter_map(|at| catalog.locked(at).ok());
        locked.for_each(|source| names.extend(PublicNames::from_source(&source)));
        names
    }
}
