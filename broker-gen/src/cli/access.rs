//! `access`: the tools that each group may call, and the origin of the hints that rules read. Starts no server.

use std::collections::BTreeMap;

use broker_build::build_script;
use broker_build::hint_audits::{HintAudits, claim_of};
use broker_build::plan::tools_facts;
use broker_build::plan::{self, Entry, Plan, ToolEntry};
use broker_model::access::{Access, GroupSet, Hint, Matrix, Row};
use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::text::counted;
use broker_model::{Diagnostic, NodePath, text};
use clap::Args;
use serde_json::{Value, json};

use super::output;

#[derive(Debug, Args)]
pub(super) struct AccessArgs {
    #[command(flatten)]
    file: super::ConfigFile,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &AccessArgs) -> Exit {
    match render(args) {
        Ok(text) => {
            match args.json {
                true => output::document(&text),
                false => output::data(&text),
            }
            Exit::Ok
        }
        Err(problems) => output::diagnostics(&problems),
    }
}

/// The origin of the value of a hint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HintOrigin {
    Config,
    Server,
    /// Neither gives it: it counts as unsafe.
    Absent,
}

impl HintOrigin {
    fn find(tool: &ToolEntry<'_>, hint: Hint) -> Self {
        let config = tool.said.and_then(|said| said.annotations.as_ref());
        let server = tool.tool.raw.get("annotations");
        let is_given = |value: Option<&Value>| value.is_some_and(Value::is_boolean);
        if config.is_some_and(|hints| hints.contains_key(hint.key())) {
            Self::Config
        } else if is_given(server.and_then(|hints| hints.get(hint.key()))) {
            Self::Server
        } else {
            Self::Absent
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Server => "server",
            Self::Absent => "absent",
        }
    }
}

fn render(args: &AccessArgs) -> Result<Text, Vec<Diagnostic>> {
    let file = &args.file.config;
    let (config, lock) = build_script::read(file, &file.to_string_lossy())?;
    let plan = plan::plan(&config, &lock.sources)?;
    output::diagnostics(&plan.warnings);
    let audits = HintAudits::read(file)?;
    let matrix = config
        .access
        .as_ref()
        .map(|access| (access, Matrix::new(access, &tools_facts(&plan))));
    Ok(match args.json {
        true => text!(
            "{}\n",
            document(&plan, matrix.as_ref(), &audits).to_string()
        ),
        false => human(&plan, matrix.as_ref(), &audits),
    })
}

fn tools<'p>(plan: &'p Plan<'_>) -> impl Iterator<Item = (&'p NodePath, &'p ToolEntry<'p>)> {
    plan.entries.iter().filter_map(|(path, entry)| match entry {
        Entry::Tool(tool) => Some((path, tool)),
        Entry::Node { .. } => None,
    })
}

/// The number of tools of each source, and of those without any hint.
fn counts<'p>(plan: &'p Plan<'_>) -> BTreeMap<&'p str, (usize, usize)> {
    let mut counts = BTreeMap::new();
    for (_, tool) in tools(plan) {
        let source = plan.sources[tool.source].1.path.as_str();
        let (all, without) = counts.entry(source).or_insert((0, 0));
        *all += 1;
        let is_without = Hint::ALL
            .iter()
            .all(|hint| HintOrigin::find(tool, *hint) == HintOrigin::Absent);
        *without += usize::from(is_without);
    }
    counts
}

/// Whether an entry of the audits confirms the hints of a tool; `None` if no confirmation is needed. Also returns the
/// hints that need it.
fn audited(
    plan: &Plan<'_>,
    (path, tool): (&NodePath, &ToolEntry<'_>),
    audits: &HintAudits,
) -> Option<(Vec<Hint>, bool)> {
    let claim = claim_of(plan, path, tool)?;
    let is_audited = audits.confirm(&claim);
    Some((claim.hints, is_audited))
}

fn human(plan: &Plan<'_>, matrix: Option<&(&Access, Matrix)>, audits: &HintAudits) -> Text {
    let mut out = Text::new();
    match matrix {
        None => out.push(text!(
            "The config has no `access`: every caller sees every tool.\n"
        )),
        Some((access, _)) => out.push(text!(
            "{}: {}; {}\n",
            counted(access.groups.len(), "group"),
            access.groups.join(", "),
            counted(access.rules.len(), "rule")
        )),
    }
    for (at, (path, tool)) in tools(plan).enumerate() {
        out.push(text!("\n{}\n", path));
        if let Some((access, matrix)) = matrix {
            let row = &matrix.rows[at];
            out.push(text!("  callers: {}\n", callers(access, matrix, row)));
        }
        let hints = tool.annotations();
        let audited = audited(plan, (path, tool), audits);
        let hints = Hint::ALL.map(|hint| {
            let value = broker_model::access::Hints::read(hints.as_ref()).get(hint);
            let origin = HintOrigin::find(tool, hint).name();
            let audit = match &audited {
                Some((hints, true)) if hints.contains(&hint) => ", audited",
                Some((hints, false)) if hints.contains(&hint) => ", not audited",
                _ => "",
            };
            format!("{} {value} ({origin}{audit})", hint.key())
        });
        out.push(text!("  hints: {}\n", hints.join(", ")));
    }
    out.push(text!("\n"));
    for (source, (all, without)) in counts(plan) {
        out.push(text!(
            "{}: {}, {} without hints\n",
            source,
            counted(all, "tool"),
            without
        ));
    }
    out
}

/// The groups that may call a tool, in words.
fn callers(access: &Access, matrix: &Matrix, row: &Row) -> String {
    let names = |bits: u64| {
        access
            .names(GroupSet::new(bits))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut parts = Vec::new();
    if row.allow != 0 {
        parts.push(names(row.allow));
    }
    for mask in &row.narrowed {
        let rule = matrix.narrowings[mask.narrowing as usize].rule;
        parts.push(format!("{} with the `args` of rule {rule}", names(mask.to)));
    }
    if parts.is_empty() {
        return "none".to_owned();
    }
    for deny in &row.deny {
        let except = match deny.except {
            0 => String::new(),
            except => format!(" unless also in {}", names(except)),
        };
        parts.push(format!("not those in {}{except}", names(deny.to)));
    }
    parts.join("; ")
}

fn document(plan: &Plan<'_>, matrix: Option<&(&Access, Matrix)>, audits: &HintAudits) -> Value {
    let tools = tools(plan).enumerate().map(|(at, (path, tool))| {
        let annotations = tool.annotations();
        let audited = audited(plan, (path, tool), audits);
        let hints = broker_model::access::Hints::read(annotations.as_ref());
        let hints: serde_json::Map<String, Value> = Hint::ALL
            .into_iter()
            .map(|hint| {
                let origin = HintOrigin::find(tool, hint).name();
                let mut value = json!({"value": hints.get(hint), "from": origin});
                if let Some((claims, is_audited)) = &audited
                    && claims.contains(&hint)
                {
                    value["audited"] = json!(is_audited);
                }
                (hint.key().to_owned(), value)
            })
            .collect();
        let mut out = json!({"path": path.as_str(), "hints": hints});
        if let Some((access, matrix)) = matrix {
            let names = |bits: u64| access.names(GroupSet::new(bits)).collect::<Vec<_>>();
            let row = &matrix.rows[at];
            let narrowed = row.narrowed.iter().map(|mask| {
                let rule = matrix.narrowings[mask.narrowing as usize].rule;
                json!({"groups": names(mask.to), "rule": rule})
            });
            let deny = row.deny.iter();
            let deny = deny.map(|one| json!({"to": names(one.to), "except": names(one.except)}));
            out["allow"] = json!(names(row.allow));
            out["narrowed"] = narrowed.collect();
            out["deny"] = deny.collect();
        }
        out
    });
    let sources = counts(plan).into_iter().map(
        |(path, (all, without))| json!({"path": path, "tools": all, "without_hints": without}),
    );
    let mut out = json!({
        "tools": tools.collect::<Vec<_>>(),
        "sources": sources.collect::<Vec<_>>(),
    });
    if let Some((access, _)) = matrix {
        let names = |set: GroupSet| access.names(set).collect::<Vec<_>>();
        out["groups"] = json!(access.groups);
        out["local"] = json!(names(access.local));
        out["secret"] = json!(names(access.secret));
        out["anonymous"] = json!(names(access.anonymous));
    }
    out
}
