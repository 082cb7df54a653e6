//! The top level of a config: parses bytes into a checked config, or returns every problem.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::clients::Rules;
use super::findings::{Cursor, Findings, MAX_REPORTED};
use super::keys::{self, Level};
use super::reader;
use super::spanned::{Data, Member, Spanned};
use super::{
    Config, Document, Identities, Limits, Mcp, Node, Parsed, Search, StartDrift, Surfaces,
    Telemetry, TextDrift, Unreachable, access, audit, clients, fields, identities, jobs, limits,
    lists, mcp, public_url, search, servers, surfaces, telemetry, tree, trust, vscode,
};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::path::NodePath;
use broker_model::trust::SensitiveNames;

/// The number of people who may be required to accept a tool.
const AUDITORS: RangeInclusive<u64> = 1..=10;
/// The commands and the files that they read.
const READERS: &str = "`--config` reads a config, and JSON files of MCP clients with `mcpServers`, `servers`, `context_servers` or `mcp`; `broker-gen import` converts these, and TOML and YAML files";
const EXPECTED: &str = "expected an object with `tree` or `mcpServers`";

/// Parses a file. `exists` says whether a program or file exists, if a person named the file.
pub(super) fn parse(
    file: &str,
    bytes: &[u8],
    exists: Option<&dyn Fn(&str) -> bool>,
) -> Result<Parsed, Vec<Diagnostic>> {
    let alone = |refusal: reader::Refusal| vec![with_command(*refusal, file).in_file(file)];
    let text = reader::text_of(bytes).map_err(alone)?;
    let bare = vscode::without_comments(text);
    let mut findings = Findings::new(file, text);
    let strict = bare.as_deref().unwrap_or(text);
    let mut spanned = match reader::read(strict, text, &mut findings) {
        Ok(spanned) => spanned,
        Err(refusal) => return Err(alone(refusal)),
    };
    let rules = match exists {
        Some(exists) => Rules {
            client: clients::recognise(Some(file), &spanned),
            is_named: false,
            exists,
        },
        None => Rules::from_content(&spanned),
    };
    let servers_of = |root: &Spanned| {
        let key = clients::servers_key(root, rules.client)?;
        Some(root.get(key)?.to_value())
    };
    let before = servers_of(&spanned);
    let converted = clients::convert(&mut spanned, rules);
    let is_converted = converted.key.is_some() && servers_of(&spanned) != before;
    for (at, problem) in converted.problems {
        findings.push_written(at, problem);
    }
    for note in converted.notes {
        findings.push_written(note.at, note.into_warning());
    }
    let servers = converted.key.unwrap_or(servers::KEY);
    vscode::check(&mut findings, &Cursor::root(&spanned), servers);
    vscode::rewrite(&mut spanned, servers);
    let root = Cursor::root(&spanned);
    let mut config = top(&mut findings, &root, file, strict, converted.key);
    if let Some(config) = &mut config {
        config.document.client = rules.client;
        config.document.is_converted = is_converted || servers != servers::KEY;
        config.document.renamed.clone_from(&converted.renamed);
    }
    let refused = findings.refused();
    let mut reported = findings.finish_renamed(&converted.renamed);
    let unknown = config.as_ref().map(unknown_groups).unwrap_or_default();
    let refused = refused || !unknown.is_empty();
    reported.extend(unknown);
    match config {
        Some(config) if !refused => Ok(Parsed {
            config,
            warnings: reported,
        }),
        _ => Err(reported),
    }
}

/// The refusal of a file that is not JSON, with the command that reads it.
fn with_command(refusal: Diagnostic, file: &str) -> Diagnostic {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_other = ["toml", "yaml", "yml"]
        .iter()
        .any(|one| extension.eq_ignore_ascii_case(one));
    match refusal.code == Code::ConfigSyntax && is_other {
        true => refusal
            .help("a config is JSON; `broker-gen import FILE` converts TOML and YAML of a client"),
        false => refusal,
    }
}

fn top(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    file: &str,
    text: &str,
    servers_key: Option<&'static str>,
) -> Option<Config> {
    let Data::Object(members) = &cursor.value.data else {
        let message = format!("{EXPECTED}, got {}", cursor.value.type_name());
        findings.add(cursor, Diagnostic::error(Code::ConfigShape, message));
        return None;
    };
    check_shape(findings, cursor, members, servers_key);
    let servers_key = servers_key.unwrap_or(servers::KEY);
    // `types` is the default of every source, so it is read first, wherever it is in the file.
    let types = match cursor.get("types").map(|value| &value.value.data) {
        Some(Data::Bool(types)) => *types,
        _ => true,
    };
    // The rest of a result that was cut can be read where there are jobs, so that less is shown at first.
    let has_jobs = cursor.get("jobs").is_some();
    let mut config = Config {
        file: file.to_owned(),
        root: Node::bare(NodePath::root(), String::new()),
        disabled: Vec::new(),
        limits: Limits::new(has_jobs),
        types,
        audits_required: 0,
        coerce: false,
        on_text_drift: None,
        on_unreachable: None,
        on_drift: None,
        start_wait: None,
        drain_timeout: None,
        mcp: Mcp::default(),
        search: Search::default(),
        surfaces: Surfaces::default(),
        audit: None,
        jobs: None,
        telemetry: Telemetry::default(),
        access: None,
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        identities: Identities::default(),
        public_url: None,
        trusted_proxies: Vec::new(),
        document: Document::default(),
    };
    let mut sensitive = None;
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            key if key == servers_key => {
                config.root = servers::read(findings, &value, types, &mut config.disabled);
            }
            "$schema" => {
                fields::string(findings, &value);
            }
            "tree" => {
                config.root = tree::read(findings, &value, types, &mut config.disabled);
            }
            "types" => {
                fields::boolean(findings, &value);
            }
            "limits" => config.limits = limits::read(findings, &value, has_jobs),
            "allowed_hosts" => config.allowed_hosts = lists::allowed_hosts(findings, &value),
            "allowed_origins" => {
                config.allowed_origins = lists::allowed_origins(findings, &value);
            }
            "audits_required" => {
                config.audits_required = audits_required(findings, &value).unwrap_or_default();
            }
            "coerce" => config.coerce = fields::boolean(findings, &value).unwrap_or_default(),
            "on_text_drift" => config.on_text_drift = TextDrift::read(findings, &value, Level::Top),
            "on_unreachable" => {
                config.on_unreachable = Unreachable::read(findings, &value, Level::Top)
            }
            "on_drift" => config.on_drift = StartDrift::read(findings, &value, Level::Top),
            "start_wait" => {
                config.start_wait = keys::seconds(findings, &value, Level::Top, &member.key)
            }
            "drain_timeout" => {
                config.drain_timeout = keys::seconds(findings, &value, Level::Top, &member.key)
            }
            "mcp" => config.mcp = mcp::read(findings, &value),
            "search" => config.search = search::read(findings, &value),
            "surfaces" => config.surfaces = surfaces::read(findings, &value),
            "audit" => config.audit = audit::read(findings, &value),
            "jobs" => config.jobs = jobs::read(findings, &value),
            "telemetry" => config.telemetry = telemetry::read(findings, &value),
            "access" => config.access = access::read(findings, &value),
            "identities" => config.identities = identities::read(findings, &value),
            "public_url" => config.public_url = public_url::read(findings, &value),
            "trusted_proxies" => {
                config.trusted_proxies = lists::trusted_proxies(findings, &value);
            }
            "trust" => sensitive = Some(trust::sensitive(findings, &value)),
            unknown => keys::unknown(findings, &value, unknown, Level::Top),
        }
    }
    if let Some(sensitive) = sensitive {
        set_sensitive(&mut config.root, &Arc::new(sensitive));
    }
    config.document = Document {
        value: cursor.value.to_value(),
        text: text.to_owned(),
        client: None,
        is_converted: false,
        renamed: Vec::new(),
        servers_key,
        servers: server_names(members, servers_key),
    };
    Some(config)
}

/// A problem for each name in `identities` that is not one of the groups of `access`.
fn unknown_groups(config: &Config) -> Vec<Diagnostic> {
    let groups = config.access.as_ref().map(|access| &access.groups[..]);
    let groups = groups.unwrap_or_default();
    let uses = config.identities.groups();
    let unknown = uses.filter(|used| !groups.iter().any(|known| known == used.group));
    unknown
        .take(MAX_REPORTED)
        .map(|used| config.place(access::unknown_group(used.group, groups).at(used.pointer)))
        .collect()
}

/// Gives the sensitive names to every source, wherever they are in the file.
fn set_sensitive(node: &mut Node, sensitive: &Arc<SensitiveNames>) {
    if let Some(source) = &mut node.source {
        source.exposure.set_sensitive(sensitive.clone());
    }
    for child in &mut node.children {
        set_sensitive(child, sensitive);
    }
}

fn server_names(members: &[Member], key: &str) -> Vec<String> {
    members
        .iter()
        .filter(|member| member.key == key)
        .filter_map(|member| match &member.value.data {
            Data::Object(entries) => Some(entries),
            _ => None,
        })
        .flatten()
        .map(|entry| entry.key.clone())
        .collect()
}

/// Refuses a file that has not exactly one of `tree` and the servers of a client.
fn check_shape(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    members: &[Member],
    servers_key: Option<&str>,
) {
    let has = |key: &str| members.iter().any(|member| member.key == key);
    match (has("tree"), has(servers::KEY) || servers_key.is_some()) {
        (true, false) | (false, true) => {}
        (true, true) => {
            let message = "the config has both `tree` and `mcpServers`; give exactly one";
            if let Some(at) = cursor.get(servers::KEY) {
                findings.add_key(&at, Diagnostic::error(Code::ConfigShape, message));
            }
        }
        (false, false) => {
            let message = format!("the config has neither `tree` nor `mcpServers`; {EXPECTED}");
            let diagnostic = Diagnostic::error(Code::ConfigShape, message);
            findings.add(cursor, diagnostic.help(READERS));
        }
    }
}

/// The number of people who must have accepted a tool: `true` is one.
fn audits_required(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Option<u8> {
    match &cursor.value.data {
        Data::Bool(is_required) => Some(u8::from(*is_required)),
        Data::Number(_) => {
            let people = fields::integer(findings, cursor, AUDITORS)?;
            u8::try_from(people).ok()
        }
        _ => {
            let expected = "true, false, or a number of people from 1 to 10";
            fields::wrong_type(findings, cursor, expected);
            None
        }
    }
}
