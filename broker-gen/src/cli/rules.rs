//! `rules`: the rules of drift and lint, as a table, one by one, and as JSON.

use broker_model::exit::Exit;
use broker_model::suggest;
use broker_model::terminal::Text;
use broker_model::text;
use broker_review::lint;
use broker_review::rules::{Explained, all, find};
use broker_terminal::Layout as _;
use clap::Args;
use serde_json::{Value, json};

use super::{Format, output};

#[derive(Debug, Args)]
pub(super) struct RulesArgs {
    /// Explain only this rule.
    #[arg(value_name = "RULE")]
    rule: Option<String>,
    /// The format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(super) fn run(args: &RulesArgs) -> Exit {
    let chosen: Vec<Explained> = match &args.rule {
        None => all().collect(),
        Some(id) => match find(id) {
            Some(rule) => vec![rule],
            None => return unknown(id),
        },
    };
    match args.format {
        Format::Json => output::document(&Text::json(&chosen.iter().map(to_json).collect())),
        Format::Human if args.rule.is_some() => chosen.iter().for_each(explain),
        Format::Human => table(&chosen),
    }
    Exit::Ok
}

fn to_json((rule, page): &Explained) -> Value {
    json!({
        "rule": rule.id,
        "class": rule.class.as_str(),
        "severity": rule.severity.as_str(),
        "reason": rule.reason,
        "page": page,
    })
}

fn table(rules: &[Explained]) {
    let width = rules
        .iter()
        .map(|(rule, _)| rule.id.len())
        .max()
        .unwrap_or(0);
    for (rule, _) in rules {
        output::data(&text!(
            "{}  {:10}  {}\n",
            format!("{:width$}", rule.id),
            rule.class.as_str(),
            rule.severity.as_str(),
        ));
    }
}

fn explain((rule, page): &Explained) {
    let mut out = Text::new();
    let title = format!(
        "{}: {}, {}",
        rule.id,
        rule.class.as_str(),
        rule.severity.as_str()
    );
    out.wrap("", "  ", &title);
    out.wrap("  ", "  ", rule.reason);
    let advice = lint::advice(rule.id);
    if advice.is_empty() {
        out.wrap("  ", "  ", rule.class.meaning());
    } else {
        out.wrap("  help: ", "        ", advice);
    }
    out.wrap("  see ", "      ", page);
    output::data(&out);
}

fn unknown(id: &str) -> Exit {
    let known: Vec<&str> = all().map(|(rule, _)| rule.id).collect();
    let near = suggest::ranked(id, known).first().map_or("", |near| near.1);
    let id = broker_model::text::shown_line(id, 60);
    output::say(text!(
        "error: there is no rule `{}`; did you mean `{}`? `broker-gen rules` lists them",
        id,
        near
    ));
    Exit::Usage
}
