//! Compares two locks: the sources of the new one take the place of live sources. Does not read files.

use broker_build::describe::describe_source;
use broker_config::{Backend, Config};
use broker_drift::SeenPackage;
use broker_drift::{Class, Finding, FindingSeverity, Report, SourceDrift, ToolDrift};
use broker_model::NodePath;
use broker_model::lock::{HiddenTool, Lock, LockedSource, LockedTool, SettingChange};
use broker_model::snapshot::Snapshot;
use broker_model::trust::{Exposure, TrustLevel};
use serde_json::{Value, json};

pub mod access;
pub mod left_out;

const REMEDY: &str = "review it; it is accepted once the new lock is committed and built";

/// All differences between two locks, by source.
pub fn diff_locks(old: &Lock, new: &Lock) -> Report {
    let mut report = Report::default();
    for source in &old.sources {
        report.merge(match new.source(source.path.as_str()) {
            Some(other) => diff_source(source, other),
            None => gone(source),
        });
    }
    for source in &new.sources {
        if old.source(source.path.as_str()).is_none() {
            report.merge(added(source, "the new lock"));
        }
    }
    for (source, changes) in left_out::between(old, new) {
        report.merge(broker_drift::left_out_changed(&source, &changes));
    }
    broker_drift::name_moves(&mut report);
    // Remedies of the classifier are for the operator of a server; here both sides are files.
    let tools = report.tools.iter_mut().map(|tool| &mut tool.findings);
    let sources = report.sources.iter_mut().map(|source| &mut source.findings);
    for finding in tools.chain(sources).flatten() {
        finding.remedy = remedy(finding.class).to_owned();
    }
    access::add_changed_rules(&mut report, old, new);
    report
}

/// Returns the differences of a live source, as a new lock would have it, that come from the config and not from the server: all
/// of it if the lock lacks the source, else the changed fields of its part of the config.
pub fn compare_config(
    config: &Config,
    locked: Option<&LockedSource>,
    live: &LockedSource,
) -> Report {
    let mut report = match locked {
        None => added(live, "the next lock"),
        Some(locked) if locked.config_digest == live.config_digest => Report::default(),
        Some(locked) => {
            let (mut report, mut live) = (Report::default(), live.clone());
            describe_source(&mut live, config);
            config_changes(&mut report, locked, &live);
            report
        }
    };
    let path = &live.path;
    report.set_remedy(&format!(
        "review it, then run `broker-gen lock --source {path}`, commit the lock and build again"
    ));
    report
}

/// Returns the sources outside of `compared` whose trust level is higher in the config than in the lock.
pub fn raised_levels(config: &Config, lock: &Lock, compared: &[NodePath]) -> Report {
    let mut report = Report::default();
    let others = config.sources();
    for source in others.filter(|source| !compared.contains(&source.path)) {
        let (path, level) = (&source.path, source.exposure.level());
        let Some(locked) = lock.source(path.as_str()) else {
            continue;
        };
        if level > locked.trust_level() {
            let mut found = trust_raised(locked.trust_level(), level, "");
            found.0.remedy = format!(
                "review what it exposes, then run `broker-gen lock --source {path}`, commit the lock and build again; or write the lower level"
            );
            about(&mut report, locked, found);
        }
    }
    report
}

fn trust_raised(old: TrustLevel, new: TrustLevel, pointer: &str) -> Draft {
    let message = format!("the trust level was raised from `{old}` to `{new}`");
    finding(
        "trust-raised",
        Class::Security,
        FindingSeverity::Error,
        message,
    )
    .with_change(json!(old), json!(new), pointer)
}

fn diff_source(old: &LockedSource, new: &LockedSource) -> Report {
    let snapshot = Snapshot {
        server_info: new.server_info.clone(),
        protocol_version: new.protocol_version.clone(),
        capabilities: new.capabilities.clone(),
        instructions: new.instructions.clone(),
        tools: new.exposed.iter().map(LockedTool::listed).collect(),
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
    };
    // Only the exposed tools of the new lock are in the snapshot.
    let mut report = broker_drift::classify(old, &snapshot, &Exposure::expose_all());
    let package = new.package.clone();
    report.add_package(
        old,
        &package.map_or(SeenPackage::Nothing, SeenPackage::Found),
    );
    for tool in &old.exposed {
        if let Some(hidden) = new
            .hidden
            .iter()
            .find(|hidden| hidden.name == tool.upstream_name)
        {
            now_hidden(&mut report, old, tool, hidden);
        }
        let still = new
            .exposed
            .iter()
            .find(|other| other.upstream_name == tool.upstream_name);
        if let Some(other) = still.filter(|other| other.exposed_name != tool.exposed_name) {
            moved(&mut report, old, tool, other);
        }
    }
    for tool in &new.exposed {
        let is_added = |drift: &&mut ToolDrift| {
            drift.class == Class::Added && drift.tool == tool.upstream_name
        };
        // The classifier saw a live server, whose new tools are not exposed.
        if let Some(drift) = report.tools.iter_mut().find(is_added) {
            *drift = exposed(new, tool, "the new lock", "which the old one does not have");
        }
    }
    for hidden in &old.hidden {
        match new
            .exposed
            .iter()
            .find(|tool| tool.upstream_name == hidden.name)
        {
            Some(tool) => report.tools.push(exposed(
                new,
                tool,
                "the new lock",
                "which the old one hides",
            )),
            None => hidden_change(&mut report, new, hidden),
        }
    }
    config_changes(&mut report, old, new);
    report
}

/// The changes of the config's part for a source: each field that both locks have in plain text, else the digests.
fn config_changes(report: &mut Report, old: &LockedSource, new: &LockedSource) {
    let changed = |member: &str, message: String, old_value: Value, new_value: Value| {
        finding(
            "source-config-changed",
            Class::Unknown,
            FindingSeverity::Error,
            message,
        )
        .with_change(old_value, new_value, &format!("/{member}"))
    };
    let (was, is) = (old.trust_level(), new.trust_level());
    let mut found = Vec::new();
    if is > was {
        found.push(trust_raised(was, is, "/trust"));
    }
    if let (Some(before), Some(after)) = (&old.settings, &new.settings) {
        let changes = before.changes(after).into_iter();
        for one in changes.filter(|one| one.member != "trust" || is < was) {
            found.push(changed(one.member, one.message, one.old, one.new));
        }
    }
    for tool in &old.exposed {
        let other = new.exposed.iter();
        let mut other = other.filter(|other| other.upstream_name == tool.upstream_name);
        let change = other.next().and_then(|other| {
            let (was, is) = (&tool.search_hints, &other.search_hints);
            SettingChange::from_search_hints(&tool.upstream_name, was, is)
        });
        found.extend(change.map(|one| changed(one.member, one.message, one.old, one.new)));
    }
    if old.volatile != new.volatile {
        let message = "`volatile` has other pointers".to_owned();
        found.push(changed(
            "volatile",
            message,
            json!(old.volatile),
            json!(new.volatile),
        ));
    }
    if old.backend != new.backend {
        let message = "it has another `backend`".to_owned();
        found.push(changed(
            "backend",
            message,
            json!(old.backend),
            json!(new.backend),
        ));
    }
    let both_described = old.settings.is_some() && new.settings.is_some();
    if old.config_digest != new.config_digest && (found.is_empty() || !both_described) {
        let message = if both_described {
            unshown_changes(new)
        } else {
            "its part of the config changed: command, arguments, names of variables, filter, aliases or `volatile`; compare the configs, since a lock of format version 1 does not contain these values".to_owned()
        };
        let [before, after] = [old, new].map(|one| json!(one.config_digest.as_str()));
        found.push(changed("config_digest", message, before, after));
    }
    for one in found {
        about(report, old, one);
    }
}

/// The possible changes if all fields that both locks have are equal.
fn unshown_changes(new: &LockedSource) -> String {
    let fields = match new.backend {
        Backend::Stdio => "names of variables in `env` or `inherit_env`",
        Backend::Http => "`auth` or `allow_plain_http`",
    };
    let words = match new.trust_level() {
        TrustLevel::Untrusted => ", or words in `trust.sensitive`",
        _ => "",
    };
    format!("its part of the config changed: {fields}{words}")
}

/// Of a tool that the new lock hides only the digest is known, so the classifier reported it as gone.
fn now_hidden(report: &mut Report, old: &LockedSource, tool: &LockedTool, hidden: &HiddenTool) {
    let as_before = if hidden.digest == tool.digest {
        "; it did not change"
    } else {
        "; it changed as well"
    };
    let message = format!("the new lock hides `{}`{as_before}", tool.upstream_name);
    let found = finding("tool-hidden", Class::Gone, FindingSeverity::Error, message).with_change(
        json!({"digest": tool.digest.as_str()}),
        json!({"digest": hidden.digest.as_str()}),
        "",
    );
    let of_tool =
        |drift: &&mut ToolDrift| drift.source == old.path && drift.tool == tool.upstream_name;
    if let Some(drift) = report.tools.iter_mut().find(of_tool) {
        drift.findings = vec![found.0];
    }
}

/// Callers use the path: under another path the tool is gone for them.
fn moved(report: &mut Report, old: &LockedSource, tool: &LockedTool, other: &LockedTool) {
    let (from, to) = (
        path(old, &tool.exposed_name),
        path(old, &other.exposed_name),
    );
    let message = format!("`{}` moved from `{from}` to `{to}`", tool.upstream_name);
    let found = finding("tool-moved", Class::Gone, FindingSeverity::Error, message).with_change(
        json!(from),
        json!(to),
        "",
    );
    let of_tool =
        |drift: &&mut ToolDrift| drift.source == old.path && drift.tool == tool.upstream_name;
    match report.tools.iter_mut().find(of_tool) {
        Some(drift) => {
            drift.findings.insert(0, found.0);
            drift.class = Class::Gone;
        }
        None => {
            report.same -= 1;
            report
                .tools
                .push(drift_of(old, &tool.upstream_name, from, Class::Gone, found));
        }
    }
}

fn hidden_change(report: &mut Report, new: &LockedSource, old: &HiddenTool) {
    let now = new.hidden.iter().find(|hidden| hidden.name == old.name);
    if now.is_some_and(|now| now.digest == old.digest) {
        return;
    }
    let what = if now.is_some() { "changed" } else { "left" };
    let message = format!("the hidden tool `{}` {what}", shown(&old.name));
    let digest = now.map_or(Value::Null, |now| now.digest.as_str().into());
    about(
        report,
        new,
        finding(
            "hidden-tool-changed",
            Class::Same,
            FindingSeverity::Note,
            message,
        )
        .with_change(old.digest.as_str().into(), digest, ""),
    );
}

fn gone(source: &LockedSource) -> Report {
    let mut report = Report::default();
    let message = "the new lock does not have the source".to_owned();
    about(
        &mut report,
        source,
        finding("source-gone", Class::Gone, FindingSeverity::Error, message),
    );
    for tool in &source.exposed {
        let message = format!("`{}` left with its source", tool.upstream_name);
        let found = finding("tool-gone", Class::Gone, FindingSeverity::Error, message).with_change(
            json!({"digest": tool.digest.as_str()}),
            Value::Null,
            "",
        );
        let path = path(source, &tool.exposed_name);
        report.tools.push(drift_of(
            source,
            &tool.upstream_name,
            path,
            Class::Gone,
            found,
        ));
    }
    report
}

/// A source that the old lock lacks; `lock` names the one that has it.
fn added(source: &LockedSource, lock: &str) -> Report {
    let mut report = Report::default();
    let message = format!("{lock} has a new source");
    about(
        &mut report,
        source,
        finding(
            "source-added",
            Class::Added,
            FindingSeverity::Warning,
            message,
        ),
    );
    let tools = source.exposed.iter();
    report
        .tools
        .extend(tools.map(|tool| exposed(source, tool, lock, "with its source")));
    report
}

fn exposed(source: &LockedSource, tool: &LockedTool, lock: &str, why: &str) -> ToolDrift {
    let message = format!("{lock} exposes `{}`, {why}", tool.upstream_name);
    let found = finding(
        "tool-added",
        Class::Added,
        FindingSeverity::Warning,
        message,
    )
    .with_change(Value::Null, json!({"digest": tool.digest.as_str()}), "");
    let path = path(source, &tool.exposed_name);
    drift_of(source, &tool.upstream_name, path, Class::Added, found)
}

fn drift_of(
    source: &LockedSource,
    tool: &str,
    path: String,
    class: Class,
    found: Draft,
) -> ToolDrift {
    ToolDrift {
        source: source.path.clone(),
        tool: tool.to_owned(),
        path,
        class,
        findings: vec![found.0],
    }
}

/// Adds a finding to a source.
fn about(report: &mut Report, source: &LockedSource, found: Draft) {
    let class = found.0.class;
    match report
        .sources
        .iter_mut()
        .find(|drift| drift.source == source.path)
    {
        Some(drift) => {
            // `Added` is below `Same` in the order, and a new source has no other class.
            drift.class = drift.class.max(class);
            drift.findings.push(found.0);
        }
        None => report.sources.push(SourceDrift {
            source: source.path.clone(),
            class,
            findings: vec![found.0],
        }),
    }
}

/// A finding without values.
struct Draft(Finding);

fn finding(rule: &'static str, class: Class, severity: FindingSeverity, message: String) -> Draft {
    Draft(Finding {
        rule,
        class,
        severity,
        pointer: String::new(),
        old: None,
        new: None,
        witness: None,
        message,
        remedy: remedy(class).to_owned(),
    })
}

fn remedy(class: Class) -> &'static str {
    match class == Class::Same {
        true => "none; the new lock records it",
        false => REMEDY,
    }
}

impl Draft {
    fn with_change(mut self, old: Value, new: Value, pointer: &str) -> Self {
        let some = |value: Value| Some(value).filter(|value| !value.is_null());
        (self.0.old, self.0.new) = (some(old), some(new));
        self.0.pointer = pointer.to_owned();
        self
    }
}

fn path(source: &LockedSource, leaf: &str) -> String {
    source.path.join(leaf).map_or_else(
        |_| format!("{}/{leaf}", source.path),
        |path| path.as_str().to_owned(),
    )
}

fn shown(name: &str) -> String {
    broker_model::text::shown_line(name, 100)
}
