//! The generated page `docs/command-line.md`: the help of both programs and of each of their verbs.
//! `UPDATE_EXPECT=1` writes it.

use std::fmt::Write as _;
use std::path::Path;

use harness::{assert_expected, binary};

use crate::commands::{help, verbs};

const HEAD: &str = "\
# Command line

For operators and CI. Reference: every command and option of both programs.

<!-- Generated from the programs; a test holds it. Do not edit. -->

Each section is what `--help` prints. [errors.md](errors.md#exit-codes) has the exit codes.
";

/// Adds the section of a command, and those of the verbs below it.
fn add(out: &mut String, program: &Path, words: &[&str]) {
    let mut args = words[1..].to_vec();
    args.push("--help");
    let text = help(program, &args);
    let level = "#".repeat(words.len() + 1);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let shown = lines.join("\n");
    write!(
        out,
        "\n{level} `{}`\n\n```text\n{}\n```\n",
        words.join(" "),
        shown.trim_end()
    )
    .expect("writing to a string cannot fail");
    for verb in verbs(&text).into_iter().filter(|verb| *verb != "help") {
        add(out, program, &[words, &[verb]].concat());
    }
}

#[test]
fn command_line_page_has_the_help_of_every_command() {
    let mut page = HEAD.to_owned();
    for name in ["broker-gen", "mcp-broker"] {
        add(&mut page, &binary(name), &[name]);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/command-line.md");
    assert_expected(&file, &page);
}
