//! The help of the program: its verbs under headings.

use broker_terminal::fold;
use clap::{Command, CommandFactory as _};

use super::Cli;

/// The maximum width of a line, in columns.
const WIDTH: usize = 100;

/// The verbs under their headings.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Lock and run (only these start servers)",
        &["up", "lock", "check", "serve", "doctor"],
    ),
    (
        "Review",
        &["diff", "lint", "review", "accept", "verify", "access"],
    ),
    (
        "Look",
        &["tree", "page", "search", "generate", "rules", "schema"],
    ),
    (
        "Set up",
        &[
            "new", "import", "connect", "key", "hints", "vectors", "pack",
        ],
    ),
    ("Ask a running broker", &["status"]),
    ("Shell", &["completions", "man", "help"]),
];

/// The name of a broker in the examples of the verbs that it has as well.
const BROKER: &str = "mcp-broker ";
const OWN: &str = "broker-gen ";

/// Returns the command line of this program. Verbs of a broker have examples with the name of this one.
pub(super) fn command() -> Command {
    with_own_name(Cli::command())
}

fn with_own_name(command: Command) -> Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let command = match examples {
        Some(examples) if examples.contains(BROKER) && !examples.contains(OWN) => {
            command.after_help(examples.replace(BROKER, OWN))
        }
        _ => command,
    };
    command.mut_subcommands(with_own_name)
}

/// Returns the command with a help that lists its verbs under headings.
pub(super) fn with_groups(mut command: Command) -> Command {
    command.build();
    let lines = GROUPS.iter().flat_map(|(heading, verbs)| {
        let heading = format!("  {heading}:\n");
        let verbs = verbs.iter().map(|verb| line(&command, verb));
        std::iter::once(heading).chain(verbs)
    });
    let groups: String = lines.collect();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nCommands:\n{groups}\nOptions:\n{{options}}\n"
    ))
}

/// Returns the line of a verb: its name and its summary.
fn line(command: &Command, verb: &str) -> String {
    let about = command.find_subcommand(verb).and_then(Command::get_about);
    let about = about.map(ToString::to_string).unwrap_or_default();
    let folded = fold(&format!("    {verb:13}{about}"), WIDTH, &" ".repeat(17));
    folded
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_verb_is_under_one_heading_of_the_help() {
        let mut command = Cli::command();
        command.build();
        let verbs: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| *verbs)
            .copied()
            .collect();
        assert_eq!(listed.len(), verbs.len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), verbs);
        let help = with_groups(Cli::command()).render_long_help().to_string();
        for verb in verbs {
            let lines = help.lines().filter(|line| {
                let rest = line
                    .strip_prefix("    ")
                    .and_then(|line| line.strip_prefix(verb));
                rest.is_some_and(|rest| rest.starts_with(' '))
            });
            assert_eq!(lines.count(), 1, "{verb}: {help}");
        }
    }
}
