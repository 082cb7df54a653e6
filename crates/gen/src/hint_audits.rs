//! Hints of the config that claim more safety than the server's hints, and whether entries of the audits file confirm
//! them.

use std::path::Path;

use broker_audits_file::{Elsewhere, HintAudit, HintValues, entries_of};
use broker_config::{Config, Source};
use broker_model::access::{Hint, Hints};
use broker_model::json::child_pointer;
use broker_model::lock::LockedTool;
use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, NodePath};

use crate::plan::{Entry, Plan, ToolEntry};

/// A tool that the config claims more safety for than the server does.
#[derive(Debug)]
pub struct Claim<'p> {
    path: &'p NodePath,
    source: &'p Source,
    tool: &'p LockedTool,
    /// The hints that claim more safety.
    pub hints: Vec<Hint>,
    values: HintValues,
}

/// The entries that count for claims.
#[derive(Debug, Default)]
pub struct HintAudits(Vec<HintAudit>);

impl HintAudits {
    /// Reads them beside a config. Other entries of the file are not checked.
    pub fn read(config: &Path) -> Result<Self, Vec<Diagnostic>> {
        entries_of(config, "hints").map(Self)
    }

    /// Whether an entry confirms the claim.
    pub fn confirm(&self, claim: &Claim<'_>) -> bool {
        self.find_by_tool(claim)
            .any(|audit| audit.digest == claim.tool.digest && audit.values == claim.values)
    }

    fn find_by_tool(&self, claim: &Claim<'_>) -> impl Iterator<Item = &HintAudit> {
        let (source, tool) = (&claim.source.path, claim.tool.upstream_name.as_str());
        let entries = self.0.iter();
        entries.filter(move |audit| audit.source == *source && audit.tool == tool)
    }

    /// The newest entry that confirms the same hints of the same bytes at another path.
    fn elsewhere(&self, claim: &Claim<'_>) -> Option<Elsewhere<'_>> {
        let same = self.0.iter().filter(|audit| {
            audit.source != claim.source.path
                && audit.tool == claim.tool.upstream_name
                && audit.digest == claim.tool.digest
                && audit.values == claim.values
        });
        same.max_by(|a, b| a.date.cmp(&b.date))
            .map(|audit| Elsewhere {
                path: &audit.source,
                who: &audit.who,
                date: &audit.date,
            })
    }

    /// The reason why no entry confirms the claim.
    fn gap(&self, claim: &Claim<'_>) -> String {
        let latest = self.find_by_tool(claim).max_by(|a, b| a.date.cmp(&b.date));
        let Some(audit) = latest else {
            return "it was never audited".to_owned();
        };
        let what = match audit.digest == claim.tool.digest {
            true => "the hints of the config have changed",
            false => "the tool has changed",
        };
        let who = shown_line(&audit.who, 80);
        format!("{what} since the audit of {who} on {}", audit.date)
    }
}

/// The claim of a tool of a plan, if there is one.
pub fn claim_of<'p>(
    plan: &'p Plan<'_>,
    path: &'p NodePath,
    entry: &'p ToolEntry<'_>,
) -> Option<Claim<'p>> {
    let set = entry.said?.annotations.as_ref()?;
    let server = Hints::read(entry.tool.raw.get("annotations"));
    let hints = Hints::read(entry.annotations().as_ref()).safer_than(server);
    (!hints.is_empty()).then(|| Claim {
        path,
        source: plan.sources[entry.source].0,
        tool: entry.tool,
        hints,
        values: HintValues::new(set),
    })
}

/// Every claim of a plan.
pub fn claims<'p>(plan: &'p Plan<'_>) -> Vec<Claim<'p>> {
    let tools = plan.entries.iter().filter_map(|(path, entry)| match entry {
        Entry::Tool(tool) => claim_of(plan, path, tool),
        Entry::Node { .. } => None,
    });
    tools.collect()
}

/// A problem for each claim that no entry beside the config confirms, or the problems of these entries. `shown` is the
/// name of the config in messages. The file is only read if there is a claim.
pub fn check(config: &Config, plan: &Plan<'_>, file: &Path, shown: &str) -> Vec<Diagnostic> {
    let claims = claims(plan);
    if claims.is_empty() {
        return Vec::new();
    }
    let audits = match HintAudits::read(file) {
        Ok(audits) => audits,
        Err(problems) => return problems,
    };
    let open = claims.iter().filter(|claim| !audits.confirm(claim));
    open.map(|claim| config.place(problem(claim, &audits, shown)))
        .collect()
}

fn problem(claim: &Claim<'_>, audits: &HintAudits, config: &str) -> Diagnostic {
    let server = claim.tool.raw.get("annotations");
    let hints = claim.hints.iter().map(|hint| {
        let key = hint.key();
        let given = server.and_then(|all| all.get(key)?.as_bool());
        let server = match given {
            Some(value) => format!("the server says {value}"),
            None => format!(
                "the server does not say it, which is {}",
                hint.unsafe_value()
            ),
        };
        format!("`{key}` is {} and {server}", !hint.unsafe_value())
    });
    let message = format!(
        "the config claims more safety for `{}` than its server: {}; {}; its digest is {}",
        claim.path,
        hints.collect::<Vec<_>>().join(", "),
        audits.gap(claim),
        claim.tool.digest
    );
    let moved = audits.elsewhere(claim);
    let moved = moved.map(|one| one.remedy(&claim.source.path, config));
    let help = format!(
        "{}Review the tool, run `{}`, and commit the audits; or remove the hints.",
        moved.unwrap_or_default(),
        command(claim, config)
    );
    let overrides = format!("{}/tool_overrides", claim.source.pointer);
    let of_tool = child_pointer(&overrides, &claim.tool.upstream_name);
    Diagnostic::error(DiagnosticCode::HintUnaudited, message)
        .at(format!("{of_tool}/annotations"))
        .help(help)
}

/// The command that adds the entry. It names the digest, since `lock` fails before it writes the tool.
fn command(claim: &Claim<'_>, config: &str) -> String {
    let name = &claim.tool.upstream_name;
    // A shell cannot be given a name that is shown in another form; such a tool has an alias.
    let name = match shown_line(name, 100) == *name {
        true => name,
        false => &claim.tool.exposed_name,
    };
    format!(
        "broker-gen accept --config {} --source {} --tool {} --hints --digest {}",
        shell_word(config),
        claim.source.path,
        shell_word(name),
        claim.tool.digest
    )
}
