//! The settings for recognising callers: the identities of a config, and the file of keys that it names.

use broker_config::identities::OnRevoke;
use broker_identity::Settings;
use broker_mcp::Environment;
use broker_model::Diagnostic;
use broker_surface_http::{CallerSettings, ProtectedResource};

use super::settings::LoadedConfig;

/// The settings of a config. A file of keys that cannot be used is added to `problems`.
pub(super) fn settings(
    loaded: &LoadedConfig,
    environment: &Environment,
    problems: &mut Vec<Diagnostic>,
) -> CallerSettings {
    let config = &loaded.config;
    let lookup = |name: &str| environment.get(name).map(str::to_owned);
    let identities = match Settings::load(&config.identities, &loaded.base, &lookup) {
        Ok(identities) => {
            let access = config.access.as_ref();
            let exists = |group: &str| access.is_some_and(|access| access.group(group).is_some());
            problems.extend(identities.unknown_groups(&exists));
            identities
        }
        Err(error) => {
            let found = error.into_diagnostics().into_iter();
            problems.extend(found.map(|one| match one.file {
                Some(_) => one,
                None => config.place(one),
            }));
            Settings::default()
        }
    };
    CallerSettings {
        identities,
        has_identities: !config.identities.is_empty(),
        cancels_calls: config.identities.on_revoke == OnRevoke::Cancel,
        resource: ProtectedResource::from_config(config),
        trusted_proxies: config.trusted_proxies.clone(),
    }
}
