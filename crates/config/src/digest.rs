//! `config_digest`: the part of the config that a lock depends on. Values of `env` and `headers`, `cwd`,
//! limits, timeouts and texts other than search hints are left out, so that changing them needs no new lock.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::confidential::without_secret_values;
use super::{
    Auth, CommandLine, Config, Endpoint, HttpEndpoint, ProcessEndpoint, SchemaPolicy, SearchHint,
    Source, Template,
};
use broker_model::digest::Digest;
use broker_model::trust::TrustLevel;

const DOMAIN: &str = "mcp-broker:config:1";

impl Config {
    /// The digest of all config fields that the lock depends on.
    pub fn digest(&self) -> Digest {
        let mut sources: Vec<&Source> = self.sources().collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let sources: Vec<Value> = sources.into_iter().map(covered).collect();
        let mut all = json!({ "sources": sources });
        if let Some(access) = self.access_document() {
            all["access"] = access;
        }
        Digest::new(DOMAIN, &all)
    }

    /// The section `access` as written, with its rules sorted, since their order has no meaning.
    pub fn access_document(&self) -> Option<Value> {
        let mut access = self.document.value.get("access")?.clone();
        if let Some(rules) = access.get_mut("rules").and_then(Value::as_array_mut) {
            rules.sort_by_cached_key(Value::to_string);
        }
        Some(access)
    }

    /// The digest of [`Config::access_document`].
    pub fn access_digest(&self) -> Option<Digest> {
        let access = self.access_document()?;
        Some(Digest::new("mcp-broker:access:1", &access))
    }
}

impl Source {
    /// The digest of the fields of this source that the lock depends on.
    pub fn digest(&self) -> Digest {
        Digest::new(DOMAIN, &covered(self))
    }
}

fn covered(source: &Source) -> Value {
    members(source)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain([("path".to_owned(), json!(source.path.as_str()))])
        .collect()
}

/// The fields of one source that the digest covers, without its path. An absent field is empty.
pub(super) fn members(source: &Source) -> Vec<(&'static str, Value)> {
    let mut members = vec![("backend", json!(source.backend()))];
    match &source.endpoint {
        Endpoint::Process(process) => members.extend(process_members(process)),
        Endpoint::Http(http) => members.extend(http_members(http)),
    }
    members.extend([
        ("tool_filter", sorted(source.exposure.filter().patterns())),
        ("path_aliases", json!(source.aliases)),
        ("volatile", json!(source.volatile)),
    ]);
    // Locks of configs without prompts and resources keep their digest.
    let items = source.exposure.items();
    if items.has_prompts() {
        members.push(("prompt_filter", sorted(items.prompt_filter.patterns())));
    }
    if items.resource_filter.has_positive() {
        members.push(("resources", json!(items.resources.as_str())));
        members.push((
            "resource_filter",
            sorted(items.resource_filter.written().patterns()),
        ));
    }
    if !source.item_aliases.is_empty() {
        members.push(("item_aliases", json!(source.item_aliases)));
    }
    // Locks of configs without extensions keep their digest.
    if !source.extensions.is_empty() {
        members.push(("extensions", source.extensions.names().collect()));
    }
    if source.stderr_to_callers {
        members.push(("stderr_to_callers", json!(true)));
    }
    let level = source.exposure.level();
    if level != TrustLevel::default_of(source.backend()) {
        members.push(("trust", json!(level)));
    }
    let sensitive = source.exposure.sensitive();
    // At the other levels no name is sensitive. The lock names the version of the list.
    if level == TrustLevel::Untrusted && !sensitive.is_of_version() {
        members.push(("sensitive", sensitive.words().collect()));
    }
    let hints: BTreeMap<_, _> = source
        .overrides
        .iter()
        .map(|(tool, own)| {
            let covered = own.search_hints.iter().filter_map(SearchHint::covered);
            (tool, covered.collect::<Vec<_>>())
        })
        .filter(|(_, hints)| !hints.is_empty())
        .collect();
    // Locks of configs without such tools keep their digest.
    let unvalidated: BTreeSet<_> = unvalidated_tools(source).collect();
    if !unvalidated.is_empty() {
        members.push(("schema", json!(unvalidated)));
    }
    // Locks of configs without hints keep their digest.
    if !hints.is_empty() {
        members.push(("tool_overrides.*.hints", json!(hints)));
    }
    members
}

/// The tools that are served although a schema of theirs is not valid; `*` for all.
pub(super) fn unvalidated_tools(source: &Source) -> impl Iterator<Item = &str> {
    let all = (source.schema == SchemaPolicy::AsIs).then_some("*");
    let overrides = source.overrides.iter();
    let single = overrides.filter(|(_, own)| own.schema == SchemaPolicy::AsIs);
    all.into_iter().chain(single.map(|(tool, _)| tool.as_str()))
}

fn process_members(process: &ProcessEndpoint) -> [(&'static str, Value); 4] {
    let (command, args) = match &process.command {
        CommandLine::Direct { program, args, .. } => (
            json!(program.raw()),
            args.iter().map(|arg| json!(arg.raw())).collect(),
        ),
        CommandLine::Shell { written, .. } => (json!({ "shell": written }), Vec::new()),
    };
    [
        ("command", command),
        ("args", Value::Array(args)),
        ("env", json!(process.env.keys().collect::<Vec<_>>())),
        ("inherit_env", sorted(&process.inherit_env)),
    ]
}

/// Values of headers, and secrets in the query of a URL, are left out: the compiled-in config has a
/// variable in their place, and must have the same digest.
fn http_members(http: &HttpEndpoint) -> [(&'static str, Value); 4] {
    let names: BTreeSet<_> = http
        .headers
        .keys()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let auth = http.auth.as_ref().map(|auth| {
        let parameters = match auth {
            Auth::TokenFile(_) => Value::Null,
            Auth::TokenCommand(process) => process_members(process)
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            Auth::ClientCredentials(grant) => json!({
                "token_url": without_secret_values(grant.token_url.raw()),
                "client_id": grant.client_id.raw(),
                "scope": grant.scope.as_ref().map(Template::raw),
                "resource": grant.resource.as_ref().map(Template::raw),
            }),
        };
        json!({ auth.key(): parameters })
    });
    [
        ("url", json!(without_secret_values(http.url.raw()))),
        ("headers", json!(names)),
        ("auth", json!(auth)),
        ("allow_plain_http", json!(http.allow_plain_http)),
    ]
}

fn sorted(list: &[String]) -> Value {
    let list: BTreeSet<&String> = list.iter().collect();
    json!(list)
}
