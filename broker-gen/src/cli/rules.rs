//! `rules`: what a report can name, in a table, one by one, and as JSON.

use broker_model::drift::{Rule, rules};
use broker_model::exit::Exit;
use broker_model::terminal::wrap;
use clap::Args;
use serde_json::{Value, json};

use super::{Format, output};

#[derive(Debug, Args)]
pub(super) struct RulesArgs {
    /// Only this rule, explained.
    #[arg(value_name = "RULE")]
    rule: Option<String>,
    /// How to print them.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(super) fn run(args: &RulesArgs) -> Exit {
    let chosen: Vec<&Rule> = match &args.rule {
        None => rules().iter().collect(),
        Some(id) => match rules().iter().find(|rule| rule.id == id) {
            Some(rule) => vec![rule],
            None => return unknown(id),
        },
    };
    match args.format {
        Format::Json => output::data_json(&chosen.into_iter().map(to_json).collect()),
        Format::Human if args.rule.is_some() => chosen.into_iter().for_each(explain),
        Format::Human => table(&chosen),
    }
    Exit::Ok
}

fn to_json(rule: &Rule) -> Value {
    json!({
        "rule": rule.id,
        "class": rule.class.as_str(),
        "severity": rule.severity.as_str(),
        "reason": rule.reason,
        "page": rule.page(),
    })
}

fn table(rules: &[&Rule]) {
    let width = rules.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    for rule in rules {
        output::data(format_args!(
            "{:width$}  {:10}  {}\n",
            rule.id,
            rule.class.as_str(),
            rule.severity.as_str(),
        ));
    }
}

fn explain(rule: &Rule) {
    let mut out = String::new();
    let title = format!(
        "{}: {}, {}",
        rule.id,
        rule.class.as_str(),
        rule.severity.as_str()
    );
    wrap(&mut out, "", "  ", &title);
    wrap(&mut out, "  ", "  ", rule.reason);
    wrap(&mut out, "  ", "  ", rule.class.meaning());
    wrap(&mut out, "  see ", "      ", &rule.page());
    output::data(out);
}

fn unknown(id: &str) -> Exit {
    let near = rules()
        .iter()
        .max_by(|a, b| {
            let like = |rule: &Rule| strsim::jaro_winkler(rule.id, id);
            like(a).total_cmp(&like(b))
        })
        .map_or("", |rule| rule.id);
    let id = broker_model::text::shown_line(id, 60);
    output::say(format_args!(
        "error: there is no rule `{id}`; did you mean `{near}`? `broker-gen rules` lists them"
    ));
    Exit::Usage
}
