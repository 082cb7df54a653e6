//! Who may call without a credential: a start over HTTP and every later config are checked in the same way.

use std::cell::Cell;
use std::net::SocketAddr;

use broker_config::Config;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_surface_http::CallerSettings;

use super::catalog_origin::CatalogOrigin;
use super::listen;
use crate::catalog::Catalog;

/// The facts of a start over HTTP about its address and its credentials. A reload does not change them.
#[derive(Debug)]
pub(super) struct Openness {
    /// The address of each listener as it was given, and the addresses of this machine that it names.
    pub(super) listeners: Vec<(String, Vec<SocketAddr>)>,
    /// Whether the broker has a secret.
    pub(super) has_secret: bool,
    /// Whether callers without a credential are allowed on every address.
    pub(super) is_allowed: bool,
    /// Whether a config of this run had identities: then the broker asks for a credential until it ends.
    pub(super) had_identities: Cell<bool>,
}

impl Openness {
    /// The problems of a config with these callers: it lets callers without a credential in where other machines reach the
    /// broker, or where a credential was needed before.
    pub(super) fn problems(
        &self,
        (catalog, origin): (&Catalog, CatalogOrigin),
        config: &Config,
        callers: &CallerSettings,
    ) -> Vec<Diagnostic> {
        let is_authenticated = self.has_secret || callers.has_identities;
        let access = config.access.as_ref();
        let has_open_rights = access.is_some_and(|access| !access.anonymous.is_empty());
        let mut problems = Vec::new();
        if has_open_rights
            && catalog.access.is_none()
            && (is_authenticated || self.had_identities.get())
        {
            problems.push(config.place(anonymous_is_wider()));
        }
        // A catalog from a lock is served on this machine only.
        if origin == CatalogOrigin::Compiled
            && (!is_authenticated || has_open_rights)
            && !self.is_allowed
        {
            for (text, addresses) in &self.listeners {
                problems.extend(listen::open_bind(text, addresses));
            }
        }
        problems
    }
}

/// The problem of rules that are new, if they give rights to callers that were refused without rules.
fn anonymous_is_wider() -> Diagnostic {
    let message = "`access.anonymous` lets callers without a credential in, and the compiled-in config has no `access`";
    let help =
        "make a new lock and a new build with this config: `broker-gen lock`, then `cargo build`";
    Diagnostic::error(DiagnosticCode::LockWiden, message)
        .at("/access/anonymous")
        .help(help)
}
